"""Keeps resident memory under a limit without stopping a stream.

    resident memory           what is done
    from `CLEAN_SHARE`        clean-up: caches, garbage, arenas, freed memory; at most every `CLEAN_AGAIN_S`,
                              and more seldom while clean-ups free too little
    over the limit after that new speech is refused (503, Retry-After); speech under way continues to its end
    the same, nobody served   the worker process is replaced

The limit is never raised. If a warm worker does not fit into it, the server ends and says what it needs. A
language that would not fit is refused (507), with an error that says so. Whether it fits depends on the
languages loaded before, not on the memory in use at the moment, so that the same request gets the same answer
under any load.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import psutil

from kokoro_lab.errors import MemoryLimitError, SettingsError, Unavailable
from kokoro_lab.server.requests.slots import Admission, Slots

if TYPE_CHECKING:
    # For type checking alone: gunicorn's master process must not load ONNX Runtime before it forks
    from kokoro_lab.speech.engine import Engine

log = logging.getLogger(__name__)

MB = 2**20
SHARE = 0.75
"""The default limit as a share of all memory; the rest is for other programs."""
_CGROUPS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Files in which Linux states a container's memory limit, for the second and the first version of control
groups."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Constants of `malloc.h`."""
LARGE_BYTES = 256 * 2**10
MEMORY_SHORT = "memory_short"
CLEAN_SHARE = 0.85
"""The share of the limit from which on memory is cleaned up, early enough before requests are refused."""
ROOM_SHARE = 0.95
"""The share of the limit below which speech is accepted again. Nearer to the limit, one request would bring
the refusal back."""
ROOM_MB = 64.0
"""Memory that requests need besides a warm worker and its languages."""
LOOK_S = 1.0
CLEAN_AGAIN_S, CLEAN_SELDOM_S = 15.0, 480.0
"""Least and most seconds between two clean-ups. Since emptied caches cost time, the wait doubles after each
clean-up that does not bring memory under `CLEAN_SHARE`, up to `CLEAN_SELDOM_S`. While new requests are
refused, it stays at `CLEAN_AGAIN_S`."""
RETRY_AFTER_S = 5

State = Literal["off", "ok", "cleaning", "refusing"]


def resident_mb() -> float:
    """Resident memory of this process, in MiB."""
    return float(psutil.Process().memory_info().rss / MB)


def given_mb(cgroups: tuple[Path, ...] = _CGROUPS) -> float:
    """The memory in MiB that this process can have at most: that of the machine or, if its container has a
    lower limit, that limit."""
    found = [float(psutil.virtual_memory().total / MB)]
    for path in cgroups:
        try:
            found.append(int(path.read_text()) / MB)
        except (OSError, ValueError):  # another version of cgroups, or `max`: no limit
            continue
    return min(found)


def limit_of(asked_mb: int) -> float:
    """The limit in MiB: `asked_mb`, or, if `asked_mb` is 0, the share `SHARE` of the memory that `given_mb`
    returns."""
    return float(asked_mb) if asked_mb else round(SHARE * given_mb(), 1)


def give_back_freed() -> bool:
    """Have the C library return freed memory to the system; False if it cannot.

    glibc keeps freed memory in its lists (`malloc_trim`), macOS in its zones (`malloc_zone_pressure_relief`).
    This takes some milliseconds; other threads can allocate meanwhile.
    """
    library = _c_library()
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(ctypes.c_size_t(0))
        return True
    if hasattr(library, "malloc_zone_pressure_relief"):
        library.malloc_zone_pressure_relief(None, ctypes.c_size_t(0))
        return True
    return False


def give_large_blocks_back(library: Any = None) -> bool:
    """Have the C library take large blocks from the system one by one, and return each when it is freed.

    glibc serves blocks above a threshold by `mmap`, and raises that threshold to the size of whatever is
    freed (`mallopt(3)`, M_MMAP_THRESHOLD). Soon the arrays of segments, some megabytes each and always of
    another length, come from the heap, and leave gaps there that no later array fits: over 70 streams a
    server grew from 1.0 to 1.4 GB. This function fixes the threshold for the whole process, which must belong
    to the server alone. False if the C library has no threshold.

    Parameters
    ----------
    library : ctypes.CDLL, optional
        The C library, unless a test has another.
    """
    library = _c_library() if library is None else library
    if not hasattr(library, "mallopt"):  # macOS and musl return large blocks anyway
        return False
    return all(library.mallopt(option, LARGE_BYTES) == 1 for option in (M_MMAP_THRESHOLD, M_TRIM_THRESHOLD))


@cache
def _c_library() -> Any:
    return ctypes.CDLL(None)


@dataclass(eq=False)
class Watchdog:
    """Watches resident memory and acts as the table above says.

    Parameters
    ----------
    limit_mb : float
        Resident memory that the process may have, in MiB; 0 watches nothing.
    slots : Slots
        Show whether anybody is being served.
    admission : Admission
        Refuses or admits new speech.
    clean : mapping of str to callable
        Name → a function that frees something, in the order in which they are called.
    settle : callable
        Called after a clean-up if nobody is served: frees the memory that only the next inference gives back.
    replace : callable
        Replaces this worker by a new one.
    complete : callable
        Returns whether background loading is over. Before its end, no worker is replaced.
    unfit : callable
        Ends the server with an error, which says that the server does not fit into its limit, and how much
        memory it needs.
    read : callable
        Returns resident memory in MiB; a test passes its own function.
    clock : callable
        Returns the time in seconds; a test passes its own clock.

    Attributes
    ----------
    state : {"off", "ok", "cleaning", "refusing"}
        The state at the last check.
    """

    limit_mb: float
    slots: Slots
    admission: Admission
    clean: Mapping[str, Callable[[], object]]
    settle: Callable[[], object] = lambda: None
    replace: Callable[[], None] = lambda: None
    complete: Callable[[], bool] = lambda: True
    unfit: Callable[[SettingsError], None] = lambda error: None
    read: Callable[[], float] = resident_mb
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.state: State = "ok" if self.limit_mb > 0 else "off"
        self._taken_mb: float | None = None
        self._taking = threading.Lock()
        self._done: Counter[str] = Counter()
        self._cleanups = 0
        self._freed_mb = self._peak_mb = 0.0
        self._warm_mb: float | None = None
        self._cleaned_s: float | None = None
        self._again_s = CLEAN_AGAIN_S
        self._replaced = False

    def start(self, warm: Callable[[], bool]) -> None:
        """Check every `LOOK_S` in a thread of its own, once `warm` is true: loading has a peak of its own."""

        def watch() -> None:
            while not warm():
                time.sleep(LOOK_S)
            if not self.note_warm():
                return
            growing = True
            while not self._replaced:
                # Not while a stream runs: its memory is no part of a warm worker
                if growing and self.complete() and self.slots.idle():
                    growing = False
                    self._warm_mb = self.read()
                self.look()
                time.sleep(LOOK_S)

        if self.state != "off":
            threading.Thread(target=watch, name="memory", daemon=True).start()

    def note_warm(self) -> bool:
        """Check whether the warm worker fits into the limit; it will never need less memory than now."""
        self._warm_mb = self._peak_mb = self.read()
        with self._taking:
            self._taken_mb = self._warm_mb
        fits = self._warm_mb + ROOM_MB <= self.limit_mb
        if not fits:
            needed_mb = math.ceil(self._warm_mb + ROOM_MB)
            self.unfit(
                SettingsError(
                    f"The server does not fit into {self.limit_mb:.0f} MB: warm, it takes "
                    f"{self._warm_mb:.0f} MB, and requests need {ROOM_MB:.0f} more.",
                    field="KOKORO_MEMORY_LIMIT_MB",
                    value=round(self.limit_mb),
                    allowed=f"{needed_mb} or more with this variant and voice",
                    mend="Raise it, or serve on a machine with more memory.",
                )
            )
        return fits

    def make_room(self, language: str, needed_mb: float) -> None:
        """Check before a language is loaded that it fits into the limit, and count its memory.

        Raises
        ------
        MemoryLimitError
            With this language, the worker would need more memory than its limit.
        """
        with self._taking:
            if self.state == "off" or self._taken_mb is None:  # judged when the worker is warm
                return
            least_mb = math.ceil(self._taken_mb + needed_mb + ROOM_MB)
            if least_mb > self.limit_mb:
                raise MemoryLimitError(
                    f"The language {language} takes {needed_mb:.0f} MB, for which the memory limit of "
                    f"{self.limit_mb:.0f} MB has no room.",
                    field="language",
                    value=language,
                    allowed="a language that is loaded already",
                    mend=f"Set KOKORO_MEMORY_LIMIT_MB to {least_mb} or more.",
                )
            self._taken_mb += needed_mb

    def look(self) -> State:
        """Read the resident memory once, and act as the table says."""
        if self.state == "off":
            return self.state
        rss_mb = self.read()
        self._peak_mb = max(self._peak_mb, rss_mb)
        if rss_mb < CLEAN_SHARE * self.limit_mb:
            return self._becomes("ok", rss_mb)
        if self._may_clean(rss_mb):
            rss_mb = self._clean_up(rss_mb)
        bound_mb = self.limit_mb * (ROOM_SHARE if self.state == "refusing" else 1.0)
        if rss_mb <= bound_mb:
            return self._becomes("ok" if rss_mb < CLEAN_SHARE * self.limit_mb else "cleaning", rss_mb)
        self._becomes("refusing", rss_mb)
        # Asked after the refusal, so that no new request can come and be cut off
        if self.slots.idle() and self.complete() and not self._replaced:
            self._replaced = True
            log.error("Memory is at %.0f MB with nobody served: the worker is replaced.", rss_mb)
            self.replace()
        return self.state

    def figures(self) -> dict[str, Any]:
        """The figures of memory for `/status`."""
        return {
            "state": self.state,
            "limit_mb": round(self.limit_mb, 1),
            "warm_mb": None if self._warm_mb is None else round(self._warm_mb, 1),
            "peak_mb": round(self._peak_mb, 1),
            "cleanups": self._cleanups,
            "freed_mb": round(self._freed_mb, 1),
            "actions": {name: self._done[name] for name in self.clean},
        }

    def _may_clean(self, rss_mb: float) -> bool:
        now_s = self.clock()
        needed = rss_mb > self.limit_mb or self.state == "refusing"
        again_s = CLEAN_AGAIN_S if needed else self._again_s
        # Once more when the last listener has left, since their memory is free only now
        leaving = self.state == "refusing" and self.slots.idle()
        if not leaving and self._cleaned_s is not None and now_s - self._cleaned_s < again_s:
            return False
        self._cleaned_s = now_s
        return True

    def _clean_up(self, before_mb: float) -> float:
        """Free everything that can be freed; returns the resident memory then."""
        for name, action in self.clean.items():
            if self._tried(name, action):
                self._done[name] += 1
        if self.slots.idle():
            self._tried("settling", self.settle)
        after_mb = self.read()
        enough = after_mb < CLEAN_SHARE * self.limit_mb
        self._again_s = CLEAN_AGAIN_S if enough else min(2 * self._again_s, CLEAN_SELDOM_S)
        self._cleanups += 1
        self._freed_mb += max(0.0, before_mb - after_mb)
        log.info("Cleaned up at %.0f MB of %.0f: %.0f MB are left.", before_mb, self.limit_mb, after_mb)
        return after_mb

    @staticmethod
    def _tried(name: str, action: Callable[[], object]) -> bool:
        try:
            action()
        except Exception:  # if one fails, the others and the watch go on
            log.exception("Clean-up failed: %s.", name)
            return False
        return True

    def _becomes(self, state: State, rss_mb: float) -> State:
        before, self.state = self.state, state
        if state == "refusing" != before:
            self.admission.refuse(
                Unavailable(
                    "The server is short of memory; what is under way goes on.",
                    retry_after_s=RETRY_AFTER_S,
                    code=MEMORY_SHORT,
                    mend="Ask again in a few seconds.",
                )
            )
            log.error("Memory is at %.0f MB, over %.0f: nothing new is taken.", rss_mb, self.limit_mb)
        elif before == "refusing" != state:
            self.admission.admit(MEMORY_SHORT)
            log.warning("Memory is at %.0f MB of %.0f: speech is taken again.", rss_mb, self.limit_mb)
        return state


def given_back(engine: Engine) -> dict[str, Callable[[], object]]:
    """What a server with this `engine` can free, in the order in which it is tried."""
    return {
        "caches": engine.clear_caches,
        "garbage": gc.collect,
        "arenas": engine.shrink,
        "heap": give_back_freed,
    }


def settle(engine: Engine, voice: str) -> None:
    """Run each session once, so that its arena shrinks at the end of the run, and return that memory, too."""
    engine.warm(voice, text="Yes.")
    give_back_freed()
