"""A stream as its client takes it, frame by frame, over either transport: left anywhere, and gone on with."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any, Literal
from urllib.parse import urlsplit

from simple_websocket import Client, ConnectionClosed
from simple_websocket import ConnectionError as NotConnected

from kokoro_lab.errors import KokoroLabError, SynthesisError
from kokoro_lab.lab.bench.server_events import read_events

ANSWER_S = 300.0
"""A server that sends nothing for so long has failed."""
CREDIT = 100_000
"""Binary messages granted at once: this client never keeps a server waiting."""
HEAD = struct.Struct("<BBHIII")
MORE = 1

Transport = Literal["sse", "websocket"]
Body = dict[str, Any]
Patience = Callable[[], float]


class Busy(KokoroLabError):
    """The server has no slot for this now, or takes nothing new."""

    code = "busy"


class ServerReportedError(SynthesisError):
    """The server told of an error where audio was expected: it did not just break off.

    Parameters
    ----------
    error : dict
        In OpenAI's shape; `said` keeps its code.
    """

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"The server told of an error: {error['message']}")
        self.said = str(error["code"])


@dataclass(frozen=True, slots=True)
class ReceivedChunk:
    """One chunk of a stream.

    Parameters
    ----------
    id : str
        `segment.chunk`, behind which the stream may be gone on with.
    data : bytes
        In the format that was asked for.
    token : str or None
        What it takes for that, if it came with this chunk.
    """

    id: str
    data: bytes
    token: str | None = None

    @property
    def segment_id(self) -> int:
        """Of the segment in which it begins."""
        return int(self.id.partition(".")[0])

    @property
    def chunk_id(self) -> int:
        """Counts up by one over the whole stream."""
        return int(self.id.partition(".")[2])


class ReceivedStream:
    """What one listener has of a stream, and with what they may come back."""

    def __init__(self) -> None:
        self.audio = bytearray()
        self.count = 0
        self.last_chunk = -1
        self.last_segment: int | None = None
        self._last_id: str | None = None
        self._token: str | None = None

    def take(self, frame: ReceivedChunk) -> None:
        """One more frame."""
        self.audio += frame.data
        self.count += 1
        self.last_chunk, self.last_segment = frame.chunk_id, frame.segment_id
        self._last_id = frame.id
        self._token = frame.token or self._token

    @property
    def back(self) -> Body:
        """The fields that a request for the rest has beside its own."""
        found = {"last_id": self._last_id, "resume": self._token}
        return {name: value for name, value in found.items() if value is not None}


def frames(
    transport: Transport, url: str, body: Body, patience: Patience = lambda: ANSWER_S
) -> Generator[ReceivedChunk]:
    """The frames that `body` asks for, to the end of the stream. Closing this breaks the connection off.

    Parameters
    ----------
    url : str
        The server's, such as `http://127.0.0.1:8880`.
    body : dict
        A request's fields; with `last_id`, it is one for the rest of a stream.
    patience : callable
        A server that has begun to speak and then says nothing for so many seconds has gone; asked after each
        frame.

    Raises
    ------
    Busy
        The server said 429 or 503.
    Told
        It told of an error behind the first frame, or over the WebSocket.
    SynthesisError
        It refused otherwise, or broke off.
    """
    read: Callable[[str, Body, Patience], Generator[ReceivedChunk]]
    read = _over_events if transport == "sse" else _over_websocket
    return read(urlsplit(url).netloc, body, patience)


def _over_events(address: str, body: Body, patience: Patience) -> Generator[ReceivedChunk]:
    connection = HTTPConnection(address, timeout=ANSWER_S)
    try:
        data = json.dumps({**body, "stream_format": "sse"}).encode()
        connection.request("POST", "/v1/audio/speech", data, {"Content-Type": "application/json"})
        asked_over = connection.sock  # http.client forgets it where the connection ends with the answer
        answer = connection.getresponse()
        if answer.status != 200:
            raise _refused(answer.status, answer.read(500).decode(errors="replace"))
        for event in read_events(_lines(answer)):
            if event.kind == "speech.audio.delta":
                yield ReceivedChunk(str(event.id), event.audio, event.data.get("resume"))
                asked_over.settimeout(patience())
            elif event.kind == "speech.audio.done":
                return
            elif "error" in event.data:
                raise ServerReportedError(event.data["error"])
        raise SynthesisError("The server broke off: its events have no end.")
    except (OSError, HTTPException) as error:
        raise _broken(error) from error
    finally:
        connection.close()


def _lines(answer: HTTPResponse) -> Iterator[str]:
    return (line.decode().rstrip("\r\n") for line in answer)


def _over_websocket(address: str, body: Body, patience: Patience) -> Generator[ReceivedChunk]:
    kind = "resume" if "last_id" in body else "speak"
    parts = urlsplit(f"//{address}")
    try:
        # Asked first, since the library leaves a socket open where nobody answers
        socket.create_connection((parts.hostname or "", parts.port or 80), ANSWER_S).close()
        client = Client(f"ws://{address}/v1/audio/speech/ws")
    except (OSError, NotConnected) as error:
        raise _broken(error) from error
    try:
        client.send(json.dumps({"type": kind, "credit": CREDIT, **body}))
        yield from _messages(client, patience)
    except (OSError, ConnectionClosed) as error:
        raise _broken(error) from error
    finally:
        # Not `close`, which says goodbye: a listener who is cut off says nothing
        with suppress(OSError):
            client.sock.shutdown(socket.SHUT_RDWR)
        client.thread.join(ANSWER_S)
        client.sock.close()


def _messages(client: Client, patience: Patience) -> Generator[ReceivedChunk]:
    token, parts = None, b""
    wait_s = ANSWER_S
    while True:
        message = client.receive(timeout=wait_s)
        if message is None:
            raise SynthesisError(f"The server said nothing for {wait_s:g} s.")
        if isinstance(message, str):
            said = json.loads(message)
            if said["type"] == "done":
                return
            if said["type"] == "error":
                raise _told(said["error"])
            token = said.get("resume", token)
            continue
        _, flags, head_bytes, segment_id, chunk_id, _ = HEAD.unpack_from(message)
        parts += message[head_bytes:]
        if not flags & MORE:
            yield ReceivedChunk(f"{segment_id}.{chunk_id}", parts, token)
            token, parts, wait_s = None, b"", patience()


def _refused(status: int, said: str) -> KokoroLabError:
    if status in (429, 503):
        return Busy(f"The server answered {status}.")
    return SynthesisError(f"The server answered {status}: {said}")


def _told(error: dict[str, Any]) -> KokoroLabError:
    if error["type"] == "rate_limit_error":
        return Busy("The server has no slot free.")
    return ServerReportedError(error)


def _broken(error: Exception) -> SynthesisError:
    return SynthesisError(
        f"The server broke off: {type(error).__name__}: {error}",
        mend="Its log says why; KOKORO_VERBOSE_LOGS=true makes it say more.",
    )
