"""Vendors' own clients for live text, against our server: each hears what our own request gives."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.clients.listening import TEXT, reference, samples_of
from tests.environments import python_with
from tests.server.conftest import RunningServer

pytestmark = pytest.mark.test_all

HERE = Path(__file__).parent
WANTED = HERE / "python.txt"
FRAGMENTS = ["Hello ", "there. And", " you, I should", " think. "]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def python() -> Path:
    """The environment that holds them, made once for each state of python.txt (460 MB)."""
    return python_with("clients", WANTED)


@pytest.fixture
def run(python: Path) -> Run:
    """One of the clients of live_text.py."""

    def ran(client: str, server: RunningServer, fragments: list[str] = FRAGMENTS, key: str = "any") -> Any:
        return subprocess.run(
            [python, HERE / "live_text.py", client, server.url, key, json.dumps(fragments)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return ran


def heard(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_elevenlabs_sdk_hears_the_speech_and_sends_its_key(run: Run, locked: RunningServer) -> None:
    audio = base64.b64decode(heard(run("elevenlabs", locked, key="sesame"))["audio"])
    assert np.array_equal(samples_of("pcm", audio), reference(locked, TEXT, voice="hum", speed=1.25))
    refused = run("elevenlabs", locked, key="wrong")
    assert refused.returncode != 0
    assert "HTTP 401" in refused.stderr


def test_elevenlabs_sdk_raises_what_the_server_says_of_a_voice(run: Run, server: RunningServer) -> None:
    found = heard(run("elevenlabs", server, []))
    assert found["status"] == 1008
    assert "21m00Tcm4TlvDq8ikWAM" in str(found["error"])


def test_livekit_speaks_two_texts_over_one_connection_and_knows_their_words(
    run: Run, server: RunningServer
) -> None:
    found = heard(run("livekit", server))
    said = reference(server, TEXT, voice="hum")
    for audio in found["said"]:
        assert np.array_equal(samples_of("pcm", base64.b64decode(audio)), said)
    assert "".join(word for word, _, _ in found["words"]).split() == TEXT.split() * 2
    starts = [start for _, start, _ in found["words"]]
    half = len(starts) // 2
    assert starts[:half] == starts[half:] == sorted(starts[:half])


def test_mistrals_sdk_hears_the_speech_and_what_it_cost(run: Run, server: RunningServer) -> None:
    found = heard(run("mistral", server))
    samples = np.frombuffer(base64.b64decode(found["audio"]), "<f4")
    assert np.array_equal(samples, reference(server, TEXT, voice="hum"))
    assert found["usage"]["total_tokens"] > found["usage"]["prompt_tokens"] > 0
