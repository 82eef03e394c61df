"""Decides who computes next: the stream whose listener would be the first to run out of speech.

A *unit* is the computing of a window of the vocoder, or of the prosody of a segment. Units run one at a time,
each with all threads, so that other streams change none of a stream's samples. Each stream that waits is in
one of these states, which say when it is due, and who comes first of those in the same state:

| who | due | among each other |
|---|---|---|
| has heard nothing yet | in `GUARD_S`, in a crowd later; or `PATIENCE_S` after it came | clients in turn |
| has run out of speech | when it ran out | clients in turn |
| has speech in hand | when that speech runs out | the earliest first |
| a file, a warm-up: nobody listens | `LEISURE_S` after it asked | clients in turn |

The one that is due first computes. No deadline is postponed for ever, so each unit is computed at some time,
however many others there are.

A stream whose listener hears nothing, or soon will, does not wait for the end of a unit of another stream
that has enough speech in hand, or of a file: that unit is *held* where it is, and goes on later. Only a unit
with a brake can be held (`native.brakes`).

Between two units of a new stream, the cores are kept for it. The new stream asks for its next unit a
millisecond after the end of the last one, when it has sent the samples of that unit. As long as it has less
than `SHORT_S` of speech in hand, the cores wait: a unit of another stream that began in between would take
longer than the speech in hand lasts. Not every unit could then be held. Some have no brake, the streams of
others have little speech in hand themselves, and only as many streams are held as compute at a time.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import count
from typing import Any, Literal, NamedTuple, Protocol

from kokoro_lab.errors import Interrupted
from kokoro_lab.scheduling.round_robin import RoundRobin

GUARD_S = 0.35
"""A stream with less speech in hand than this comes before streams that wait for their first sound: several
of their units may take this long, and a gap is worse than a late beginning. In a simulation
(`tests/scheduling/crowd.py`) of six listeners who need 0.75 of the cores, there are 1.1 gaps in ten minutes
of speech with 0.3 s, 0.12 with 0.35 s and 0.12 with 0.4 s; the 95th percentile of the time to first sound is
2.6, 2.8 and 3.2 times the median of one listener alone."""
SHARE_S = 0.25
"""How many seconds of the cores each stream with speech in hand may need before it runs out of speech. A new
stream waits in a *crowd*: if the stream that will run out first has less in hand than this, or the second one
less than twice as much, and so on. Else streams that began together would run out together. In the
simulation, on cores that are 8 % slower, there are 0.45 gaps in ten minutes of speech with this rule, and
1.26 without."""
SHORT_S = 0.2
"""Seconds of unplayed speech with which a stream can wait for a window of another stream, and then for its
own next window."""
FIRST_UNITS = 6
"""Units in which a new stream should gain `SHORT_S` of speech. After these units, the cores are no longer
kept for the stream: the machine is too slow for it."""
KEPT_S = 0.02
"""How many seconds the cores wait for the next unit of a stream that is short of speech, and no longer, since
the stream may have no further unit."""
YIELDS_S = 0.5
"""A stream with more unplayed speech than this can be held while another stream computes a unit."""
PATIENCE_S = 3.0
LEISURE_S = 5.0
"""Seconds after which a file that waits is due. A stream that has more seconds of speech in hand than the
file has left to wait lets the file compute first."""
LOOK_S = 0.05
"""How often waiting units check whether the cores are still kept, or in use."""
UNIT_S = 0.5
"""Seconds after which a unit no longer delays others: the next unit then computes in parallel. No window
should take this long."""
WHOLE_S = 30.0
"""The limit `UNIT_S` for a unit that is a whole segment; only other whole segments wait for such a unit."""
LOOK_BACK = 2048
"""Number of the last units of which is kept how long each waited and when each was computed, for
`figures`."""
USED_S = 60.0
"""Seconds over which the use of the cores is averaged."""


class Brake(Protocol):
    """Can make the computing of a thread stand still. It is a context around the computing, entered in that
    thread."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...

    def hold(self) -> None:
        """Let the computing stand still."""

    def let_go(self) -> None:
        """Let the computing go on."""


class Claim:
    """A stream's request for the cores, and a clock that follows how much its listener has heard.

    Made by `Cores.claim`.

    Attributes
    ----------
    listened : bool
        Whether somebody listens while the speech is computed.
    runs_out_s : float or None
        When the listener has heard all that was given; None before the first sound.
    given_s : float
        Speech that the listener was given.
    waited_s : float
        Seconds that the stream waited while others computed.
    """

    def __init__(
        self,
        cores: Cores,
        client: str,
        stop: threading.Event,
        *,
        listened: bool,
        stood_still: Callable[[float], None],
    ) -> None:
        self._cores = cores
        self._stop = stop
        self._stood_still = stood_still
        self._left = False
        self.client = client
        self.listened = listened
        self.runs_out_s: float | None = None
        self.waited_s = 0.0
        self.came_s = self.heard_from_s = cores.clock()
        self.given_s = self._stood_s = 0.0
        self.since = cores.robin.round
        self.begun = 0  # units

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be computed."""
        return self._left or self._stop.is_set()

    @property
    def lead_s(self) -> float:
        """Seconds of speech that the listener has in hand."""
        return 0.0 if self.runs_out_s is None else self.runs_out_s - self._cores.clock()

    @property
    def pace(self) -> float:
        """Seconds of speech that the listener takes in a second; 1 before the first sound."""
        heard_s = self._cores.clock() - self.heard_from_s
        return 1.0 if self.runs_out_s is None else self.given_s / max(heard_s, 1e-9)

    def gave(self, length_s: float) -> None:
        """Count speech of `length_s` that was given to the listener. If the listener had run out of speech
        before, its clock stood still meanwhile."""
        now_s = self._cores.clock()
        self.given_s += length_s
        if self.runs_out_s is None:
            self.heard_from_s = now_s
        if self.runs_out_s is None or self.runs_out_s < now_s:
            self.runs_out_s, self._stood_s = now_s, 0.0
        # What fills the buffers again was heard while computing waited for room in them
        heard_s = min(self._stood_s, length_s)
        self._stood_s -= heard_s
        self.runs_out_s += length_s - heard_s
        if self.lead_s >= SHORT_S:
            self._cores.lets_go(self)

    def held_up(self, seconds: float) -> None:
        """Count `seconds` in which computing waited because the buffers between it and the listener were
        full.

        The buffers are full again once as much speech was given as the listener took out of them. So a
        listener that paused has as much speech in hand as before, and what a listener in real time has heard
        does not count as in hand.
        """
        if self.runs_out_s is not None:
            self.runs_out_s += seconds
            self._stood_s = max(self._stood_s, min(seconds, self.lead_s))  # it heard no more than it had

    @contextmanager
    def computing(self, *, whole: bool = False) -> Iterator[None]:
        """A context around a unit: waits for the cores before it, and gives them back after it. The code
        inside may not wait for another thread.

        `whole` marks a unit that may take long, a whole segment: only other whole segments wait for its end.

        Raises
        ------
        Interrupted
            The stream is over.
        """
        unit = self._cores.ask(self, whole=whole)
        try:
            self._cores.wait_for(unit)
            if self.is_over:
                raise Interrupted("This synthesis was stopped.")
            with unit.brake or nullcontext():
                yield
        except BaseException:
            unit.failed = True
            raise
        finally:
            self._cores.give_back(unit)
            self._stood_still(unit.held_s)

    def leave(self) -> None:
        """End the claim: nothing more is computed, and a thread that waits for the cores stops waiting."""
        self._left = True
        self._cores.lets_go(self)


class Unit:
    """One unit of computing, from the request for the cores to its end."""

    def __init__(
        self, claim: Claim, brake: Brake | None, *, whole: bool, asked_s: float, since: int, number: int
    ) -> None:
        self.claim = claim
        self.brake = brake
        self.whole = whole
        self.asked_s = asked_s
        self.since = since
        self.number = number
        self.begun_s = asked_s
        self.held_since_s = self.held_s = 0.0
        self.failed = False
        self.granted = threading.Event()


class _Rank(NamedTuple):
    unit: Unit
    kind: Literal["silent", "late", "in hand", "leisure"]
    due_s: float
    round: int


class Cores:
    """Gives the cores to one unit after the other. Thread-safe.

    Parameters
    ----------
    at_a_time : int
        How many units run at once: as many as fit into the cores with their threads.
    clock : callable
        Returns the time in seconds; a test passes its own clock.
    brakes : callable, optional
        Makes the brake of a unit. Without brakes, no unit is held.

    Attributes
    ----------
    at_a_time : int
    robin : RoundRobin
        The order of clients.
    """

    def __init__(
        self,
        at_a_time: int = 1,
        clock: Callable[[], float] = time.perf_counter,
        brakes: Callable[[], Brake] | None = None,
    ) -> None:
        self.clock = clock
        self._brakes = brakes
        self.robin = RoundRobin()
        self.at_a_time = max(1, at_a_time)
        self._lock = threading.Lock()
        self._numbers = count()
        self._waiting: list[Unit] = []
        self._at_work: list[Unit] = []
        self._held: list[Unit] = []
        self._since_s = self._busy_since_s = clock()
        self._kept_for: Claim | None = None
        self._kept_until_s = 0.0
        self._busy: deque[tuple[float, float]] = deque(maxlen=LOOK_BACK)
        self._waits_s: deque[float] = deque(maxlen=LOOK_BACK)

    def claim(
        self,
        client: str,
        stop: threading.Event,
        *,
        listened: bool,
        stood_still: Callable[[float], None] = lambda _: None,
    ) -> Claim:
        """The claim of a stream of `client`, which ends when `stop` is set. `stood_still` is called after
        each unit with the seconds for which the unit was held."""
        return Claim(self, client, stop, listened=listened, stood_still=stood_still)

    def ask(self, claim: Claim, *, whole: bool = False) -> Unit:
        """Enter a unit among those that wait; it has the cores once it is `granted`."""
        with self._lock:
            unit = Unit(
                claim,
                self._brakes() if self._brakes else None,
                whole=whole,
                asked_s=self.clock(),
                since=self.robin.round,
                number=next(self._numbers),
            )
            self._waiting.append(unit)
            self._grant()
        return unit

    def wait_for(self, unit: Unit) -> None:
        """Wait until the unit has the cores, or does not have to be computed any more."""
        while not unit.granted.wait(LOOK_S):
            self.grant()  # the unit that computes, or the stream that is waited for, may have taken too long

    def give_back(self, unit: Unit) -> None:
        """Give back the cores that `unit` has or waits for, once it was computed or will not be."""
        with self._lock:
            if unit in self._at_work:
                self._at_work.remove(unit)
                claim = unit.claim
                short = claim.listened and claim.lead_s < SHORT_S and not claim.is_over
                if short and claim.begun <= FIRST_UNITS and not (unit.whole or unit.failed):
                    self._kept_for, self._kept_until_s = claim, self.clock() + KEPT_S
                if not self._at_work:
                    self._busy.append((self.clock(), self.clock() - self._busy_since_s))
            elif unit in self._held:  # it ended before it came to an operator that stands still
                self._held.remove(unit)
            else:
                self._waiting.remove(unit)
            self._grant()

    def grant(self) -> None:
        """Give the cores to the units that may have them now."""
        with self._lock:
            self._grant()

    def lets_go(self, claim: Claim) -> None:
        """Let other streams have the cores that are kept for the next unit of `claim`: its stream has enough
        unplayed speech, or has ended."""
        with self._lock:
            if self._kept_for is claim:
                self._kept_for = None
            self._grant()

    def figures(self) -> dict[str, Any]:
        """The numbers of units that compute and that wait, the seconds that listeners' units waited, and the
        share of the last `USED_S` in which something was computed."""
        with self._lock:
            now_s = self.clock()
            from_s = max(now_s - USED_S, self._since_s)
            spans = (min(length_s, ended_s - from_s) for ended_s, length_s in self._busy)
            used_s = sum(span_s for span_s in spans if span_s > 0)
            if self._at_work:
                used_s += now_s - max(from_s, self._busy_since_s)
            return {
                "computing": len(self._at_work),
                "waiting": len(self._waiting) + len(self._held),
                "waits_s": list(self._waits_s),
                "utilisation": round(used_s / max(now_s - from_s, 1e-9), 3),
            }

    def _grant(self) -> None:
        while True:
            now_s = self.clock()
            units = (*self._held, *self._waiting)
            free = [self._ranked(unit, now_s) for unit in units if self._may_begin(unit, now_s)]
            free = free or self._pressing(now_s)
            if not free:
                return
            # Clients that compute in turn are due when the first of them is
            due_s: dict[str, float] = {}
            for rank in free:
                due_s[rank.kind] = min(rank.due_s, due_s.get(rank.kind, rank.due_s))
            first = min(
                free,
                key=lambda rank: (
                    rank.due_s if rank.kind == "in hand" else due_s[rank.kind],
                    rank.round,
                    rank.due_s,
                    rank.unit.number,
                ),
            )
            self._begin(first, now_s)

    def _pressing(self, now_s: float) -> list[_Rank]:
        """The waiting units that begin at once, because units at work are held for them (see
        `_that_yield`)."""
        ranks = (self._ranked(unit, now_s) for unit in self._waiting)
        return [rank for rank in ranks if self._that_yield(rank, now_s)]

    def _that_yield(self, rank: _Rank, now_s: float) -> list[Unit]:
        """The units at work that must be held so that the unit of `rank`, which waits, can begin now. Empty
        if that unit can wait, or if not enough units can be held.

        At most as many streams are held as compute at a time, since each unit that is held keeps its memory.
        """
        claim, left = rank.unit.claim, len(self._at_work)
        if not (claim.listened and (claim.runs_out_s is None or claim.lead_s < SHORT_S)):
            return []
        streams = {unit.claim for unit in self._held}
        others = [self._ranked(other, now_s) for other in self._at_work if self._can_be_held(other, claim)]
        found: list[Unit] = []
        for other in sorted(others, key=lambda each: each.due_s, reverse=True):
            # A stream's next segment is computed beside its window: both, or none
            enough = left < self.at_a_time and other.unit.claim not in streams
            if enough or other.due_s <= rank.due_s or len(streams | {other.unit.claim}) > self.at_a_time:
                break
            streams.add(other.unit.claim)
            found.append(other.unit)
            left -= 1
        return found if left < self.at_a_time else []

    def _can_be_held(self, unit: Unit, sooner: Claim) -> bool:
        claim = unit.claim
        if unit.brake is None or claim is sooner or claim.is_over:
            return False
        return not claim.listened or claim.lead_s > YIELDS_S

    def _may_begin(self, unit: Unit, now_s: float) -> bool:
        claim = unit.claim
        if claim.is_over:
            return True  # and gives back at once
        if self._kept_for not in (None, claim) and now_s < self._kept_until_s:
            return False
        if any(other.claim is claim for other in self._at_work):
            # A stream's next segment is computed beside its window, as long as nobody else waits
            return all(other.claim is claim for other in self._waiting)
        ahead = 0
        for other in self._at_work:
            longest_s = UNIT_S if not other.whole else WHOLE_S if unit.whole else 0.0
            ahead += now_s - other.begun_s < longest_s
        return ahead < self.at_a_time

    def _ranked(self, unit: Unit, now_s: float) -> _Rank:
        claim = unit.claim
        turn = self.robin.round_of(claim.client, unit.since)
        if not claim.listened:
            return _Rank(unit, "leisure", unit.asked_s + LEISURE_S, turn)
        if claim.runs_out_s is None:
            turn = 0 if claim.begun else self.robin.round_of(claim.client, claim.since)
            due_s = min(now_s + self._guard_s(now_s), claim.came_s + PATIENCE_S)
            return _Rank(unit, "silent", due_s, turn)
        if claim.runs_out_s <= now_s:
            return _Rank(unit, "late", claim.runs_out_s, turn)
        return _Rank(unit, "in hand", claim.runs_out_s, 0)

    def _guard_s(self, now_s: float) -> float:
        """In how many seconds a stream is due that has heard nothing yet: in a crowd, after the stream that
        will be the first to run out of speech."""
        claims = {unit.claim for unit in (*self._at_work, *self._held, *self._waiting)}
        in_hand_s = sorted(
            claim.runs_out_s - now_s
            for claim in claims
            if claim.listened and claim.runs_out_s is not None and not claim.is_over
        )
        crowded = any(lead_s < number * SHARE_S for number, lead_s in enumerate(in_hand_s, 1))
        return max(GUARD_S, in_hand_s[0] + LOOK_S) if crowded else GUARD_S

    def _begin(self, rank: _Rank, now_s: float) -> None:
        unit, claim = rank.unit, rank.unit.claim
        for other in self._that_yield(rank, now_s):
            self._hold(other, now_s)
        if not self._at_work:
            self._busy_since_s = now_s
        self._at_work.append(unit)
        if unit in self._held:
            self._let_go(unit, now_s)
            return
        self._waiting.remove(unit)
        self.robin.serve(claim.client, unit.since if claim.begun else claim.since)
        claim.begun += 1
        if self._kept_for is claim:
            self._kept_for = None
        claim.waited_s += now_s - unit.asked_s
        if claim.listened and not claim.is_over:
            self._waits_s.append(now_s - unit.asked_s)
        unit.begun_s = now_s
        unit.granted.set()

    def _hold(self, unit: Unit, now_s: float) -> None:
        assert unit.brake is not None
        unit.held_since_s = now_s
        self._at_work.remove(unit)
        self._held.append(unit)
        unit.brake.hold()

    def _let_go(self, unit: Unit, now_s: float) -> None:
        assert unit.brake is not None
        held_s = now_s - unit.held_since_s
        unit.held_s += held_s
        unit.begun_s += held_s
        unit.claim.waited_s += held_s
        self._held.remove(unit)
        unit.brake.let_go()
