"""`kokoro-lab serve`, asked anything: it answers by speech or an error of ours, and disturbs nobody else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx2
import psutil
import pytest
import websocket

from tests.fuzz.made import bodies, fuzzed, messages, seeds
from tests.installed.command import Installed, Served

OTHERS = "The colonel's yacht was anchored near the choir, and nobody else was aboard."
"""What another client has spoken meanwhile, again and again: always the same bytes."""
GROWTH_MB = 600
"""Languages, voices and arenas that are loaded on the way; what one request may take is stated elsewhere."""


@pytest.fixture(scope="module")
def fuzzed_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One for this file alone, with nothing kept of any request."""
    with Installed(tmp_path_factory.mktemp("fuzzed")).serving(KOKORO_EPHEMERAL="true") as server:
        yield server


class Other:
    """Another client of the server: what it hears may not change, and the worker may not be another one."""

    def __init__(self, server: Served) -> None:
        self._server = server
        self._before = self._spoken()
        self._worker = server.status()["worker"]["pid"]
        self._before_mb = self._resident_mb()

    def _spoken(self) -> bytes:
        answer = self._server.speak(OTHERS)
        assert answer.status_code == 200
        assert "X-Kokoro-Fallbacks" not in answer.headers
        return answer.content

    def _resident_mb(self) -> float:
        return float(psutil.Process(self._worker).memory_info().rss) / 2**20

    def is_undisturbed(self) -> None:
        assert self._spoken() == self._before
        assert self._server.status()["worker"]["pid"] == self._worker
        assert self._resident_mb() - self._before_mb < GROWTH_MB
        assert not [line for line in self._server.lines() if "unexpectedly" in line["message"]]


def asked(server: Served, body: Any) -> None:
    """One request; its answer is whole, or an error in the one shape."""
    raw = body if isinstance(body, (str, bytes)) else json.dumps(body, default=str)
    sent = raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else raw
    headers = {"Content-Type": "application/json"}
    answer = httpx2.post(f"{server.url}/v1/audio/speech", content=sent, headers=headers, timeout=180)
    if answer.status_code == 200:
        return
    assert 400 <= answer.status_code < 500, answer.text
    assert {"message", "type", "code", "param"} <= answer.json()["error"].keys()


def talked(server: Served, message: str | bytes) -> None:
    """One message over a connection of its own, then one that must be answered by speech or an error."""
    talk = websocket.create_connection(f"ws://127.0.0.1:{server.port}/v1/audio/speech/ws", timeout=180)
    with suppress(websocket.WebSocketConnectionClosedException):
        if isinstance(message, bytes):
            talk.send_binary(message)
        else:
            talk.send(message.encode("utf-8", "replace"))
        talk.send(json.dumps({"type": "no such thing"}))
        answer = talk.recv()
        if isinstance(answer, str) and answer:  # an empty one: the server has closed the connection
            assert "type" in json.loads(answer)
    with suppress(OSError, websocket.WebSocketException):
        talk.close()


@pytest.mark.parametrize("body", seeds("body"))
def test_a_body_that_was_found_is_answered(fuzzed_server: Served, body: str) -> None:
    asked(fuzzed_server, body)


@pytest.mark.test_long
def test_any_body_is_answered_and_disturbs_nobody(fuzzed_server: Served) -> None:
    other = Other(fuzzed_server)
    assert fuzzed(bodies(), lambda body: asked(fuzzed_server, body)) > 10
    other.is_undisturbed()


@pytest.mark.test_long
def test_any_message_is_answered_and_disturbs_nobody(fuzzed_server: Served) -> None:
    other = Other(fuzzed_server)
    assert fuzzed(messages(), lambda message: talked(fuzzed_server, message)) > 10
    other.is_undisturbed()
