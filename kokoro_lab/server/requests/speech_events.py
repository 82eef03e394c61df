"""Turns the stream of a request into events for any transport: audio, words, the end or an error, in order.

A thread computes a few chunks ahead. The sending thread waits here for the chunks, and so notices when
computing stalls. An exception is put into the queue after the chunks that came before it.
"""

from __future__ import annotations

import math
import queue
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from kokoro_lab.containers import Encoder
from kokoro_lab.datatypes import (
    AudioChunk,
    Fallback,
    MarkTiming,
    Place,
    SynthesisReport,
    WordTiming,
)
from kokoro_lab.errors import Gone, Interrupted, SynthesisError
from kokoro_lab.scheduling.kept_threads import SPEAKING
from kokoro_lab.server.requests.syntheses import Synthesis

if TYPE_CHECKING:
    from kokoro_lab.speech.stream import SpeechStream

AHEAD = 4
"""How many chunks may wait to be sent: the next one is computed while one is sent, and a slow sender makes
computing wait."""
POLL_S = 0.005
USAGE_HZ = 40
"""Output tokens a second of audio: the model speaks in duration frames of 25 ms."""


@dataclass(frozen=True, slots=True)
class AudioBytes:
    """Bytes of audio to send.

    Parameters
    ----------
    segment_id, chunk_id : int
        The place of the chunk; `chunk_id` counts up by one.
    start_s : float
        When the chunk is heard, in seconds from the start of the stream.
    data : bytes
        Bytes in the requested format. The bytes of all events joined are the whole answer.
    place : Place or None
        For the first chunk of a segment: where the stream can be resumed.
    token : str or None
        The token with which the client may resume from `place`; None if the stream cannot be resumed.
    """

    segment_id: int
    chunk_id: int
    start_s: float
    data: bytes
    place: Place | None = None
    token: str | None = None


@dataclass(frozen=True, slots=True)
class Words:
    """When the words of a segment are heard, and its marks reached. Follows the segment's audio."""

    segment_id: int
    timings: tuple[WordTiming, ...]
    marks: tuple[MarkTiming, ...] = ()


@dataclass(frozen=True, slots=True)
class KeepAlive:
    """Nothing has been ready for a while; tells the client that the stream is still alive."""


@dataclass(frozen=True, slots=True)
class Done:
    """The end of a stream from which nothing is missing.

    Parameters
    ----------
    usage : dict
        As OpenAI counts it; see `usage_of`.
    """

    report: SynthesisReport
    usage: dict[str, int]


Event = AudioBytes | Words | KeepAlive | Done


class _Computed(NamedTuple):
    """A chunk, and by `time.perf_counter` when it was computed and when the text came for which it waited."""

    chunk: AudioChunk
    made_s: float
    text_came_s: float | None


def usage_of(report: SynthesisReport) -> dict[str, int]:
    """Tokens that this answer cost: phoneme ids that the model read, and frames of 25 ms that it spoke."""
    spoken = round(report.audio_s * USAGE_HZ)
    return {
        "input_tokens": report.token_count,
        "output_tokens": spoken,
        "total_tokens": report.token_count + spoken,
    }


def by_stage(fallbacks: Iterable[Fallback]) -> dict[str, int]:
    """The number of fallbacks by stage."""
    return dict(sorted(Counter(fallback.stage for fallback in fallbacks).items()))


def timed(timings: Iterable[WordTiming], marks: Iterable[MarkTiming]) -> dict[str, Any]:
    """The times of words, and of marks if there are any, as plain data: `start` and `end` are offsets into
    the original text."""
    found = {"words": [asdict(timing) for timing in timings]}
    return found | ({"marks": reached} if (reached := [asdict(mark) for mark in marks]) else {})


@dataclass(eq=False)
class SpeechEvents(Iterator[Event]):
    """The events of a stream. It must be closed, however it ended.

    Parameters
    ----------
    synthesis : Synthesis
        Owns the stream. Its account records chunks as they leave the queue, stalls and the end; its `stop`
        ends the computing.
    stream : SpeechStream
        A stream that has begun.
    encoder : Encoder
        Gets the stream's samples from the first chunk that is sent.
    token : callable
        Returns the resume token for a place; None if there is none.
    words : bool
        Whether there are events with words.
    after : int
        The last chunk that the client has: later ones are sent.
    encode_all : bool
        Whether the encoder must get the chunks that the client already has, too.
    stall_s : float
        The seconds without an event that count as a stall. Chunks that the client already has are no events.
    held_back_s : float
        How long after it was computed the first chunk is sent, so that a slow machine has the next ones in
        time. Speech whose beginning was in the cache is not held back.

    Raises
    ------
    KokoroLabError
        From `next`: what the synthesis raises, `Interrupted` if it was stopped, `Gone` if the stream
        has no chunk `after`, and `SynthesisError` if one of its chunks did not come.
    """

    synthesis: Synthesis
    stream: SpeechStream
    encoder: Encoder
    token: Callable[[Place], str | None]
    words: bool
    after: int
    encode_all: bool
    stall_s: float
    held_back_s: float = 0.0

    def __post_init__(self) -> None:
        self._held_s = 0.0
        self._ending = False
        self._item: _Computed | None = None
        self._at_hand: _Computed | Words | Done | BaseException | None = None
        self._release_s = -math.inf
        self._queue: queue.Queue[_Computed | Words | Done | BaseException] = queue.Queue(AHEAD)
        self._computing: Future[None] | None = None
        self._last: AudioChunk | None = None
        self._placed: int | None = None
        self._events = self._run()

    def __next__(self) -> Event:
        return next(self._events)

    def ready(self, timeout_s: float) -> bool:
        """Whether `next` will return an event within `timeout_s`, for a thread that must also listen to its
        client. Chunks that the client already has are passed over meanwhile."""
        self._begin()
        deadline_s = time.monotonic() + timeout_s
        while not self._ending and (not self._finds(timeout_s) or self._is_held_back()):
            if time.monotonic() > deadline_s:
                return False
            time.sleep(POLL_S)
        return True

    def close(self) -> None:
        """Stop computing after the window that is under way, and wait until it is computed."""
        self.synthesis.stop.set()
        self._events.close()
        if self._computing is not None:
            while not self._computing.done():
                _drain(self._queue)
                wait([self._computing], POLL_S)
        self.stream.close()
        self.encoder.close()

    def _begin(self) -> None:
        if self._computing is None:
            self._computing = SPEAKING.submit(self._compute)

    def _run(self) -> Generator[Event]:
        self._begin()
        while True:
            if not self._finds(self.stall_s):
                if self.synthesis.live is None:  # else it waits for the writer, which is no stall
                    self.synthesis.account.stalled()
                yield KeepAlive()
                continue
            item, self._at_hand = self._at_hand, None
            assert item is not None
            if isinstance(item, BaseException):
                raise item
            if isinstance(item, _Computed):
                if self._is_held_back():
                    self.synthesis.account.holds_back(self.held_back_s)
                    self.synthesis.stop.wait(self._release_s - time.perf_counter())
                self._item = item
                yield from self._framed(item.chunk)
                continue
            if isinstance(item, Done):
                self._ending = True  # two events come of this item
                yield from self._rest()
                self.synthesis.account.finished(item.report)
                yield item
                return
            yield item

    def _finds(self, timeout_s: float) -> bool:
        """Whether something that is to be sent comes within `timeout_s`. Meanwhile, chunks that the client
        already has are passed over: for some streams, all of them have to be computed again."""
        until_s = time.monotonic() + timeout_s
        while self._at_hand is None:
            try:
                item = self._queue.get(timeout=max(0.0, until_s - time.monotonic()))
                if not (isinstance(item, _Computed) and item.chunk.chunk_id <= self.after):
                    self._at_hand = item
                    break
                self._encoded(item.chunk)
                self.synthesis.account.passed_over()
            except queue.Empty:
                return False
            except Exception as error:
                self._at_hand = error  # `next` raises it
            if time.monotonic() > until_s:
                break
        return self._at_hand is not None

    def _is_held_back(self) -> bool:
        return time.perf_counter() < self._release_s

    def _encoded(self, chunk: AudioChunk) -> bytes:
        due = 0 if self._last is None else self._last.chunk_id + 1
        # Chunks that the client has are not encoded, unless the encoder needs them
        due = due if self.encode_all else max(due, self.after + 1)
        if chunk.chunk_id > due:
            raise _lost(due)
        self._last = chunk
        wanted = chunk.chunk_id > self.after
        return self.encoder.push(chunk.samples) if wanted or self.encode_all else b""

    def _framed(self, chunk: AudioChunk) -> Iterator[AudioBytes]:
        data = self._encoded(chunk)
        self._held_s += chunk.duration_s
        if not data:  # a resampler or a codec holds the first milliseconds back
            return
        if self.encoder.audible:
            self._ready_to_send()
        place = self.stream.places.get(chunk.segment_id) if chunk.segment_id != self._placed else None
        token = None
        end_s = chunk.start_s + chunk.duration_s
        if place is not None and place.start_samples <= round(end_s * chunk.sample_rate_hz):
            self._placed, token = chunk.segment_id, self.token(place)
        else:  # silence before the first segment: no stream can be resumed at a place behind its chunk
            place = None
        yield AudioBytes(chunk.segment_id, chunk.chunk_id, chunk.start_s, data, place, token)

    def _ready_to_send(self) -> None:
        if self._held_s:
            assert self._item is not None
            _, made_s, came_s = self._item
            no_ttfa = self.stream.primed or self.after >= 0 or self.stream.wordless or came_s is not None
            self.synthesis.account.chunk(self._held_s, cached=no_ttfa, text_came_s=came_s, made_s=made_s)
            self._held_s = 0.0

    def _rest(self) -> Iterator[AudioBytes]:
        """The bytes that the encoder still holds, sent after the last chunk with the next id."""
        rest = self.encoder.finish()
        last = self._last
        if last is None or last.chunk_id + 1 < self.after:
            raise Gone("This stream has no such chunk.", mend="Ask for the whole speech anew.")
        if round(last.start_s * last.sample_rate_hz) + len(last.samples) < self.stream.sent_samples:
            raise _lost(last.chunk_id + 1)
        if rest and last.chunk_id + 1 > self.after:
            self._ready_to_send()
            yield AudioBytes(last.segment_id, last.chunk_id + 1, last.start_s + last.duration_s, rest)

    def _compute(self) -> None:
        try:
            for item in self._computed():
                self._queue.put(item)
                if self.synthesis.stop.is_set():
                    raise Interrupted("This synthesis was stopped.")
        except BaseException as error:
            self._queue.put(error)

    def _computed(self) -> Iterator[_Computed | Words | Done]:
        told = reached = 0
        for chunk in chain(self.stream, (None,)):
            if chunk is not None:
                made_s = time.perf_counter()
                if self._release_s == -math.inf and not self.stream.primed:
                    self._release_s = made_s + self.held_back_s
                yield _Computed(chunk, made_s, self.stream.text_came_s)
            timings, marks = self.stream.timings[told:], self.stream.marks[reached:]
            if self.words and (timings or marks):
                told, reached = told + len(timings), reached + len(marks)
                ids = [each.segment_id for each in timings] + [each.segment_id for each in marks]
                for segment_id in dict.fromkeys(ids):
                    yield Words(
                        segment_id,
                        tuple(each for each in timings if each.segment_id == segment_id),
                        tuple(each for each in marks if each.segment_id == segment_id),
                    )
        report = self.stream.report
        yield Done(report, usage_of(report))


def _lost(chunk_id: int) -> SynthesisError:
    """The error for a missing chunk, which a client can handle better than a word lost unnoticed."""
    return SynthesisError(
        f"Chunk {chunk_id} was lost on its way through the server.",
        mend="Continue after the last chunk that came, with `resume` and `last_id`.",
    )


def _drain(items: queue.Queue[Any]) -> None:
    with suppress(queue.Empty):
        while True:
            items.get_nowait()
