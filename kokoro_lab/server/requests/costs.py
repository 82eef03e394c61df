"""The measured cost of speech on this machine, by which one more listener is admitted or waits."""

from __future__ import annotations

import threading

from cachetools import LRUCache

START_COST = 0.1
"""The cost that is assumed before anything was spoken: seconds of computing for a second of speech."""
FORGOTTEN = 0.9
"""The factor by which earlier sums shrink when a stream is added."""


class MeasuredCosts:
    """Seconds of computing for a second of speech by voice, measured on the last streams. Thread-safe."""

    def __init__(self) -> None:
        self._sums: LRUCache[str, tuple[float, float]] = LRUCache(64)
        self._lock = threading.Lock()

    def note(self, voice: str, compute_s: float, audio_s: float) -> None:
        """Add a stream that was spoken; longer ones weigh more."""
        with self._lock:
            for name in (voice, ""):
                before = self._sums.get(name, (0.0, 0.0))
                self._sums[name] = FORGOTTEN * before[0] + compute_s, FORGOTTEN * before[1] + audio_s

    def of(self, voice: str) -> float:
        """If `voice` has spoken before: its cost; else the cost of all voices together."""
        with self._lock:
            compute_s, audio_s = self._sums.get(voice) or self._sums.get("") or (START_COST, 1.0)
            return compute_s / max(audio_s, 1e-9)

    def figures(self) -> dict[str, float]:
        """The cost of each voice; under the empty name, that of all voices together."""
        with self._lock:
            names = list(self._sums)
        return {name: round(self.of(name), 4) for name in names}
