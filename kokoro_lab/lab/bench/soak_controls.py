"""Faults that a soak must catch: in a made-up one, and in a small server that really leaks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kokoro_lab.lab.bench.leaky_server import KINDS, NOTHING
from kokoro_lab.lab.bench.own_server import own_server
from kokoro_lab.lab.bench.resources import SETTLE_S, Holding, growth_of, held_by
from kokoro_lab.lab.bench.soak import Soak, SoakStream, Whole, listened
from kokoro_lab.lab.bench.soak_mix import WAYS, ReadingTurn, SoakReading
from kokoro_lab.lab.bench.soak_verdict import judge, judge_growth
from kokoro_lab.lab.results import Check, NegativeControl

RUN_S, EVERY_S, READ_EVERY_S = 1_200.0, 10.0, 5.0
NOISE = 0.02
LEAKY_STREAMS = 40
Fault = Callable[[Soak], Soak]


def controls() -> list[NegativeControl]:
    """Everything: made-up soaks first, then the server that leaks."""
    return [*made_up_controls(), *leaking_controls()]


def made_up_controls() -> list[NegativeControl]:
    """20 minutes that are good but for one fault, each of which must fail, and two that must pass."""
    good = made_up()
    found = [
        NegativeControl(f"passes: {name}", _passes(judge(fault(good)))) for name, fault in HARMLESS.items()
    ]
    return found + [NegativeControl(name, not _passes(judge(fault(good)))) for name, fault in FAULTS.items()]


def leaking_controls(streams: int = LEAKY_STREAMS) -> list[NegativeControl]:
    """A server in a process of its own that keeps something of each stream, and one that keeps nothing."""
    found = []
    for kind in KINDS:
        passes = _passes(judge_growth(growth_of(leaking(kind, streams))))
        if kind == NOTHING:
            found.append(NegativeControl("passes: a real server that keeps nothing", passes))
        else:
            found.append(NegativeControl(f"a real server that keeps {kind} of every stream", not passes))
    return found


def leaking(kind: str, streams: int = LEAKY_STREAMS) -> list[Holding]:
    """What `leaky_server` holds after each of `streams` streams."""
    reading = SoakReading("0", "A.", "any")
    command = [sys.executable, "-m", "kokoro_lab.lab.bench.leaky_server", kind]
    with own_server({}, command) as server:
        found = []
        for number in range(streams):
            if fault := listened(server, ReadingTurn(number, reading, "http"), number).fault:
                raise AssertionError(f"the server of the control failed: {fault}")
            found.append(held_by(server.process, number))
    return found


def made_up(seed: int = 0) -> Soak:
    """20 minutes without a fault: ten readings by turns, times with a little noise, memory that settles."""
    draw = np.random.default_rng(seed)
    names = [f"{number}" for number in range(10)]
    wholes = {name: Whole(48_000 * (1 + number), name) for number, name in enumerate(names)}
    streams = [
        SoakStream(
            number,
            name,
            WAYS[number % len(WAYS)],
            at_s,
            samples_count=wholes[name].samples_count,
            sha256=wholes[name].sha256,
            ttfa_s=(0.1 + 0.01 * int(name)) * draw.lognormal(0, NOISE),
            rtf=0.3 * draw.lognormal(0, NOISE),
            audio_s=wholes[name].samples_count / 24_000,
        )
        for number, at_s in enumerate(np.arange(0, RUN_S, EVERY_S))
        for name in (names[number % len(names)],)
    ]
    holdings = [
        Holding(
            at_s,
            rss_mb=600 + 40 * (1 - np.exp(-at_s / 60)) + draw.normal(0, 1),
            descriptors=30 + int(draw.integers(0, 4)),
            threads=24,
        )
        for at_s in np.arange(0, RUN_S, READ_EVERY_S)
    ]
    return Soak(RUN_S, 1, wholes, streams, holdings, left_behind=0)


def _passes(checks: Sequence[Check]) -> bool:
    return all(check.passed for check in checks)


def _streams(change: Callable[[SoakStream], SoakStream]) -> Fault:
    return lambda soak: replace(soak, streams=[change(one) for one in soak.streams])


def _one(**changed: Any) -> Fault:
    """One stream of many, in the middle."""
    return lambda soak: replace(
        soak,
        streams=[
            replace(one, **changed) if one.number == len(soak.streams) // 2 else one for one in soak.streams
        ],
    )


def _rises(at_s: float, percent: float) -> float:
    """1 in the first half; in the second it rises by so many percent."""
    return 1 + percent / 100 * max(at_s / (RUN_S / 2) - 1, 0.0)


def _tail(one: SoakStream) -> SoakStream:
    """One stream in five takes ever longer."""
    return one if one.number % 5 else replace(one, ttfa_s=one.ttfa_s * _rises(one.at_s, 60))


def _held(rss_mb_a_minute: float = 0, descriptors_a_stream: int = 0, threads_a_stream: int = 0) -> Fault:
    def more(one: Holding) -> Holding:
        streams = int(one.at_s / EVERY_S)
        return Holding(
            one.at_s,
            one.rss_mb + rss_mb_a_minute * one.at_s / 60,
            one.descriptors + descriptors_a_stream * streams,
            one.threads + threads_a_stream * streams,
        )

    return lambda soak: replace(soak, holdings=[more(one) for one in soak.holdings])


def _grows_at_first(soak: Soak) -> Soak:
    """100 MB more, all of it in the first minutes."""
    return replace(
        soak,
        holdings=[
            replace(one, rss_mb=one.rss_mb + 100 * min(one.at_s / (SETTLE_S - 60), 1))
            for one in soak.holdings
        ],
    )


def _longer_texts(soak: Soak) -> Soak:
    """The second half holds the readings whose first audio takes longest."""
    late = {one.number for one in soak.streams if one.at_s >= RUN_S / 2}
    return replace(
        soak, streams=[one for one in soak.streams if (one.number in late) == (int(one.reading) >= 5)]
    )


HARMLESS: dict[str, Fault] = {
    "20 minutes without a fault": lambda soak: soak,
    "longer texts in the second half": _longer_texts,
    "memory that grows in the first minutes": _grows_at_first,
}
FAULTS: dict[str, Fault] = {
    "3 MB more every minute": _held(rss_mb_a_minute=3),
    "a descriptor more with every stream": _held(descriptors_a_stream=1),
    "a thread more with every stream": _held(threads_a_stream=1),
    "first audio 8 % later at the end": _streams(
        lambda one: replace(one, ttfa_s=one.ttfa_s * _rises(one.at_s, 8))
    ),
    "computing 8 % slower at the end": _streams(lambda one: replace(one, rtf=one.rtf * _rises(one.at_s, 8))),
    "one stream in five ever later": _streams(_tail),
    "one underrun": _one(underruns=1),
    "one stream that broke off": _one(fault="The server broke off."),
    "one stream a sample short": _one(samples_count=1),
    "one stream with another sample": _one(sha256="another"),
    "a synthesis that goes on for nobody": lambda soak: replace(soak, left_behind=1),
    "nobody listened": lambda soak: replace(soak, streams=[]),
}
