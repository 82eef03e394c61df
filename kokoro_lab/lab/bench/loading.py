"""Several streams at once: what each of them gets, and what becomes meanwhile of those who come too."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from tqdm import tqdm

from kokoro_lab.lab.bench.client import (
    SPEECH_PATH,
    Body,
    ReceivedStream,
    answered,
    comparison_controls,
    differences,
    receive,
    speech_request,
    to_the_end,
)
from kokoro_lab.lab.bench.own_server import OwnServer
from kokoro_lab.lab.bench.resuming import percentile
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
    crowd = _Crowd(server.url, speech_request("Is there room for one more?", voice), refusals)
    health = _Health(server.url)
    with tqdm(total=2 * len(texts), disable=not progress) as bar:

        def heard(text: str) -> ReceivedStream:
            found = to_the_end(receive("sse", server.url, speech_request(text, voice)))
            bar.update()
            return found

        alone = [heard(text) for text in texts]
        rounds = []
        for at in range(0, len(texts), concurrency):
            server.forget()
            with health.asked(), crowd.comes(lambda: server.active == concurrency) as room_again:
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
        gaps_s=[gap for one in alone for gap in gaps_beyond_chunks_s(one)],
        alone_rtf=statistics.median(one.rtf for one in alone),
        ran=server.facts(),
        controls=comparison_controls(alone[0]),
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
    return run.conclude(
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


def gaps_beyond_chunks_s(heard: ReceivedStream) -> list[float]:
    """How much later than a chunk's length the next one came; below 0 where it came early."""
    gaps_s = (later - earlier for earlier, later in pairwise(heard.arrivals_s))
    return [gap_s - length_s for gap_s, length_s in zip(gaps_s, heard.lengths_s, strict=False)]


def _at_once(
    texts: Sequence[str], heard: Callable[[str], ReceivedStream], first_ended: threading.Event
) -> list[ReceivedStream]:
    def one(text: str) -> ReceivedStream:
        try:
            return heard(text)
        finally:
            first_ended.set()

    with ThreadPoolExecutor(len(texts), thread_name_prefix="bench") as pool:
        return list(pool.map(one, texts))


def _shared(
    number: int, text: str, one: ReceivedStream, alone: ReceivedStream, members: Sequence[ReceivedStream]
) -> SharedStream:
    differing, missing = differences(one.pcm, alone.pcm)
    first_end_s = min(member.arrivals_s[-1] for member in members)
    lengths_s = zip(one.arrivals_s, one.lengths_s, strict=True)
    return SharedStream(
        number=number,
        characters=len(text),
        audio_s=one.audio_s,
        ttfa_s=one.ttfa_s,
        ttfa_alone_s=alone.ttfa_s,
        rtf=one.rtf,
        rtf_alone=alone.rtf,
        share_at_first_end=sum(length_s for at_s, length_s in lengths_s if at_s <= first_end_s) / one.audio_s,
        differing_samples=differing,
        missing_samples=missing,
    )


class _Crowd:
    """Requests that come while all slots are taken, one after the other, each on a connection of its own."""

    def __init__(self, url: str, body: Body, count: int) -> None:
        self._url = url
        self._body = body
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
            status, seconds = _asked(self._url, "POST", SPEECH_PATH, self._body)
            if over.is_set():
                return  # there may have been room for it
            if status == 429:
                self.refused_s.append(seconds)
            else:
                self.other_answers += 1


class _Health:
    """`/health`, asked all the time."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.answered_s: list[float] = []

    @contextmanager
    def asked(self) -> Iterator[None]:
        over = threading.Event()

        def ask() -> None:
            while not over.wait(HEALTH_EVERY_S):
                status, seconds = _asked(self._url, "GET", "/health")
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


def _asked(url: str, method: str, path: str, body: Body | None = None) -> tuple[int, float]:
    """Status of an answer, and seconds from connecting to its last byte."""
    started_s = time.perf_counter()
    with answered(url, method, path, body, timeout_s=ASK_S) as (answer, _):
        if answer.status != 200 or method == "GET":
            answer.read()
        return answer.status, time.perf_counter() - started_s
