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


@pytest.mark.parametrize("link", ["docs/nowhere.md", "docs/serve.md#no-such-heading", "docs/images/none.png"])
def test_a_link_that_leads_nowhere_is_refused(make: Make, pages: Path, link: str) -> None:
    with (pages / "README.md").open("a", encoding="utf-8") as readme:
        readme.write(f"\nSee {'!' * link.endswith('png')}[this]({link}).\n")
    done = make(pages)
    assert done.returncode != 0
    assert link.partition("#")[2] or link in done.stderr
