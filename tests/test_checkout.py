"""What `make env` tells a checkout: to run a notebook in it, or to speak into it, changes nothing for git."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import nbformat
import pytest

from kokoro_lab import provenance
from tests.browser import chromium, new_page

NOTEBOOK = "notebooks/00_quickstart.ipynb"
LARGE_FILES = "jupyter_server.services.contents.largefilemanager.AsyncLargeFileManager"


def git(checkout: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=checkout, capture_output=True, text=True, check=True)
    return done.stdout.rstrip("\n")


@pytest.fixture
def checkout(repository: Path, tmp_path: Path) -> Path:
    """A new clone with what is changed here, on which `make env` was run."""
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(repository), str(clone))
    changed = git(repository, "diff", "--name-only", "HEAD")
    added = git(repository, "ls-files", "--others", "--exclude-standard")
    for name in f"{changed}\n{added}".split():
        if (repository / name).exists():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            (clone / name).write_bytes((repository / name).read_bytes())
            (clone / name).chmod((repository / name).stat().st_mode)
    (clone / ".venv").mkdir()
    (clone / ".venv/bin").symlink_to(Path(sys.executable).parent)
    subprocess.run(["make", "-o", ".venv/.installed", "env"], cwd=clone, check=True, capture_output=True)
    git(clone, "add", "--all")
    git(clone, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "-m", "x")
    assert git(clone, "status", "--porcelain") == ""
    return clone


def executed(path: Path) -> dict[str, Any]:
    """A notebook as JupyterLab has it once all cells were run."""
    notebook: dict[str, Any] = json.loads(path.read_text("utf-8"))
    for number, cell in enumerate(cell for cell in notebook["cells"] if cell["cell_type"] == "code"):
        cell["execution_count"] = number + 1
        cell["metadata"]["execution"] = {"iopub.execute_input": "2026-01-01T00:00:00Z"}
        cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["it was run\n"]}]
    notebook["metadata"]["language_info"] = {"name": "python", "version": "3.11.9"}
    return notebook


# the server alone, with the files as `jupyter lab` has them
SERVER = ("jupyter_server", "--ServerApp.contents_manager_class=" + LARGE_FILES)
LAB = ("jupyterlab", "--LabApp.news_url=None", "--LabApp.expose_app_in_browser=True")
LAB += ("--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",)


@contextmanager
def jupyter(checkout: Path, program: tuple[str, ...] = SERVER) -> Iterator[httpx2.Client]:
    """JupyterLab on the notebooks, with the settings of the checkout."""
    words = ["-m", *program, "--no-browser", "--ServerApp.port=0", "--allow-root", "--ServerApp.ip=127.0.0.1"]
    words += ["--IdentityProvider.token=a", "--ServerApp.root_dir=notebooks"]
    home = checkout.parent / "home"
    environment = {
        **os.environ,
        "JUPYTER_CONFIG_PATH": str(checkout / ".venv/etc/jupyter"),
        **{f"JUPYTER_{kind}_DIR": str(home / kind) for kind in ("CONFIG", "DATA", "RUNTIME")},
    }
    log = checkout.parent / "jupyter.log"
    with log.open("wb") as sink:
        server = subprocess.Popen(
            [sys.executable, *words], cwd=checkout, env=environment, stdout=sink, stderr=sink
        )
    try:
        deadline = time.monotonic() + 60
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)/", log.read_text())):
            assert time.monotonic() < deadline, log.read_text()
            assert server.poll() is None, log.read_text()
            time.sleep(0.05)
        with httpx2.Client(base_url=found[0], headers={"Authorization": "token a"}, timeout=30) as client:
            yield client
    finally:
        server.terminate()
        server.wait()


def test_a_notebook_that_was_run_and_saved_is_no_change_and_keeps_its_outputs(checkout: Path) -> None:
    with jupyter(checkout) as client:
        for _ in range(2):  # autosave saves again
            model = {"type": "notebook", "format": "json", "content": executed(checkout / NOTEBOOK)}
            answer = client.put(f"api/contents/{Path(NOTEBOOK).name}", json=model)
            assert answer.status_code == 200, answer.text
            assert git(checkout, "status", "--porcelain") == ""
    assert "it was run" in (checkout / NOTEBOOK).read_text("utf-8")
    assert "it was run" not in git(checkout, "show", f":{NOTEBOOK}")


INDEX_IS_READY = """async () => {
    await window.jupyterapp.restored
    const notebook = window.jupyterapp.shell.currentWidget
    await notebook.context.ready
    await notebook.sessionContext.ready
    await notebook.sessionContext.session.kernel.info
}"""


@pytest.mark.browser
def test_the_index_speaks_and_leads_on_and_is_no_change(checkout: Path) -> None:
    """As a person does: `make lab`, Run, Speak, save, and a click on a link."""
    with jupyter(checkout, LAB) as client, chromium() as browser, new_page(browser) as page:
        page.on("dialog", lambda dialog: dialog.accept())
        page.goto(f"{client.base_url}lab/tree/00_index.ipynb?token=a")
        page.wait_for_function("() => window.jupyterapp?.shell?.currentWidget?.sessionContext")
        page.evaluate(INDEX_IS_READY)
        page.locator(".jp-CodeCell .cm-content").first.click()
        page.locator('[data-command="notebook:run-cell-and-select-next"]').first.click()
        page.get_by_role("button", name="Speak").click()
        page.locator(".kokoro-speaking audio").wait_for()
        played = "() => document.querySelector('.kokoro-speaking audio').currentTime > 0.2"
        page.wait_for_function(played)
        page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
        deadline = time.monotonic() + 30
        while "widget-view+json" not in (checkout / "notebooks/00_index.ipynb").read_text("utf-8"):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        time.sleep(0.5)  # the hook comes behind the file
        assert git(checkout, "status", "--porcelain") == ""
        page.get_by_role("link", name="00_quickstart").click()
        page.wait_for_function(
            "() => window.jupyterapp.shell.currentWidget.context?.path === '00_quickstart.ipynb'"
        )
        for session in client.get("api/sessions").json():
            client.delete(f"api/sessions/{session['id']}")


@pytest.mark.test_all
def test_a_cell_that_was_edited_is_a_change_and_is_not_staged(checkout: Path) -> None:
    content = executed(checkout / NOTEBOOK)
    content["cells"][1]["source"] = ["voice: str = 'am_adam'"]
    with jupyter(checkout) as client:
        model = {"type": "notebook", "format": "json", "content": content}
        client.put(f"api/contents/{Path(NOTEBOOK).name}", json=model)
    assert git(checkout, "status", "--porcelain") == f" M {NOTEBOOK}"
    shown = git(checkout, "diff")
    assert "+voice: str = 'am_adam'" in shown
    assert "it was run" not in shown
    assert "execution_count" not in shown


def test_whatever_saves_a_notebook_a_result_does_not_call_it_changed(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkout)
    nbformat.write(nbformat.from_dict(executed(checkout / NOTEBOOK)), checkout / NOTEBOOK)  # type: ignore[no-untyped-call]
    assert provenance.git_state()["dirty"] is False
    (checkout / NOTEBOOK).write_text((checkout / NOTEBOOK).read_text("utf-8").replace("af_heart", "am_adam"))
    assert provenance.git_state()["dirty"] is True


def test_a_new_file_is_a_change_and_speech_is_none(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(checkout)
    for name in ("speech.wav", "notebooks/heard.mp3", "results/x/result.json", "a.opus"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_bytes(b"x")
    assert git(checkout, "status", "--porcelain") == ""
    assert provenance.git_state()["dirty"] is False
    (checkout / "notes.txt").write_text("x")
    assert provenance.git_state()["dirty"] is True


def test_the_filter_leaves_a_notebook_as_jupyter_writes_it_and_what_is_none_alone(repository: Path) -> None:
    script = [sys.executable, "-S", str(repository / "scripts/strip_notebooks.py"), "--clean"]
    for text in (git(repository, "show", f":{NOTEBOOK}") + "\n", "<<<<<<< ours\n"):
        done = subprocess.run(script, input=text, capture_output=True, text=True, check=True)
        assert done.stdout == text


@pytest.mark.model
@pytest.mark.notebook
def test_its_demonstration_speaks(checkout: Path) -> None:
    command = ["make", "-o", ".venv/.installed", "demo"]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert (checkout / "results/demo/paragraph.wav").stat().st_size > 100_000
    assert any(checkout.glob("results/30_loudness_gate/*/report.html"))
