"""The site of README and docs: each page is in it, and a link that leads nowhere is refused."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.environments import python_with

pytestmark = pytest.mark.test_all

ROOT = Path(__file__).parents[1]
Make = Callable[[Path], "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def make() -> Make:
    """As `make site` does, with the pages of a folder."""
    python = python_with("site", ROOT / "docs/site/requirements.txt")

    def made(folder: Path) -> subprocess.CompletedProcess[str]:
        command = [python, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", "docs/site", ".", "site"]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)

    return made


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """A folder with all that the site is made of."""
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def test_each_page_is_in_the_site_and_in_its_contents(make: Make, pages: Path) -> None:
    done = make(pages)
    assert done.returncode == 0, done.stderr
    first = (pages / "site/index.html").read_text("utf-8")
    contents = set(re.findall(r'class="toctree-l1"><a class="reference internal" href="([^"#]+)', first))
    assert contents == {"CHANGELOG.html", "CONTRIBUTING.html"} | {
        f"docs/{page.stem}.html" for page in pages.glob("docs/*.md")
    }
    assert all((pages / "site" / page).is_file() for page in contents)


def test_a_run_is_shown_with_its_verdict_and_its_report(make: Make, pages: Path) -> None:
    (pages / "notebooks").mkdir()
    for name in ("30_loudness_gate", "40_streaming_chunks"):
        shutil.copy(ROOT / f"notebooks/{name}.ipynb", pages / "notebooks")
    for run, verdict in (("20260101T000000Z-0000", "Failed"), ("20260102T000000Z-0000", "Passed")):
        done = make(pages)  # each run is shown by the next site
        folder = pages / "results/30_loudness_gate" / run
        folder.mkdir(parents=True)
        banner = f'<div class="banner"><p class="headline">{verdict}</p></div>'
        (folder / "report.html").write_text(f'{banner}<figure class="plot">a\n\nb</figure>', "utf-8")
        (folder / "result.json").write_text('{"git": {"commit": "0123456789"}}', "utf-8")
    done = make(pages)
    assert done.returncode == 0, done.stderr
    shown = (pages / "site/docs/rendered.html").read_text("utf-8")
    assert "Is every clip at the target loudness" in shown
    assert '<p class="headline">Passed</p>' in shown
    assert "Failed" not in shown
    assert "01234567" in shown
    assert '<figure class="plot">' in shown
    assert "40_streaming_chunks</span></code> was not run here" in shown
    assert "Passed" in (pages / "site/runs/30_loudness_gate/report.html").read_text("utf-8")


@pytest.mark.parametrize("link", ["docs/nowhere.md", "docs/serve.md#no-such-heading", "docs/images/none.png"])
def test_a_link_that_leads_nowhere_is_refused(make: Make, pages: Path, link: str) -> None:
    with (pages / "README.md").open("a", encoding="utf-8") as readme:
        readme.write(f"\nSee {'!' * link.endswith('png')}[this]({link}).\n")
    done = make(pages)
    assert done.returncode != 0
    assert link.partition("#")[2] or link in done.stderr
