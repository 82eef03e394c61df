"""Resident memory while a text is spoken, read by a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psutil

INTERVAL_S = 0.05
"""How often memory is read, unless another interval is asked for. One reading takes some 50 µs."""

MB = 2**20


@dataclass(slots=True)
class MemoryTrace:
    """What the readings of one trial came to, in MiB. Complete when the trial is over.

    A peak between two readings is missed; a shorter interval misses less of it, and takes more time from
    what is being measured.
    """

    start_mb: float
    peak_mb: float
    end_mb: float
    readings: int = 1

    @property
    def growth_mb(self) -> float:
        """What was not given back: end minus start."""
        return self.end_mb - self.start_mb

    def figures(self) -> dict[str, float]:
        """By their names in a `Trial`."""
        return {
            "rss_start_mb": self.start_mb,
            "rss_peak_mb": self.peak_mb,
            "rss_end_mb": self.end_mb,
            "rss_growth_mb": self.growth_mb,
        }

    def _read(self, process: psutil.Process) -> None:
        self.end_mb = resident_mb(process)
        self.peak_mb = max(self.peak_mb, self.end_mb)
        self.readings += 1


def resident_mb(process: psutil.Process) -> float:
    """Resident memory of a process and its children together, in MiB.

    A server's model is in its worker, a child. Pages that they share are counted twice, which changes
    the level and not the growth.
    """
    total: int = process.memory_info().rss
    for child in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it ended since it was listed
            total += child.memory_info().rss
    return total / MB


@contextmanager
def sampled_memory(process: psutil.Process, interval_s: float = INTERVAL_S) -> Iterator[MemoryTrace]:
    """Read the memory of `process` every `interval_s` while the block runs."""
    start_mb = resident_mb(process)
    trace = MemoryTrace(start_mb, start_mb, start_mb)
    over = threading.Event()

    def sample() -> None:
        with suppress(psutil.NoSuchProcess):  # the trial will say so better
            while not over.wait(interval_s):
                trace._read(process)

    thread = threading.Thread(target=sample, name="memory-sampler", daemon=True)
    thread.start()
    try:
        yield trace
    finally:
        over.set()
        thread.join()
    trace._read(process)
