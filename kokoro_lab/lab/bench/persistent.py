"""A listener who wants every word: where a stream breaks, or a chunk is missing, they ask for the rest."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Protocol
from urllib.parse import urlsplit

from kokoro_lab.audio import BYTES_A_SAMPLE
from kokoro_lab.datatypes import SAMPLE_RATE_HZ, AudioChunk, Place
from kokoro_lab.errors import KokoroLabError, SynthesisError
from kokoro_lab.lab.bench.frames import (
    ANSWER_S,
    Body,
    Busy,
    Patience,
    ReceivedChunk,
    ReceivedStream,
    Transport,
    frames,
)
from kokoro_lab.lab.bench.playout import Playout, play
from kokoro_lab.playback.reordering import ChunkMissing, Reorderer
from kokoro_lab.speech.chunker import PRIMER_S
from kokoro_lab.speech.engine import Engine

PATIENCE_S, MOST_PATIENCE_S = 0.8, 3.0
RECOVERY_S = 0.7
"""A line over which nothing comes any more is given up when the speech in hand just covers what it takes to
go on; where there is less than that, after `PATIENCE_S`, which a late window needs, too."""
AGAIN_S, SLOT_S = 0.02, 30.0
"""Where the server is busy: how often it is asked again, and for how long."""
FRUITLESS = 5
"""Breaks in a row, without a new chunk in between, after which a listener gives up."""
READ_BYTES = 4_800
_PRIMER_BYTES = round(PRIMER_S * SAMPLE_RATE_HZ) * BYTES_A_SAMPLE


class SpeechSource(Protocol):
    """Where speech comes from.

    Attributes
    ----------
    tagged : bool
        Whether chunks have ids, so that one that is missing is noticed.
    """

    tagged: bool

    def frames(self, heard: ReceivedStream, patience: Patience) -> Generator[ReceivedChunk]:
        """What is behind `heard`, 16 bit at 24 kHz, as it comes; `patience` says for how many seconds nothing
        need come, once something has.

        Raises
        ------
        KokoroLabError
            It failed, or broke off.
        """


class OfServer:
    """Our server, by events or by a WebSocket: goes on by the last id and its token."""

    tagged = True

    def __init__(self, transport: Transport, url: str, body: Body) -> None:
        self._asked = transport, url, body

    def frames(self, heard: ReceivedStream, patience: Patience) -> Generator[ReceivedChunk]:
        transport, url, body = self._asked
        return frames(transport, url, {**body, **heard.back}, patience)


class OfBytes:
    """Our server, by bare bytes of audio, which say nothing of their place: where they break off, the whole
    is asked for anew, and what is there already is left out. The same request has the same samples.
    """

    tagged = False

    def __init__(self, url: str, body: Body) -> None:
        self._address = urlsplit(url).netloc
        self._body = json.dumps(body).encode()

    def frames(self, heard: ReceivedStream, patience: Patience) -> Generator[ReceivedChunk]:
        with closing(HTTPConnection(self._address, timeout=ANSWER_S)) as connection:
            try:
                yield from self._answered(connection, heard, patience)
            except (OSError, HTTPException) as error:
                raise SynthesisError(f"The server broke off: {type(error).__name__}: {error}") from error

    def _answered(
        self, connection: HTTPConnection, heard: ReceivedStream, patience: Patience
    ) -> Generator[ReceivedChunk]:
        connection.request("POST", "/v1/audio/speech", self._body, {"Content-Type": "application/json"})
        asked_over = connection.sock
        answer = connection.getresponse()
        if answer.status != 200:
            said = answer.read(500).decode(errors="replace")
            raise Busy(said) if answer.status == 429 else SynthesisError(said)
        skipped, rest = _PRIMER_BYTES + len(heard.audio), b""
        while block := answer.read1(READ_BYTES):
            left_out = min(skipped, len(block))
            skipped -= left_out
            rest += block[left_out:]
            whole = len(rest) - len(rest) % BYTES_A_SAMPLE
            if whole:
                yield ReceivedChunk(f"0.{heard.count}", rest[:whole])
                rest = rest[whole:]
                asked_over.settimeout(patience())


class OfEngine:
    """An engine in this process: goes on at the place of the segment that it broke in."""

    tagged = True

    def __init__(self, engine: Engine, text: str, voice: str) -> None:
        self._engine = engine
        self._text, self._voice = text, voice
        self._places: dict[int, Place] = {}

    def frames(self, heard: ReceivedStream, patience: Patience) -> Generator[ReceivedChunk]:
        samples = len(heard.audio) // BYTES_A_SAMPLE
        place = None if heard.last_segment is None else self._places.get(heard.last_segment)
        with closing(
            self._engine.stream(self._text, voice=self._voice, place=place, heard_samples=samples)
        ) as stream:
            try:
                for chunk in stream:
                    self._places |= stream.places
                    if round(chunk.start_s * SAMPLE_RATE_HZ) >= samples:
                        yield ReceivedChunk(f"{chunk.segment_id}.{chunk.chunk_id}", pcm_of(chunk))
            except Exception as error:  # whatever it is, the rest is asked for
                raise SynthesisError(f"The engine failed: {type(error).__name__}: {error}") from error


@dataclass(frozen=True, slots=True)
class PersistentStream:
    """What one listener got of a stream.

    Parameters
    ----------
    pcm : bytes
        16 bit at 24 kHz.
    arrivals_s, lengths_s : tuple of float
        Of each chunk: when it came, from the request, and how long it is.
    complete : bool
        Whether the stream came to its end.
    breaks : tuple of str
        What went wrong on the way, as it was told.
    recovered_s : tuple of float
        Seconds from each of them until the next new chunk was there.
    repeated : int
        Chunks that came although the listener had them.
    reordered : int
        Chunks that were held, because an earlier one had not come.
    """

    pcm: bytes
    arrivals_s: tuple[float, ...]
    lengths_s: tuple[float, ...]
    complete: bool
    breaks: tuple[str, ...]
    recovered_s: tuple[float, ...]
    repeated: int
    reordered: int = 0

    @property
    def ttfa_s(self) -> float:
        """From the request to the first chunk, which has no silence in front."""
        return self.arrivals_s[0] if self.arrivals_s else float("nan")

    @property
    def samples(self) -> int:
        return len(self.pcm) // BYTES_A_SAMPLE

    @property
    def rtf(self) -> float:
        """Of the whole stream, its waiting included."""
        return self.arrivals_s[-1] / sum(self.lengths_s) if self.arrivals_s else float("nan")

    def played(self, pre_buffer_s: float) -> Playout:
        """What a player that holds back so much would have made of it."""
        return play(self.arrivals_s, self.lengths_s, pre_buffer_s)


def listen(
    source: SpeechSource,
    *,
    goes_on: bool = True,
    asks_again: bool = True,
    reorders: bool = True,
    line: Callable[[Iterator[ReceivedChunk]], Iterator[ReceivedChunk]] = iter,
    patience_s: float = PATIENCE_S,
) -> PersistentStream:
    """Take a stream to its end.

    Parameters
    ----------
    source : SpeechSource
    goes_on : bool
        Whether what broke off is gone on with. One who does not is a control.
    asks_again : bool
        Whether a chunk that is missing by its id is asked for again. One who does not is a control.
    reorders : bool
        Whether chunks are put into the order of their ids: see `Reorderer`. One who takes them as they come
        is a control.
    line : callable
        What becomes of the chunks of a connection on their way.
    patience_s : float
        The least for which nothing may come, where there is no speech in hand.
    """
    listener = _StreamListener(
        source,
        goes_on=goes_on,
        asks_again=asks_again,
        reorders=reorders,
        line=line,
        patience_s=patience_s,
    )
    complete = listener.listen()
    return PersistentStream(
        bytes(listener.heard.audio),
        tuple(listener.arrivals_s),
        tuple(listener.lengths_s),
        complete,
        tuple(listener.breaks),
        tuple(listener.recovered_s),
        listener.repeated,
        listener.reordered,
    )


class _StreamListener:
    def __init__(
        self,
        source: SpeechSource,
        *,
        goes_on: bool,
        asks_again: bool,
        reorders: bool,
        line: Callable[[Iterator[ReceivedChunk]], Iterator[ReceivedChunk]],
        patience_s: float,
    ) -> None:
        self._source = source
        self._patience_s = patience_s
        self._goes_on, self._asks_again, self._line = goes_on, asks_again, line
        self._by_id = reorders and source.tagged
        self._began_s = time.perf_counter()
        self._broke_s: float | None = None
        self._fruitless = 0
        self.heard, self.repeated, self.reordered = ReceivedStream(), 0, 0
        self.arrivals_s: list[float] = []
        self.lengths_s: list[float] = []
        self.breaks: list[str] = []
        self.recovered_s: list[float] = []

    def listen(self) -> bool:
        """Whether the stream came to its end."""
        while True:
            try:
                self._connect()
                return True
            except Busy as error:
                since_s = self._began_s if self._broke_s is None else self._broke_s
                if time.perf_counter() - since_s > SLOT_S:
                    self.breaks.append(str(error))
                    return False
                time.sleep(AGAIN_S)
            except KokoroLabError as error:
                self.breaks.append(str(error))
                self._fruitless += 1
                if not self._goes_on or self._fruitless > FRUITLESS:
                    return False
                self._broke_s = time.perf_counter() if self._broke_s is None else self._broke_s

    def _patience(self) -> float:
        in_hand_s = 0.0
        if self.arrivals_s:
            in_hand_s = sum(self.lengths_s) - (time.perf_counter() - self._began_s - self.arrivals_s[0])
        return min(MOST_PATIENCE_S, max(self._patience_s, in_hand_s - RECOVERY_S))

    def _connect(self) -> None:
        """Take what comes over one connection, to the end of the stream."""
        in_order = Reorderer[ReceivedChunk](self.heard.last_chunk + 1)
        try:
            with closing(self._source.frames(self.heard, self._patience)) as coming:
                for frame in self._line(coming):
                    for ready in self._due(in_order, frame):
                        self._take(ready)
            self._end(in_order)
        finally:
            self.repeated += in_order.repeated
            self.reordered += in_order.reordered

    def _due(self, in_order: Reorderer[ReceivedChunk], frame: ReceivedChunk) -> list[ReceivedChunk]:
        if not self._by_id:
            return [frame]
        now_s = time.perf_counter()
        try:
            return in_order.push(frame.segment_id, frame.chunk_id, frame, now_s)
        except ChunkMissing:
            if self._asks_again:
                raise
            return in_order.give_up(now_s)[1]

    def _end(self, in_order: Reorderer[ReceivedChunk]) -> None:
        while in_order.held:
            if self._asks_again:
                in_order.finish()
            for ready in in_order.give_up(time.perf_counter())[1]:
                self._take(ready)

    def _take(self, frame: ReceivedChunk) -> None:
        now_s = time.perf_counter()
        if self._broke_s is not None:
            self.recovered_s.append(now_s - self._broke_s)
            self._broke_s, self._fruitless = None, 0
        self.heard.take(frame)
        self.arrivals_s.append(now_s - self._began_s)
        self.lengths_s.append(len(frame.data) / (BYTES_A_SAMPLE * SAMPLE_RATE_HZ))


def pcm_of(chunk: AudioChunk) -> bytes:
    """A chunk's samples in 16 bits, rounded without dither: to compare two streams by."""
    return bytes((chunk.samples * 32_767).round().astype("<i2").tobytes())
