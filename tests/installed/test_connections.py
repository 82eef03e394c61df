"""`kokoro-lab serve` beside clients that are silent, half-open, or send what is no request."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import httpx2
import pytest

from tests.installed.command import Installed, Served

HEAD = b"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
WAITS_S = 60


def connected(server: Served, data: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=WAITS_S)
    connection.sendall(data)
    return connection


def answer_to(server: Served, data: bytes) -> tuple[int, dict[str, Any]]:
    """Status and body of what the server answers before it closes the connection."""
    found = b""
    with connected(server, data) as connection:
        while fragment := connection.recv(65_536):
            found += fragment
    head, _, body = found.partition(b"\r\n\r\n")
    assert b"\r\nContent-Type: application/json\r\n" in head
    assert b"\r\nConnection: close" in head
    return int(head.split()[1]), json.loads(body)


def test_silent_and_half_open_connections_hold_no_thread(served: Served) -> None:
    threads = served.status()["connections"]["threads"]
    kinds = (
        b"",
        HEAD,
        HEAD + b"Content-Length: 100\r\n\r\n{",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n",
    )
    with ExitStack() as stack:
        for kind in kinds * threads:
            stack.enter_context(closing(connected(served, kind)))
        deadline = time.monotonic() + WAITS_S
        while (found := served.status()["connections"])["idle"] + found["reading"] < len(kinds) * threads:
            assert time.monotonic() < deadline, found
        assert found["served"] == 1, "the one that asks for the status"
        assert httpx2.get(f"{served.url}/health").status_code == 200
        assert served.speak("Many are here, and none of them says a word.").content[:4] == b"RIFF"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 9000 + b"\r\n\r\n", 431),
        (HEAD + b"Content-Length: 99999999\r\n\r\n", 413),
    ],
)
def test_what_is_no_request_is_answered_in_the_one_shape(served: Served, data: bytes, status: int) -> None:
    found, body = answer_to(served, data)
    assert found == status
    assert body["error"]["type"] == "invalid_request_error"
    known = httpx2.post(f"{served.url}/v1/audio/speech", json={}).json()
    assert {name: set(part) for name, part in body.items() if isinstance(part, dict)} == {
        name: set(part) for name, part in known.items() if isinstance(part, dict)
    }
    assert set(body) == set(known)


def test_a_chunked_body_speaks(served: Served) -> None:
    def body() -> Iterator[bytes]:
        yield from (b'{"input": "The letter came', b' in parts.", "response_format": "wav"}')

    answer = httpx2.post(
        f"{served.url}/v1/audio/speech",
        content=body(),
        headers={"Content-Type": "application/json"},
        timeout=WAITS_S,
    )
    assert (answer.status_code, answer.content[:4]) == (200, b"RIFF")


def test_a_chunked_body_beyond_the_limit_is_refused(served: Served) -> None:
    chunks = b"".join(b"10000\r\n" + b" " * 65_536 + b"\r\n" for _ in range(12))
    status, body = answer_to(served, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)
    assert (status, body["error"]["code"]) == (413, "request_entity_too_large")


def test_it_says_where_to_open_the_page(served: Served) -> None:
    said = [line["message"] for line in served.lines() if line["logger"] == "kokoro_lab.serve"]
    assert any(f"{served.url}/ " in message for message in said)
    assert httpx2.get(f"{served.url}/").status_code == 200


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--port", "99999"], "--port"),
        (["--port", "-1"], "--port"),
        (["--host", "192.0.2.1"], "--host"),  # of documentation: nobody's
        (["--host", "nowhere.invalid"], "--host"),
    ],
)
def test_an_address_that_cannot_be_had_is_one_error(
    installed: Installed, arguments: list[str], names: str
) -> None:
    done = installed.run("serve", *arguments)
    assert done.returncode == 2
    assert names in done.stderr
    assert "Traceback" not in done.stderr
    assert len(re.findall("Error", done.stderr)) == 1
    assert "gunicorn" not in done.stderr


def test_a_port_in_use_is_one_error(installed: Installed, served: Served) -> None:
    done = installed.run("serve", "--port", str(served.port))
    assert done.returncode == 2
    assert f"port {served.port}" in done.stderr
    assert "--port" in done.stderr
    assert "gunicorn" not in done.stderr
