"""Several streams at once: what each of them gets, and what becomes meanwhile of those who come too."""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from tqdm import tqdm

from kokoro_lab.audio import BYTES_A_SAMPLE
from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.errors import SynthesisError
from kokoro_lab.lab.bench.frames import Body, ReceivedChunk, frames
from kokoro_lab.lab.bench.over_http import OverHttp
from kokoro_lab.lab.bench.own_server import OwnServer
from kokoro_lab.lab.bench.resuming import differences, percentile
from kokoro_lab.lab.bench.trial import SPEECH_LEVEL
from kokoro_lab.lab.results import Check, NegativeControl, Run

REFUSALS = 50
"""Requests beyond what is served, in each round."""
REFUSED_S = 0.050
HEALTH_S = 0.050
HEALTH_EVERY_S = 0.1
CADENCE_S = 0.020
"""How much longer than its length a chunk may be in coming, at p95, where computing keeps up."""
KEEPS_UP = 0.8
"""Below this real-time factor there is time left for every chunk."""
ASK_S = 30.0
POLL_S = 0.01
_FULL_SCALE = 32_768


@dataclass(frozen=True, slots=True)
class TimedStream:
    """One stream, with the moments at which its frames came, in seconds from the request.

    Parameters
    ----------
    ttfa_s : float
        To the first frame that holds speech.
    """

    pcm: bytes
    arrivals_s: tuple[float, ...]
    lengths_s: tuple[float, ...]
    ttfa_s: float

    @property
    def audio_s(self) -> float:
        return sum(self.lengths_s)

    @property
    def ended_s(self) -> float:
        return self.arrivals_s[-1]

    @property
    def rtf(self) -> float:
        """Of the whole answer, its waiting included."""
        return self.ended_s / self.audio_s

    @property
    def gaps_s(self) -> list[float]:
        """How much later than a frame's length the next one came; below 0 where it came early."""
        came = self.arrivals_s
        return [b - a - length for a, b, length in zip(came, came[1:], self.lengths_s, strict=False)]

    def audio_at(self, moment_s: float) -> float:
        """Seconds of audio that had come by then."""
        return sum(n for at, n in zip(self.arrivals_s, self.lengths_s, strict=True) if at <= moment_s)


@dataclass(frozen=True, slots=True)
class SharedStream:
    """One of the streams of a round, against the same text alone.

    Parameters
    ----------
    share_at_first_end : float
        How much of it had come when the first of the round was whole, from 0 to 1.
    """

    number: int
    characters: int
    audio_s: float
    ttfa_s: float
    ttfa_alone_s: float
    rtf: float
    rtf_alone: float
    share_at_first_end: float
    differing_samples: int
    missing_samples: int


@dataclass(frozen=True, slots=True)
class Load:
    """What `measure_load` found.

    Parameters
    ----------
    fairness : list of float
        Of each round, the highest real-time factor of a stream by the lowest.
    refused_s, health_s : list of float
        From connecting to the answer, while all slots were taken.
    other_answers : int
        Requests that should have been refused, and were not.
    gaps_s : list of float
        Of the streams that were alone.
    """

    streams: list[SharedStream]
    fairness: list[float]
    refused_s: list[float]
    other_answers: int
    health_s: list[float]
    gaps_s: list[float]
    alone_rtf: float
    ran: dict[str, Any]
    controls: list[NegativeControl]


def measure_load(
    server: OwnServer,
    texts: Sequence[str],
    voice: str,
    concurrency: int,
    *,
    refusals: int = REFUSALS,
    progress: bool = True,
) -> Load:
    """Speak each text alone; then all of them, `concurrency` at once, while others come and are refused.

    Parameters
    ----------
    server : OwnServer
        Has `concurrency` slots and no queue, so that whoever comes meanwhile is refused.
    texts : sequence of str
        As many whole rounds of `concurrency` as are wanted.
    refusals : int
        Requests beyond what is served, in each round.

    Raises
    ------
    SynthesisError
        A stream failed.
    """
    client = OverHttp(server.url, voice, server.process)
    address = urlsplit(server.url).netloc
    crowd = _Crowd(address, _body("Is there room for one more?", voice), refusals)
    health = _Health(address)
    with tqdm(total=2 * len(texts), disable=not progress) as bar:

        def heard(text: str) -> TimedStream:
            found = timed(frames("sse", server.url, _body(text, voice)))
            bar.update()
            return found

        alone = [heard(text) for text in texts]
        rounds = []
        for at in range(0, len(texts), concurrency):
            client.forget()
            with health.asked(), crowd.comes(lambda: client.active == concurrency) as room_again:
                rounds.append(_at_once(texts[at : at + concurrency], heard, room_again))
    return Load(
        streams=[
            _shared(number, texts[number], one, alone[number], members)
            for at, members in zip(range(0, len(texts), concurrency), rounds, strict=True)
            for number, one in enumerate(members, at)
        ],
        fairness=[max(m.rtf for m in members) / min(m.rtf for m in members) for members in rounds],
        refused_s=crowd.refused_s,
        other_answers=crowd.other_answers,
        health_s=health.answered_s,
        gaps_s=[gap for one in alone for gap in one.gaps_s],
        alone_rtf=statistics.median(one.rtf for one in alone),
        ran=client.facts(),
        controls=_controls(alone[0]),
    )


def conclude(run: Run, load: Load, asked: int, concurrency: int, refusals: int = REFUSALS) -> dict[str, Any]:
    """Write the verdict into `run`.

    Raises
    ------
    GateFailed
        A stream was not whole, somebody waited for a refusal or for `/health`, or a chunk was late.
    """
    inexact = sum(bool(one.differing_samples or one.missing_samples) for one in load.streams)
    ttfas = [one.ttfa_s for one in load.streams]
    late_s = percentile(load.gaps_s, 95)
    checks = [
        Check("streams_count", len(load.streams), low=asked, high=asked),
        Check("streams_that_differ_count", inexact, high=0),
        Check("refusals_count", len(load.refused_s), low=refusals * (asked // concurrency)),
        Check("other_answers_count", load.other_answers, high=0),
        Check("refused_p95_s", percentile(load.refused_s, 95), high=REFUSED_S),
        Check("health_p95_s", percentile(load.health_s, 95), high=HEALTH_S),
    ]
    if load.alone_rtf < KEEPS_UP:
        checks.append(Check("gap_beyond_chunk_p95_s", late_s, high=CADENCE_S))
    return run.finish(
        load.ran,
        checks=checks,
        controls=load.controls,
        figures={
            "rtf_alone_p50": load.alone_rtf,
            "gap_beyond_chunk_alone_p95_s": late_s,
            "gap_beyond_chunk_alone_max_s": max(load.gaps_s),
            "ttfa_p50_s": percentile(ttfas, 50),
            "ttfa_max_s": max(ttfas),
            "ttfa_alone_p50_s": percentile([one.ttfa_alone_s for one in load.streams], 50),
            "rtf_slowest_by_fastest_max_ratio": max(load.fairness),
            "share_at_first_end_min_ratio": min(one.share_at_first_end for one in load.streams),
            "refused_p50_s": percentile(load.refused_s, 50),
            "refused_max_s": max(load.refused_s, default=float("nan")),
            "health_p50_s": percentile(load.health_s, 50),
            "health_max_s": max(load.health_s, default=float("nan")),
            "health_count": len(load.health_s),
        },
        details={"streams": [asdict(one) for one in load.streams]},
    )


def printed(load: Load) -> Iterator[str]:
    """The figures as a person reads them."""
    for one in load.streams:
        exact = "exact" if not (one.differing_samples or one.missing_samples) else "NOT EXACT"
        yield (
            f"text {one.number}, {one.characters} characters, {one.audio_s:.1f} s: TTFA {one.ttfa_s:.3f} s "
            f"(alone {one.ttfa_alone_s:.3f}), RTF {one.rtf:.2f} (alone {one.rtf_alone:.2f}), "
            f"{one.share_at_first_end:.0%} there when the first one ended, {exact}"
        )
    yield f"slowest by fastest: {max(load.fairness):.2f} at most"
    for name, seconds in (("429", load.refused_s), ("/health", load.health_s)):
        if seconds:
            yield (
                f"{name}, {len(seconds)} times while busy: p50 {1000 * percentile(seconds, 50):.1f}, "
                f"p95 {1000 * percentile(seconds, 95):.1f}, most {1000 * max(seconds):.1f} ms"
            )
    yield (
        f"alone, RTF {load.alone_rtf:.2f}: a chunk came {1000 * percentile(load.gaps_s, 95):.1f} ms beyond "
        f"the length of the one before at p95, {1000 * max(load.gaps_s):.0f} ms at most"
    )


def timed(stream: Iterator[ReceivedChunk]) -> TimedStream:
    """A stream to its end, as it comes.

    Raises
    ------
    SynthesisError
        It holds no speech.
    """
    pcm, arrivals_s, lengths_s, ttfa_s = bytearray(), [], [], None
    asked_s = time.perf_counter()
    for frame in stream:
        arrivals_s.append(time.perf_counter() - asked_s)
        lengths_s.append(len(frame.data) / (BYTES_A_SAMPLE * SAMPLE_RATE_HZ))
        pcm += frame.data
        if ttfa_s is None and np.abs(np.frombuffer(frame.data, "<i2")).max() >= SPEECH_LEVEL * _FULL_SCALE:
            ttfa_s = arrivals_s[-1]
    if ttfa_s is None:
        raise SynthesisError("A stream came to its end without any speech.")
    return TimedStream(bytes(pcm), tuple(arrivals_s), tuple(lengths_s), ttfa_s)


def _body(text: str, voice: str) -> Body:
    return {"input": text, "voice": voice, "response_format": "pcm", "sample_rate": SAMPLE_RATE_HZ}


def _at_once(
    texts: Sequence[str], heard: Callable[[str], TimedStream], first_ended: threading.Event
) -> list[TimedStream]:
    def one(text: str) -> TimedStream:
        try:
            return heard(text)
        finally:
            first_ended.set()

    with ThreadPoolExecutor(len(texts), thread_name_prefix="bench") as pool:
        return list(pool.map(one, texts))


def _shared(
    number: int, text: str, one: TimedStream, alone: TimedStream, members: Sequence[TimedStream]
) -> SharedStream:
    differing, missing = differences(one.pcm, alone.pcm)
    return SharedStream(
        number=number,
        characters=len(text),
        audio_s=one.audio_s,
        ttfa_s=one.ttfa_s,
        ttfa_alone_s=alone.ttfa_s,
        rtf=one.rtf,
        rtf_alone=alone.rtf,
        share_at_first_end=one.audio_at(min(member.ended_s for member in members)) / one.audio_s,
        differing_samples=differing,
        missing_samples=missing,
    )


def _controls(one: TimedStream) -> list[NegativeControl]:
    """Faults that the comparison must see."""
    short, other = one.pcm[:-BYTES_A_SAMPLE], bytes([one.pcm[0] ^ 1]) + one.pcm[1:]
    faults = {"a sample lost at the end": short, "a sample off by one bit": other}
    return [NegativeControl(name, differences(faulty, one.pcm) != (0, 0)) for name, faulty in faults.items()]


class _Crowd:
    """Requests that come while all slots are taken, one after the other, each on a connection of its own."""

    def __init__(self, address: str, body: Body, count: int) -> None:
        self._address = address
        self._body = json.dumps(body).encode()
        self._count = count
        self.refused_s: list[float] = []
        self.other_answers = 0

    @contextmanager
    def comes(self, busy: Callable[[], bool]) -> Iterator[threading.Event]:
        """Inside, it comes as soon as the server is `busy`, until the event is set that this gives."""
        over = threading.Event()
        with _beside(lambda: self._come(busy, over)):
            yield over

    def _come(self, busy: Callable[[], bool], over: threading.Event) -> None:
        while not over.is_set() and not busy():
            time.sleep(POLL_S)
        for _ in range(self._count):
            status, seconds = _asked(self._address, "POST", "/v1/audio/speech", self._body)
            if over.is_set():
                return  # there may have been room for it
            if status == 429:
                self.refused_s.append(seconds)
            else:
                self.other_answers += 1


class _Health:
    """`/health`, asked all the time."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.answered_s: list[float] = []

    @contextmanager
    def asked(self) -> Iterator[None]:
        over = threading.Event()

        def ask() -> None:
            while not over.wait(HEALTH_EVERY_S):
                status, seconds = _asked(self._address, "GET", "/health")
                # An answer that is none took for ever
                self.answered_s.append(seconds if status == 200 else float("inf"))

        with _beside(ask):
            try:
                yield
            finally:
                over.set()


@contextmanager
def _beside(work: Callable[[], None]) -> Iterator[None]:
    """Inside, `work` is done in a thread; what it raises is raised at the end."""
    with ThreadPoolExecutor(1, thread_name_prefix="bench") as pool:
        done = pool.submit(work)
        yield
        done.result()


def _asked(address: str, method: str, path: str, body: bytes | None = None) -> tuple[int, float]:
    """Status of an answer, and seconds from connecting to its last byte."""
    started_s = time.perf_counter()
    with closing(HTTPConnection(address, timeout=ASK_S)) as connection:
        connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        if answer.status != 200 or method == "GET":
            answer.read()
        return answer.status, time.perf_counter() - started_s
