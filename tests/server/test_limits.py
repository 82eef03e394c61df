"""Who may ask and how much; and that a client who misbehaves costs nobody else anything."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import openai
import pytest
from flask import Flask
from flask.testing import FlaskClient

from kokoro_lab.server.http.delivery import StreamBroken
from kokoro_lab.server.http.guard import max_body_bytes
from tests.server.conftest import ALLOWED_ORIGIN, CONCURRENCY, RunningServer, running, state_of, wait_until
from tests.server.events import read_events
from tests.server.scripted import SLOW_S, Scripted
from tests.server.tiny_server import STALL_S

URL = "/v1/audio/speech"
HELLO = {"input": "Hello."}
SLOW = {"input": "This is a slow one. " * 6}
FIRST = "Here is the first of the sentences, all of it. "
LONG = {"input": "This sentence is one of very many, and nobody will ever listen to it. " * 250}
"""Half an hour of speech, 80 MB: far more than the buffers between server and client take."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """One of its own, which the last test ends."""
    with running(tmp_path_factory.mktemp("limited")) as found:
        yield found


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
    while fragment := connection.recv(65_536):
        data += fragment
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


def test_a_request_for_speech_without_a_body_is_refused(server: RunningServer) -> None:
    head = f"POST {URL} HTTP/1.1\nHost: localhost\nConnection: close\nContent-Type: application/json\n"
    with raw(server, head + "\n") as connection:
        assert error_of(received(connection))[0] == 400


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
    assert answer.status_code == 429
    assert 1 <= int(answer.headers["Retry-After"]) < 30, "until the shorter of them ends"
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
        server, {"input": "Here is the first of the sentences, all of it. " + SLOW["input"] * 60}
    )
    connection.recv(1000)
    connection.close()
    wait_until(lambda: server.status()["active"] == 0, timeout_s=20 * SLOW_S)


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


@pytest.mark.test_all
def test_a_client_that_does_not_read_a_file_loses_its_connection(server: RunningServer) -> None:
    # As WAV: an mp3 would fit into the buffers between server and client
    asked = {"input": LONG["input"][:1500], "stream": False, "response_format": "wav"}
    with post(server, asked, receive_buffer=4096) as connection:
        connection.recv(1)
        time.sleep(2 * STALL_S)
        head, _, body = received(connection).partition(b"\r\n\r\n")
    length = next(int(line.split()[1]) for line in head.split(b"\r\n") if b"Content-Length" in line)
    assert len(body) < length


def test_a_slow_reader_is_not_a_stalled_one(server: RunningServer) -> None:
    # 700 kB: more than it reads slowly and the buffers take
    with post(server, {"input": LONG["input"][:500]}, receive_buffer=4096) as connection:
        size = 0
        started = time.monotonic()
        while time.monotonic() - started < 2 * STALL_S:
            size += len(connection.recv(4096))
            time.sleep(0.05)
        data = b""
        while not data.endswith(b"0\r\n\r\n"):
            fragment = connection.recv(65_536)
            assert fragment, "the stream was cut"
            data = (data + fragment)[-100_000:]
    assert server.status()["active"] == 0


# ------------------------------------------------------------- clients that are slow, or lie, on the wire


def served(server: RunningServer) -> bool:
    """Whether the next request is answered as if nothing had been."""
    return httpx2.post(server.speech_url, json=HELLO, timeout=60).status_code == 200


def test_a_body_that_comes_a_byte_at_a_time_is_given_up(server: RunningServer) -> None:
    head = f"POST {URL} HTTP/1.1\nHost: localhost\nConnection: close\nContent-Type: application/json\n"
    with raw(server, f"{head}Content-Length: 1000\n\n") as connection:
        dripping = threading.Event()

        def drip() -> None:
            while not dripping.wait(STALL_S / 5):
                try:
                    connection.sendall(b" ")
                except OSError:
                    return

        thread = threading.Thread(target=drip)
        thread.start()
        status, error = error_of(received(connection))
        dripping.set()
        thread.join()
    assert (status, error["code"]) == (408, "request_timeout")
    assert served(server)


def test_heads_that_never_end_do_not_keep_the_threads(server: RunningServer) -> None:
    connections = [raw(server, f"POST {URL} HTTP/1.1\nHost: loc") for _ in range(30)]
    assert served(server)
    for connection in connections:
        status, error = error_of(received(connection))
        assert (status, error["code"]) == (408, "request_timeout")
        connection.close()


def test_a_body_that_is_longer_than_it_says_is_cut_at_what_it_says(server: RunningServer) -> None:
    body = json.dumps(HELLO).encode()
    head = f"POST {URL} HTTP/1.1\nHost: localhost\nContent-Type: application/json\n"
    for length in (5, len(body) - 1):
        with raw(server, f"{head}Content-Length: {length}\n\n", body) as connection:
            assert connection.recv(100).startswith(b"HTTP/1.1 400")
        assert served(server)


def test_a_length_that_is_no_number_is_refused(server: RunningServer) -> None:
    for length in ("-1", "1e3", "5, 6", "abc"):
        with raw(server, f"POST {URL} HTTP/1.1\nHost: localhost\nContent-Length: {length}\n\n") as connection:
            assert connection.recv(100).startswith(b"HTTP/1.1 400")
    assert served(server)


def test_ten_megabytes_are_refused(server: RunningServer) -> None:
    try:
        answer = httpx2.post(server.speech_url, json={"input": "a" * 10_000_000}, timeout=60)
    except httpx2.WriteError:
        pass  # it was still sending when it was told
    else:
        assert (answer.status_code, answer.headers["x-should-retry"]) == (413, "false")
    assert served(server)


def test_a_wrong_host_and_a_foreign_origin_are_refused_on_the_wire(server: RunningServer) -> None:
    answer = httpx2.post(server.speech_url, json=HELLO, headers={"Host": "evil.example"})
    assert (answer.status_code, answer.headers["x-should-retry"]) == (400, "false")
    answer = httpx2.post(server.speech_url, json=HELLO, headers={"Origin": "http://evil.example"})
    assert (answer.status_code, answer.headers["x-should-retry"]) == (403, "false")
    assert served(server)


# --------------------------------------------------------------------------------- queue and deadlines


def test_a_request_that_waits_is_served_in_its_turn(
    make_app: Callable[..., Flask], decoder: Scripted
) -> None:
    app = make_app(concurrency=1, queue=1)
    decoder.gate.clear()

    def ask() -> int:
        return app.test_client().post(URL, json={**HELLO, "stream": False}).status_code

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.submit(ask), pool.submit(ask)
        wait_until(lambda: (state_of(app).slots.active, state_of(app).slots.waiting) == (1, 1))
        assert ask() == 429
        assert app.test_client().get("/status").json["waiting"] == 1
        decoder.gate.set()
        assert (first.result(), second.result()) == (200, 200)


def test_a_file_that_takes_too_long_is_given_up_with_an_answer(make_app: Callable[..., Flask]) -> None:
    app = make_app(deadline_s=0.2)
    answer = app.test_client().post(URL, json={**SLOW, "stream": False})
    assert (answer.status_code, answer.json["error"]["code"]) == (504, "deadline_exceeded")
    assert "KOKORO_DEADLINE_S" in answer.json["error"]["message"]
    assert answer.headers["x-should-retry"] == "false"
    assert state_of(app).slots.active == 0
    assert state_of(app).figures.summary()["requests"]["expired"] == 1


@pytest.mark.parametrize("deadline", ["first_audio_deadline_s", "deadline_s"])
def test_a_stream_that_takes_too_long_is_broken_off(make_app: Callable[..., Flask], deadline: str) -> None:
    app = make_app(**{deadline: 0.2})
    answer = app.test_client().post(URL, json=SLOW, buffered=False)
    with pytest.raises(StreamBroken):
        list(answer.response)
    answer.close()  # as gunicorn does
    assert state_of(app).slots.active == 0
    assert state_of(app).figures.summary()["requests"]["expired"] == 1


def test_events_that_take_too_long_end_with_the_deadline(make_app: Callable[..., Flask]) -> None:
    app = make_app(deadline_s=0.2)
    text = app.test_client().post(URL, json={**SLOW, "stream_format": "sse"}).text
    last = list(read_events(text.split("\n")))[-1]
    assert (last.name, last.data["error"]["code"]) == ("error", "deadline_exceeded")
    assert state_of(app).slots.active == 0
    assert state_of(app).figures.summary()["requests"]["expired"] == 1


def test_a_request_that_is_stopped_while_it_waits_leaves_the_queue(
    make_app: Callable[..., Flask], decoder: Scripted
) -> None:
    app = make_app(concurrency=1, queue=1)
    decoder.gate.clear()

    def ask(name: str) -> Any:
        return app.test_client().post(URL, json={**HELLO, "stream": False}, headers={"X-Request-Id": name})

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ask, "first")
        wait_until(lambda: state_of(app).slots.active == 1)
        second = pool.submit(ask, "second")
        wait_until(lambda: state_of(app).slots.waiting == 1)
        assert app.test_client().delete(f"{URL}/second").status_code == 200
        answer = second.result()
        decoder.gate.set()
        assert first.result().status_code == 200
    assert (answer.status_code, answer.json["error"]["code"]) == (409, "cancelled")
    assert state_of(app).slots.waiting == 0


def test_a_stream_that_has_begun_to_sound_is_not_held_to_its_first_audio(
    make_app: Callable[..., Flask],
) -> None:
    app = make_app(first_audio_deadline_s=SLOW_S * 1.5)
    assert app.test_client().post(URL, json={"input": FIRST + SLOW["input"]}).data
    assert state_of(app).figures.summary()["requests"]["completed"] == 1


def test_the_log_has_a_line_of_json_for_each_request_and_no_text(server: RunningServer) -> None:
    secret = "Nobody shall read of the aardvark."
    asked = {"input": secret, "stream": False}
    httpx2.post(server.speech_url, json=asked, headers={"X-Request-Id": "logged"}, timeout=60)
    httpx2.post(server.speech_url, json={**asked, "voice": "nobody"}, headers={"X-Request-Id": "wrong"})
    lines = [json.loads(line) for line in server.log.read_text().splitlines() if line.startswith("{")]
    found = {e["request_id"]: e for e in lines if e.get("event") == "request"}
    assert found["logged"]["outcome"] == "completed"
    assert found["logged"]["characters"] == len(secret)
    assert found["logged"]["rtf"] > 0
    assert "CPUExecutionProvider" in found["logged"]["provider_path"]
    assert (found["wrong"]["outcome"], found["wrong"]["code"]) == ("invalid", "unknown_voice")
    assert "aardvark" not in server.log.read_text()


def test_four_streams_at_a_time_are_each_whole_and_correct(make_app: Callable[..., Flask]) -> None:
    app = make_app(concurrency=4)
    texts = [f"{name} speaks of a thing that nobody else speaks of. " * 3 for name in ("A", "B", "C", "D")]

    def ask(text: str) -> bytes:
        return app.test_client().post(URL, json={"input": text, "response_format": "pcm"}).data

    alone = [ask(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, texts)) == alone
    assert len(set(alone)) == 4


def test_the_server_stops_when_it_is_told_to(server: RunningServer) -> None:
    """Last in this file: the server is gone afterwards."""
    connection = post(server, {"input": FIRST + "This is a slow one. " * 2})
    connection.recv(1000)
    server.process.terminate()
    assert received(connection).endswith(b"0\r\n\r\n"), "a stream under way is finished first"
    connection.close()
    assert server.process.wait(20) == 0
    assert "SIGABRT" not in server.log.read_text()
