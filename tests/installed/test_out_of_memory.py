"""A bounded arena that is too small: the installed command says so, and what would be enough."""

from __future__ import annotations

import json
import re
import subprocess

import httpx2
import pytest

from tests.installed.command import READY_S, Installed, Served

TEXT = "The river leaves the hills without hurry."
LONG = (
    "The river leaves the hills without hurry, turns twice around the old mill, passes below the bridge where"
    " the children fish in summer, and comes at last, slow and wide and brown, to the harbour and the sea."
)
BROKE = 3


def short_of(size_mb: int) -> re.Pattern[str]:
    return re.compile(
        rf"Error: KOKORO_MEMORY_ARENA_SIZE_MB is {size_mb}: not enough to (load the model|speak this), which "
        r"takes at least (\d+) MiB\. Allowed: 512 for one request at a time, or 0 for no bound\. Set it"
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


@pytest.mark.parametrize("size_mb", [40])
def test_a_server_says_it_in_health_in_an_answer_and_in_an_event(installed: Installed, size_mb: int) -> None:
    expected = f"KOKORO_MEMORY_ARENA_SIZE_MB is {size_mb}: not enough to speak this"
    variables = {"KOKORO_MEMORY_ARENA_SIZE_MB": str(size_mb)}
    with installed.started("serve", "--port", "0", **variables) as running:
        port = int(running.awaited(r"Listening at: http://127\.0\.0\.1:(\d+)")[1])
        server = Served(running.process, running.log, port)
        running.awaited("Warm-up failed: ")
        health = httpx2.get(f"{server.url}/health", timeout=READY_S)
        assert health.status_code == 503
        assert expected in health.json()["reason"]
        whole = server.speak(LONG, stream=False)
        error = whole.json()["error"]
        assert (whole.status_code, error["code"]) == (503, "out_of_memory")
        assert (error["type"], error["param"]) == ("server_error", "KOKORO_MEMORY_ARENA_SIZE_MB")
        assert expected in error["message"]
        streamed = server.speak(LONG, response_format="pcm", stream_format="sse").text
        events = [json.loads(line[5:]) for line in streamed.splitlines() if line.startswith("data:")]
        assert events[-1]["error"]["code"] == "out_of_memory"
        assert expected in events[-1]["error"]["message"]
        assert running.process.poll() is None
