"""Starting the server as people do."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.server.conftest import ROOT, START_S, wait_until


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_module_can_be_run_by_its_path() -> None:
    answer = run("kokoro_lab/serve.py", "--help")
    assert answer.returncode == 0, answer.stderr
    for option in ("--host", "--port", "--variant"):
        assert option in answer.stdout


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("KOKORO_VARIANT", "fp8", "KOKORO_VARIANT: There is no variant 'fp8'. Allowed: fp32"),
        ("KOKORO_VARIANT", "", "KOKORO_VARIANT: There is no variant ''."),
        ("KOKORO_CORES", "all", "Cores are given by their numbers."),
        ("KOKORO_PLACEMENT", "lungs", "There is no stage 'lungs' to place."),
        ("KOKORO_VOICE", "bob", "KOKORO_VOICE: There is no voice 'bob'."),
        ("KOKORO_VOICE", "af_heart(0)", "KOKORO_VOICE: The weights of 'af_heart(0)' add up to nothing."),
    ],
)
def test_a_wrong_setting_is_said_in_a_sentence_and_nothing_is_started(
    variable: str, value: str, said: str
) -> None:
    answer = run("kokoro_lab/serve.py", **{variable: value})
    assert answer.returncode != 0
    assert said in answer.stderr
    assert "Listening" not in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_port_that_is_taken_is_said_in_a_sentence_and_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = run("kokoro_lab/serve.py", "--port", str(port))
    assert answer.returncode == 1
    assert answer.stderr.startswith(f"Error: The server cannot listen on 127.0.0.1, port {port}.")
    assert len(answer.stderr.splitlines()) == 1


def test_an_engine_that_cannot_be_had_is_said_in_a_sentence_and_ends_the_server() -> None:
    program = """
from kokoro_lab.config import settings
from kokoro_lab.errors import WeightsError
from kokoro_lab.serve import serve

def make_app(begins):
    raise WeightsError("The weights are not there.", mend="Run `kokoro-lab fetch`.")

serve(make_app, settings())
"""
    answer = run("-c", program, KOKORO_PORT="0")
    assert answer.returncode not in (0, None)
    assert "Error: The weights are not there. Run `kokoro-lab fetch`." in answer.stderr
    assert "Traceback" not in answer.stderr


def test_the_process_that_forks_does_not_load_onnx_runtime() -> None:
    answer = run("-c", "import sys, kokoro_lab.serve; sys.exit('onnxruntime' in sys.modules)")
    assert answer.returncode == 0


@pytest.mark.test_all
@pytest.mark.model
def test_main_serves_the_real_weights(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "kokoro_lab/serve.py", "--port", "0"], cwd=ROOT, stdout=sink, stderr=sink
        )
    try:
        listening = re.compile(r"Listening at: (http://127\.0\.0\.1:\d+)")
        wait_until(lambda: listening.search(log.read_text()) is not None, START_S)
        found = listening.search(log.read_text())
        assert found is not None
        url = found[1]
        wait_until(lambda: httpx2.get(f"{url}/health", timeout=START_S).status_code == 200, START_S)
        answer = httpx2.post(
            f"{url}/v1/audio/speech",
            json={"input": "Hello.", "stream": False, "response_format": "wav"},
            timeout=START_S,
        )
        assert answer.headers["X-Kokoro-Voice"] == "af_heart"
        assert len(answer.content) > 24_000
    finally:
        process.terminate()
        process.wait(20)
