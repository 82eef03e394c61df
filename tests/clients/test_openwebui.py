"""OpenWebUI's calls, as `backend/open_webui/routers/audio.py` makes them."""

from __future__ import annotations

import re
from typing import Any

import httpx2
import pytest

from tests.clients.listening import FORMATS, TEXT, assert_speech, no_room
from tests.server.conftest import RunningServer

pytestmark = pytest.mark.test_all

KEY = {"Authorization": "Bearer sesame"}
DEFAULT = "mp3" if "mp3" in FORMATS else "wav"


def speak(server: RunningServer, text: str, voice: str = "hum", **headers: str) -> httpx2.Response:
    body = {"input": text, "voice": voice, "model": "tts-1"}
    return httpx2.post(f"{server.url}/v1/audio/speech", json=body, headers={**KEY, **headers}, timeout=60)


def test_it_names_no_format_and_gets_a_file_that_plays(locked: RunningServer) -> None:
    answer = speak(locked, TEXT)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == {"mp3": "audio/mpeg", "wav": "audio/wav"}[DEFAULT]
    assert_speech(DEFAULT, answer.content, locked, TEXT)


def test_it_sends_a_reply_sentence_by_sentence(locked: RunningServer) -> None:
    for part in re.split(r"(?<=[.!?])\s+|\n+", "Here is one of the pieces. Is this another?\nAnd the last"):
        assert_speech(DEFAULT, speak(locked, part).content, locked, part)


def test_a_paragraph_beyond_openais_limit_is_spoken(locked: RunningServer) -> None:
    answer = speak(locked, "This is said. " * 300)
    assert answer.status_code == 200
    assert len(answer.content) > 4096


@pytest.mark.parametrize(
    ("path", "names"),
    [("voices", lambda found: [(v["id"], v["name"]) for v in found["voices"]]),
     ("models", lambda found: [model["id"] for model in found["models"]])],
)  # fmt: skip
def test_it_lists_voices_and_models_without_its_key(locked: RunningServer, path: str, names: Any) -> None:
    answer = httpx2.get(f"{locked.url}/v1/audio/{path}")
    assert answer.status_code == 200
    found = names(answer.json())
    assert len(found) == len(set(found)) > 3


def test_it_shows_what_is_wrong(locked: RunningServer) -> None:
    for answer, status in (
        (speak(locked, TEXT, voice="alto"), 400),
        (speak(locked, ""), 400),
        (speak(locked, TEXT, Authorization="Bearer wrong"), 401),
    ):
        assert answer.status_code == status
        assert set(answer.json()) == {"error"}  # with `detail` beside it, it would show a general one
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
        assert answer.json()["error"]["message"].endswith(".")


def test_it_is_told_that_the_server_is_busy(server: RunningServer) -> None:
    with no_room(server):
        answer = speak(server, TEXT)
    assert answer.status_code == 429
    assert answer.json()["error"]["type"] == "rate_limit_error"
