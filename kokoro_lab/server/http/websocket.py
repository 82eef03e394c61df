"""The WebSocket routes: how many connections are admitted, and how a connection ends."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

from flask import Blueprint, current_app, g, request
from flask_sock import Sock
from simple_websocket import ConnectionClosed, Server
from werkzeug.exceptions import BadRequest, HTTPException, TooManyRequests

from kokoro_lab.config import Settings
from kokoro_lab.net.watched_socket import WatchedSocket
from kokoro_lab.server.http.conversation import Conversation
from kokoro_lab.server.http.elevenlabs import ElevenLabsConversation
from kokoro_lab.server.http.guard import SEND_BUFFER_BYTES, client_socket, max_body_bytes, require_key
from kokoro_lab.server.http.mistral import MistralConversation
from kokoro_lab.server.http.websocket_conversation import WebSocketConversation
from kokoro_lab.server.openapi.document import Parameter, documented
from kokoro_lab.server.requests.slots import Slot
from kokoro_lab.server.state import SOCKETS, server_state

PING_S = 20
"""Seconds between two pings. A client that has not answered a ping before the next one has gone."""
GOODBYE_S = 1.0
"""How long the server waits for the client's half of the closing handshake."""

VERSION = "13"
"""The version of the protocol: that of RFC 6455."""
_UNREADABLE_OFFER = re.compile(r"[^ -~]|_max_window_bits(?! *(?:= *[0-9]{1,2} *)?(?:[;,]|$))")
"""What wsproto cannot read in an offer of compression. It reads sizes as bare numbers alone, while RFC 7692
also allows them in quotation marks."""

PATH = "/v1/audio/speech/ws"
MISTRAL = "/v1/audio/speech/realtime"
ELEVENLABS = "/v1/text-to-speech/<voice_id>"
VOICE = Parameter("voice_id", {"type": "string", "pattern": r"^[A-Za-z0-9_]+$"})

blueprint = Blueprint("websocket", __name__)
# `guard` has checked Host and Origin, as for every request: browsers do not do it for WebSockets
blueprint.before_request(require_key)
_sock = Sock()


def options(settings: Settings) -> dict[str, Any]:
    """Options of the WebSocket library: pings, and the largest message."""
    return {"ping_interval": PING_S, "max_message_size": max_body_bytes(settings)}


class UpgradeRequired(HTTPException):
    """A plain request came to a WebSocket route, or one for another version of the protocol."""

    code = 426
    name = "Upgrade Required"
    description = f"A WebSocket of version {VERSION} is spoken here: connect with a WebSocket client."

    def get_headers(self, *arguments: Any) -> list[tuple[str, str]]:
        asked = [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", VERSION)]
        return [*super().get_headers(*arguments), *asked]


@blueprint.before_request
def _admit() -> None:
    """Admit a connection, which occupies a thread of the server for as long as it lasts."""
    connection = client_socket()
    if connection is None or request.url_rule is None or not request.url_rule.websocket:
        return
    _check_handshake()
    try:
        g.seat = server_state().sockets.take()
    except TooManyRequests as error:
        raise TooManyRequests(
            f"All {SOCKETS} WebSockets that may be open at a time are.", retry_after=error.retry_after
        ) from None
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    g.watched = WatchedSocket(connection, current_app.config["STALL_S"])
    request.environ["gunicorn.socket"] = g.watched


def _check_handshake() -> None:
    """Refuse a handshake that the WebSocket library cannot answer: it raises errors of several types, which
    would pass for errors of the server.

    Compression whose offer the library cannot read is declined, and the connection does without it.
    """
    said = request.headers
    if said.get("Sec-WebSocket-Version") != VERSION:
        raise UpgradeRequired
    if not said.get("Sec-WebSocket-Key"):
        raise BadRequest("A WebSocket begins with the header Sec-WebSocket-Key, which is missing.")
    for name in ("Connection", "Sec-WebSocket-Protocol"):
        if not said.get(name, "").isascii():
            raise BadRequest(f"The header {name} of a WebSocket is in ASCII.")
    if _UNREADABLE_OFFER.search(said.get("Sec-WebSocket-Extensions", "")):
        del request.environ["HTTP_SEC_WEBSOCKET_EXTENSIONS"]


@blueprint.teardown_request
def _leave(error: BaseException | None) -> None:
    watched: WatchedSocket | None = g.pop("watched", None)
    if watched is not None:
        watched.release()  # after a handshake that failed, nobody else ends its watch
    seat: Slot | None = g.pop("seat", None)
    if seat is not None:
        seat.release()


@blueprint.get(PATH)
@documented(status=101, errors=(401, 426, 429))
def knock() -> NoReturn:
    """Speak over a WebSocket: the fields of a request as JSON messages, audio in binary ones.

    docs/clients.md describes the messages. A request that does not ask for a WebSocket is answered 426.
    """
    raise UpgradeRequired


@blueprint.get(MISTRAL)
@documented(status=101, errors=(401, 426, 429))
def knock_as_mistral() -> NoReturn:
    """Speak what is still being written, over a WebSocket, as Mistral's clients ask for it."""
    raise UpgradeRequired


@blueprint.get(f"{ELEVENLABS}/stream-input")
@documented(status=101, errors=(401, 426, 429), parameters=(VOICE,))
def knock_as_elevenlabs(voice_id: str) -> NoReturn:
    """Speak what is still being written, over a WebSocket, as ElevenLabs' clients ask for it."""
    raise UpgradeRequired


@blueprint.get(f"{ELEVENLABS}/multi-stream-input")
@documented(status=101, errors=(401, 426, 429), parameters=(VOICE,))
def knock_with_contexts(voice_id: str) -> NoReturn:
    """Speak several texts that are still being written over one WebSocket, each in a context of its own, one
    after another."""
    raise UpgradeRequired


@_sock.route(PATH, bp=blueprint)  # type: ignore[untyped-decorator]
def talk(ws: Server) -> None:
    _talk(ws, WebSocketConversation)


@_sock.route(MISTRAL, bp=blueprint)  # type: ignore[untyped-decorator]
def talk_as_mistral(ws: Server) -> None:
    _talk(ws, MistralConversation, query=request.args)


@_sock.route(f"{ELEVENLABS}/stream-input", bp=blueprint)  # type: ignore[untyped-decorator]
def talk_as_elevenlabs(ws: Server, voice_id: str) -> None:
    _talk(ws, ElevenLabsConversation, voice=voice_id, query=request.args, several=False)


@_sock.route(f"{ELEVENLABS}/multi-stream-input", bp=blueprint)  # type: ignore[untyped-decorator]
def talk_with_contexts(ws: Server, voice_id: str) -> None:
    _talk(ws, ElevenLabsConversation, voice=voice_id, query=request.args, several=True)


def _talk(ws: Server, dialect: Callable[..., Conversation], **said: Any) -> None:
    """Run a conversation until the client leaves."""
    watched: WatchedSocket = ws.sock
    conversation = dialect(ws, server_state(), g.request_id, watched, **said)
    try:
        conversation.run()
    except (ConnectionClosed, OSError):
        pass
    finally:
        conversation.end()
        with suppress(ConnectionClosed, OSError):
            ws.close(*conversation.closing)
        watched.take_leave(ws.thread, GOODBYE_S)
