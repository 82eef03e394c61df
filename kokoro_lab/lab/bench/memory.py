"""Samples the memory of a process while it runs, and tests whether it grows."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

import pandas as pd
import psutil
from scipy.stats import linregress

INTERVAL_S = 0.05
"""Seconds between two readings of memory, unless another interval is asked for. One reading takes some 50
µs."""
SETTLE_S = 300.0
"""Seconds at the start of a run, in which caches fill and pools grow: "the first minutes". In a short run
they are its first quarter."""
END_SHARE = 0.1
"""The first and the last part of the time after the first minutes are compared. Each part is this share of
that time."""
FEWEST = 4
"""The fewest readings after the first minutes that can show growth."""
MB = 2**20

Reading = TypeVar("Reading")


@contextmanager
def watched(read: Callable[[float], Reading], interval_s: float) -> Iterator[list[Reading]]:
    """Read something of a process every `interval_s` while the `with` block runs, and once at either end.

    A peak between two readings is missed; a shorter interval misses less of it, and takes more time from
    what is being measured.

    Parameters
    ----------
    read : callable
        Called with the seconds since the `with` block began.
    """
    started_s = time.monotonic()
    found = [read(0.0)]
    over = threading.Event()

    def look() -> None:
        with suppress(psutil.NoSuchProcess):  # the caller reports better that the process has gone
            found.append(read(time.monotonic() - started_s))

    def watch() -> None:
        while not over.wait(interval_s):
            look()

    thread = threading.Thread(target=watch, name="memory-sampler", daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()
        look()


def resident_mb(process: psutil.Process) -> float:
    """Resident memory of a process and its children together, in MiB.

    A server's model is in its worker, a child. Pages that several processes share are counted once for each,
    which changes the sum and not its growth.
    """
    total: int = process.memory_info().rss
    for child in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # the process ended after it was listed
            total += child.memory_info().rss
    return total / MB


def sampled_memory(
    process: psutil.Process, interval_s: float = INTERVAL_S
) -> AbstractContextManager[list[float]]:
    """Read the memory of `process` every `interval_s` while the `with` block runs, in MiB."""
    return watched(lambda _: resident_mb(process), interval_s)


def memory_figures(readings_mb: Sequence[float]) -> dict[str, float]:
    """The figures of a trial's memory readings. Growth is memory that was not freed."""
    start_mb, end_mb = readings_mb[0], readings_mb[-1]
    return {
        "rss_start_mb": start_mb,
        "rss_peak_mb": max(readings_mb),
        "rss_end_mb": end_mb,
        "rss_growth_mb": end_mb - start_mb,
    }


@dataclass(frozen=True, slots=True)
class Growth:
    """How much more of each resource is held at the end of a run than after its first minutes.

    Parameters
    ----------
    rss_mb : float
        Median over the last part of this time (see `END_SHARE`), less the median over the first part.
    descriptors, threads : float
        The least number in the last part less the least in the first part: the least is what is held between
        two streams.
    rss_mb_an_hour : float
        Slope of a line through all readings after the first minutes.
    """

    rss_mb: float
    descriptors: float
    threads: float
    rss_mb_an_hour: float


def held_by(process: psutil.Process, at_s: float) -> dict[str, float]:
    """What a process and its children hold together now: at_s as given, rss_mb, descriptors, threads.

    Resident memory that several of them share is counted once for each, which changes the sum and not its
    growth.
    """
    held = {"at_s": at_s, "rss_mb": 0.0, "descriptors": 0, "threads": 0}
    for one in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # the process ended after it was listed
            with one.oneshot():
                found = one.memory_info().rss / MB, one.num_fds(), one.num_threads()
            for name, more in zip(("rss_mb", "descriptors", "threads"), found, strict=True):
                held[name] += more
    return held


def growth_of(found: pd.DataFrame) -> Growth:
    """Compare both ends of a run without its first minutes; not a number if the run is too short.

    `found` has a row for each call of `held_by`.
    """
    settled = found[found.at_s >= min(SETTLE_S, found.at_s.max() / 4)] if len(found) else found
    if len(settled) < FEWEST:
        return Growth(math.nan, math.nan, math.nan, math.nan)
    count = max(2, round(END_SHARE * len(settled)))
    first, last = settled[:count], settled[-count:]
    return Growth(
        float(last.rss_mb.median() - first.rss_mb.median()),
        float(last.descriptors.min() - first.descriptors.min()),
        float(last.threads.min() - first.threads.min()),
        3600 * float(linregress(settled.at_s, settled.rss_mb).slope),
    )
