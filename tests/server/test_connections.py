"""Who is silent, slow or half-open holds no thread, and goes when there is no room."""

from __future__ import annotations

import errno
import json
import math
import selectors
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
import websocket
from flask import Flask
from gunicorn.config import Config

from kokoro_lab.server.http import worker
from kokoro_lab.server.http.framing import Incoming
from kokoro_lab.server.http.worker import Connection, Connections, PatientWorker
from kokoro_lab.server.state import SENDERS
from tests.server.conftest import CONCURRENCY, RunningServer, running, state_of, wait_until
from tests.server.test_limits import HELLO, URL, error_of, post, raw, received
from tests.server.tiny_server import MOST_HELD_BYTES

MOST = 60
HEAD = f"POST {URL} HTTP/1.1\nHost: localhost\nContent-Type: application/json\n"
LONG = "This sentence is one of very many, and nobody will ever listen to it. "
CHUNKED = f"{HEAD}Connection: close\nTransfer-Encoding: chunked\n\n"
KINDS = {
    "silent": ("", b""),
    "half_head": (HEAD, b""),
    "slow_body": (f"{HEAD}Content-Length: 1000\n\n", b'{"input"'),
    "slow_chunks": (CHUNKED, b"100\r\n{"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running(tmp_path_factory.mktemp("connections"), patient=True, connections=MOST) as found:
        yield found


def connections(server: RunningServer) -> dict[str, Any]:
    found: dict[str, Any] = server.status()["connections"]
    return found


@contextmanager
def opened(server: RunningServer, kind: str, count: int) -> Iterator[list[socket.socket]]:
    """So many connections, all of which the server has seen as what they are."""
    state = "idle" if kind == "silent" else "reading"
    wait_until(lambda: connections(server)["open"] == 1)
    with ExitStack() as stack:
        found = [stack.enter_context(raw(server, *KINDS[kind])) for _ in range(count)]
        wait_until(lambda: connections(server)[state] == count)
        yield found


@pytest.mark.parametrize("kind", KINDS)
def test_more_of_them_than_there_are_threads_hold_none(server: RunningServer, kind: str) -> None:
    count = MOST - 5
    assert count > connections(server)["threads"]
    with opened(server, kind, count):
        found = connections(server)
        assert found["served"] == 1, "the one that asks"
        assert httpx2.get(f"{server.url}/health").status_code == 200
        assert httpx2.post(server.speech_url, json=HELLO, timeout=60).status_code == 200
    wait_until(lambda: connections(server)["open"] == 1)
    assert connections(server)["held_bytes"] == 0


def test_beyond_the_limit_the_longest_silent_is_closed(server: RunningServer) -> None:
    before = connections(server)["closed"].get("crowded_out", 0)
    with opened(server, "silent", MOST - 1) as silent:
        silent[0].sendall(b"G")  # not the longest silent any more
        wait_until(lambda: connections(server)["reading"] == 1)
        connections(server)  # each look is a connection; there is room for one
        with raw(server, "") as late, raw(server, "") as later:
            wait_until(lambda: connections(server)["closed"].get("crowded_out", 0) >= before + 2)
            crowded_out = connections(server)["closed"]["crowded_out"] - before
            for connection in silent[1 : 1 + crowded_out]:
                assert connection.recv(1) == b""
            for connection in (silent[0], *silent[-10:], late, later):
                connection.setblocking(False)
                with pytest.raises(BlockingIOError):
                    connection.recv(1)


def test_who_is_crowded_out_with_half_a_request_is_told_so(server: RunningServer) -> None:
    with opened(server, "half_head", MOST - 1) as halves:
        held_bytes = connections(server)["held_bytes"]
        halves[0].sendall(b"X: 1\r\n")  # not the longest silent any more
        wait_until(lambda: connections(server)["held_bytes"] != held_bytes)
        with raw(server, ""), raw(server, ""):
            status, error = error_of(received(halves[1]))
            halves[0].setblocking(False)
            with pytest.raises(BlockingIOError):
                halves[0].recv(1)
    assert (status, error["code"]) == (503, "service_unavailable")


def test_half_requests_hold_no_more_bytes_together_than_they_may(server: RunningServer) -> None:
    body = b" " * 290_000
    before = connections(server)["closed"].get("memory", 0)
    with ExitStack() as stack:

        def come(count: int) -> list[socket.socket]:
            head = f"{HEAD}Content-Length: 300000\n\n"
            return [stack.enter_context(raw(server, head, body)) for _ in range(count)]

        bodies = come(MOST_HELD_BYTES // len(body))
        wait_until(lambda: connections(server)["held_bytes"] == len(bodies) * len(body))
        come(4)
        status, error = error_of(received(bodies[0]))
        assert (status, error["code"]) == (503, "service_unavailable")
        wait_until(lambda: connections(server)["closed"]["memory"] == before + 4)
        found = connections(server)
        assert 0 < found["held_bytes"] <= found["most_held_bytes"] == MOST_HELD_BYTES
        assert httpx2.post(server.speech_url, json=HELLO, timeout=60).status_code == 200


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (b"nonsense\r\n\r\n", 400, "bad_request"),
        (b"GET / HTTP/1.1\nHost: a\n\n", 400, "bad_request"),
        (b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\n\r\n", 414, "request_uri_too_long"),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 9000 + b"\r\n\r\n", 431, "request_header_fields_too_large"),
        (b"GET / HTTP/1.1\r\nExpect: tea\r\n\r\n", 417, "expectation_failed"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501, "not_implemented"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloooo", 400, "bad_request"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n;\r\n\r\n", 400, "bad_request"),
    ],
)
def test_what_no_application_is_asked_about_is_answered_in_the_one_shape(
    server: RunningServer, data: bytes, status: int, code: str
) -> None:
    with raw(server, "", data) as connection:
        answer = received(connection)
    found, error = error_of(answer)
    assert (found, error["code"]) == (status, code)
    head = answer.partition(b"\r\n\r\n")[0].lower()
    for field in (b"content-type: application/json", b"connection: close", b"x-request-id: "):
        assert field in head
    assert b"x-should-retry: false" in head
    assert error["type"] == ("server_error" if status >= 500 else "invalid_request_error")


def test_the_log_says_where_to_open_the_page(server: RunningServer) -> None:
    lines = [json.loads(line) for line in server.log.read_text().splitlines() if line.startswith("{")]
    said = {line["message"]: line["level"] for line in lines if "in a browser" in line["message"]}
    assert list(said.values()) == ["info"]
    assert f"Open {server.url}/ " in next(iter(said))


def test_a_chunked_body_speaks(server: RunningServer) -> None:
    def body() -> Iterator[bytes]:
        yield from (b"{", b'"input": ', b'"Hello."', b', "stream": false}')

    answer = httpx2.post(
        server.speech_url, content=body(), headers={"Content-Type": "application/json"}, timeout=60
    )
    assert "transfer-encoding" in answer.request.headers
    plain = httpx2.post(server.speech_url, json={**HELLO, "stream": False}, timeout=60)
    assert (answer.status_code, answer.content) == (200, plain.content)


def test_a_chunked_body_counts_where_a_body_may_be_left_out(server: RunningServer) -> None:
    asked = CHUNKED.replace(URL, "/session-reset")
    with raw(server, asked, b'd\r\n{"nobody": 1}\r\n0\r\n\r\n') as connection:
        status, error = error_of(received(connection))
    assert (status, error["param"]) == (400, "nobody")


def test_a_chunked_body_beyond_the_limit_is_refused_while_it_comes(server: RunningServer) -> None:
    with raw(server, CHUNKED) as connection:
        for _ in range(10):  # half a megabyte; what is allowed is less
            connection.sendall(b"10000\r\n" + b" " * 65_536 + b"\r\n")
        status, error = error_of(received(connection))
    assert (status, error["code"]) == (413, "request_entity_too_large")


def test_a_client_that_waits_to_be_told_to_go_on_is_told_so_once(server: RunningServer) -> None:
    body = json.dumps({**HELLO, "stream": False}).encode()
    head = f"{HEAD}Connection: close\nExpect: 100-continue\nContent-Length: {len(body)}\n\n"
    with raw(server, head) as connection:
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert received(connection).startswith(b"HTTP/1.1 200")
    with raw(server, f"{HEAD}Expect: 100-continue\nContent-Length: 99999999\n\n") as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


def test_requests_one_behind_the_other_are_answered_in_their_order(server: RunningServer) -> None:
    body = b"{}"
    asked = (
        b"GET /voices HTTP/1.1\r\nHost: localhost\r\n\r\n"
        + f"POST {URL} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
        + b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )
    with raw(server, "", asked) as connection:
        answers = received(connection)
    assert [part.split()[0] for part in answers.split(b"HTTP/1.1 ")[1:]] == [b"200", b"415", b"200"]


def test_a_connection_is_kept_for_the_next_request(server: RunningServer) -> None:
    accepted = connections(server)["accepted"]
    with httpx2.Client(base_url=server.url) as client:
        for _ in range(3):
            assert client.get("/health").status_code == 200
            assert client.post(URL, json={"input": ""}).status_code == 400
    assert connections(server)["accepted"] == accepted + 2  # one for six requests, one to ask


def test_an_old_client_gets_its_answer_and_the_end(server: RunningServer) -> None:
    with raw(server, "GET /health HTTP/1.0\nHost: localhost\n\n") as connection:
        assert received(connection).startswith(b"HTTP/1.0 200")


def test_who_does_not_close_behind_the_last_answer_keeps_nobody_waiting(server: RunningServer) -> None:
    """As many as gunicorn would wait for two seconds each, one after the other."""
    with ExitStack() as stack:
        for _ in range(30):
            stack.enter_context(raw(server, "GET /health HTTP/1.1\nHost: localhost\nConnection: close\n\n"))
        wait_until(lambda: connections(server)["leaving"] > 20)
        assert connections(server)["served"] == 1


def test_a_client_that_closes_its_half_is_answered(server: RunningServer) -> None:
    with post(server, {**HELLO, "stream": False}) as connection:
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100).startswith(b"HTTP/1.1 200")


def test_a_websocket_talks_while_others_say_nothing(server: RunningServer) -> None:
    with opened(server, "half_head", MOST - 10):
        talk = websocket.create_connection(f"ws://127.0.0.1:{server.port}/v1/audio/speech/ws", timeout=30)
        talk.send(json.dumps({"type": "status"}))
        assert json.loads(talk.recv())
        talk.close()


def test_slow_readers_of_streams_hold_as_many_threads_as_may_speak(server: RunningServer) -> None:
    text = {"input": LONG * 250}
    wait_until(lambda: server.status()["active"] == 0)
    with ExitStack() as stack:
        for _ in range(CONCURRENCY):
            stack.enter_context(post(server, text, receive_buffer=4096))
        wait_until(lambda: server.status()["active"] == CONCURRENCY)
        assert connections(server)["served"] == CONCURRENCY + 1
        assert httpx2.post(server.speech_url, json=HELLO).status_code == 429
    wait_until(lambda: server.status()["active"] == 0)


def test_slow_readers_of_files_hold_few_threads_and_then_the_places_of_those_who_speak(
    make_app: Callable[..., Flask],
) -> None:
    app = make_app(concurrency=1)
    client, state = app.test_client(), state_of(app)
    asked = {**HELLO, "stream": False}
    slow = [client.post(URL, json=asked, buffered=False) for _ in range(SENDERS)]
    assert (state.senders.active, state.slots.active) == (SENDERS, 0)
    last = client.post(URL, json=asked, buffered=False)
    assert (last.status_code, state.slots.active) == (200, 1)
    assert client.post(URL, json=asked).status_code == 429
    for answer in (*slow, last):
        answer.close()
    assert (state.senders.active, state.slots.active) == (0, 0)
    for _ in range(SENDERS + 2):
        assert client.post(URL, json=asked).data
    assert (state.senders.active, state.slots.active) == (0, 0)


# ------------------------------------------------------------------------------- the poller without a server


class Polling:
    """A worker's main thread on connections of this process; the pool never comes to a request."""

    def __init__(self, most_held_bytes: int) -> None:
        self.worker = PatientWorker.__new__(PatientWorker)
        self.worker.connections = Connections(10, most_held_bytes, 1)
        self.worker.poller = selectors.DefaultSelector()
        self.worker.nr_conns = 0
        self.worker.alive = True
        self.worker.cfg = Config()
        self.worker.wsgi = SimpleNamespace(most_body_bytes=10_000)
        self.worker.enqueue_req = lambda conn: None
        self.clients: list[socket.socket] = []

    def connect(self, data: bytes) -> Connection:
        ours, theirs = socket.socketpair()
        theirs.settimeout(10)
        connection = Connection(Config(), ours, None, None, 10_000)
        self.clients.append(theirs)
        self.worker.nr_conns += 1
        self.worker.connections.add(connection, math.inf)
        self.worker._poll(connection)
        if data:
            theirs.sendall(data)
            self.worker._readable(connection, ours)
        return connection

    def close(self) -> None:
        list(self.worker._give_up(math.inf))
        for client in self.clients:
            client.close()
        self.worker.poller.close()


BODY = b"POST / HTTP/1.1\r\nContent-Length: 80\r\n\r\n"


def test_what_is_being_served_counts_among_what_is_held() -> None:
    with closing(Polling(most_held_bytes=100)) as polling:
        served = polling.connect(BODY + b" " * 80)
        reading = polling.connect(BODY + b" " * 60)
        assert (served.state, reading.state, reading.reason) == ("served", "closed", "memory")
        assert polling.clients[1].recv(100).startswith(b"HTTP/1.1 503")
        assert polling.worker.connections.figures()["held_bytes"] == 80
        done: Future[bool] = Future()
        next(served.incoming)
        done.set_result(True)
        polling.worker.finish_request(served, done)
        assert (served.state, polling.worker.connections.figures()["held_bytes"]) == ("idle", 0)
        served.sock.close()


def test_each_stage_has_its_own_time_and_a_late_one_is_told() -> None:
    with closing(Polling(most_held_bytes=1000)) as polling:
        kinds = [polling.connect(data) for data in (b"", BODY[:9], BODY)]
        assert [connection.state for connection in kinds] == ["idle", "head", "body"]
        now_s = time.monotonic()
        for connection, span_s in zip(kinds[1:], (worker.HEAD_S, worker.BODY_S), strict=True):
            assert now_s < connection.deadline_s <= now_s + span_s
        late = [connection.state for connection in polling.worker._give_up(now_s + worker.HEAD_S)]
        assert late == ["leaving", "closed"], "the head alone: it is told, and its end awaited"
        assert error_of(received(polling.clients[1]))[0] == 408
        assert kinds[2].state == "body"
        for connection in polling.worker._give_up(math.inf):
            assert connection.state in ("leaving", "closed")
        assert polling.worker.connections.figures()["open"] == 0


def test_an_error_of_ours_ends_the_connection_and_not_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Incoming) -> bool:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(Incoming, "whole", fail)
    with closing(Polling(most_held_bytes=1000)) as polling:
        assert polling.connect(b"GET").state == "leaving"
        status, error = error_of(received(polling.clients[0]))
        assert (status, error["code"]) == (500, "internal_error")
        assert "mistake" not in error["message"]
        list(polling.worker._give_up(math.inf))


def test_who_connects_and_says_nothing_is_closed_after_a_while() -> None:
    with (
        closing(Polling(most_held_bytes=1000)) as polling,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        listener.setblocking(False)
        polling.clients.append(socket.create_connection(listener.getsockname(), timeout=10))
        before_s = time.monotonic()
        while not polling.worker.nr_conns:  # it may be under way yet
            polling.worker.accept(listener)
        assert list(polling.worker._give_up(before_s + worker.SILENT_S - 1)) == []
        assert len(list(polling.worker._give_up(time.monotonic() + worker.SILENT_S))) == 1
        assert polling.clients[0].recv(1) == b""
        assert polling.worker.connections.figures()["closed"] == {"silent": 1}


def test_without_a_descriptor_for_the_next_the_longest_silent_is_closed() -> None:
    class Full:
        def accept(self) -> None:
            raise OSError(errno.EMFILE, "Too many open files")

    with closing(Polling(most_held_bytes=1000)) as polling:
        silent, speaking = polling.connect(b""), polling.connect(b"GET")
        polling.worker.accept(Full())
        assert (silent.state, silent.reason, speaking.state) == ("closed", "crowded_out", "head")
