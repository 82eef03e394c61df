"""Degrade modes: what the server changes when it cannot keep up with its listeners.

A table has a row for each mode: what triggers it, what it changes, and when it ends. A mode changes the
length of chunks, how long the first sound is held back, and how many requests are served at a time. No mode
changes a sample. A request that names its `chunk_ms` gets it in every mode. A stream without resume tokens
has the chunks of the settings in every mode.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from kokoro_lab.config import Settings
from kokoro_lab.playback.buffering import (
    BENCHMARK,
    LEAST_HELD_S,
    SAFE,
    STABLE,
    BufferProfile,
    buffer_profile,
)
from kokoro_lab.server.health.objectives import ObjectiveWatch, ServedRequest
from kokoro_lab.server.openapi.schemas import Objective
from kokoro_lab.server.requests.slots import Slots

log = logging.getLogger(__name__)

SPARE_S = 0.05
"""How much longer the first sound is held back than the worst of the last streams needed."""
HELD_BACK_MOST_S = 0.5
"""The longest time in seconds for which the first sound is held back. A machine that would need more has gaps
anyway: with 1 s, on a machine busy with other work, streams began 1.5 s after the request and still had
gaps."""
LACKING_S = LEAST_HELD_S - (SAFE.chunk_s - STABLE.chunk_s)
"""If a stream that was held back needed a pre-buffer of more than this many seconds, it would have had a gap
without being held back. In the normal mode, its first chunk would have been shorter, and so ready earlier by
about the difference of the two lengths. `LEAST_HELD_S` is what a player holds back itself."""
LOOK_BACK = 10
"""How many of the last requests are searched for trouble."""
TROUBLED = 2
"""A mode begins if at least this many of the last `LOOK_BACK` requests had trouble. A single one may be
chance."""
HOLD_S = 60.0
"""How long a mode is kept after the last sign of trouble. If it ended sooner, the trouble would return at
once."""
WAY_BACK = f"{HOLD_S:.0f} s without what brings it"


@dataclass(frozen=True, slots=True)
class Mode:
    """The changes that one mode makes.

    Parameters
    ----------
    name, changes : str
        The mode's name and its changes in words, as `/status` shows them.
    profile : BufferProfile or None
        Replaces the buffer profile of the settings.
    share : float
        Share of the usual number of syntheses at a time.
    holds_back : bool
        Whether the first sound is held back by what the last streams needed.
    """

    name: str
    changes: str
    profile: BufferProfile | None = None
    share: float = 1.0
    holds_back: bool = False


NORMAL = Mode("normal", "nothing")
REDUCE_TTFA = Mode("reduce-ttfa", "chunks of 40 ms", profile=BENCHMARK)
AVOID_UNDERRUN = Mode(
    "avoid-underrun",
    "chunks of 100 ms; the first sound is held back until none of the last streams would have had a gap",
    profile=SAFE,
    holds_back=True,
)
STABILITY_FIRST = Mode(
    "stability-first",
    "as avoid-underrun, and half as many syntheses at a time; others wait their turn",
    profile=SAFE,
    share=0.5,
    holds_back=True,
)
MODES = {mode.name: mode for mode in (NORMAL, REDUCE_TTFA, AVOID_UNDERRUN, STABILITY_FIRST)}
"""All modes by their names, from the lightest to the heaviest."""


_SEVERITY = tuple(MODES)

Missed = Mapping[str, Objective]
"""The objectives that are missed, by their names."""


@dataclass(frozen=True, slots=True)
class ModeRule:
    """A row of the table.

    Parameters
    ----------
    mode : Mode
    trigger : str
        What triggers the mode, in words.
    because : callable
        Takes the last requests and the missed objectives; returns why the mode is due, or None if it is not.
    """

    mode: Mode
    trigger: str
    because: Callable[[Sequence[ServedRequest], Missed], str | None]


def _several(
    troubled: Callable[[ServedRequest], bool], what: str
) -> Callable[[Sequence[ServedRequest], Missed], str | None]:
    """A function that returns a reason in words if at least `TROUBLED` of the last requests had trouble; else
    None."""

    def because(last: Sequence[ServedRequest], _: Missed) -> str | None:
        count = sum(map(troubled, last))
        return f"{count} of the last {len(last)} requests {what}" if count >= TROUBLED else None

    return because


def _exceeded(objective: str, unit: str = "") -> Callable[[Sequence[ServedRequest], Missed], str | None]:
    """A function. If `objective` is missed, it returns the reason in words; else None."""

    def because(_: Sequence[ServedRequest], missed: Missed) -> str | None:
        found = missed.get(objective)
        if found is None:
            return None
        return f"{objective} is {found.value:.2f}{unit}, above {found.limit:g}{unit}"

    return because


def _late(served: ServedRequest) -> bool:
    """Whether the stream had underruns, or would have had them if its first sound had not been held back."""
    return served.underruns > 0 or (served.held_back_s > 0 and (served.needed_s or 0.0) > LACKING_S)


RULES = (
    ModeRule(
        STABILITY_FIRST,
        f"{TROUBLED} of the last {LOOK_BACK} failed or were stopped at a deadline",
        _several(
            lambda served: served.outcome in ("failed", "expired"), "failed or were stopped at a deadline"
        ),
    ),
    ModeRule(STABILITY_FIRST, "RTF p95 over KOKORO_SLO_RTF", _exceeded("rtf p95")),
    ModeRule(
        AVOID_UNDERRUN,
        f"{TROUBLED} of the last {LOOK_BACK} had underruns, or would have had them with nothing held back; "
        f"a rehearsal in the warm-up counts as {TROUBLED}",
        _several(_late, "had chunks that came too late"),
    ),
    ModeRule(REDUCE_TTFA, "TTFA p95 over KOKORO_SLO_TTFA_S", _exceeded("ttfa_s p95", " s")),
)
"""The rules, from the heaviest mode to the lightest. The first rule that applies decides."""


def table() -> list[dict[str, str]]:
    """The rows as plain data: `mode`, `trigger`, `changes`, `way_back`."""
    return [
        {
            "mode": rule.mode.name,
            "trigger": rule.trigger,
            "changes": rule.mode.changes,
            "way_back": WAY_BACK,
        }
        for rule in RULES
    ]


class Degrader:
    """Chooses the mode by the trouble of the last listeners, or keeps the mode of the settings. Thread-safe.

    Parameters
    ----------
    settings : Settings
    slots : Slots
        The slots, whose number the mode reduces.
    objectives : ObjectiveWatch
        Holds the figures of the last requests.
    clock : callable
        Returns the time in seconds; a test passes its own clock.
    chunk_s : float, optional
        The engine's own length of a chunk, used if the settings name no profile.
    """

    def __init__(
        self,
        settings: Settings,
        slots: Slots,
        objectives: ObjectiveWatch,
        clock: Callable[[], float] = time.monotonic,
        *,
        chunk_s: float | None = None,
    ) -> None:
        self.objectives = objectives
        self._setting = settings.degrade
        self._profile = buffer_profile(settings.buffer_profile)
        if chunk_s is not None and "buffer_profile" not in settings.model_fields_set:
            self._profile = self._profile.cut_by(chunk_s)
        self._slots = slots
        self._clock = clock
        self._lock = threading.Lock()
        self._mode = NORMAL
        self._because = "nothing is amiss"
        self._rehearsals: list[ServedRequest] = []
        self._since_s = self._seen_s = clock()
        self._look()

    def rehearsed(self, needed_s: float) -> None:
        """Count what a player would have needed in the warm-up's rehearsal as what the first listeners need,
        until there are enough of them."""
        late = int(needed_s > LEAST_HELD_S)
        self._rehearsals = [ServedRequest("completed", underruns=late, needed_s=needed_s)] * TROUBLED

    @property
    def mode(self) -> Mode:
        """The mode in force."""
        self._look()
        return self._mode

    def profile(self) -> BufferProfile:
        """The chunk length and advised pre-buffer of the next stream."""
        return self.mode.profile or self._profile

    @property
    def usual_profile(self) -> BufferProfile:
        """The profile of the settings, which no mode changes."""
        return self._profile

    @property
    def held_back_s(self) -> float:
        """How long the first sound of the next stream is held back, in seconds: by what the last streams
        needed, except for the 100 ms that a player holds back itself."""
        if not self.mode.holds_back:
            return 0.0
        needed_s = (served.needed_s or 0.0 for served in self._last())
        missing_s = max(needed_s, default=0.0) - LEAST_HELD_S
        return min(HELD_BACK_MOST_S, missing_s + SPARE_S) if missing_s > 0 else 0.0

    def reset(self) -> None:
        """Return to the mode with which the server started."""
        self.objectives.forget()
        with self._lock:
            self._set(NORMAL, "nothing is amiss")
        self._look()

    def figures(self) -> dict[str, object]:
        """The mode and its reasons, for `/status`."""
        profile, mode = self.profile(), self._mode
        return {
            "mode": mode.name,
            "because": self._because,
            "changes": mode.changes,
            "since_s": round(self._clock() - self._since_s, 1),
            "lighter_after_s": self._lighter_after_s(),
            "setting": self._setting,
            "chunk_ms": round(profile.chunk_s * 1000),
            "pre_buffer_ms": round(profile.pre_buffer_s * 1000),
            "held_back_ms": round(self.held_back_s * 1000),
            "admitted": self._slots.limit,
            "table": table(),
        }

    def _lighter_after_s(self) -> float | None:
        """The seconds until the mode may end at the earliest; None if it does not end by itself."""
        if self._mode is NORMAL or self._setting != "auto":
            return None
        return round(max(0.0, self._seen_s + HOLD_S - self._clock()), 1)

    def _look(self) -> None:
        mode, because = self._wanted()
        with self._lock:
            lighter = _SEVERITY.index(mode.name) < _SEVERITY.index(self._mode.name)
            if not lighter:
                self._seen_s = self._clock()
            if mode is self._mode:
                return
            if lighter and self._setting == "auto" and self._clock() - self._seen_s < HOLD_S:
                return
            self._set(mode, because)
        say = log.info if mode is NORMAL else log.warning
        say("Degrade mode is now %s, because %s. It changes: %s.", mode.name, because, mode.changes)

    def _last(self) -> Sequence[ServedRequest]:
        return [*self._rehearsals, *self.objectives.recent(LOOK_BACK)][-LOOK_BACK:]

    def _set(self, mode: Mode, because: str) -> None:
        self._mode, self._because = mode, because
        self._since_s = self._seen_s = self._clock()
        self._slots.restrict(ceil(self._slots.count * mode.share))

    def _wanted(self) -> tuple[Mode, str]:
        if self._setting == "off":
            return NORMAL, "KOKORO_DEGRADE is off"
        if self._setting != "auto":
            return MODES[self._setting], "KOKORO_DEGRADE says so"
        missed = {warned.objective: warned for warned in self.objectives.warnings()}
        last = self._last()
        for rule in RULES:
            if because := rule.because(last, missed):
                return rule.mode, because
        return NORMAL, "nothing is amiss"
