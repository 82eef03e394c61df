"""What the server does when it cannot keep up, and how it finds out: see `degrade_modes` for the table."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from math import ceil

from kokoro_lab.config import Settings
from kokoro_lab.playback.buffering import BufferProfile, buffer_profile
from kokoro_lab.server.degrade_modes import (
    HOLD_S,
    LOOK_BACK,
    MODES,
    NORMAL,
    Mode,
    RecentService,
    table,
    wanted,
)
from kokoro_lab.server.objectives import ObjectiveWatch
from kokoro_lab.server.slots import Slots

log = logging.getLogger(__name__)

SPARE_S = 0.05
PRE_BUFFER_MOST_S = 1.0
_SEVERITY = tuple(MODES)


class Degrader:
    """Chooses the mode from what the last listeners noticed, or keeps to the one that is set. Thread-safe.

    Parameters
    ----------
    settings : Settings
    slots : Slots
        Restricted by the mode.
    objectives : ObjectiveWatch
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
        self._since_s = self._seen_s = clock()
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
        held_s = min(PRE_BUFFER_MOST_S, max((n + SPARE_S for n in needed_s), default=0.0))
        return BufferProfile(mode.name, profile.chunk_s, held_s)

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
            "lighter_after_s": self._lighter_after_s(),
            "setting": self._setting,
            "chunk_ms": round(profile.chunk_s * 1000),
            "pre_buffer_ms": round(profile.pre_buffer_s * 1000),
            "admitted": self._slots.limit,
            "table": table(),
        }

    def _lighter_after_s(self) -> float | None:
        """How long the mode is kept at least; None where it does not go by itself."""
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
        return wanted(RecentService(self.objectives.recent(LOOK_BACK), missed))
