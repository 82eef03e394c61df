"""An error that nobody foresaw is told over every WebSocket: before the first sound, and during speech."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
import websocket
from flask import Flask

from kokoro_lab.net.watched_socket import WatchedSocket
from kokoro_lab.server.http import conversation
from kokoro_lab.server.http.conversation import Conversation
from kokoro_lab.server.http.elevenlabs import ElevenLabsConversation
from kokoro_lab.server.http.mistral import MistralConversation
from kokoro_lab.server.http.websocket_conversation import WebSocketConversation
from kokoro_lab.server.requests.speech_events import AudioBytes
from tests.server.conftest import state_of, wait_until

TEXT = "The kettle is on. " * 4
OURS = ("/v1/audio/speech/ws", {"type": "speak", "input": TEXT, "credit": 10_000})
DIALECTS: list[tuple[type[Conversation], str, dict[str, Any]]] = [
    (WebSocketConversation, *OURS),
    (ElevenLabsConversation, "/v1/text-to-speech/hum/stream-input", {"text": TEXT, "flush": True}),
    (
        ElevenLabsConversation,
        "/v1/text-to-speech/hum/multi-stream-input",
        {"text": TEXT, "flush": True, "context_id": "a"},
    ),
    (MistralConversation, "/v1/audio/speech/realtime", {"type": "input_text.flush", "text": TEXT}),
]
"""A dialect, its path, and what makes it speak."""
ERRORS = [IndexError, PermissionError]
"""The second is what a client that has gone raises, too: an OSError."""


def head_of(connection: socket.socket) -> dict[str, str]:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += connection.recv(1)
    lines = head.decode().split("\r\n")[1:]
    return dict(line.split(": ", 1) for line in lines if line)


@contextmanager
def talking(app: Flask, path: str) -> Iterator[websocket.WebSocket]:
    """A client that talks over a socket with an application of this process, in which errors can be made."""
    ours, theirs = socket.socketpair()

    def serve() -> None:
        headers = {name: value for name, value in head_of(ours).items() if name != "Host"}
        with suppress(RuntimeError, StopIteration):  # flask-sock ends so, as gunicorn is to send no answer
            app.test_client().get(path, headers=headers, environ_overrides={"gunicorn.socket": ours})

    thread = threading.Thread(target=serve, daemon=True)
    with ours, theirs:
        theirs.settimeout(60)
        thread.start()
        connection = websocket.create_connection(
            f"ws://localhost{path}", socket=theirs, timeout=60, suppress_origin=True
        )
        yield connection
        connection.close()
        thread.join(60)
        assert not thread.is_alive()


def told(connection: websocket.WebSocket) -> dict[str, Any]:
    """The first message that tells an error; before it, the connection is not closed."""
    while True:
        code, data = connection.recv_data()
        assert code != websocket.ABNF.OPCODE_CLOSE, data
        if code == websocket.ABNF.OPCODE_TEXT:
            said: dict[str, Any] = json.loads(data)
            if said.get("error"):
                return said


def check(app: Flask, connection: websocket.WebSocket, dialect: type[Conversation]) -> None:
    """Checks that the error is told as one of the server, that it is counted so, and which end follows."""
    said = told(connection)
    if dialect is WebSocketConversation:  # the connection serves the client's next text
        assert (said["error"]["code"], said["ended"]) == ("internal_error", True)
    else:
        coded = said["error"]["code"] if dialect is MistralConversation else said["error"]
        assert coded == (500 if dialect is MistralConversation else "internal_error")
        code, data = connection.recv_data()
        assert (code, int.from_bytes(data[:2], "big")) == (websocket.ABNF.OPCODE_CLOSE, 1011)
    counts = state_of(app).figures.summary()["requests"]
    assert (counts["failed"], counts["cancelled"], counts["completed"]) == (1, 0, 0)
    assert state_of(app).slots.active == 0


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize(("dialect", "path", "speak"), DIALECTS)
def test_before_the_first_sound(
    make_app: Callable[..., Flask],
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception],
    dialect: type[Conversation],
    path: str,
    speak: dict[str, Any],
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    app = make_app()
    monkeypatch.setattr(conversation, "open_stream", fail)
    with talking(app, path) as connection:
        connection.send(json.dumps(speak))
        check(app, connection, dialect)


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize(("dialect", "path", "speak"), DIALECTS)
def test_while_speech_is_written_for_the_client(
    make_app: Callable[..., Flask],
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception],
    dialect: type[Conversation],
    path: str,
    speak: dict[str, Any],
) -> None:
    written: list[AudioBytes] = []
    write = dialect._tell_audio

    def fail(self: Conversation, frame: AudioBytes) -> None:
        if written:
            raise error
        written.append(frame)
        write(self, frame)

    app = make_app()
    monkeypatch.setattr(dialect, "_tell_audio", fail)
    with talking(app, path) as connection:
        connection.send(json.dumps(speak))
        check(app, connection, dialect)


def test_a_client_whose_bytes_cannot_be_sent_is_no_error(
    make_app: Callable[..., Flask], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app()
    path, speak = OURS
    send = WatchedSocket.send
    sends = iter(range(4))

    def broken(self: WatchedSocket, data: bytes) -> int:
        if next(sends, None) is None:
            raise BrokenPipeError
        return send(self, data)

    with talking(app, path) as connection:
        monkeypatch.setattr(WatchedSocket, "send", broken)
        connection.send(json.dumps(speak))
        wait_until(lambda: state_of(app).figures.summary()["requests"]["total"] == 1)
    counts = state_of(app).figures.summary()["requests"]
    assert (counts["failed"], counts["cancelled"]) == (0, 1)
