"""The one client of our own server: bare audio, events or a WebSocket; resumed, left half-way or unread."""

from __future__ import annotations

import base64
import json
import math
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse
from itertools import cycle, islice
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

import numpy as np
from simple_websocket import Client, ConnectionClosed
from simple_websocket import ConnectionError as NotConnected

from kokoro_lab.audio import BYTES_A_SAMPLE, WAV_HEADER_BYTES
from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.errors import KokoroLabError, SynthesisError
from kokoro_lab.lab.bench.trial import SPEECH_LEVEL
from kokoro_lab.lab.results import NegativeControl
from kokoro_lab.speech.chunker import PRIMER_S

ANSWER_S = 300.0
"""A server that sends nothing for so long has failed."""
READ_BYTES = 65_536
"""The most that is taken at a time. What has arrived is taken at once, however little it is."""
CREDIT = 100_000
"""Binary messages granted at once: this client never keeps a server waiting."""
HEAD = struct.Struct("<BBHIII")
MORE = 1
FULL_SCALE = 32_768
SPEECH_PATH = "/v1/audio/speech"
PRIMER_BYTES = round(PRIMER_S * SAMPLE_RATE_HZ) * BYTES_A_SAMPLE
STALLS_S = 12.0
"""How long one who misbehaves stops reading: longer than the server puts up with."""
MISBEHAVING_EVERY_S = 2.0
LEAVES_BEFORE = 40
"""Chunks, at the most, that are heard by who leaves."""
BUFFER_BYTES = 4_096
"""Of the socket that is not read, so that the server notices soon."""

Transport = Literal["http", "sse", "websocket"]
TRANSPORTS: tuple[Transport, ...] = get_args(Transport)
"""Bare bytes of audio, server-sent events, and tagged messages."""
RESUMABLE: tuple[Transport, ...] = ("sse", "websocket")
"""Those whose chunks have ids, behind which a stream is resumed."""
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
    id : str or None
        `segment.chunk`, behind which the stream may be resumed; bare bytes have none.
    data : bytes
        In the format that was asked for.
    token : str or None
        What it takes for that, if it came with this chunk.
    """

    id: str | None
    data: bytes
    token: str | None = None


@dataclass(slots=True)
class ReceivedStream:
    """What one listener has of a stream, and with what they may come back.

    Parameters
    ----------
    pcm : bytearray
        16 bit at 24 kHz.
    arrivals_s, lengths_s : list of float
        Of each chunk: when it came, from `began_s`, and how long it is.
    complete : bool
        Whether the stream came to its end.
    breaks : list of KokoroLabError
        What went wrong on the way.
    recovered_s : list of float
        Seconds from each of them until the next new chunk was there.
    refusals : int
        How often the server was busy.
    repeated, reordered : int
        Chunks that came although the listener had them; and that were held, because an earlier one had not
        come.
    last_id, token : str or None
        Of the last chunk that has an id, and what it takes to resume behind it.
    began_s : float
        When it was asked for, by `time.perf_counter`.
    """

    pcm: bytearray = field(default_factory=bytearray)
    arrivals_s: list[float] = field(default_factory=list)
    lengths_s: list[float] = field(default_factory=list)
    complete: bool = False
    breaks: list[KokoroLabError] = field(default_factory=list)
    recovered_s: list[float] = field(default_factory=list)
    refusals: int = 0
    repeated: int = 0
    reordered: int = 0
    last_id: str | None = None
    token: str | None = None
    began_s: float = field(default_factory=time.perf_counter)

    def take(self, chunk: ReceivedChunk) -> None:
        """One more chunk."""
        self.pcm += chunk.data
        self.lengths_s.append(len(chunk.data) / BYTES_A_SAMPLE / SAMPLE_RATE_HZ)
        self.last_id, self.token = chunk.id, chunk.token or self.token
        self.arrivals_s.append(time.perf_counter() - self.began_s)

    @property
    def back(self) -> Body:
        """The fields that a request for the rest has beside its own."""
        found = {"last_id": self.last_id, "resume": self.token}
        return {name: value for name, value in found.items() if value is not None}

    @property
    def samples(self) -> int:
        return len(self.pcm) // BYTES_A_SAMPLE

    @property
    def audio_s(self) -> float:
        return sum(self.lengths_s)

    @property
    def ttfa_s(self) -> float:
        """From the request to the first chunk that holds speech; not a number if none does."""
        loud = np.abs(samples_of(bytes(self.pcm))) >= SPEECH_LEVEL
        if not loud.any():
            return math.nan
        first_s = int(loud.argmax()) / SAMPLE_RATE_HZ
        ends_s = np.cumsum(self.lengths_s)
        return self.arrivals_s[int(np.searchsorted(ends_s, first_s, side="right"))]

    @property
    def rtf(self) -> float:
        """Of the whole stream, its waiting included."""
        return self.arrivals_s[-1] / self.audio_s if self.arrivals_s else math.nan


def ids_of(chunk_id: str) -> tuple[int, int]:
    """The segment in which a chunk begins, and its number in the whole stream."""
    segment, _, number = chunk_id.partition(".")
    return int(segment), int(number)


def samples_of(pcm: bytes) -> Samples:
    """16-bit samples as float32, shape (n,), within ±1."""
    return np.frombuffer(pcm, "<i2").astype(np.float32) / np.float32(FULL_SCALE)


def speech_request(text: str, voice: str) -> Body:
    """Fields of a request whose answers can be compared sample by sample."""
    return {"input": text, "voice": voice, "response_format": "pcm", "sample_rate": SAMPLE_RATE_HZ}


# ---------------------------------------------------------------------------------------------- requests


@contextmanager
def answered(
    url: str, method: str, path: str, body: Body | None = None, *, timeout_s: float = ANSWER_S
) -> Iterator[tuple[HTTPResponse, socket.socket]]:
    """The head of an answer, whatever its status, and the socket that the rest of it comes over.

    Raises
    ------
    SynthesisError
        The server is not there, or breaks off inside the block.
    """
    connection = HTTPConnection(urlsplit(url).netloc, timeout=timeout_s)
    try:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {"Content-Type": "application/json"})
        wire = connection.sock  # http.client forgets it where the connection ends with the answer
        yield connection.getresponse(), wire
    except (OSError, HTTPException) as error:
        raise _broken(error) from error
    finally:
        connection.close()


def ask(url: str, method: str, path: str, body: Body | None = None) -> dict[str, Any]:
    """What the server says in JSON.

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
        raise Busy(said) if answer.status in (429, 503) else SynthesisError(said)


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
    """The chunks that `body` asks for, to the end of the stream. Closing this breaks the connection off.

    Bare bytes say nothing of their place: where they are resumed, the whole is asked for anew, and what is
    there already is left out. The same request has the same samples.

    Parameters
    ----------
    url : str
        The server's, such as `http://127.0.0.1:8880`.
    body : dict
        A request's fields.
    heard : ReceivedStream, optional
        What the listener has: only what is behind it comes, without a primer of silence.
    patience : callable
        A server that has begun to speak and then says nothing for so many seconds has gone; asked after each
        chunk.

    Raises
    ------
    Busy
        The server said 429 or 503.
    ServerReportedError
        It told of an error behind the first chunk, or over the WebSocket.
    SynthesisError
        It refused otherwise, or broke off.
    """
    if transport == "http":
        header_bytes = WAV_HEADER_BYTES if body["response_format"] == "wav" else 0
        had_bytes = 0 if heard is None else PRIMER_BYTES + len(heard.pcm)
        return _bare(url, body, header_bytes + had_bytes, patience)
    read = _events if transport == "sse" else _messages
    return read(url, body if heard is None else {**body, **heard.back}, patience)


def _bare(url: str, body: Body, skipped: int, patience: Patience) -> Generator[ReceivedChunk]:
    """Whole samples as they come; none where what came is left out, or half of one.

    Left out is also what a server whose computing stalls sends meanwhile: as much silence as the primer in
    front, but later. The speech itself is dithered, so no chunk of it is all zeros.
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
    parts = urlsplit(url)
    try:
        # Asked first, since the library leaves a socket open where nobody answers
        socket.create_connection((parts.hostname or "", parts.port or 80), ANSWER_S).close()
        client = Client(f"ws://{parts.netloc}{SPEECH_PATH}/ws")
    except (OSError, NotConnected) as error:
        raise _broken(error) from error
    try:
        kind = "resume" if "last_id" in body else "speak"
        client.send(json.dumps({"type": kind, "credit": CREDIT, **body}))
        yield from _tagged(client, patience)
    except (OSError, ConnectionClosed) as error:
        raise _broken(error) from error
    finally:
        # Not `close`, which says goodbye: a listener who is cut off says nothing
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
        """The bytes of a delta."""
        return base64.b64decode(self.data["audio"])

    @property
    def kind(self) -> str:
        """`speech.audio.delta`, `speech.audio.done`, `error`, ..."""
        return str(self.data.get("type", self.name))


def read_events(lines: Iterable[str]) -> Iterator[ServerEvent]:
    """Events out of lines, by the rules of the HTML standard that matter here; comments are left out."""
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


# ---------------------------------------------------------------------------------------------- comparing


def to_the_end(chunks: Iterable[ReceivedChunk]) -> ReceivedStream:
    """A stream to its end, as it comes.

    Raises
    ------
    SynthesisError
        It holds no speech.
    """
    heard = ReceivedStream()
    for chunk in chunks:
        heard.take(chunk)
    if math.isnan(heard.ttfa_s):
        raise SynthesisError("A stream came to its end without any speech.")
    heard.complete = True
    return heard


def differences(joined: bytes | bytearray, whole: bytes | bytearray) -> tuple[int, int]:
    """Samples that differ as far as both reach, and how many `joined` lacks; negative where it is longer."""
    ours, theirs = (np.frombuffer(bytes(pcm), "<i2") for pcm in (joined, whole))
    reach = min(len(ours), len(theirs))
    return int(np.count_nonzero(ours[:reach] != theirs[:reach])), len(theirs) - len(ours)


def comparison_controls(whole: ReceivedStream) -> list[NegativeControl]:
    """Faults that `differences` must see: it is only as good as what it would catch."""
    pcm, middle = bytes(whole.pcm), len(whole.arrivals_s) // 2
    chunk = round(whole.lengths_s[middle] * SAMPLE_RATE_HZ) * BYTES_A_SAMPLE
    at = round(sum(whole.lengths_s[:middle]) * SAMPLE_RATE_HZ) * BYTES_A_SAMPLE
    faults = {
        "a chunk lost": pcm[:at] + pcm[at + chunk :],
        "a chunk played twice": pcm[: at + chunk] + pcm[at:],
        "a sample off by one bit": pcm[:at] + bytes([pcm[at] ^ 1]) + pcm[at + 1 :],
        "a sample lost at the end": pcm[:-BYTES_A_SAMPLE],
    }
    return [NegativeControl(name, differences(faulty, pcm) != (0, 0)) for name, faulty in faults.items()]


# ---------------------------------------------------------------------------------------------- misbehaving


@contextmanager
def misbehaving(url: str, text: str, voice: str, *, seed: int = 0) -> Iterator[Counter[str]]:
    """Inside, one client after another comes that leaves in mid-stream or stops reading, in turn.

    Gives the count of each: `left`, `stalled`, and `refused` where the server said no or had gone.

    Parameters
    ----------
    text : str
        Long, so that who stalls does not get all of it into a buffer.
    """
    found: Counter[str] = Counter()
    over = threading.Event()
    draw = random.Random(seed)
    body = speech_request(text, voice)

    def come() -> None:
        for kind in cycle(("left", "stalled")):
            try:
                if kind == "left":
                    with closing(receive("sse", url, body)) as stream:
                        for _ in islice(stream, draw.randrange(1, LEAVES_BEFORE)):
                            pass
                else:
                    _stall(url, body, over)
                found[kind] += 1
            except (KokoroLabError, OSError):
                found["refused"] += 1
            if over.wait(MISBEHAVING_EVERY_S):
                return

    thread = threading.Thread(target=come, name="misbehaving", daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def _stall(url: str, body: Body, over: threading.Event) -> None:
    parts = urlsplit(url)
    data = json.dumps(body).encode()
    head = (
        f"POST {SPEECH_PATH} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\n\r\n"
    )
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        connection.connect((parts.hostname, parts.port))
        connection.sendall(head.encode() + data)
        connection.recv(64)
        over.wait(STALLS_S)
