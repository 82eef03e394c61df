"""A bounded arena that is too small: the installed command says so, and what would be enough."""

from __future__ import annotations

import json
import re
import subprocess

import httpx2
import pytest

from tests.installed.command import READY_S, Installed

TEXT = "The river leaves the hills without hurry."
LONG = (
    "The river leaves the hills without hurry, turns twice around the old mill, passes below the bridge where "
    "the children fish in summer, and comes at last, slow and wide and brown, to the harbour and the sea."
)
BROKE = 3


def short_of(size_mb: int) -> re.Pattern[str]:
    return re.compile(
        rf"Error: KOKORO_MEMORY_ARENA_SIZE_MB is {size_mb}: not enough to (load the model|speak this), which "
        r"takes at least (\d+) MiB\. Allowed: 512 for one request at a time, or 0 for no bound\. Set it to that"
    )


def check(done: subprocess.CompletedProcess[str], size_mb: int) -> None:
    """It has spoken, or has said what it lacks and nothing else."""
    if done.returncode == 0:
        return
    assert done.returncode == BROKE, done.stderr
    found = short_of(size_mb).search(done.stderr)
    assert found, done.stderr
    assert int(found[2]) > size_mb
    for noise in ("Traceback", "onnxruntime", "doctor"):
        assert noise not in done.stderr


@pytest.mark.parametrize(
    ("size_mb", "text"), [(1, TEXT), (16, TEXT), (40, TEXT), (47, TEXT), (48, TEXT), (49, TEXT), (64, LONG)]
)
def test_it_speaks_or_says_what_it_lacks(installed: Installed, size_mb: int, text: str) -> None:
    done = installed.run("speak", text, "-o", "a.wav", KOKORO_MEMORY_ARENA_SIZE_MB=str(size_mb))
    check(done, size_mb)
    assert (installed.folder / "a.wav").exists() is (done.returncode == 0)
    assert size_mb >= 64 or done.returncode == BROKE


@pytest.mark.test_all
@pytest.mark.parametrize("size_mb", range(41, 96, 6))
@pytest.mark.parametrize("how", ["--stream", "-o"])
def test_wherever_it_runs_out_it_says_so(installed: Installed, size_mb: int, how: str) -> None:
    options = ["--stream", "-o", "a.wav"] if how == "--stream" else ["-o", "a.wav"]
    check(installed.run("speak", LONG, *options, KOKORO_MEMORY_ARENA_SIZE_MB=str(size_mb)), size_mb)


def test_what_it_names_is_enough(installed: Installed) -> None:
    done = installed.run("speak", LONG, "-o", "a.wav", KOKORO_MEMORY_ARENA_SIZE_MB="512")
    assert done.returncode == 0, done.stderr


def test_a_server_answers_in_the_one_shape_and_goes_on(installed: Installed) -> None:
    with installed.serving(KOKORO_MEMORY_ARENA_SIZE_MB="90") as server:
        whole = server.speak(f"{LONG} {LONG}")
        error = whole.json()["error"]
        assert (whole.status_code, error["code"], error["param"]) == (
            503,
            "out_of_memory",
            "KOKORO_MEMORY_ARENA_SIZE_MB",
        )
        assert error["type"] == "server_error"
        assert "KOKORO_MEMORY_ARENA_SIZE_MB is 90: not enough to speak this" in error["message"]
        body = {"input": LONG, "voice": "af_heart", "response_format": "pcm", "stream_format": "sse"}
        streamed = httpx2.post(f"{server.url}/v1/audio/speech", json=body, timeout=READY_S).text
        events = [json.loads(line[5:]) for line in streamed.splitlines() if line.startswith("data:")]
        if "error" in events[-1] or whole.status_code == events[-1].get("status"):
            assert events[-1]["error"]["code"] == "out_of_memory"
        assert server.speak("Yes.").status_code == 200
        assert "Traceback" not in server.written().replace('\\n', '\n').split("out_of_memory")[0]
