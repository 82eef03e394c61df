"""The listening test as a person takes it: a real JupyterLab, in headless Chromium."""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
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


def heading(page: Any, number: int) -> None:
    page.get_by_text(f"Trial {number} of {TRIALS}").wait_for()


PLAYED = """before => {
    const audio = document.querySelector(".kokoro-listening audio")
    return audio && audio.src != before && audio.ended && audio.currentTime
}"""


def play(page: Any, button: str) -> float:
    """Click a play button, and hear it to its end; how many seconds that was."""
    before = page.evaluate("document.querySelector('.kokoro-listening audio')?.src")
    page.get_by_role("button", name=f"▶ {button}").click()
    return float(page.wait_for_function(PLAYED, arg=before).json_value())


def answer(page: Any, letter: str) -> None:
    page.get_by_role("button", name=f"X is {letter}").click()


def test_play_answer_reload_resume_result(page: Any, lab: Lab) -> None:
    page.goto(lab.url("lab/tree/listen.ipynb"))
    run_the_cell(page)

    heading(page, 1)
    assert page.get_by_role("button", name="X is A").is_disabled()
    for button in "ABXX":
        assert play(page, button) == pytest.approx(0.6, abs=0.05)
    answer(page, "A")
    heading(page, 2)
    for button in "ABX":
        play(page, button)
    answer(page, "B")
    heading(page, 3)
    assert list(read_answers(lab.folder / "test/ada.jsonl").letters) == ["A", "B"]
    html = page.content().lower()
    assert not re.search(r"reference|candidate|passage", html.partition('class="kokoro-listening')[2])

    # The kernel dies and the page is loaded again: nothing is left but the file
    end_kernels(lab)
    page.goto(lab.url("lab/tree/listen.ipynb"))
    run_the_cell(page)
    heading(page, 3)
    for number in (3, 4):
        heading(page, number)
        for button in "XAB":
            play(page, button)
        answer(page, "A")

    page.get_by_text(f"All {TRIALS} trials are answered").wait_for()
    right = open_session(lab.folder / "test").result().counts["ada"][0]
    assert page.get_by_text(f"{right} of {TRIALS} right").is_visible()
    assert page.get_by_text("4 trials are too few to show anything").is_visible()
    page.locator(".kokoro-listening img").wait_for()
    assert page.locator(".kokoro-listening table").is_visible()
