"""Decides when a fault strikes: counts windows, sentences and chunks, and keeps a journal."""

from __future__ import annotations

import errno
import logging
import os
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kokoro_lab.datatypes import Fallback, WordTiming
from kokoro_lab.lab.faults.scenario import (
    AllocationFails,
    AnyFault,
    Ballast,
    Bursts,
    ChunksLost,
    DiskRefuses,
    G2PStalls,
    Holds,
    Losses,
    ProviderLost,
    Scenario,
)

log = logging.getLogger(__name__)

MOST = 1_000
"""The most entries of the journal; further strikes are only counted."""
_ERRORS = {"full": errno.ENOSPC, "unwritable": errno.EROFS}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_NO_FILES = ("/dev/", "/proc/")
"""Folders whose files are not on a disk: writing to them is never refused."""


class Disk:
    """A simulated full disk. Between `refuse` and `allow`, this process can open no file for writing and make
    no folder.

    It works by an audit hook of the interpreter (PEP 578), so that no other code of ours has to know of the
    simulation. Such a hook stays until the process ends, so only one is made, at the first refusal. Files
    that are open already can still be written, and libraries not written in Python are not affected.
    """

    def __init__(self) -> None:
        self._refused: dict[int, str] = {}
        self._hooked = False
        self._lock = threading.Lock()

    def refuse(self, fault: DiskRefuses) -> None:
        """Refuse writing from now on, with the error of `fault`."""
        with self._lock:
            if not self._hooked:
                sys.addaudithook(self._hear)
                self._hooked = True
            self._refused[id(fault)] = fault.because

    def allow(self, fault: DiskRefuses) -> None:
        """Stop refusing."""
        self._refused.pop(id(fault), None)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        because = next(iter(tuple(self._refused.values())), None)
        if because is None or event not in ("open", "os.mkdir"):
            return
        path = args[0]
        if isinstance(path, int) or os.fsdecode(path).startswith(_NO_FILES):
            return
        if event == "open" and not (args[2] or 0) & _WRITING:
            return
        number = _ERRORS[because]
        raise OSError(number, os.strerror(number), os.fsdecode(path))


DISK = Disk()
"""The only simulated disk of the process, since an audit hook cannot be removed."""


@dataclass(frozen=True, slots=True)
class Strike:
    """One fault that struck: its kind, and the number of the window, sentence or chunk (in the proxy, of the
    byte) at which it struck."""

    kind: str
    at: int


@dataclass(frozen=True, slots=True)
class WholeStream:
    """A stream that came to its end: where its words are in the text, and its length."""

    words: tuple[tuple[int, int], ...]  # in the order in which they were spoken
    samples: int


class Injector:
    """Injects the faults of one scenario into the streams of one engine. Thread-safe.

    From `arm` on, it counts windows, sentences and chunks over all streams. No fault strikes outside of a
    stream, such as in a warm-up.

    Parameters
    ----------
    scenario : Scenario, optional
        None injects nothing until `arm`.

    Attributes
    ----------
    lost : list of Fallback
        Providers that the injector has made fail, as fallbacks of a `Placement`.
    """

    def __init__(self, scenario: Scenario | None = None) -> None:
        self._lock = threading.Lock()
        self._released = threading.Event()
        self._refusing: tuple[DiskRefuses, ...] = ()
        self._live = 0
        self.lost: list[Fallback] = []
        self.arm(scenario)

    def arm(self, scenario: Scenario | None) -> None:
        """Inject the faults of `scenario` (or none) from now on, and count from 0 again."""
        self.disarm()
        seed = 0 if scenario is None else scenario.seed
        faults = () if scenario is None else scenario.of_seam("provider", "g2p", "queue", "memory", "disk")
        with self._lock:
            self.scenario = scenario
            self._released = threading.Event()
            self._windows = self._sentences = self._chunks = 0
            self._faults: tuple[AnyFault, ...] = faults
            self._losses = [Losses(f, seed) for f in faults if isinstance(f, ChunksLost)]
            self._holds = [Holds(f, seed) for f in faults if isinstance(f, Bursts)]
            self._struck: list[Strike] = []
            self._spoken: list[WholeStream] = []
        if scenario is not None:
            log.warning("Faults are put in on purpose: %s. %s.", scenario.name, scenario.title)

    def disarm(self) -> None:
        """End all faults: stalled threads go on, memory is freed, the disk is writable."""
        self._released.set()
        with self._lock:  # else a stream that begins now would make the disk refuse for good
            for fault in self._refusing:
                DISK.allow(fault)
            self._refusing = ()
            self.scenario = None
            self._faults, self._losses, self._holds = (), [], []
            self._ballast: list[bytearray] = []

    # ------------------------------------------------------------------------------ seams

    def enter(self) -> None:
        """Record that a stream begins. With the first one, faults of the whole process (memory, disk)
        begin."""
        with self._lock:
            for fault in self._faults:
                if isinstance(fault, Ballast) and not self._ballast:
                    # Written to, so that the system gives each page
                    self._ballast.append(bytearray(b"\x01") * (fault.size_mb << 20))
                    self._tell(fault.kind, fault.size_mb)
                if isinstance(fault, DiskRefuses) and not self._refusing:
                    DISK.refuse(fault)
                    self._refusing = (fault,)
                    self._tell(fault.kind, 0)
            self._live += 1  # last: if memory does not suffice for the ballast, no stream has begun

    def leave(self) -> None:
        """Record that a stream is over."""
        with self._lock:
            self._live -= 1

    def spoke(self, timings: Sequence[WordTiming], samples: int) -> None:
        """Keep the words of a stream that came to its end, and its number of samples."""
        words = tuple((timing.start, timing.end) for timing in timings)
        with self._lock:
            if len(self._spoken) < MOST:
                self._spoken.append(WholeStream(words, samples))

    def at_window(self) -> bool:
        """Called before the vocoder decodes a window: returns whether its provider is lost now.

        Raises
        ------
        OutOfMemory
            The fault is lack of memory: ONNX Runtime's own error.
        """
        with self._lock:
            if not self._live:
                return False
            window, self._windows = self._windows, self._windows + 1
            due = [
                fault.kind
                for fault in self._faults
                if isinstance(fault, ProviderLost | AllocationFails) and fault.at_window == window
            ]
            for kind in due:
                self._tell(kind, window)
        if "allocation_fails" in due:
            from kokoro_lab.sessions.arenas import run_out_of_memory  # loads ONNX Runtime: not before a fork

            run_out_of_memory()
        return bool(due)

    def before_sentence(self) -> None:
        """Called before a G2P reads a sentence. If a fault says so, the calling thread waits here for the
        fault's time, or until the faults are removed."""
        with self._lock:
            if not self._live:
                return
            sentence, self._sentences = self._sentences, self._sentences + 1
            stalls = [f for f in self._faults if isinstance(f, G2PStalls) and f.at_sentence == sentence]
            for fault in stalls:
                self._tell(fault.kind, sentence)
            released = self._released
        for fault in stalls:
            released.wait(fault.stall_s)

    def before_chunk(self) -> bool:
        """Called when a chunk has been made: delays it if a fault says so, and returns whether to keep it."""
        with self._lock:
            chunk, self._chunks = self._chunks, self._chunks + 1
            held_s = 0.0
            for holds in self._holds:
                if due_s := holds.next_s(time.monotonic()):
                    held_s += due_s
                    self._tell("bursts", chunk)
            lost = [losses.next() for losses in self._losses]
            if any(lost):
                self._tell("chunks_lost", chunk)
            released = self._released
        if held_s:
            released.wait(held_s)
        return not any(lost)

    # ------------------------------------------------------------------------------ journal

    @property
    def struck(self) -> list[Strike]:
        """The faults that struck since the injector was armed."""
        with self._lock:
            return list(self._struck)

    @property
    def spoken(self) -> list[WholeStream]:
        """The streams that came to their end since the injector was armed."""
        with self._lock:
            return list(self._spoken)

    def figures(self) -> dict[str, Any]:
        """The entries of `/status` about faults."""
        scenario = self.scenario
        return {"scenario": scenario and scenario.name, "struck": len(self.struck)}

    def journal(self) -> dict[str, Any]:
        """The journal as plain data."""
        return {
            **self.figures(),
            "strikes": [asdict(one) for one in self.struck],
            "spoken": [asdict(one) for one in self.spoken],
        }

    def _tell(self, kind: str, at: int) -> None:
        if len(self._struck) < MOST:
            self._struck.append(Strike(kind, at))
            log.warning("Fault put in on purpose: %s, at %d", kind, at)
