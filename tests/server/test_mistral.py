"""Mistral's names for live text: one generation behind another, each with its end and what it cost."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import numpy as np
import pytest
import websocket

from kokoro_lab.speech.engine import Engine
from tests.server.conftest import RunningServer, wait_until
from tests.server.test_elevenlabs import Listener
from tests.server.test_resume import TEXT
from tests.server.test_speech import BROKEN, pcm_of_stream
from tests.speech.test_live import cut_at_random


class MistralListener(Listener):
    """A client's side."""

    data = b""

    def kind(self, kind: str) -> dict[str, Any]:
        """The next message of a kind; before it, nothing but audio."""
        while True:
            said = self.hear()
            if said.get("type") == kind:
                return said
            assert said["type"] == "speech.audio.delta", said
            self.data += base64.b64decode(said["audio_data"])


@contextmanager
def connected(server: RunningServer, query: str = "model=voxtral-mini-tts-3") -> Iterator[MistralListener]:
    address = f"ws://127.0.0.1:{server.port}/v1/audio/speech/realtime?{query}"
    connection = websocket.create_connection(address, timeout=60, suppress_origin=True)
    with connection.sock:
        yield MistralListener(connection)
        connection.close()


def test_how_it_is_cut_changes_nothing(server: RunningServer, engine: Engine) -> None:
    with connected(server) as client:
        session = client.kind("session.created")["session"]
        assert (session["voice"], session["response_format"]) == ("hum", "wav")
        client.say(type="session.update", session={"response_format": "pcm", "expressiveness": 2.0})
        session = client.kind("session.updated")["session"]
        assert (session["response_format"], session["expressiveness"]) == ("pcm", 1.0)
        for text in cut_at_random(TEXT, 3):
            client.say(type="input_text.append", text=text)
        client.say(type="input_text.end")
        done = client.kind("speech.audio.done")
        assert client.hear()["closed"] == 1000
    assert done["ignored"] == ["model", "expressiveness"]
    assert (
        done["usage"]["prompt_tokens"] + done["usage"]["completion_tokens"] == done["usage"]["total_tokens"]
    )
    samples = np.frombuffer(client.data, "<f4")
    assert np.array_equal(samples * 32_768, np.frombuffer(pcm_of_stream(engine, TEXT), "<i2"))
    wait_until(lambda: server.status()["active"] == 0)


def test_a_flush_ends_a_generation_and_the_next_one_waits(server: RunningServer, engine: Engine) -> None:
    with connected(server) as client:
        client.kind("session.created")
        client.say(type="input_text.append", text="The kettle is on, and ")
        client.say(type="input_text.flush", text="the window is open.")
        client.say(type="input_text.append", text="Once more.")
        client.say(type="input_text.flush")
        client.say(type="input_text.flush")
        heard = []
        for _ in range(3):
            usage = client.kind("speech.audio.done")["usage"]
            heard.append((client.data[44:], usage["completion_tokens"] > 0))
            client.data = b""
        client.say(type="input_text.end")
        assert client.hear()["closed"] == 1000
    whole, again = (
        pcm_of_stream(engine, text) for text in ("The kettle is on, and the window is open.", "Once more.")
    )
    assert heard == [(whole, True), (again, True), (b"", False)]


@pytest.mark.parametrize(
    "said",
    [
        {"type": "sing"},
        {"type": "input_text.append"},
        {"type": "input_text.append", "text": 5},
        {"type": "input_text.append", "text": "a", "speed": 2},
        {"type": "session.update"},
        {"type": "session.update", "session": {"voice": "nobody"}},
        {"type": "session.update", "session": {"response_format": "midi"}},
        {"type": "session.update", "session": {"ref_audio": "UklGRg=="}},
        {"type": "session.update", "session": {"streaming_mode": "slow"}},
    ],
)
def test_a_wrong_message_is_told_and_the_connection_closed(
    server: RunningServer, said: dict[str, Any]
) -> None:
    with connected(server) as client:
        client.kind("session.created")
        client.say(**said)
        error = client.kind("error")["error"]
        assert error["code"] == 400
        assert error["message"]
        assert client.hear()["closed"] == 1008


def test_a_wrong_message_within_speech_counts_as_what_it_is(server: RunningServer) -> None:
    before = server.status()["requests"]
    with connected(server) as client:
        client.kind("session.created")
        client.say(type="input_text.append", text="And this is a slow one. " * 40)
        assert client.hear()["type"] == "speech.audio.delta"
        client.say(type="sing")
        assert client.kind("error")["error"]["code"] == 400
        assert client.hear()["closed"] == 1008
    after = server.status()["requests"]
    assert (after["invalid"] - before["invalid"], after["cancelled"] - before["cancelled"]) == (1, 0)
    assert server.status()["active"] == 0


@pytest.mark.parametrize("query", ["model=fp16", "model=kokoro&speed=2"])
def test_what_the_address_must_not_say_is_told(server: RunningServer, query: str) -> None:
    with connected(server, query) as client:
        client.say(type="input_text.flush", text="Hello.")
        said = client.hear()
        while said.get("type") != "error":
            said = client.hear()
        assert client.hear()["closed"] == 1008


def test_text_behind_the_end_is_refused_at_once(server: RunningServer) -> None:
    with connected(server) as client:
        client.kind("session.created")
        client.say(type="input_text.append", text="And this is a slow one. " * 40)
        client.say(type="input_text.end")
        client.say(type="input_text.append", text="More.")
        assert "Nothing is spoken after" in client.kind("error")["error"]["message"]
        assert client.hear()["closed"] == 1008


def test_a_text_that_was_stopped_is_not_begun_once_more(server: RunningServer) -> None:
    before = server.status()["requests"]["total"]
    with connected(server) as client:
        request_id = client.kind("session.created")["session"]["request_id"]
        client.say(type="input_text.append", text="And this is a slow one. " * 40)
        assert client.hear()["type"] == "speech.audio.delta"
        httpx2.delete(f"{server.speech_url}/{request_id}").raise_for_status()
        assert "stopped" in client.kind("error")["error"]["message"]
        assert client.hear()["closed"]
    wait_until(lambda: server.status()["active"] == 0)
    assert server.status()["requests"]["total"] == before + 1


def test_a_failure_in_the_midst_is_told(server: RunningServer) -> None:
    with connected(server) as client:
        client.kind("session.created")
        client.say(type="input_text.flush", text=BROKEN)
        assert client.kind("error")["error"]["code"] == 500
        assert client.hear()["closed"] == 1011
        assert client.data


def test_who_talks_on_while_being_told_to_go_hears_why(server: RunningServer) -> None:
    """What the client says meanwhile must not make the connection be closed before the client has heard."""
    for _ in range(20):
        with connected(server, "model=kokoro&speed=2") as client:
            for _ in range(20):
                client.say(type="input_text.append", text="Hello.")
            said = client.hear()
            while said.get("type") != "error":
                said = client.hear()
            assert client.hear()["closed"] == 1008
