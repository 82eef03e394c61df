"""Listeners for many minutes: they listen, think, and ask again. What is heard, and what is held."""

from __future__ import annotations

import hashlib
import math
import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tqdm import tqdm

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.errors import KokoroLabError
from kokoro_lab.lab.bench.frames import frames
from kokoro_lab.lab.bench.misbehaving import misbehaving
from kokoro_lab.lab.bench.over_http import FULL_SCALE, LEFT_S, OverHttp
from kokoro_lab.lab.bench.own_server import OwnServer
from kokoro_lab.lab.bench.resources import Holding, watched
from kokoro_lab.lab.bench.soak_mix import WAYS, ReadingTurn, SoakReading, Way, turns
from kokoro_lab.lab.bench.trial import SPEECH_LEVEL, Listener

THINK_S = (1.0, 3.0)
"""Between the last word and the next request: a reader turns the page."""
AFTER_FAULT_S = 1.0
READINGS_A_RUN = 300
"""How often memory is read in a run; more often than every 0.2 s, or less than every 5 s, it is not."""
POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class SoakStream:
    """One stream of a soak.

    Parameters
    ----------
    number : int
    reading : str
        Name of what was read.
    way : {"http", "sse", "websocket"}
    at_s : float
        When it was asked for, since the soak began.
    fault : str
        Why it did not end as it should; empty if it did.
    samples_count : int
        From the first sample of speech to the last sample.
    sha256 : str
        Of these.
    ttfa_s, rtf, audio_s, underruns, late_s, longest_gap_s
        See `trial.Trial`; not a number of a stream with a fault.
    """

    number: int
    reading: str
    way: Way
    at_s: float
    fault: str = ""
    samples_count: int = 0
    sha256: str = ""
    ttfa_s: float = math.nan
    rtf: float = math.nan
    audio_s: float = math.nan
    underruns: int = 0
    late_s: float = 0.0
    longest_gap_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Whole:
    """What a reading is when it is whole: its samples' count and digest."""

    samples_count: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Soak:
    """What `measure_soak` found.

    Parameters
    ----------
    run_s : float
        How long it was.
    concurrency : int
        Listeners.
    wholes : mapping
        Reading → how it is when it is whole, heard alone before the soak.
    streams : sequence of SoakStream
        In the order in which they were asked for.
    holdings : sequence of Holding
        Of the server.
    left_behind : int
        Syntheses that went on when every listener had left.
    ran : mapping
        What the server says of itself.
    misbehaved : mapping, optional
        How often somebody `left` or `stalled` meanwhile; None if nobody was asked to.
    """

    run_s: float
    concurrency: int
    wholes: Mapping[str, Whole]
    streams: Sequence[SoakStream]
    holdings: Sequence[Holding]
    left_behind: int
    ran: Mapping[str, Any] = field(default_factory=dict)
    misbehaved: Mapping[str, int] | None = None

    @property
    def minutes(self) -> float:
        return self.run_s / 60

    @property
    def nominal(self) -> bool:
        """Whether one stream was asked for at a time, and nobody else came."""
        return self.concurrency == 1 and self.misbehaved is None

    @property
    def heard(self) -> list[SoakStream]:
        """The streams that ended as they should."""
        return [one for one in self.streams if not one.fault]


def measure_soak(
    server: OwnServer,
    readings: Sequence[SoakReading],
    minutes: float,
    *,
    concurrency: int = 1,
    pace: float = 1.0,
    think_s: tuple[float, float] = THINK_S,
    misbehave: bool = False,
    ways: Sequence[Way] = WAYS,
    seed: int = 0,
    progress: bool = True,
) -> Soak:
    """Speak every reading once, alone, to know it; then listen for so many minutes.

    Parameters
    ----------
    server : OwnServer
        Has a slot for each listener, and one more for those who misbehave. Without a cache of first audio, or
        only a reading's first time would be timed.
    readings : sequence of SoakReading
    minutes : float
    concurrency : int
        Listeners, each with one stream at a time.
    pace : float
        Share of a stream's length that its listener takes to hear it: 1 is real time, 0 asks again at once.
        The stream is taken as fast as it comes in any case, as players do.
    think_s : tuple of float
        Shortest and longest time until the next request.
    misbehave : bool
        Whether others come meanwhile who leave in mid-stream or stop reading.
    ways : sequence of str
        Transports that take turns.
    seed : int
        Of order and pauses.

    Raises
    ------
    SynthesisError
        A reading cannot be spoken even once.
    """
    client = OverHttp(server.url, readings[0].voice, server.process)
    wholes = {one.name: _whole(server, one) for one in tqdm(readings, desc="readings", disable=not progress)}
    run_s = 60 * minutes
    asked, lock = turns(readings, ways, seed), threading.Lock()
    streams: list[SoakStream] = []
    started_s = time.monotonic()
    longest = max(readings, key=lambda one: len(one.text))
    others = misbehaving(server.url, longest.text, longest.voice, seed=seed) if misbehave else nullcontext()
    interval_s = min(max(run_s / READINGS_A_RUN, 0.2), 5.0)

    def elapsed_s() -> float:
        return time.monotonic() - started_s

    def listen(number: int) -> None:
        draw = random.Random(f"{seed} {number}")
        while (at_s := elapsed_s()) < run_s:
            with lock:
                turn = next(asked)
            one = listened(server, turn, at_s)
            streams.append(one)
            if one.fault:
                rest_s = AFTER_FAULT_S
            else:
                heard_s = at_s + one.ttfa_s + pace * one.audio_s  # when its last word has been played
                rest_s = max(heard_s - elapsed_s(), 0.0) + draw.uniform(*think_s)
            time.sleep(max(min(rest_s, run_s - elapsed_s()), 0.0))
            with lock:
                bar.update(min(round(elapsed_s(), 1), run_s) - bar.n)

    with (
        tqdm(total=run_s, unit="s", desc="soak", disable=not progress) as bar,
        watched(server.process, interval_s) as holdings,
        others as misbehaved,
        ThreadPoolExecutor(concurrency, thread_name_prefix="listener") as pool,
    ):
        list(pool.map(listen, range(concurrency)))
    return Soak(
        run_s=elapsed_s(),
        concurrency=concurrency,
        wholes=wholes,
        streams=sorted(streams, key=lambda one: one.number),
        holdings=holdings,
        left_behind=_left_behind(client),
        ran=_facts(client),
        misbehaved=misbehaved,
    )


def listened(server: OwnServer, turn: ReadingTurn, at_s: float) -> SoakStream:
    """One stream to its end, or to whatever end it comes to."""
    listener = Listener(keep=True)
    listener.asks()
    try:
        _speak(server, turn.reading, turn.way, listener)
        heard = listener.trial(turn.way, turn.number, len(turn.reading.text), streamed=True)
    except KokoroLabError as error:
        return SoakStream(turn.number, turn.reading.name, turn.way, at_s, fault=str(error)[:200])
    whole = _whole_of(listener.samples)
    return SoakStream(
        turn.number,
        turn.reading.name,
        turn.way,
        at_s,
        samples_count=whole.samples_count,
        sha256=whole.sha256,
        ttfa_s=heard.ttfa_s,
        rtf=heard.rtf,
        audio_s=heard.audio_s,
        underruns=heard.underruns,
        late_s=heard.late_s,
        longest_gap_s=heard.longest_gap_s,
    )


def _speak(server: OwnServer, reading: SoakReading, way: Way, listener: Listener) -> None:
    if way == "http":
        OverHttp(server.url, reading.voice, server.process).speak(reading.text, listener)
        return
    body = {
        "input": reading.text,
        "voice": reading.voice,
        "response_format": "pcm",
        "sample_rate": SAMPLE_RATE_HZ,
    }
    for samples in _samples(frames(way, server.url, body)):
        listener.hears(samples)


def _samples(stream: Iterator[Any]) -> Iterator[Samples]:
    for frame in stream:
        yield np.frombuffer(frame.data, "<i2").astype(np.float32) / np.float32(FULL_SCALE)


def _whole(server: OwnServer, reading: SoakReading) -> Whole:
    listener = Listener(keep=True)
    listener.asks()
    _speak(server, reading, "sse", listener)
    listener.trial("sse", 0, len(reading.text), streamed=True)  # refuses silence
    return _whole_of(listener.samples)


def _whole_of(samples: Samples) -> Whole:
    """From the first sample of speech: raw audio begins with a primer of silence, events do not."""
    speech = samples[int((np.abs(samples) >= SPEECH_LEVEL).argmax()) :]
    return Whole(len(speech), hashlib.sha256(speech.tobytes()).hexdigest())


def _left_behind(client: OverHttp) -> int:
    """Syntheses that are still under way some seconds after everybody has left; −1 where nobody answers."""
    until_s = time.monotonic() + LEFT_S
    try:
        while (active := client.active) and time.monotonic() < until_s:
            time.sleep(POLL_S)
    except KokoroLabError:
        return -1
    return active


def _facts(client: OverHttp) -> dict[str, Any]:
    """What ran; nothing if the server has not lived to tell, which its streams say better."""
    try:
        return client.facts()
    except KokoroLabError:
        return {}
