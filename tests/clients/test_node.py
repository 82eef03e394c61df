"""Clients on Node: OpenAI's SDK, and plain `fetch` as Raycast's extension does it."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser import require
from tests.clients.listening import FORMATS, TEXT, assert_speech, no_room
from tests.server.conftest import RunningServer

pytestmark = pytest.mark.test_all

HERE = Path(__file__).parent
NODE = shutil.which("node")
TIMEOUT_S = 60

Run = Callable[..., dict[str, Any]]


def node(script: str, *arguments: str) -> dict[str, Any]:
    assert NODE is not None
    done = subprocess.run(
        [NODE, HERE / script, *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def sdk(server: RunningServer) -> Run:
    """One scenario of the SDK's script."""
    wanted = json.loads((HERE / "package.json").read_text())["dependencies"]["openai"]
    there = HERE / "node_modules/openai/package.json"
    installed = there.exists() and json.loads(there.read_text())["version"] == wanted
    require(
        {"Node.js (Debian: apt-get install nodejs npm)": NODE, f"openai {wanted} (make clients)": installed}
    )
    return lambda scenario, *arguments: node("openai_sdk.mjs", scenario, server.url, *arguments)


@pytest.fixture
def raycast(server: RunningServer) -> Run:
    """One scenario of Raycast's script."""
    require({"Node.js (Debian: apt-get install nodejs npm)": NODE})
    return lambda scenario, *arguments: node("raycast.mjs", scenario, server.url, *arguments)


def speech(**fields: object) -> str:
    return json.dumps({"model": "tts-1", "voice": "hum", "input": TEXT, **fields})


def audio(found: dict[str, Any]) -> bytes:
    return base64.b64decode(found["audio"])


# --------------------------------------------------------------------------------------- OpenAI's SDK


@pytest.mark.parametrize("kind", FORMATS)
def test_the_sdk_gets_the_whole_speech(sdk: Run, kind: str, server: RunningServer) -> None:
    assert_speech(kind, audio(sdk("spoken", speech(response_format=kind))), server, TEXT)


def test_the_sdk_hears_the_beginning_before_the_end(sdk: Run, server: RunningServer) -> None:
    text = f"{TEXT} And this is a slow one. And this is a slow one."
    found = sdk("streamed", text)
    assert found["fragments"] > 3
    assert found["firstMs"] < found["lastMs"] / 2
    assert_speech("pcm", audio(found), server, text)


@pytest.mark.parametrize(
    ("fields", "status", "param"),
    [({"voice": "nobody"}, 400, "voice"), ({"input": "Bang.", "stream": False}, 500, None)],
)
def test_the_sdk_sends_what_cannot_be_spoken_once_and_reads_why(
    sdk: Run, fields: dict[str, object], status: int, param: str | None
) -> None:
    found = sdk("refused", speech(**fields))
    assert (found["status"], found["param"], found["sent"]) == (status, param, 1)
    assert found["name"] == ("BadRequestError" if status == 400 else "InternalServerError")
    assert found["code"]
    assert found["message"].startswith(f"{status} ")


def test_the_sdk_asks_a_busy_server_again_as_often_as_it_was_told(sdk: Run, server: RunningServer) -> None:
    with no_room(server):
        found = sdk("busy")
    assert (found["name"], found["status"], found["sent"]) == ("RateLimitError", 429, 2)


def test_the_sdk_stops_a_speech(sdk: Run) -> None:
    found = sdk("stopped")
    assert found["bytes"] > 0
    assert found["before"] == 1
    assert found["idle"], "the slot was not freed"


def test_the_sdk_lists_the_models(sdk: Run) -> None:
    assert {"kokoro", "tts-1"} <= set(sdk("models")["names"])


# ------------------------------------------------------------------------------------------- Raycast


def test_raycast_starts_a_speech(raycast: Run, server: RunningServer) -> None:
    found = raycast("start", TEXT)
    assert (found["status"], found["type"]) == (200, "audio/pcm;rate=24000;channels=1")
    assert_speech("pcm", audio(found), server, TEXT, speed=1.25)


def test_raycast_stops_a_speech(raycast: Run) -> None:
    assert raycast("stop") == {"before": 1, "ended": "AbortError", "idle": True}


def test_raycast_interrupts_a_speech_by_a_second_one(raycast: Run, server: RunningServer) -> None:
    found = raycast("interrupt", TEXT)
    assert (found["status"], found["idle"]) == (200, True)
    assert found["both"] >= 1, "the first speaks on while the second is answered, which may have ended by now"
    assert_speech("pcm", audio(found), server, TEXT, speed=1.25)


def test_raycast_is_told_of_the_field_that_it_sent(raycast: Run) -> None:
    found = raycast("refused")
    assert (found["status"], found["error"]["param"]) == (400, "text")


def test_raycast_finds_its_voices_and_the_server_well(raycast: Run) -> None:
    found = raycast("voices")
    assert found["health"] == 200
    assert "af_heart" in found["voices"]
