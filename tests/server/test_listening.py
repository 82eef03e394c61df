"""The address that is listened on, and descriptors for all who come."""

from __future__ import annotations

import errno
import resource
import socket
import subprocess
import sys

import pytest

from kokoro_lab.errors import SettingsError
from kokoro_lab.server.http.listening import OTHER_DESCRIPTORS, listener, url_of


def test_port_0_is_one_that_is_free() -> None:
    with listener("127.0.0.1", 0, 1) as first, listener("127.0.0.1", 0, 1) as second:
        assert first.getsockname()[1] != second.getsockname()[1]
        socket.create_connection(first.getsockname()).close()


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:{}/"),
        ("0.0.0.0", "http://127.0.0.1:{}/"),
        ("localhost", "http://127.0.0.1:{}/"),
        ("::1", "http://[::1]:{}/"),
        ("[::1]", "http://[::1]:{}/"),
        ("::", "http://[::1]:{}/"),
    ],
)
def test_the_page_is_where_a_browser_on_this_machine_finds_it(host: str, url: str) -> None:
    if ":" in host and not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    try:
        bound = listener(host, 0, 1)
    except SettingsError as error:
        if ":" in host and isinstance(error.__cause__, OSError):  # a container without IPv6
            pytest.skip(str(error))
        raise
    with bound:
        assert url_of(*bound.getsockname()[:2]) == url.format(bound.getsockname()[1])


@pytest.mark.parametrize("port", [-1, 65_536, 99_999])
def test_a_port_that_is_none_is_said(port: int) -> None:
    with pytest.raises(SettingsError, match=r"--port") as error:
        listener("127.0.0.1", port, 1)
    assert (error.value.field, error.value.value) == ("port", port)


def test_a_port_in_use_is_said() -> None:
    with listener("127.0.0.1", 0, 1) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=rf"port {port}.*--port") as error:
            listener("127.0.0.1", port, 1)
    assert error.value.field == "port"


@pytest.mark.parametrize("host", ["192.0.2.1", "nowhere.invalid", "a" * 70 + ".example", ""])
def test_a_host_that_is_not_ours_is_said(host: str) -> None:
    with pytest.raises(SettingsError, match=r"--host") as error:
        listener(host, 0, 1)
    assert error.value.field == "host"


def test_a_port_for_administrators_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: socket.socket, address: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    class Socket(socket.socket):
        bind = refuse  # type: ignore[assignment]

    monkeypatch.setattr(socket, "socket", Socket)
    with pytest.raises(SettingsError, match=r"below 1024.*--port"):
        listener("127.0.0.1", 80, 1)


@pytest.mark.parametrize(
    ("soft", "hard", "room", "raised"),
    [
        (10_000, 10_000, 1_000, 10_000),
        (256, 10_000, 1_000, 1_000 + OTHER_DESCRIPTORS),
        (256, 800, 800 - OTHER_DESCRIPTORS, 800),
        (100, 100, 50, 100),
    ],
)
def test_descriptors_are_asked_for_and_else_fewer_may_come(
    soft: int, hard: int, room: int, raised: int
) -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 10_000:
        pytest.skip("fewer descriptors are allowed here")
    program = f"""
import logging, resource
from kokoro_lab.server.http.listening import room_for
logging.basicConfig()
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
print(room_for(1_000), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(room), str(raised)]
    assert (f"Up to {room} connections" in done.stderr) == (room < 1_000)
