"""The client of our own server: raw audio, server-sent events or a WebSocket; it also resumes streams."""

from __future__ import annotations

import base64
import json
import socket
import struct
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from simple_websocket import Client, ConnectionClosed
from simple_websocket import ConnectionError as NotConnected

from kokoro_lab.containers.pcm import BYTES_A_SAMPLE, WAV_HEADER_BYTES
from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.errors import KokoroLabError, SynthesisError
from kokoro_lab.lab.bench.received import ReceivedChunk, ReceivedStream
from kokoro_lab.speech.chunker import PRIMER_S

ANSWER_S = 300.0
"""Seconds without data after which a server counts as failed."""
READ_BYTES = 65_536
"""The most bytes to read at a time. Bytes that have arrived are read at once, however few."""
CREDIT = 100_000
"""Binary messages granted at once: this client never keeps a server waiting."""
HEAD = struct.Struct("<BBHIII")
MORE = 1
SPEECH_PATH = "/v1/audio/speech"
PRIMER_BYTES = round(PRIMER_S * SAMPLE_RATE_HZ) * BYTES_A_SAMPLE

Transport = Literal["http", "sse", "websocket"]
TRANSPORTS: tuple[Transport, ...] = get_args(Transport)
"""`http` brings bare bytes of audio, `sse` server-sent events, and `websocket` messages with a header
each."""
RESUMABLE: tuple[Transport, ...] = ("sse", "websocket")
"""Transports whose chunks have ids; a stream is resumed after the chunk with a given id."""
Body = dict[str, Any]
Patience = Callable[[], float]


class Busy(KokoroLabError):
    """The server has no free slot, or refuses new requests; it may be asked again in `retry_after_s`
    seconds."""

    code = "busy"

    def __init__(self, message: str, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ServerReportedError(SynthesisError):
    """The server reported an error in place of audio, and did not just break off.

    Parameters
    ----------
    error : dict
        The error in OpenAI's shape; `said` holds its code.
    """

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"The server told of an error: {error['message']}")
        self.said = str(error["code"])


def speech_request(text: str, voice: str) -> Body:
    """Fields of a request whose answers can be compared sample by sample."""
    return {"input": text, "voice": voice, "response_format": "pcm", "sample_rate": SAMPLE_RATE_HZ}


# ---------------------------------------------------------------------------------------------- requests


@contextmanager
def answered(
    url: str, method: str, path: str, body: Body | None = None, *, timeout_s: float = ANSWER_S
) -> Iterator[tuple[HTTPResponse, socket.socket]]:
    """A context that sends a request. It gives the head of the answer, whatever its status, and the socket
    from which the answer's body is read.

    Raises
    ------
    SynthesisError
        The server cannot be reached, or breaks off inside the `with` block.
    """
    connection = HTTPConnection(urlsplit(url).netloc, timeout=timeout_s)
    try:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {"Content-Type": "application/json"})
        wire = connection.sock  # http.client drops the socket if the connection ends with the answer
        yield connection.getresponse(), wire
    except (OSError, HTTPException) as error:
        raise _broken(error) from error
    finally:
        connection.close()


def ask(url: str, method: str, path: str, body: Body | None = None) -> dict[str, Any]:
    """Send a request, and return the server's answer, a JSON object.

    Raises
    ------
    Busy, SynthesisError
        As `receive`.
    """
    with answered(url, method, path, body) as (answer, _):
        _accept(answer)
        found: dict[str, Any] = json.loads(answer.read())
        return found


def _accept(answer: HTTPResponse) -> None:
    if answer.status != 200:
        said = f"The server answered {answer.status}: {answer.read(500).decode(errors='replace')}"
        if answer.status in (429, 503):
            raise Busy(said, float(answer.headers.get("Retry-After", 1)))
        raise SynthesisError(said)


def _broken(error: Exception) -> SynthesisError:
    return SynthesisError(
        f"The server broke off: {type(error).__name__}: {error}",
        mend="Its log says why; KOKORO_VERBOSE_LOGS=true makes it say more.",
    )


# ---------------------------------------------------------------------------------------------- streams


def receive(
    transport: Transport,
    url: str,
    body: Body,
    heard: ReceivedStream | None = None,
    patience: Patience = lambda: ANSWER_S,
) -> Generator[ReceivedChunk]:
    """The chunks of the speech that `body` asks for. Closing the iterator cuts the connection.

    Raw audio has no ids. To resume it, the client requests the whole speech again and skips the part that the
    listener has: the same request has the same samples.

    Parameters
    ----------
    url : str
        The server's address, such as `http://127.0.0.1:8880`.
    body : dict
        A request's fields.
    heard : ReceivedStream, optional
        The chunks that the listener has already. Only later ones are returned, without the silence (primer)
        with which a stream begins.
    patience : callable
        Returns after how many silent seconds a server that has begun to speak counts as gone; called after
        each chunk.

    Raises
    ------
    Busy
        The server has no free slot (429, or an error over the WebSocket), or refuses new requests (503).
    ServerReportedError
        The server reported another error by an event or a message.
    SynthesisError
        The server refused for another reason, or broke off.
    """
    if transport == "http":
        header_bytes = WAV_HEADER_BYTES if body["response_format"] == "wav" else 0
        had_bytes = 0 if heard is None else PRIMER_BYTES + len(heard.pcm)
        return _bare(url, body, header_bytes + had_bytes, patience)
    read = _events if transport == "sse" else _messages
    return read(url, body if heard is None else {**body, **heard.back}, patience)


def _bare(url: str, body: Body, skipped: int, patience: Patience) -> Generator[ReceivedChunk]:
    """The samples that arrive, whole ones only, after the first `skipped` bytes.

    A server that stalls sends silence as long as the primer; this is skipped, too. The speech is dithered, so
    a chunk of all zeros cannot be speech.
    """
    rest, begun = b"", False
    with answered(url, "POST", SPEECH_PATH, body) as (answer, wire):
        _accept(answer)
        while block := answer.read1(READ_BYTES):
            if begun and block == bytes(PRIMER_BYTES):
                continue
            begun = True
            rest += block[skipped:]
            skipped = max(skipped - len(block), 0)
            whole = len(rest) - len(rest) % BYTES_A_SAMPLE
            if whole:
                wire.settimeout(patience())
            yield ReceivedChunk(None, rest[:whole])
            rest = rest[whole:]


def _events(url: str, body: Body, patience: Patience) -> Generator[ReceivedChunk]:
    with answered(url, "POST", SPEECH_PATH, {**body, "stream_format": "sse"}) as (answer, wire):
        _accept(answer)
        for event in read_events(line.decode().rstrip("\r\n") for line in answer):
            if event.kind == "speech.audio.delta":
                yield ReceivedChunk(event.id, event.audio, event.data.get("resume"))
                wire.settimeout(patience())
            elif event.kind == "speech.audio.done":
                return
            elif "error" in event.data:
                raise ServerReportedError(event.data["error"])
        raise SynthesisError("The server broke off: its events have no end.")


def _messages(url: str, body: Body, patience: Patience) -> Generator[ReceivedChunk]:
    with _connected(url) as client:
        kind = "resume" if "last_id" in body else "speak"
        client.send(json.dumps({"type": kind, "credit": CREDIT, **body}))
        yield from _tagged(client, patience)


@contextmanager
def live_messages(url: str, voice: str) -> Iterator[tuple[Callable[..., None], Generator[ReceivedChunk]]]:
    """Begin a live text. Yields a function that sends one message (its kind and its fields), and an iterator
    over the chunks of speech that the server sends back."""
    with _connected(url) as client:

        def say(kind: str, **fields: Any) -> None:
            client.send(json.dumps({"type": kind, **fields}))

        say("speak", live=True, credit=CREDIT, **speech_request("", voice))
        yield say, _tagged(client, lambda: ANSWER_S)


@contextmanager
def _connected(url: str) -> Iterator[Client]:
    parts = urlsplit(url)
    try:
        # A plain connection is tried first, since the library leaves a socket open if no server answers
        socket.create_connection((parts.hostname or "", parts.port or 80), ANSWER_S).close()
        client = Client(f"ws://{parts.netloc}{SPEECH_PATH}/ws")
    except (OSError, NotConnected) as error:
        raise _broken(error) from error
    try:
        yield client
    except (OSError, ConnectionClosed) as error:
        raise _broken(error) from error
    finally:
        # Not `close`, which sends a closing frame: a listener who is cut off sends none
        with suppress(OSError):
            client.sock.shutdown(socket.SHUT_RDWR)
        client.thread.join(ANSWER_S)
        client.sock.close()


def _tagged(client: Client, patience: Patience) -> Generator[ReceivedChunk]:
    token, parts, wait_s = None, b"", ANSWER_S
    while True:
        message = client.receive(timeout=wait_s)
        if message is None:
            raise SynthesisError(f"The server said nothing for {wait_s:g} s.")
        if isinstance(message, str):
            said = json.loads(message)
            if said["type"] == "done":
                return
            if said["type"] == "error":
                if said["error"]["type"] == "rate_limit_error":
                    raise Busy("The server has no slot free.")
                raise ServerReportedError(said["error"])
            token = said.get("resume", token)
            continue
        _, flags, head_bytes, segment_id, chunk_id, _ = HEAD.unpack_from(message)
        parts += message[head_bytes:]
        if not flags & MORE:
            yield ReceivedChunk(f"{segment_id}.{chunk_id}", parts, token)
            token, parts, wait_s = None, b"", patience()


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event: its `id:`, its `event:` and its data."""

    id: str | None
    name: str | None
    data: dict[str, Any]

    @property
    def audio(self) -> bytes:
        """The audio of an event `speech.audio.delta`."""
        return base64.b64decode(self.data["audio"])

    @property
    def kind(self) -> str:
        """`speech.audio.delta`, `speech.audio.done`, `error`, ..."""
        return str(self.data.get("type", self.name))


def read_events(lines: Iterable[str]) -> Iterator[ServerEvent]:
    """Parse server-sent events by the rules of the HTML standard that matter here; comments are skipped."""
    fields: dict[str, str] = {}
    for line in lines:
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
        elif fields:
            yield ServerEvent(fields.get("id"), fields.get("event"), json.loads(fields["data"]))
            fields = {}
