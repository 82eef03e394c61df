"""A client that has left: its file is computed no further, however its connection ended."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from kokoro_lab.server.http.departure import HALF_CLOSED_S, ClientWatch, has_left
from tests.server.conftest import RunningServer, wait_until
from tests.server.scripted import SLOW_S
from tests.server.test_limits import FIRST, HELLO, SLOW, URL, post, raw

LONG_FILE = {"input": FIRST + SLOW["input"] * 20, "stream": False}
"""Takes several times `HALF_CLOSED_S` to compute."""
RESET = struct.pack("ii", 1, 0)
"""The option by which `close` resets a connection."""
ENDS_S = 300.0
"""Time for a file that nobody stops."""


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection over TCP: the server's, and its client's."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
        with server, client:
            yield server, client


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def resets(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    connection.close()


def test_who_has_closed_has_left_after_a_while(ends: tuple[socket.socket, socket.socket]) -> None:
    server, client = ends
    clock = Clock()
    watch = ClientWatch(server, lambda: None, clock)
    clock.now_s = 3 * HALF_CLOSED_S
    assert not watch.look()
    client.shutdown(socket.SHUT_WR)
    wait_until(lambda: has_left(server))
    assert not watch.look()
    clock.now_s += 0.9 * HALF_CLOSED_S
    assert not watch.look()
    clock.now_s += 0.2 * HALF_CLOSED_S
    assert watch.look()


def test_who_has_reset_the_connection_has_left_at_once(ends: tuple[socket.socket, socket.socket]) -> None:
    server, client = ends
    watch = ClientWatch(server, lambda: None, Clock())
    resets(client)
    wait_until(watch.look)


def test_who_sends_more_has_not_left(ends: tuple[socket.socket, socket.socket]) -> None:
    server, client = ends
    clock = Clock()
    watch = ClientWatch(server, lambda: None, clock)
    client.sendall(b"the next request")
    assert server.recv(1, socket.MSG_PEEK)
    for _ in range(2):
        assert not watch.look()
        clock.now_s += 2 * HALF_CLOSED_S
    assert server.recv(100) == b"the next request"


def test_the_watch_ends_with_its_context(ends: tuple[socket.socket, socket.socket]) -> None:
    server, client = ends
    left: list[bool] = []
    with ClientWatch(server, lambda: left.append(True)) as watch:
        pass
    assert not watch._thread.is_alive()
    with ClientWatch(server, lambda: left.append(True)) as watch:
        resets(client)
        wait_until(lambda: watch.left)
    assert (left, watch._thread.is_alive()) == ([True], False)
    with ClientWatch(None, lambda: left.append(True)) as watch:
        assert not watch._thread.is_alive()


def over_http_1_0(server: RunningServer, fields: dict[str, Any]) -> socket.socket:
    body = json.dumps({**fields, "stream": True}).encode()
    head = f"POST {URL} HTTP/1.0\nHost: localhost\nContent-Type: application/json\n"
    return raw(server, f"{head}Content-Length: {len(body)}\n\n", body)


def ended(server: RunningServer) -> dict[str, int]:
    """How many requests have ended, by how they did."""
    counts = server.status()["requests"]
    return {name: counts[name] for name in ("completed", "cancelled", "failed", "expired")}


def leaves(server: RunningServer, connection: socket.socket, *, reset: bool) -> None:
    """Checks that the file which `connection` waits for is computed no further once it is closed."""
    before = ended(server)
    wait_until(lambda: server.status()["active"] == 1)
    resets(connection) if reset else connection.close()
    wait_until(lambda: ended(server) != before, timeout_s=ENDS_S)
    assert ended(server) == {**before, "cancelled": before["cancelled"] + 1}
    lines = [json.loads(line) for line in server.log.read_text().splitlines() if line.startswith("{")]
    codes = [line["code"] for line in lines if line.get("event") == "request"]
    assert codes[-1] == "client_closed_request"
    assert server.status()["active"] == 0


@pytest.mark.parametrize(
    "fields", [{}, {"timestamps": True}, {"response_format": "srt"}, {"response_format": "wav"}]
)
def test_no_file_is_computed_for_a_client_that_has_reset(
    server: RunningServer, fields: dict[str, Any]
) -> None:
    leaves(server, post(server, {**LONG_FILE, **fields}), reset=True)


def test_no_file_is_computed_on_for_a_client_that_has_closed(server: RunningServer) -> None:
    leaves(server, post(server, LONG_FILE), reset=False)


def test_a_stream_that_http_1_0_makes_a_file_is_computed_no_further_either(server: RunningServer) -> None:
    leaves(server, over_http_1_0(server, LONG_FILE), reset=True)


def test_who_has_only_nothing_more_to_send_gets_a_file_that_takes_a_while(server: RunningServer) -> None:
    assert SLOW_S < HALF_CLOSED_S
    with post(server, {"input": "This is a slow one.", "stream": False}) as connection:
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100).startswith(b"HTTP/1.1 200")


def test_a_file_that_is_left_frees_its_place_for_the_next(server: RunningServer) -> None:
    for _ in range(3):
        leaves(server, post(server, LONG_FILE), reset=True)
    with post(server, {**HELLO, "stream": False}) as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
