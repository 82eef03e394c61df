"""The listening test as a person takes it: a real JupyterLab, in headless Chromium."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest

from kokoro_lab.lab.listening import open_session
from kokoro_lab.lab.listening.answers import read_answers
from tests.browser import chromium, new_page
from tests.lab.listening.tones import pairs

TRIALS = 4
PAGE = """\
from kokoro_lab.lab.listening import open_session
from kokoro_lab.lab.listening.view import ListeningView

ListeningView(open_session("test"), "ada")"""

pytestmark = [pytest.mark.browser, pytest.mark.notebook]


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab."""

    folder: Path
    port: int
    token: str

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}?token={self.token}"

    def api(self, method: str, path: str) -> Any:
        request = urllib.request.Request(self.url(f"api/{path}"), method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read() or "null")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """JupyterLab on the loopback, with a notebook that holds a listening test, ended by its process id."""
    folder = tmp_path / "lab"
    open_session(folder / "test", pairs(2), repeats=2, seed=3)
    cells = [nbformat.v4.new_code_cell(PAGE)]
    kernel = {"kernelspec": {"name": "python3", "language": "python", "display_name": "Python 3"}}
    nbformat.write(nbformat.v4.new_notebook(metadata=kernel, cells=cells), folder / "listen.ipynb")  # type: ignore[no-untyped-call]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    found = Lab(folder, port, secrets.token_hex(16))
    # A home of its own: no settings, workspaces or extensions of whoever runs this
    home = {"HOME": str(tmp_path), "JUPYTER_CONFIG_DIR": str(tmp_path / "config"), "JUPYTER_NO_CONFIG": "1"}
    environment = {**os.environ, **home, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"),
        *(f"--ServerApp.port={port}", "--ServerApp.port_retries=0", f"--ServerApp.root_dir={folder}"),
        *(f"--IdentityProvider.token={found.token}", "--LabApp.news_url=None"),
        *(
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
            "--LabApp.expose_app_in_browser=True",
        ),
    ]
    with (tmp_path / "lab.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=tmp_path)
        try:
            wait_for_server(found, server, tmp_path / "lab.log")
            yield found
        finally:
            end_kernels(found)
            server.terminate()
            server.wait(20)


def wait_for_server(lab: Lab, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(300):
        assert server.poll() is None, log.read_text()
        try:
            lab.api("GET", "status")
            return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    raise AssertionError(f"JupyterLab does not answer: {log.read_text()}")


def end_kernels(lab: Lab) -> None:
    for session in lab.api("GET", "sessions"):
        lab.api("DELETE", f"sessions/{session['id']}")


@pytest.fixture
def page() -> Iterator[Any]:
    with chromium() as browser, new_page(browser) as opened:
        opened.on("dialog", lambda dialog: dialog.accept())  # "leave the page?"
        yield opened


READY = """async () => {
    await window.jupyterapp.restored
    const notebook = window.jupyterapp.shell.currentWidget
    await notebook.context.ready
    await notebook.sessionContext.ready
    await notebook.sessionContext.session.kernel.info
}"""


def run_the_cell(page: Any) -> None:
    """As a person does: click into it when all is loaded, and press the button with the triangle."""
    page.wait_for_function("() => window.jupyterapp?.shell?.currentWidget?.sessionContext")
    page.evaluate(READY)
    page.locator(".jp-CodeCell .cm-content").first.click()
    page.locator('[data-command="notebook:run-cell-and-select-next"]').first.click()


def test_answer_reload_resume_result(page: Any, lab: Lab) -> None:
    page.goto(lab.url("lab/tree/listen.ipynb"))
    run_the_cell(page)
    frame_of(page).locator("#begin").wait_for()
    cells = page.locator(".jp-CodeCell").count()
    take(page, range(1, 3))
    frame_of(page).get_by_role("heading", name=f"Trial 3 of {TRIALS}").wait_for()
    assert list(read_answers(lab.folder / "test/ada.jsonl").letters) == ["A", "A"]
    assert page.locator(".jp-CodeCell").count() == cells  # keys A, B and X did nothing to the notebook

    # The kernel dies and the page is loaded again: nothing is left but the file
    end_kernels(lab)
    page.goto(lab.url("lab/tree/listen.ipynb"))
    run_the_cell(page)
    frame_of(page).get_by_text(f"2 of {TRIALS} trials are answered").wait_for()
    take(page, range(3, 5))
    frame_of(page).get_by_text(f"All {TRIALS} trials are answered").wait_for()
    right = open_session(lab.folder / "test").result().counts["ada"][0]
    frame_of(page).get_by_text(f"ada was right in {right} of {TRIALS} trials").wait_for()
    assert frame_of(page).get_by_text("4 trials are too few to show anything").is_visible()


def frame_of(page: Any) -> Any:
    """The page of the test, in its frame."""
    return page.frame_locator(".jp-OutputArea iframe")


def take(page: Any, trials: Iterable[int]) -> None:
    """Set the level, then listen to all of each of three, by keys, and answer."""
    frame_of(page).locator("#begin").click()
    for number in trials:
        frame_of(page).get_by_role("heading", name=f"Trial {number} of {TRIALS}").wait_for()
        frame_of(page).locator("#why", has_text="Listen to").wait_for()
        for key in "abx":
            page.keyboard.press(key)
            button = frame_of(page).locator(f"[data-button={key.upper()}]")
            button.and_(frame_of(page).locator("[aria-pressed=true]")).wait_for()
            button.and_(frame_of(page).locator("[aria-pressed=false]")).wait_for()  # to its end
        frame_of(page).locator("#why", has_text="Which one is X?").wait_for()
        page.keyboard.press("1")
