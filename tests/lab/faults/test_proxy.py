"""A line that fails does so where it is told to, and lets everything else through."""

from __future__ import annotations

import errno
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.faults.proxy import fault_proxy
from tests.lab.faults import made

SAID = random.Random(0).randbytes(200_000)


@pytest.fixture
def server() -> Iterator[str]:
    """Says all of `SAID` to everybody who asks with a line, and then that line."""
    listening = socket.create_server(("127.0.0.1", 0))

    def answer(connection: socket.socket) -> None:
        with closing(connection):
            asked = connection.recv(100)
            try:
                connection.sendall(SAID + asked)
            except OSError:
                return

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join(10)


def heard(url: str, timeout_s: float = 30) -> tuple[bytes, str]:
    """What comes, and how it ended: `end`, `reset` or `silence`."""
    got = b""
    with closing(socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])))) as connection:
        connection.settimeout(timeout_s)
        try:
            connection.sendall(b"hello")
            while block := connection.recv(65_536):
                got += block
        except (BrokenPipeError, ConnectionResetError):  # what is said may meet the reset as well
            return got, "reset"
        except TimeoutError:
            return got, "silence"
    return got, "end"


def test_a_line_without_faults_changes_nothing(server: str) -> None:
    with fault_proxy(server, made.scenario(made.LOST_IN_QUEUE), len(SAID)) as proxy:
        assert heard(proxy.url) == (SAID + b"hello", "end")
        assert proxy.struck == []


@pytest.mark.parametrize(("fault", "ended"), [(made.CUT, "reset"), (made.SILENT, "silence")])
def test_a_line_ends_once_in_the_middle(server: str, fault: dict[str, object], ended: str) -> None:
    with fault_proxy(server, made.scenario(fault), len(SAID)) as proxy:
        got, how = heard(proxy.url, timeout_s=1)
        (struck,) = proxy.struck
        assert how == ended
        assert SAID.startswith(got)
        assert 0.35 * len(SAID) < struck.at < 0.65 * len(SAID)
        assert len(got) <= struck.at
        assert heard(proxy.url) == (SAID + b"hello", "end")


def test_where_it_ends_is_the_seeds_to_say(server: str) -> None:
    at = []
    for seed in (1, 1, 2):
        with fault_proxy(server, made.scenario(made.SILENT, seed=seed), len(SAID)) as proxy:
            heard(proxy.url, timeout_s=0.5)
            at.append(proxy.struck[0].at // 4096)  # as the blocks fall
    assert abs(at[0] - at[1]) <= 1
    assert abs(at[0] - at[2]) > 1


@pytest.mark.parametrize("fault", [{**made.BURSTS_ON_LINE, "every_s": 0.001}, made.THROTTLED])
def test_a_slow_line_loses_nothing(server: str, fault: dict[str, object]) -> None:
    with fault_proxy(server, made.scenario(fault), len(SAID)) as proxy:
        began_s = time.monotonic()
        assert heard(proxy.url) == (SAID + b"hello", "end")
        took_s = time.monotonic() - began_s
        assert proxy.struck
    assert took_s > (len(SAID) / 1_000_000 if fault is made.THROTTLED else 0.01)


def test_a_server_that_is_not_there_is_a_reset() -> None:
    with fault_proxy("http://127.0.0.1:9", made.scenario(made.CUT), 100) as proxy:
        assert heard(proxy.url)[1] in ("reset", "end")


def test_a_client_that_macos_says_has_left_keeps_nobody_else_out(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There, options of a socket cannot be set once the other end has gone."""
    refused = []

    def setsockopt(self: socket.socket, *option: Any) -> None:
        if option[:2] == (socket.IPPROTO_TCP, socket.TCP_NODELAY):
            refused.append(option)
            raise OSError(errno.EINVAL, "Invalid argument")

    with fault_proxy(server, made.scenario(made.LOST_IN_QUEUE), len(SAID)) as proxy:
        monkeypatch.setattr(socket.socket, "setsockopt", setsockopt, raising=False)
        socket.create_connection(("127.0.0.1", int(proxy.url.rpartition(":")[2]))).close()
        assert heard(proxy.url) == (SAID + b"hello", "end")
    assert refused


def test_what_is_no_server_is_refused() -> None:
    with (
        pytest.raises(ParameterError, match="names no server"),
        fault_proxy("nobody", made.scenario(made.CUT), 1),
    ):
        pass


def test_nothing_of_it_is_left(server: str) -> None:
    before = set(threading.enumerate())
    with fault_proxy(server, made.scenario(made.SILENT), len(SAID)) as proxy:
        heard(proxy.url, timeout_s=0.3)
    left = {t for t in set(threading.enumerate()) - before if t.name == "fault-proxy"}
    assert not left
