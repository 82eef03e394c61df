"""What this process has spent: processor time, and time in the garbage collector."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """Seconds since the process began (`cpu_s`, of all threads) and since collections are timed (`gc_s`)."""

    cpu_s: float
    gc_s: float

    def since(self, earlier: ProcessUsage) -> ProcessUsage:
        """What was spent between the two."""
        return ProcessUsage(self.cpu_s - earlier.cpu_s, self.gc_s - earlier.gc_s)


class _Collections:
    """Times every garbage collection. While one runs, no other Python code of the process does."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._started_s = 0.0
        gc.callbacks.append(self._on)

    def _on(self, phase: Literal["start", "stop"], info: dict[str, int]) -> None:
        if phase == "start":
            self._started_s = time.perf_counter()
        else:
            self.seconds += time.perf_counter() - self._started_s


_collections: _Collections | None = None


def usage() -> ProcessUsage:
    """The state of now. Collections are timed from the first call on."""
    global _collections
    if _collections is None:
        _collections = _Collections()
    return ProcessUsage(time.process_time(), _collections.seconds)
