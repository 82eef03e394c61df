"""The load benchmark: measures TTFA and gaps while more and more listeners are served by one server."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import psutil

from kokoro_lab.engine_config import usable_cores
from kokoro_lab.errors import SynthesisError
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.bench import client
from kokoro_lab.lab.bench.client import Body, Transport
from kokoro_lab.lab.bench.memory import watched
from kokoro_lab.lab.bench.own_server import OwnServer, StartServer
from kokoro_lab.lab.bench.soak import SoakReading, attended, known, listened, turns

MOST_IN_HAND_S = 2.0
"""A player stops reading while it has this many seconds of unplayed speech."""
PAUSE_S = (0.2, 1.0)
"""Least and most seconds between a listener's text and the next."""
BEGIN_S = 5.0
"""Seconds within which all listeners of a crowd come; in a short run, a quarter of it."""
PATIENCE_S = 30.0
"""For how many seconds a refused listener asks again, each time after the wait that the server's answer
names."""
BEARABLE = 0.8
"""The capacity of a machine is the number of listeners who together need this share of its computing time."""
HEALTH_EVERY_S = 0.5
REFUSALS = 50
"""Number of requests that are sent to a server whose only slot is taken."""
STANDS_S, STALLED_LISTENERS = 1.0, 4
"""The negative control: for how many seconds the server is stopped, and how many listeners ask meanwhile."""
MOST_AT_ONCE = 64
"""Slots of the server: more than any crowd needs, so that the machine is the limit and not this setting."""
ASK_S = 30.0
WAYS: tuple[Transport, ...] = ("http",)
"""The transports that are used: only raw audio, which costs the listeners the least computing."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """Listeners who hear the server at the same time, and what they noticed.

    Parameters
    ----------
    name : str
        Such as `4 listeners`, or `60% by chance` if they come at random and need this share of the machine.
    listeners : float
        How many there are; for a crowd that comes at random, their average number.
    streams : pandas.DataFrame
        The table of `soak.attended`, with one more column: how often each stream was `refused` before it was
        heard. `at_s` and `ttfa_s` count from the first time that the stream was asked for.
    run_s : float
    cpu_s, own_cpu_s : float
        CPU seconds of the server during the run, and those of the listeners.
    health_s : list of float
        Seconds from connecting to the answer of `/health`; infinite if no answer came.
    """

    name: str
    listeners: float
    streams: pd.DataFrame
    run_s: float
    cpu_s: float
    own_cpu_s: float
    health_s: list[float]

    @property
    def by_chance(self) -> bool:
        return self.name.endswith("by chance")

    @property
    def heard(self) -> pd.DataFrame:
        """The streams that ended as they should."""
        return self.streams[self.streams.fault == ""]


@dataclass(frozen=True, slots=True)
class Load:
    """What `measure_load` found.

    Parameters
    ----------
    rtf : float
        Real-time factor of a stream of 1,000 characters that is read as fast as possible; the median of
        several streams.
    wholes : pandas.DataFrame
        Each text, spoken alone and read as fast as possible: see `soak.known`.
    crowds : sequence of Crowd
        The first is one listener alone.
    stalled : Crowd
        The control: listeners who asked while the server was stopped.
    refused_s : list of float
        How long each answer 429 took while the only slot was taken. `other_answers` counts answers that were
        no 429.
    cores : int
    """

    rtf: float
    wholes: pd.DataFrame
    crowds: Sequence[Crowd]
    stalled: Crowd
    refused_s: Sequence[float]
    other_answers: int
    cores: int
    ran: Mapping[str, Any]

    @property
    def capacity(self) -> int:
        """The number of listeners who need the share `BEARABLE` of the computing time."""
        return math.floor(BEARABLE / self.rtf)


def crowds_for(capacity: int) -> list[int]:
    """The sizes of crowds that show the whole curve, for a machine with this capacity in listeners."""
    return sorted({max(1, round(share * capacity)) for share in (0.25, 0.5, 0.75, 1, 1.25, 1.5)})


def measure_load(
    start: StartServer,
    readings: Sequence[SoakReading],
    long_readings: Sequence[SoakReading],
    listeners: Sequence[int],
    seconds: float,
    arrivals: Sequence[float] = (),
    seed: int = 0,
) -> Load:
    """Measure one listener alone, then every crowd, each for `seconds`.

    Parameters
    ----------
    start : callable
        Takes settings; returns a context that gives the server.
    readings : sequence of SoakReading
        What listeners hear.
    long_readings : sequence of SoakReading
        Readings of 1,000 characters.
    listeners : sequence of int
        Sizes of the crowds; if it is empty, `crowds_for` chooses them by the machine's capacity.
    arrivals : sequence of float
        For each crowd that comes at random (a Poisson process), the share of the machine's computing time
        that it needs.

    Raises
    ------
    SynthesisError
        A text cannot be spoken even once.
    """
    refused_s, other_answers = _refusals(start, long_readings[0])
    with start({"concurrency": MOST_AT_ONCE}) as server:
        wholes = known(server, readings, "http")
        rtf = float(known(server, long_readings, "http").rtf.median())
        counts = sorted({1, *(listeners or crowds_for(math.floor(BEARABLE / rtf)))})
        hear = partial(_persistent, server)
        crowds = [
            _crowd(server, f"{count} listener{'s'[: count > 1]}", count, partial(
                attended, hear, turns(readings, WAYS, seed), seconds, count, think_s=PAUSE_S,
                begin_s=min(BEGIN_S, seconds / 4), seed=seed, name=f"{count} at once",
            ))
            for count in counts
        ]  # fmt: skip
        need_s = (wholes.rtf * wholes.audio_s).mean()
        for share in arrivals:
            come = partial(_by_chance, hear, turns(readings, WAYS, seed), seconds, share / need_s, seed)
            present = share / need_s * (wholes.ttfa_s + wholes.audio_s).mean()
            crowds.append(_crowd(server, f"{share:.0%} by chance", present, come))
        still = partial(_standing_still, server, turns(readings, WAYS, seed))
        stalled = _crowd(server, "a server that stands still", STALLED_LISTENERS, still)
        ran = server.facts()
    return Load(rtf, wholes, crowds, stalled, refused_s, other_answers, usable_cores(), ran)


def _crowd(server: OwnServer, name: str, listeners: float, listen: Callable[[], pd.DataFrame]) -> Crowd:
    server.forget()
    us, began_s = psutil.Process(), time.monotonic()
    cpu_s, own_cpu_s = _cpu_s(server.process), sum(us.cpu_times()[:2])
    with watched(lambda _: _health_s(server.url), HEALTH_EVERY_S) as health_s:
        streams = listen()
    run_s, cpu_s = time.monotonic() - began_s, _cpu_s(server.process) - cpu_s
    return Crowd(name, listeners, streams, run_s, cpu_s, sum(us.cpu_times()[:2]) - own_cpu_s, health_s)


def _persistent(
    server: OwnServer, reading: SoakReading, way: Transport, number: int, at_s: float
) -> dict[str, Any]:
    """Read a stream at a player's pace, and return what `listened` measured, with TTFA from the first
    request. If the server refuses, ask again after the wait that its answer names, for `PATIENCE_S` at
    most."""
    began_s, refused = time.monotonic(), 0
    while True:
        late_s = time.monotonic() - began_s
        one = listened(server, reading, way, number, at_s, most_in_hand_s=MOST_IN_HAND_S)
        if not late_s + one["retry_after_s"] <= PATIENCE_S:
            return one | {"ttfa_s": late_s + one["ttfa_s"], "refused": refused}
        refused += 1
        time.sleep(one["retry_after_s"])


def _by_chance(
    hear: Callable[..., dict[str, Any]],
    asked: Iterator[tuple[SoakReading, Transport]],
    run_s: float,
    rate_hz: float,
    seed: int,
) -> pd.DataFrame:
    """Every listener hears one stream; the first one comes at once, the others at random times."""
    draw, at_s, began_s = random.Random(seed), 0.0, time.monotonic()
    streams = list[Future[dict[str, Any]]]()
    with ThreadPoolExecutor(4 * MOST_AT_ONCE) as pool, tqdm(total=run_s, unit="s", desc="by chance") as bar:
        while at_s < run_s:
            time.sleep(max(0.0, began_s + at_s - time.monotonic()))
            streams.append(pool.submit(hear, *next(asked), len(streams), at_s))
            bar.update(round(at_s, 1) - bar.n)
            at_s += draw.expovariate(rate_hz)
    return pd.DataFrame([one.result() | {"listener": number} for number, one in enumerate(streams)])


# ------------------------------------------------------------------------------- what else is asked


def _refusals(start: StartServer, reading: SoakReading) -> tuple[list[float], int]:
    """Send requests while a stream has the only slot; returns the seconds of each 429, and the number of
    other answers."""
    refused_s, other_answers, over = list[float](), 0, threading.Event()
    body = client.speech_request("Is there room for one more?", reading.voice)
    with start({"concurrency": 1, "queue": 0}) as server:
        first = client.receive("http", server.url, client.speech_request(reading.text, reading.voice))
        next(first)

        def read() -> None:
            for _ in first:
                if over.is_set():
                    return

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        while reader.is_alive() and len(refused_s) + other_answers < REFUSALS:
            status, seconds = _asked(server.url, "POST", client.SPEECH_PATH, body)
            if status == 429:
                refused_s.append(seconds)
            elif reader.is_alive():  # else the slot was free again
                other_answers += 1
        over.set()
        reader.join()
        first.close()
    return refused_s, other_answers


def _health_s(url: str) -> float:
    try:
        status, seconds = _asked(url, "GET", "/health")
    except SynthesisError:
        return math.inf
    return seconds if status == 200 else math.inf


def _asked(url: str, method: str, path: str, body: Body | None = None) -> tuple[int, float]:
    """Status of an answer, and seconds from connecting to its last byte."""
    started_s = time.perf_counter()
    with client.answered(url, method, path, body, timeout_s=ASK_S) as (answer, _):
        if answer.status != 200 or method == "GET":
            answer.read()
        return answer.status, time.perf_counter() - started_s


def _cpu_s(process: psutil.Process) -> float:
    times = (one.cpu_times() for one in (process, *process.children(recursive=True)))
    return sum((float(time.user + time.system) for time in times), 0.0)


def _standing_still(server: OwnServer, asked: Iterator[tuple[SoakReading, Transport]]) -> pd.DataFrame:
    """Stop the server's workers, send requests meanwhile, and let the workers continue after `STANDS_S`."""
    workers = server.process.children(recursive=True)
    for worker in workers:
        worker.suspend()
    timer = threading.Timer(STANDS_S, lambda: [worker.resume() for worker in workers])
    timer.start()
    try:
        return attended(
            lambda *one: listened(server, *one) | {"refused": 0}, asked, STANDS_S, STALLED_LISTENERS, pace=0,
            think_s=(0, 0), name="control",
        )  # fmt: skip
    finally:
        timer.join()
