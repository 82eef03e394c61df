"""Several streams at once: what each of them gets, and what becomes meanwhile of those who come too."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.bench import client
from kokoro_lab.lab.bench.client import Body
from kokoro_lab.lab.bench.compared import ComparedStreams, compared, spread
from kokoro_lab.lab.bench.own_server import OwnServer
from kokoro_lab.lab.bench.received import ReceivedStream, comparison_controls, to_the_end
from kokoro_lab.lab.bench.trial import gaps_beyond_chunks_s
from kokoro_lab.lab.results import Check, Run

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


@dataclass(slots=True)
class Load(ComparedStreams):
    """What `measure_load` found.

    Parameters
    ----------
    table : pandas.DataFrame
        Each stream of a round, against the same text alone: number, characters, audio_s, ttfa_s,
        ttfa_alone_s, rtf, rtf_alone, share_at_first_end (how much of it had come when the first of the round
        was whole, from 0 to 1), and what `compared` finds.
    fairness : list of float
        Of each round, the highest real-time factor of a stream by the lowest.
    refused_s, health_s : list of float
        From connecting to the answer, while all slots were taken.
    other_answers : int
        Requests that should have been refused, and were not.
    gaps_s : list of float
        Of the streams that were alone.
    """

    gaps_s: list[float]
    alone_rtf: float
    fairness: list[float] = field(default_factory=list)
    refused_s: list[float] = field(default_factory=list)
    other_answers: int = 0
    health_s: list[float] = field(default_factory=list)


def measure_load(
    server: OwnServer, texts: Sequence[str], voice: str, concurrency: int, *, refusals: int = REFUSALS
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
    with tqdm(total=2 * len(texts)) as bar:

        def heard(text: str) -> ReceivedStream:
            found = to_the_end(client.receive("sse", server.url, client.speech_request(text, voice)))
            bar.update()
            return found

        alone = [heard(text) for text in texts]
        load = Load(
            table=pd.DataFrame(),
            gaps_s=[gap_s for one in alone for gap_s in gaps_beyond_chunks_s(one.arrivals_s, one.lengths_s)],
            alone_rtf=statistics.median(one.rtf for one in alone),
            ran=server.facts(),
            controls=comparison_controls(alone[0]),
        )
        rows: list[dict[str, Any]] = []
        for at in range(0, len(texts), concurrency):
            numbers = range(at, at + concurrency)
            server.forget()
            members = _at_once(server, [texts[number] for number in numbers], voice, refusals, heard, load)
            load.fairness.append(max(one.rtf for one in members) / min(one.rtf for one in members))
            rows += [
                _shared(number, texts[number], one, alone[number], members)
                for number, one in zip(numbers, members, strict=True)
            ]
    load.table = pd.DataFrame(rows)
    return load


def conclude(run: Run, load: Load, asked: int, concurrency: int, refusals: int = REFUSALS) -> dict[str, Any]:
    """Write the verdict into `run`.

    Raises
    ------
    GateFailed
        A stream was not whole, somebody waited for a refusal or for `/health`, or a chunk was late.
    """
    table = load.table
    refused_p95_s, health_p95_s, gap_p95_s = (
        pd.Series(seconds, dtype=float).quantile(0.95)
        for seconds in (load.refused_s, load.health_s, load.gaps_s)
    )
    checks = [
        Check("refusals_count", len(load.refused_s), low=refusals * (asked // concurrency)),
        Check("other_answers_count", load.other_answers, high=0),
        Check("refused_p95_s", refused_p95_s, high=REFUSED_S),
        Check("health_p95_s", health_p95_s, high=HEALTH_S),
    ]
    if load.alone_rtf < KEEPS_UP:
        checks.append(Check("gap_beyond_chunk_p95_s", gap_p95_s, high=CADENCE_S))
    figures = {
        "rtf_alone_p50": load.alone_rtf,
        **spread("gap_beyond_chunk_alone", load.gaps_s, "p95", "max"),
        **spread("ttfa", table.ttfa_s, "p50", "max"),
        **spread("ttfa_alone", table.ttfa_alone_s, "p50"),
        "rtf_slowest_by_fastest_max_ratio": max(load.fairness),
        "share_at_first_end_min_ratio": table.share_at_first_end.min(),
        **spread("refused", load.refused_s, "p50", "max"),
        **spread("health", load.health_s, "p50", "max"),
        "health_count": len(load.health_s),
    }
    return load.finish(run, asked, checks, figures)


def printed(load: Load) -> Iterator[str]:
    """The figures as a person reads them."""
    for one, whole in zip(load.table.itertuples(), load.exact, strict=True):
        found = "exact" if whole else "NOT EXACT"
        yield (
            f"text {one.number}, {one.characters} characters, {one.audio_s:.1f} s: TTFA {one.ttfa_s:.3f} s "
            f"(alone {one.ttfa_alone_s:.3f}), RTF {one.rtf:.2f} (alone {one.rtf_alone:.2f}), "
            f"{one.share_at_first_end:.0%} there when the first one ended, {found}"
        )
    yield f"slowest by fastest: {max(load.fairness):.2f} at most"
    for name, seconds in (("429", load.refused_s), ("/health", load.health_s)):
        if seconds:
            ms = 1000 * pd.Series(seconds)
            yield (
                f"{name}, {len(ms)} times while busy: p50 {ms.median():.1f}, "
                f"p95 {ms.quantile(0.95):.1f}, most {ms.max():.1f} ms"
            )
    gaps_ms = 1000 * pd.Series(load.gaps_s)
    yield (
        f"alone, RTF {load.alone_rtf:.2f}: a chunk came {gaps_ms.quantile(0.95):.1f} ms beyond "
        f"the length of the one before at p95, {gaps_ms.max():.0f} ms at most"
    )


def _at_once(
    server: OwnServer,
    texts: Sequence[str],
    voice: str,
    refusals: int,
    heard: Callable[[str], ReceivedStream],
    load: Load,
) -> list[ReceivedStream]:
    """Hear `texts`, while `/health` is asked all the time and others come until one of them has ended."""
    room_again, over = threading.Event(), threading.Event()

    def one(text: str) -> ReceivedStream:
        try:
            return heard(text)
        finally:
            room_again.set()

    def come() -> None:
        while not room_again.is_set() and server.active < len(texts):
            time.sleep(POLL_S)
        body = client.speech_request("Is there room for one more?", voice)
        for _ in range(refusals):
            status, seconds = _asked(server.url, "POST", client.SPEECH_PATH, body)
            if room_again.is_set():
                return  # there may have been room for it
            if status == 429:
                load.refused_s.append(seconds)
            else:
                load.other_answers += 1

    def ask_health() -> None:
        while not over.wait(HEALTH_EVERY_S):
            status, seconds = _asked(server.url, "GET", "/health")
            # An answer that is none took for ever
            load.health_s.append(seconds if status == 200 else float("inf"))

    with ThreadPoolExecutor(len(texts) + 2, thread_name_prefix="bench") as pool:
        beside = [pool.submit(ask_health), pool.submit(come)]
        try:
            members = list(pool.map(one, texts))
            beside[1].result()
        finally:
            room_again.set()
            over.set()
        beside[0].result()
    return members


def _shared(
    number: int, text: str, one: ReceivedStream, alone: ReceivedStream, members: Sequence[ReceivedStream]
) -> dict[str, Any]:
    first_end_s = min(member.arrivals_s[-1] for member in members)
    lengths_s = zip(one.arrivals_s, one.lengths_s, strict=True)
    return {
        "number": number,
        "characters": len(text),
        "audio_s": one.audio_s,
        "ttfa_s": one.ttfa_s,
        "ttfa_alone_s": alone.ttfa_s,
        "rtf": one.rtf,
        "rtf_alone": alone.rtf,
        "share_at_first_end": sum(length_s for at_s, length_s in lengths_s if at_s <= first_end_s)
        / one.audio_s,
        **compared(one, alone),
    }


def _asked(url: str, method: str, path: str, body: Body | None = None) -> tuple[int, float]:
    """Status of an answer, and seconds from connecting to its last byte."""
    started_s = time.perf_counter()
    with client.answered(url, method, path, body, timeout_s=ASK_S) as (answer, _):
        if answer.status != 200 or method == "GET":
            answer.read()
        return answer.status, time.perf_counter() - started_s
