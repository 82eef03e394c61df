"""A listener who resumes: asks for the rest when a stream breaks or a chunk is missing."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from functools import partial

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, AudioChunk, Place
from kokoro_lab.errors import KokoroLabError, SynthesisError
from kokoro_lab.lab.bench.client import Busy, Patience
from kokoro_lab.lab.bench.received import ReceivedChunk, ReceivedStream, ids_of
from kokoro_lab.playback.reordering import ChunkMissing, Reorderer
from kokoro_lab.speech.engine import Engine

PATIENCE_S, MOST_PATIENCE_S = 0.8, 3.0
RECOVERY_S = 0.7
"""Seconds that resuming a stream may take. A listener gives up a silent connection when no more unplayed
speech than this is left, but after `MOST_PATIENCE_S` at the latest, and not before `PATIENCE_S`, because a
window may be late."""
AGAIN_S, SLOT_S = 0.02, 30.0
"""For a busy server: the seconds between two requests, and the seconds after which to give up."""
FRUITLESS = 5
"""Breaks in a row, without a new chunk in between, after which a listener gives up."""

SpeechSource = Callable[[ReceivedStream, Patience], Generator[ReceivedChunk]]
"""A function that yields the chunks after those already heard. After each chunk it calls `Patience`, which
returns the seconds of silence that are tolerated. For our server, `partial(receive, transport, url,
body)`."""
Line = Callable[[Iterator[ReceivedChunk]], Iterator[ReceivedChunk]]


class OfEngine:
    """An engine in this process, whose streams are resumed at the place of the broken segment."""

    def __init__(self, engine: Engine, text: str, voice: str) -> None:
        self._stream = partial(engine.stream, text, voice=voice)
        self._places: dict[int, Place] = {}

    def __call__(self, heard: ReceivedStream, patience: Patience) -> Generator[ReceivedChunk]:
        place = None if heard.last_id is None else self._places.get(ids_of(heard.last_id)[0])
        with closing(self._stream(place=place, heard_samples=heard.samples)) as stream:
            try:
                for chunk in stream:
                    self._places |= stream.places
                    if round(chunk.start_s * SAMPLE_RATE_HZ) >= heard.samples:
                        yield ReceivedChunk(f"{chunk.segment_id}.{chunk.chunk_id}", pcm_of(chunk))
            except Exception as error:  # after any error, the listener asks for the rest
                raise SynthesisError(f"The engine failed: {type(error).__name__}: {error}") from error


def listen(
    source: SpeechSource,
    heard: ReceivedStream | None = None,
    *,
    goes_on: bool = True,
    asks_again: bool = True,
    reorders: bool = True,
    line: Line = iter,
    patience_s: float = PATIENCE_S,
    back_s: float = 0.0,
) -> ReceivedStream:
    """Receive a stream to its end, or until the listener gives up.

    Parameters
    ----------
    source : SpeechSource
    heard : ReceivedStream, optional
        What the listener already has of an interrupted stream; it grows while this runs.
    goes_on : bool
        Whether a broken stream is resumed. False is for a control.
    asks_again : bool
        Whether a missing chunk is asked for again. False is for a control.
    reorders : bool
        Whether chunks are put into the order of their ids: see `Reorderer`. False is for a control.
    line : callable
        Changes the chunks of a connection on their way, as a faulty network would.
    patience_s : float
        Seconds of silence that are tolerated when no unplayed speech is left.
    back_s : float
        Seconds for which a listener at least asks again after a break, so that a server that has gone may
        come back.
    """
    heard = ReceivedStream() if heard is None else heard
    asked_s = time.perf_counter()
    broke_s: float | None = None
    fruitless = 0

    def patience() -> float:
        if not heard.arrivals_s:
            return patience_s
        in_hand_s = heard.audio_s - (time.perf_counter() - heard.began_s - heard.arrivals_s[0])
        return max(patience_s, min(MOST_PATIENCE_S, in_hand_s - RECOVERY_S))

    def over_one_connection() -> Iterator[ReceivedChunk]:
        """The new chunks of a connection, to the end of the stream; chunks that have ids come in the order of
        these."""
        in_order = Reorderer[ReceivedChunk](0 if heard.last_id is None else ids_of(heard.last_id)[1] + 1)
        try:
            with closing(source(heard, patience)) as coming:
                for chunk in line(coming):
                    if chunk.id is None or not reorders:
                        if chunk.data:
                            yield chunk
                        continue
                    now_s = time.perf_counter()
                    try:
                        yield from in_order.push(*ids_of(chunk.id), chunk, now_s)
                    except ChunkMissing:
                        if asks_again:
                            raise
                        yield from in_order.give_up(now_s)[1]
            while in_order.held:
                if asks_again:
                    in_order.finish()
                yield from in_order.give_up(time.perf_counter())[1]
        finally:
            heard.repeated += in_order.repeated
            heard.reordered += in_order.reordered

    while not heard.complete:
        try:
            for chunk in over_one_connection():
                if broke_s is not None:
                    heard.recovered_s.append(time.perf_counter() - broke_s)
                    broke_s, fruitless = None, 0
                heard.take(chunk)
            heard.complete = True
        except Busy as error:
            heard.refusals += 1
            if time.perf_counter() - (broke_s or asked_s) > max(SLOT_S, back_s):
                heard.breaks.append(error)
                break
            time.sleep(AGAIN_S)
        except KokoroLabError as error:
            heard.breaks.append(error)
            fruitless += 1
            broke_s = broke_s or time.perf_counter()
            if not goes_on or (fruitless > FRUITLESS and time.perf_counter() - broke_s > back_s):
                break
            if fruitless > 1:
                time.sleep(AGAIN_S)
    return heard


def pcm_of(chunk: AudioChunk) -> bytes:
    """A chunk's samples in 16 bits, rounded without dither, to compare streams."""
    return bytes((chunk.samples * 32_767).round().astype("<i2").tobytes())
