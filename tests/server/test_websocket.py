"""Who comes in over a WebSocket: no foreign page, nobody without the key, no more than there are seats."""

from __future__ import annotations

import socket
import threading

import httpx2
import psutil
import pytest
import websocket
from flask.testing import FlaskClient

from kokoro_lab.server.http.websocket import PATH
from kokoro_lab.server.state import SOCKETS
from tests.server.conftest import ALLOWED_ORIGIN, RunningServer, running, wait_until
from tests.server.test_limits import error_of, raw, received
from tests.server.test_websocket_conversation import PLENTY, talking


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"host": "evil.example"}, 400),
        ({"origin": ALLOWED_ORIGIN}, 101),
    ],
)
def test_foreign_pages_and_hosts_are_turned_away_at_the_door(
    server: RunningServer, headers: dict[str, str], status: int
) -> None:
    address = f"ws://127.0.0.1:{server.port}/v1/audio/speech/ws"
    if status == 101:
        websocket.create_connection(address, timeout=30, **headers).close()
        return
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        websocket.create_connection(address, timeout=30, **headers)
    assert refused.value.status_code == status


@pytest.mark.test_all
def test_a_key_is_asked_for_where_one_is_set(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOKORO_API_KEY", "sesame")
    with running(tmp_path_factory.mktemp("keyed")) as server:
        with pytest.raises(websocket.WebSocketBadStatusException) as refused, talking(server):
            pass
        assert refused.value.status_code == 401
        with talking(server, header={"Authorization": "Bearer sesame"}) as talk:
            talk.say("speak", input="Hello.", credit=PLENTY)
            talk.until("done")


def test_more_connections_than_there_are_seats_are_told_to_come_back(server: RunningServer) -> None:
    address = f"ws://127.0.0.1:{server.port}/v1/audio/speech/ws"
    opened = [websocket.create_connection(address, timeout=30, suppress_origin=True) for _ in range(SOCKETS)]
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        websocket.create_connection(address, timeout=30, suppress_origin=True)
    assert refused.value.status_code == 429
    assert httpx2.get(f"{server.url}/health").status_code == 200
    for connection in opened:
        connection.close()

    def served() -> bool:
        try:
            with talking(server) as talk:
                talk.say("speak", input="Hello.", credit=PLENTY)
                return talk.until("done")["type"] == "done"
        except websocket.WebSocketBadStatusException:
            return False

    wait_until(served)


# ------------------------------------------------------------------------------------------ handshakes

HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version": "13",
}
PATHS = [
    PATH,
    "/v1/audio/speech/realtime",
    "/v1/text-to-speech/hum/stream-input",
    "/v1/text-to-speech/hum/multi-stream-input",
]
FAILED: list[tuple[dict[str, str | None], int]] = [
    ({"Sec-WebSocket-Key": None, "Sec-WebSocket-Version": None}, 426),
    ({"Sec-WebSocket-Version": "8"}, 426),
    ({"Sec-WebSocket-Key": None}, 400),
    ({"Sec-WebSocket-Protocol": "café"}, 400),
    ({"Connection": "Upgrade, café"}, 400),
]
"""What is changed in a handshake, and the status with which it is then refused."""


def changed(fields: dict[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in {**HANDSHAKE, **fields}.items() if value is not None}


def knock(server: RunningServer, fields: dict[str, str | None], path: str = PATH) -> socket.socket:
    lines = [f"{name}: {value}\n" for name, value in changed(fields).items()]
    return raw(server, f"GET {path} HTTP/1.1\nHost: localhost\n{''.join(lines)}\n")


def answer_to(server: RunningServer, fields: dict[str, str | None], path: str = PATH) -> bytes:
    with knock(server, {**fields}, path) as connection:
        answer = connection.recv(65_536)
        connection.shutdown(socket.SHUT_WR)
        return answer + received(connection)


def watches() -> set[threading.Thread]:
    return {each for each in threading.enumerate() if each.name == "watchdog"}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("fields", "status"), FAILED)
def test_a_failed_handshake_is_told_what_it_lacks(
    server: RunningServer, fields: dict[str, str | None], status: int, path: str
) -> None:
    answer = answer_to(server, fields, path)
    assert error_of(answer)[0] == status
    assert (b"\r\nSec-WebSocket-Version: 13\r\n" in answer) == (status == 426)


def test_failed_handshakes_leave_no_threads_and_no_stacks_in_the_log(server: RunningServer) -> None:
    def threads() -> int:
        processes = psutil.Process(server.process.pid).children()
        return max(process.num_threads() for process in processes)

    before = threads()
    for _ in range(8):
        for fields, _status in FAILED:
            answer_to(server, fields)
    wait_until(lambda: threads() < before + 8 * len(FAILED) / 2)
    assert "RemoteProtocolError" not in server.log.read_text()


@pytest.mark.parametrize(
    "offer",
    [
        'permessage-deflate; client_max_window_bits="15"',
        "permessage-deflate; server_max_window_bits=",
        "permessage-deflate; client_max_window_bits=" + "1" * 5000,
        "permessage-défl",
    ],
)
def test_compression_that_is_not_understood_is_done_without(server: RunningServer, offer: str) -> None:
    with knock(server, {"Sec-WebSocket-Extensions": offer}) as connection:
        assert connection.recv(65_536).startswith(b"HTTP/1.1 101")


def test_compression_that_is_understood_is_agreed_on(server: RunningServer) -> None:
    for offer in ("permessage-deflate", "permessage-deflate; client_max_window_bits"):
        with knock(server, {"Sec-WebSocket-Extensions": offer}) as connection:
            assert b"Sec-WebSocket-Extensions: permessage-deflate" in connection.recv(65_536)


@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
def test_who_never_comes_to_talk_leaves_no_thread(client: FlaskClient, method: str) -> None:
    ours, theirs = socket.socketpair()
    before = watches()
    with ours, theirs:
        ours.shutdown(socket.SHUT_WR)  # the answer to the handshake cannot be sent any more
        client.open(PATH, method=method, headers=HANDSHAKE, environ_overrides={"gunicorn.socket": ours})
        left = watches() - before
        for each in left:
            each.join(20)
        assert not any(each.is_alive() for each in left)
        assert ours.gettimeout() == client.application.config["STALL_S"], "for the answer"
