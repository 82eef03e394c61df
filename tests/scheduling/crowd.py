"""Listeners at once on a clock that is only counted. The scheduler is the real one; the computing is not.

A stream computes as streams of texts of 140 characters do, by a trace of `bench load` with `int8` on two
cores with AVX-512: prosody, two early windows, the trunk, windows that grow, and the next segment beside
them. Units at work at the same time share the cores. A listener takes speech as fast as it is heard, holds
back `HELD_S` at first, and rests for a moment after each text.
"""

from __future__ import annotations

import heapq
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from statistics import median

from kokoro_lab.scheduling.deadlines import LOOK_S, Claim, Cores, Unit

HELD_S = 0.1
REST_S = (0.2, 1.0)
MOST_IN_HAND_S, LEFT_IN_HAND_S = 5.0, 4.0
"""A stream with more unplayed speech stands still until it has less: the buffers on the way are full."""
ASKS_AGAIN_S = 0.001
"""Time between the end of a stream's unit and its next request, in which the samples are sent."""
BEGINNING = ((0.038, 0.0), (0.027, 0.05), (0.016, 0.05), (0.046, 0.2), (0.035, 0.3))
"""Computing seconds, and seconds of speech that follow, of a stream's first units."""
WINDOW_S, WINDOW_RATIO = 0.02, 0.085
"""Computing seconds of a later window: a constant, and a share of its speech."""
SEGMENT_S, SEGMENT_RATIO = 0.03, 0.02
"""The same of the next segment's prosody and trunk."""
SPEECH_S = 1.5
"""Speech of the longest window; earlier windows grow by half."""


@dataclass(frozen=True, slots=True)
class Step:
    """A unit: its computing seconds, and the speech that it gives.

    A step `aside` is the next segment's prosody, which is computed beside the windows. The steps that come
    `after` it need it.
    """

    compute_s: float
    speech_s: float
    aside: bool = False
    after: bool = False


def steps(draw: random.Random, slowness: float) -> Iterator[Step]:
    """The units of a text of two segments. A machine of slowness 2 takes twice as long as the traced one."""
    lengths_s, window_s = (draw.uniform(1.0, 4.0), draw.uniform(3.5, 6.0)), SPEECH_S / 4
    for compute_s, speech_s in BEGINNING:
        yield Step(compute_s * slowness, speech_s)
    left_s = lengths_s[0] - sum(speech_s for _, speech_s in BEGINNING)
    yield Step((SEGMENT_S + SEGMENT_RATIO * lengths_s[1]) * slowness, 0.0, aside=True)
    for number in range(2):
        while left_s > 0:
            speech_s = min(left_s, window_s)
            yield Step((WINDOW_S + WINDOW_RATIO * speech_s) * slowness, speech_s, after=number == 1)
            left_s -= speech_s
            window_s = min(SPEECH_S, window_s * 1.5)
        left_s = lengths_s[1] if number == 0 else 0.0


@dataclass(slots=True, eq=False)
class Job:
    """A unit with the scheduler, and the computing seconds that it still takes."""

    unit: Unit
    left_s: float
    then: Callable[[], None]


class Pedal:
    """A brake that only remembers."""

    def __init__(self) -> None:
        self.held = self.on = False

    def __enter__(self) -> None:
        self.on = True

    def __exit__(self, *_: object) -> None:
        self.on = False

    def hold(self) -> None:
        self.held = True

    def let_go(self) -> None:
        self.held = False


def is_held(unit: Unit) -> bool:
    return isinstance(unit.brake, Pedal) and unit.brake.held


@dataclass(slots=True)
class Heard:
    """What all listeners heard: seconds to each first sound, seconds of each gap, seconds of speech."""

    ttfa_s: list[float] = field(default_factory=list)
    gaps_s: list[float] = field(default_factory=list)
    speech_s: float = 0.0
    computed_s: float = 0.0

    @property
    def ttfa_p95_s(self) -> float:
        return sorted(self.ttfa_s)[int(0.95 * len(self.ttfa_s))]

    @property
    def gaps_in_ten_minutes(self) -> float:
        return 600 * len(self.gaps_s) / self.speech_s

    def to(self, alone: Heard) -> float:
        """The 95th percentile of the time to first sound, divided by its median for one listener `alone`."""
        return self.ttfa_p95_s / median(alone.ttfa_s)


class Crowd:
    """`listeners` who hear text after text for `seconds`."""

    def __init__(
        self, listeners: int, seconds: float, *, brakes: bool, slowness: float = 1.0, seed: int = 0
    ) -> None:
        self.now_s = 0.0
        self.cores = Cores(1, lambda: self.now_s, Pedal if brakes else None)
        self.heard = Heard()
        self.slowness, self.draw, self.until_s = slowness, random.Random(seed), seconds
        self.jobs: list[Job] = []
        self._numbers = count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        for number in range(listeners):
            self.at(self.draw.uniform(0, 5) * (listeners > 1), lambda number=number: Listener(self, number))

    def at(self, when_s: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._events, (when_s, next(self._numbers), do))

    def compute(self, claim: Claim, compute_s: float, then: Callable[[], None]) -> None:
        """Have a unit computed, and call `then` at its end."""
        self.jobs.append(Job(self.cores.ask(claim), compute_s, then))
        self.look_again(self.jobs[-1])

    def look_again(self, job: Job) -> None:
        """What `Cores.wait_for` does in the thread of a stream that waits."""
        if not job.unit.granted.is_set():
            self.cores.grant()
            self.at(self.now_s + LOOK_S, lambda: self.look_again(job))

    def run(self) -> Heard:
        while self._events or self.jobs:
            at_work = [job for job in self.jobs if job.unit.granted.is_set() and not is_held(job.unit)]
            share = 1 / max(1, len(at_work))
            ends_s = min((self.now_s + job.left_s / share for job in at_work), default=float("inf"))
            event_s = self._events[0][0] if self._events else float("inf")
            to_s = min(ends_s, event_s)
            for job in at_work:
                job.left_s -= (to_s - self.now_s) * share
            self.heard.computed_s += (to_s - self.now_s) * bool(at_work)
            self.now_s = max(self.now_s, to_s)
            if event_s <= ends_s:
                heapq.heappop(self._events)[2]()
                continue
            ended = min(at_work, key=lambda job: job.left_s)
            self.jobs.remove(ended)
            self.cores.give_back(ended.unit)
            ended.then()
        return self.heard


class Listener:
    """One text after the other."""

    def __init__(self, crowd: Crowd, number: int) -> None:
        self.crowd, self.number = crowd, number
        self.claim = crowd.cores.claim(str(number), threading.Event(), listened=True)
        self.came_s, self.plays_until_s = crowd.now_s, 0.0
        self.steps = list(steps(crowd.draw, crowd.slowness))
        self.aside = self.waits = False
        self.go_on()

    def go_on(self) -> None:
        """Ask for the next unit, once there is room for what it gives."""
        crowd, claim = self.crowd, self.claim
        if not self.steps:
            claim.leave()
            again_s = max(crowd.now_s, self.plays_until_s) + crowd.draw.uniform(*REST_S)
            if again_s < crowd.until_s:
                crowd.at(again_s, lambda: Listener(crowd, self.number) and None)
            return
        if claim.lead_s > MOST_IN_HAND_S:
            crowd.at(crowd.now_s + claim.lead_s - LEFT_IN_HAND_S, self.go_on)
            return
        step = self.steps[0]
        self.waits = step.after and self.aside
        if self.waits:
            return
        del self.steps[0]
        if step.aside:
            self.aside = True
            crowd.compute(claim, step.compute_s, self.segment_is_ready)
            self.go_on()
        else:
            crowd.compute(claim, step.compute_s, lambda: self.ended(step))

    def segment_is_ready(self) -> None:
        self.aside = False
        if self.waits:
            self.go_on()

    def ended(self, step: Step) -> None:
        """Give the listener the speech of a unit, and go on."""
        now_s, heard = self.crowd.now_s, self.crowd.heard
        if step.speech_s:
            if not self.plays_until_s:
                heard.ttfa_s.append(now_s - self.came_s)
                self.plays_until_s = now_s + HELD_S
            elif now_s > self.plays_until_s:
                heard.gaps_s.append(now_s - self.plays_until_s)
                self.plays_until_s = now_s
            self.plays_until_s += step.speech_s
            heard.speech_s += step.speech_s
            self.claim.gave(step.speech_s)
        self.crowd.at(now_s + ASKS_AGAIN_S, self.go_on)
