"""What the server does when it cannot keep up, and how it finds out.

A mode changes how speech is cut into chunks, how much a player is advised to hold back, how many are
served at a time and who computes first. It never changes a sample: the same request sounds the same.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from kokoro_lab.buffering import BENCHMARK, SAFE, BufferProfile, buffer_profile
from kokoro_lab.config import Settings
from kokoro_lab.server.objectives import Objectives
from kokoro_lab.server.slots import Slots

log = logging.getLogger(__name__)

LOOK_BACK = 10
"""Requests in which trouble is looked for."""
TROUBLED = 2
"""So many of them, and it is no accident."""
HOLD_S = 60.0
"""A mode is kept at least so long before a lighter one: what it cures is otherwise back at once."""
SPARE_S = 0.05
PRE_BUFFER_MOST_S = 1.0


@dataclass(frozen=True, slots=True)
class Mode:
    """What one mode changes.

    Parameters
    ----------
    name, changes : str
        As `/status` shows them.
    profile : BufferProfile or None
        Instead of the one in the settings.
    share : float
        Of the syntheses at a time.
    reserve_s : float or None
        A stream with more speech in hand than this lets those go first that have not begun to sound.
    learns_pre_buffer : bool
        Whether players are advised to hold back what the last streams needed.
    """

    name: str
    changes: str
    profile: BufferProfile | None = None
    share: float = 1.0
    reserve_s: float | None = None
    learns_pre_buffer: bool = False


NORMAL = Mode("normal", "nothing")
REDUCE_TTFA = Mode(
    "reduce-ttfa",
    "chunks of 40 ms; streams with more than 1 s in hand let those go first that have not begun to sound",
    profile=BENCHMARK,
    reserve_s=1.0,
)
AVOID_UNDERRUN = Mode(
    "avoid-underrun",
    "chunks of 100 ms; players are advised to hold back what the last streams needed",
    profile=SAFE,
    learns_pre_buffer=True,
)
STABILITY_FIRST = Mode(
    "stability-first",
    "chunks of 100 ms, longer pre-buffer, half as many syntheses at a time; others wait their turn",
    profile=SAFE,
    share=0.5,
    learns_pre_buffer=True,
)
MODES = {mode.name: mode for mode in (NORMAL, REDUCE_TTFA, AVOID_UNDERRUN, STABILITY_FIRST)}
_SEVERITY = tuple(MODES)


class Degrader:
    """Chooses the mode from what the last listeners noticed, or keeps to the one that is set. Thread-safe.

    Parameters
    ----------
    settings : Settings
    slots : Slots
        Restricted by the mode.
    objectives : Objectives
        Where the last requests are looked up.
    clock : callable
        Seconds; a test gives its own.
    chunk_s : float, optional
        The engine's own length of a chunk, where no profile is named.
    """

    def __init__(
        self,
        settings: Settings,
        slots: Slots,
        objectives: Objectives,
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
        self._since_s = clock()
        self._look()

    @property
    def mode(self) -> Mode:
        """The one in force."""
        self._look()
        return self._mode

    def profile(self) -> BufferProfile:
        """How the next stream is cut, and what its player is advised to hold back."""
        mode = self.mode
        profile = mode.profile or self._profile
        if not mode.learns_pre_buffer:
            return profile
        needed_s = [s.needed_s for s in self.objectives.recent(LOOK_BACK) if s.needed_s is not None]
        held_s = min(PRE_BUFFER_MOST_S, max([profile.pre_buffer_s, *(n + SPARE_S for n in needed_s)]))
        return BufferProfile(mode.name, profile.chunk_s, ceil(round(held_s / profile.chunk_s, 6)))

    def reset(self) -> None:
        """Back to where the server started."""
        self.objectives.forget()
        with self._lock:
            self._set(NORMAL, "nothing is amiss")
        self._look()

    def figures(self) -> dict[str, object]:
        """For `/status`."""
        profile, mode = self.profile(), self._mode
        return {
            "mode": mode.name,
            "because": self._because,
            "changes": mode.changes,
            "since_s": round(self._clock() - self._since_s, 1),
            "setting": self._setting,
            "chunk_ms": round(profile.chunk_s * 1000),
            "pre_buffer_ms": round(profile.pre_buffer_s * 1000),
            "admitted": self._slots.limit,
        }

    def _look(self) -> None:
        wanted, because = self._wanted()
        with self._lock:
            if wanted is self._mode:
                return
            lighter = _SEVERITY.index(wanted.name) < _SEVERITY.index(self._mode.name)
            if lighter and self._setting == "auto" and self._clock() - self._since_s < HOLD_S:
                return
            self._set(wanted, because)
        say = log.info if wanted is NORMAL else log.warning
        say("Degrade mode is now %s, because %s. It changes: %s.", wanted.name, because, wanted.changes)

    def _set(self, mode: Mode, because: str) -> None:
        self._mode, self._because, self._since_s = mode, because, self._clock()
        self._slots.restrict(ceil(self._slots.count * mode.share))

    def _wanted(self) -> tuple[Mode, str]:
        if self._setting == "off":
            return NORMAL, "KOKORO_DEGRADE is off"
        if self._setting != "auto":
            return MODES[self._setting], "KOKORO_DEGRADE says so"
        last = self.objectives.recent(LOOK_BACK)
        failed = sum(served.outcome in ("failed", "expired") for served in last)
        missed = {warned.objective: warned for warned in self.objectives.warnings()}
        if failed >= TROUBLED:
            return STABILITY_FIRST, f"{failed} of the last {len(last)} requests failed or took too long"
        if (slow := missed.get("rtf p95")) is not None:
            return STABILITY_FIRST, f"rtf p95 is {slow.value:.2f}, above {slow.limit:g}"
        dry = sum(served.underruns > 0 for served in last)
        if dry >= TROUBLED:
            return AVOID_UNDERRUN, f"{dry} of the last {len(last)} requests had chunks that came too late"
        if (late := missed.get("ttfa_s p95")) is not None:
            return REDUCE_TTFA, f"ttfa_s p95 is {late.value:.2f} s, above {late.limit:g} s"
        return NORMAL, "nothing is amiss"
