"""A listener who has heard enough: by id, by asking for something else, and by leaving."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from tests.server.conftest import RunningServer, wait_until
from tests.server.events import ServerEvent, read_events
from tests.server.test_limits import FIRST, LONG, SLOW, post

HELLO = {"input": "Hello."}
LASTING = {"input": FIRST + SLOW["input"] * 20}
"""Takes a minute to compute, and not so many bytes that a client which does not read holds them up."""


class Listener:
    """Reads the events of a long text in a thread of its own, from the first one on."""

    def __init__(self, server: RunningServer, headers: dict[str, str] | None = None, **fields: Any) -> None:
        self.events: list[ServerEvent] = []
        self.stream_id = ""
        body = {**LASTING, **fields, "stream_format": "sse", "speed": 4.0}
        self._thread = threading.Thread(target=self._listen, args=(server, body, headers or {}))
        self._thread.start()
        wait_until(lambda: bool(self.events))

    def _listen(self, server: RunningServer, body: dict[str, Any], headers: dict[str, str]) -> None:
        with httpx2.stream("POST", server.speech_url, json=body, headers=headers, timeout=60) as answer:
            self.stream_id = answer.headers["X-Kokoro-Stream-Id"]
            for event in read_events(answer.iter_lines()):
                self.events.append(event)

    def heard(self) -> ServerEvent:
        """The last event, when all has been heard."""
        self._thread.join(60)
        return self.events[-1]


@contextmanager
def listening(server: RunningServer, **fields: Any) -> Iterator[httpx2.Response]:
    """A long text being heard: its first bytes are there."""
    with httpx2.stream("POST", server.speech_url, json={**LASTING, **fields}) as answer:
        assert answer.status_code == 200
        wait_until(lambda: server.status()["active"] >= 1)
        yield answer


def deleted(server: RunningServer, stream_id: str) -> httpx2.Response:
    return httpx2.delete(f"{server.speech_url}/{stream_id}")


def test_a_stream_is_stopped_by_its_id_and_its_slot_is_free(server: RunningServer) -> None:
    before = server.status()["requests"]
    listener = Listener(server)
    answered = deleted(server, listener.stream_id)
    assert (answered.status_code, answered.json()["cancelled"]) == (200, True)
    assert server.status()["active"] == 0
    last = listener.heard()
    assert (last.name, last.data["error"]["code"]) == ("error", "cancelled")
    after = server.status()["requests"]
    assert after["cancelled"] == before["cancelled"] + 1
    assert after["failed"] == before["failed"]


def test_raw_audio_that_is_stopped_breaks_off(server: RunningServer) -> None:
    with listening(server) as answer:
        assert deleted(server, answer.headers["X-Kokoro-Stream-Id"]).status_code == 200
        assert server.status()["active"] == 0
        with pytest.raises((httpx2.RemoteProtocolError, httpx2.ReadError)):
            list(answer.iter_raw())


def test_a_listener_who_does_not_read_is_stopped_as_well(server: RunningServer) -> None:
    connection = post(server, {**LONG, "client": "sleeper"}, receive_buffer=4096)
    wait_until(lambda: server.status()["active"] == 1)
    assert httpx2.post(server.speech_url, json={**HELLO, "client": "sleeper"}).status_code == 200
    assert server.status()["active"] == 0
    connection.close()


def test_a_file_that_is_being_made_is_stopped(server: RunningServer) -> None:
    answers: list[httpx2.Response] = []
    body = {"input": "This is a slow one, which takes its time. " * 20, "stream": False}
    thread = threading.Thread(
        target=lambda: answers.append(
            httpx2.post(server.speech_url, json=body, headers={"X-Request-Id": "file-1"}, timeout=60)
        )
    )
    thread.start()
    wait_until(lambda: server.status()["active"] == 1)
    assert deleted(server, "file-1").status_code == 200
    thread.join(10)
    assert (answers[0].status_code, answers[0].json()["error"]["code"]) == (409, "cancelled")
    assert answers[0].headers["x-should-retry"] == "false"


def test_an_id_that_is_not_under_way_is_not_found(server: RunningServer) -> None:
    for stream_id in ("nobody", "0", "../speech"):
        answer = deleted(server, stream_id)
        assert answer.status_code in (404, 405)
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    httpx2.post(server.speech_url, json=HELLO, headers={"X-Request-Id": "over"})
    assert deleted(server, "over").status_code == 404


@pytest.mark.parametrize("named", ["header", "field"])
def test_the_latest_request_of_a_client_wins(server: RunningServer, named: str) -> None:
    headers = {"X-Kokoro-Client": "raycast"} if named == "header" else {}
    fields = {} if headers else {"client": "raycast"}
    first = Listener(server, headers, **fields)
    second = httpx2.post(server.speech_url, json={**HELLO, **fields}, headers=headers)
    assert second.status_code == 200
    assert server.status()["active"] == 0
    assert first.heard().data["error"]["code"] == "cancelled"


def test_it_wins_even_where_all_slots_are_taken_and_leaves_others_alone(server: RunningServer) -> None:
    one, two = Listener(server, client="one"), Listener(server, client="two")
    assert httpx2.post(server.speech_url, json=HELLO).status_code == 429
    assert httpx2.post(server.speech_url, json={**HELLO, "client": "three"}).status_code == 429
    assert httpx2.post(server.speech_url, json={**HELLO, "client": "one"}).status_code == 200
    assert server.status()["active"] == 1
    assert deleted(server, two.stream_id).status_code == 200
    for listener in (one, two):
        assert listener.heard().data["error"]["code"] == "cancelled"


def test_two_streams_never_have_the_same_id(server: RunningServer) -> None:
    ids = []
    for _ in range(2):
        headers = {"X-Request-Id": "twice"}
        connection = httpx2.stream("POST", server.speech_url, json=LONG, headers=headers)
        ids.append((connection, connection.__enter__()))
    names = [answer.headers["X-Kokoro-Stream-Id"] for _, answer in ids]
    assert names[0] == "twice"
    assert names[1] == ids[1][1].headers["X-Request-Id"] == "twice.2"
    for name in reversed(names):
        assert deleted(server, name).status_code == 200
    assert server.status()["active"] == 0
    for connection, _ in ids:
        connection.__exit__(None, None, None)
