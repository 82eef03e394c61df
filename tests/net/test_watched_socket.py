"""What a connection does that is left: nobody loses what was written to them, and nobody is waited for."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from kokoro_lab.net.watched_socket import WatchedSocket

PATIENCE_S = 60.0


def ended_thread() -> threading.Thread:
    """simple-websocket's reader, which ended before the client's goodbye came."""
    thread = threading.Thread()
    thread.start()
    thread.join()
    return thread


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection over TCP: the server's, and its client's."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        client.settimeout(PATIENCE_S)
        server, _ = listener.accept()
        with server, client:
            yield server, client


def test_who_is_left_hears_the_last_word_and_may_still_answer(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    server, client = ends
    client.sendall(b"what nobody reads any more " * 100)
    watched = WatchedSocket(server, PATIENCE_S)

    def leave() -> None:
        watched.send(b"goodbye")
        watched.take_leave(ended_thread(), PATIENCE_S)
        server.close()

    leaving = threading.Thread(target=leave)
    leaving.start()
    assert client.recv(7, socket.MSG_WAITALL) == b"goodbye"
    assert client.recv(1) == b""
    for _ in range(20):  # to a connection that was closed with bytes unread, the second of them is refused
        client.sendall(b"goodbye to you, too")
        time.sleep(0.01)
    client.close()
    leaving.join(PATIENCE_S)
    assert not leaving.is_alive()


def test_who_does_not_go_is_left_all_the_same(ends: tuple[socket.socket, socket.socket]) -> None:
    server, client = ends
    watched = WatchedSocket(server, PATIENCE_S)
    watched.take_leave(ended_thread(), 0.05)
    assert server.recv(1) == b""  # it is shut down for both sides, while the client is still there
    assert client.recv(1) == b""


def test_while_somebody_still_reads_nobody_else_does(ends: tuple[socket.socket, socket.socket]) -> None:
    server, client = ends
    over = threading.Event()
    reader = threading.Thread(target=over.wait)
    reader.start()
    client.sendall(b"for the reader")
    WatchedSocket(server, PATIENCE_S).take_leave(reader, 0.05)
    over.set()
    assert client.recv(1) == b""
    assert server.recv(14, socket.MSG_WAITALL) == b"for the reader"


def test_who_is_released_is_watched_no_more_and_still_answered(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    server, client = ends
    before = set(threading.enumerate())
    watched = WatchedSocket(server, PATIENCE_S)
    (watch,) = set(threading.enumerate()) - before
    watched.release()
    watch.join(PATIENCE_S / 2)
    assert not watch.is_alive()
    assert server.gettimeout() == PATIENCE_S
    server.sendall(b"no")
    assert client.recv(2, socket.MSG_WAITALL) == b"no"
