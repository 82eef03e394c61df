"""Who may ask and how much; and that a client who misbehaves costs nobody else anything."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx2
import openai
import pytest
from flask import Flask
from flask.testing import FlaskClient

from kokoro_lab.server.guard import max_body_bytes
from tests.server.conftest import ALLOWED_ORIGIN, CONCURRENCY, RunningServer, state_of, wait_until
from tests.server.scripted import SLOW_S
from tests.server.tiny_server import STALL_S

URL = "/v1/audio/speech"
HELLO = {"input": "Hello."}
SLOW = {"input": "This is a slow one. " * 6}
FIRST = "Here is the first of the sentences, all of it. "
LONG = {"input": "This sentence is one of very many, and nobody will ever listen to it. " * 250}
"""Half an hour of speech, 80 MB: far more than the buffers between server and client take."""


def raw(server: RunningServer, head: str, body: bytes = b"", *, receive_buffer: int = 0) -> socket.socket:
    """A connection on which `head` and `body` were sent as they are."""
    connection = socket.socket()
    if receive_buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.settimeout(20)
    connection.connect(("127.0.0.1", server.port))
    connection.sendall(head.replace("\n", "\r\n").encode() + body)
    return connection


def post(server: RunningServer, fields: dict[str, Any], **options: Any) -> socket.socket:
    body = json.dumps(fields).encode()
    head = f"POST {URL} HTTP/1.1\nHost: localhost\nContent-Type: application/json\n"
    return raw(server, f"{head}Content-Length: {len(body)}\n\n", body, **options)


def received(connection: socket.socket) -> bytes:
    """Everything until the server closes the connection."""
    data = b""
    while piece := connection.recv(65_536):
        data += piece
    return data


def error_of(answer: bytes) -> tuple[int, dict[str, Any]]:
    head, _, body = answer.partition(b"\r\n\r\n")
    error = json.loads(body)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return int(head.split()[1]), error


# ----------------------------------------------------------------------------------- Host and Origin


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8880", 200),
        ("localhost", 200),
        ("LOCALHOST:1", 200),
        ("[::1]:8880", 200),
        ("evil.example", 400),
        ("evil.example:8880", 400),
        ("localhost.evil.example", 400),
        ("127.0.0.1.evil.example", 400),
        ("localhost:8880@evil.example", 400),
        ("localhost,evil.example", 400),
        ("", 400),
    ],
)
@pytest.mark.parametrize("path", ["/health", URL])
def test_only_known_hosts_are_answered(client: FlaskClient, host: str, status: int, path: str) -> None:
    method = "GET" if path == "/health" else "POST"
    answer = client.open(path, method=method, json=HELLO, environ_overrides={"HTTP_HOST": host})
    assert answer.status_code == status
    assert status == 200 or set(answer.json["error"]) == {"message", "type", "param", "code"}


def test_a_host_that_is_listened_on_is_answered(make_app: Callable[..., Flask]) -> None:
    def status(host: str, asked: str) -> int:
        client = make_app(host=host).test_client()
        return client.get("/health", environ_overrides={"HTTP_HOST": asked}).status_code

    assert status("192.168.7.7", "192.168.7.7:8880") == 200
    assert status("fd00::7", "[fd00::7]:8880") == 200
    assert status("speaker.lan", "speaker.lan") == 200
    assert status("0.0.0.0", "192.168.7.7:8880") == 400
    assert status("0.0.0.0", "localhost:8880") == 200


def test_a_web_page_from_elsewhere_may_not_call(client: FlaskClient) -> None:
    for origin in (
        "http://evil.example",
        "https://localhost.evil.example",
        "null",
        "http://localhost:3000",
        "http://[",
    ):
        for answer in (
            client.post(URL, json=HELLO, headers={"Origin": origin}),
            client.get("/status", headers={"Origin": origin}),
            client.options(URL, headers={"Origin": origin, "Access-Control-Request-Method": "POST"}),
        ):
            assert answer.status_code == 403
            assert "Access-Control-Allow-Origin" not in answer.headers


def test_a_page_of_the_server_itself_may_call(client: FlaskClient) -> None:
    answer = client.post(
        URL,
        json=HELLO,
        headers={"Origin": "http://localhost:8880"},
        environ_overrides={"HTTP_HOST": "localhost:8880"},
    )
    assert answer.status_code == 200


def test_a_listed_web_page_may_call_and_read_the_answer(client: FlaskClient) -> None:
    asks = {
        "Origin": ALLOWED_ORIGIN,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type,x-stainless-os",
    }
    preflight = client.options(URL, headers=asks)
    assert preflight.status_code == 204
    assert preflight.headers["Access-Control-Allow-Origin"] == ALLOWED_ORIGIN
    assert "POST" in preflight.headers["Access-Control-Allow-Methods"]
    assert preflight.headers["Access-Control-Allow-Headers"] == asks["Access-Control-Request-Headers"]
    for fields in (HELLO, {"input": ""}):
        answer = client.post(URL, json=fields, headers={"Origin": ALLOWED_ORIGIN})
        assert answer.headers["Access-Control-Allow-Origin"] == ALLOWED_ORIGIN
        assert "Origin" in answer.headers["Vary"]


def test_without_a_listed_origin_there_are_no_cors_headers(make_app: Callable[..., Flask]) -> None:
    answer = make_app(allowed_origins="").test_client().post(URL, json=HELLO)
    assert not [name for name, _ in answer.headers if name.startswith("Access-Control")]


# --------------------------------------------------------------------------------------------- key


def test_speech_wants_the_key_where_one_is_set_and_nothing_else_does(
    make_app: Callable[..., Flask],
) -> None:
    client = make_app(api_key="sesame").test_client()
    for given in (None, "Bearer wrong", "Bearer ", "Basic sesame", "sesame", "Bearer sésame"):
        answer = client.post(URL, json=HELLO, headers={"Authorization": given} if given else {})
        assert answer.status_code == 401
        assert answer.json["error"]["code"] == "invalid_api_key"
        assert answer.headers["WWW-Authenticate"].lower().startswith("bearer")
    assert client.post(URL, json=HELLO, headers={"Authorization": "Bearer sesame"}).status_code == 200
    for path in ("/health", "/voices", "/v1/audio/voices", "/v1/models", "/v1/audio/models"):
        assert client.get(path).status_code == 200


# -------------------------------------------------------------------------------------------- size


def test_a_body_of_unknown_length_is_refused(server: RunningServer) -> None:
    head = f"POST {URL} HTTP/1.1\nHost: localhost\nConnection: close\nContent-Type: application/json\n"
    body = b'12\r\n{"input": "Hello."}\r\n0\r\n\r\n'
    with raw(server, head + "Transfer-Encoding: chunked\n\n", body) as connection:
        status, error = error_of(received(connection))
    assert (status, error["code"]) == (411, "length_required")
    with raw(server, head + "\n") as connection:
        assert error_of(received(connection))[0] == 411


def test_a_body_that_is_too_long_is_refused_unread(server: RunningServer, app: Flask) -> None:
    limit = max_body_bytes(state_of(app).settings)
    answer = httpx2.post(
        server.speech_url, content=b" " * (limit + 1), headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 413
    assert str(limit) in answer.json()["error"]["message"]
    head = f"POST {URL} HTTP/1.1\nHost: localhost\nContent-Length: 99999999999\n\n"
    with raw(server, head) as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


def test_a_body_that_does_not_arrive_is_given_up(server: RunningServer) -> None:
    head = f"POST {URL} HTTP/1.1\nHost: localhost\nConnection: close\nContent-Type: application/json\n"
    with raw(server, f"{head}Content-Length: 1000\n\n", b'{"input": "Hel') as connection:
        status, error = error_of(received(connection))
    assert (status, error["code"]) == (408, "request_timeout")


# ------------------------------------------------------------------------------------- concurrency


def test_when_all_are_busy_a_client_is_told_to_come_back(server: RunningServer) -> None:
    threads = [
        threading.Thread(target=httpx2.post, args=(server.speech_url,), kwargs={"json": SLOW})
        for _ in range(CONCURRENCY)
    ]
    for thread in threads:
        thread.start()
    wait_until(lambda: server.status()["active"] == CONCURRENCY)
    answer = httpx2.post(server.speech_url, json=HELLO)
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "1")
    assert httpx2.get(f"{server.url}/health").status_code == 200
    with server.openai(max_retries=0) as sdk, pytest.raises(openai.RateLimitError):
        sdk.audio.speech.create(model="tts-1", voice="hum", **HELLO)
    # The SDK comes back by itself, until there is room
    with server.openai(max_retries=20) as sdk:
        assert sdk.audio.speech.create(model="tts-1", voice="hum", **HELLO).content
    for thread in threads:
        thread.join()
    assert server.status()["active"] == 0


def test_a_client_that_leaves_frees_its_slot(server: RunningServer) -> None:
    before = server.status()["requests"]["cancelled"]
    connection = post(server, LONG)
    connection.recv(1000)
    wait_until(lambda: server.status()["active"] == 1)
    connection.close()
    wait_until(lambda: server.status()["active"] == 0, timeout_s=5)
    assert server.status()["requests"]["cancelled"] == before + 1


def test_a_client_that_leaves_while_a_sentence_is_computed_frees_its_slot(
    server: RunningServer,
) -> None:
    connection = post(
        server, {"input": "Here is the first of the sentences, all of it. " + SLOW["input"] * 20}
    )
    connection.recv(1000)
    connection.close()
    wait_until(lambda: server.status()["active"] == 0, timeout_s=5 * SLOW_S)


def test_a_client_that_does_not_read_loses_its_slot(server: RunningServer) -> None:
    connections = [post(server, LONG, receive_buffer=4096) for _ in range(CONCURRENCY)]
    wait_until(lambda: server.status()["active"] == CONCURRENCY)
    started = time.monotonic()
    wait_until(lambda: server.status()["active"] == 0, timeout_s=10 * STALL_S)
    assert time.monotonic() - started > STALL_S / 2, "given up before it had its time"
    assert httpx2.post(server.speech_url, json=HELLO).status_code == 200
    log = server.log.read_text()
    assert "its connection was cut" in log
    assert "Traceback" not in log
    for connection in connections:
        # What had been sent arrives, and then it ends without the chunk that would mark it as complete
        assert not received(connection).endswith(b"0\r\n\r\n")
        connection.close()


def test_a_client_that_does_not_read_a_file_loses_its_connection(server: RunningServer) -> None:
    asked = {"input": LONG["input"][:1500], "stream": False, "response_format": "wav"}
    with post(server, asked, receive_buffer=4096) as connection:
        connection.recv(1)
        time.sleep(2 * STALL_S)
        head, _, body = received(connection).partition(b"\r\n\r\n")
    length = next(int(line.split()[1]) for line in head.split(b"\r\n") if b"Content-Length" in line)
    assert len(body) < length


def test_a_slow_reader_is_not_a_stalled_one(server: RunningServer) -> None:
    with post(server, {"input": LONG["input"][:1500]}, receive_buffer=4096) as connection:
        size = 0
        started = time.monotonic()
        while time.monotonic() - started < 2 * STALL_S:
            size += len(connection.recv(4096))
            time.sleep(0.05)
        data = b""
        while not data.endswith(b"0\r\n\r\n"):
            piece = connection.recv(65_536)
            assert piece, "the stream was cut"
            data = (data + piece)[-100_000:]
    assert server.status()["active"] == 0


def test_the_server_stops_when_it_is_told_to(server: RunningServer) -> None:
    """Last in this file: the server is gone afterwards."""
    connection = post(server, {"input": FIRST + SLOW["input"]})
    connection.recv(1000)
    server.process.terminate()
    assert received(connection).endswith(b"0\r\n\r\n"), "a stream under way is finished first"
    connection.close()
    assert server.process.wait(20) == 0
    assert "SIGABRT" not in server.log.read_text()
