"""A G2P that may raise or stall without holding up who listens.

It runs in a thread of its own. If it raises, or has not answered in time, the sentence is read by the
next level at once, and said to be. A thread that stalls cannot be ended: if it does not come back by
itself, it is replaced by a fresh one, which loads while the next level reads.

A machine may be so busy that a thread is not given the time to answer, and a collection of garbage may stop
the whole interpreter for a quarter of a second. That is no stall: a reading that depended on the load would
be another one each time. So a thread is only given up once it has computed for longer than it may, or waits
for something that does not come, and only while who waits for it could run too.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kokoro_lab.datatypes import Fallback, Word
from kokoro_lab.g2p.english import OnFallback
from kokoro_lab.g2p.given import Given
from kokoro_lab.g2p.protocol import SentenceG2P
from kokoro_lab.text.aligned import AlignedText

log = logging.getLogger(__name__)

DEADLINE_S = 0.050
"""Time for a sentence, ten times what one of 100 characters takes:"""
DEADLINE_PER_CHARACTER_S = 0.0005
"""what a longer one has, for each character."""
SLICE_S = 0.005
"""How often a thread is looked at that has not answered."""
MOST_S = 2 * SLICE_S
"""What a thread can have computed between two looks, as the interpreter changes threads every 5 ms. If it is
more, it held the interpreter, and nobody could have read in its place."""
PATIENCE_S = 2.0
"""The longest that is waited for a thread which would compute if the machine let it; and the time in which
one that was given up may come back before it is replaced."""
MAX_STALLED = 3
"""Threads that may be stuck at a time; then the next level reads until one comes back."""


class Read(NamedTuple):
    """What a sentence is read as. `lasting` is False if it would be read otherwise another time."""

    words: list[Word]
    fallbacks: list[Fallback]
    lasting: bool


@dataclass(slots=True, eq=False)
class _Job:
    sentence: AlignedText
    given: Sequence[Given]
    done: threading.Event = field(default_factory=threading.Event)
    words: list[Word] = field(default_factory=list)
    fallbacks: list[Fallback] = field(default_factory=list)
    error: Exception | None = None


class _Worker:
    """One thread with one G2P, loaded in it unless it is given."""

    def __init__(self, load: Callable[[], SentenceG2P], g2p: SentenceG2P | None = None) -> None:
        self.ready = threading.Event()
        self.jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        if g2p is not None:
            self.ready.set()
        self._thread = threading.Thread(
            target=_work, args=(self.jobs, self.ready, load, g2p), name="g2p", daemon=True
        )
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def cpu_s(self) -> float | None:
        """Seconds that it has computed, where the system tells (not on macOS)."""
        clock_of = getattr(time, "pthread_getcpuclockid", None)
        ident = self._thread.ident
        return time.clock_gettime(clock_of(ident)) if clock_of and ident else None

    def wants_to_run(self) -> bool:
        """Whether it waits for a core, or for a page of its own code or data from the disk, where the system
        tells (on Linux)."""
        try:
            stat = Path(f"/proc/self/task/{self._thread.native_id}/stat").read_text("ascii", "replace")
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] in "RD"

    def answers(self, done: threading.Event, limit_s: float) -> bool:
        """Wait for `done` until this has computed for `limit_s` or waited for `DEADLINE_S`."""
        last_s, started = self.cpu_s(), time.perf_counter()
        tells = last_s is not None
        computed_s = idle_s = 0.0
        while not done.wait(SLICE_S):
            now_s = self.cpu_s()
            if now_s is None or last_s is None or now_s == last_s:
                idle_s += 0.0 if self.wants_to_run() else SLICE_S
            else:
                # What stopped this thread as well, as a collection of garbage does, counts as one look
                computed_s += min(now_s - last_s, MOST_S)
                idle_s = 0.0
            last_s = now_s
            allowed_s = DEADLINE_S if tells else limit_s
            if max(computed_s - limit_s, idle_s - allowed_s, time.perf_counter() - started - PATIENCE_S) >= 0:
                return done.is_set()
        return True


def _work(
    jobs: queue.SimpleQueue[_Job | None],
    ready: threading.Event,
    load: Callable[[], SentenceG2P],
    g2p: SentenceG2P | None,
) -> None:
    if g2p is None:
        try:
            g2p = load()
        except Exception:
            log.exception("a stalled G2P could not be replaced")
            return
        ready.set()
    while (job := jobs.get()) is not None:
        try:
            job.words = g2p(job.sentence, job.fallbacks.append, job.given)
        except Exception as error:
            job.error = error
        job.done.set()


class GuardedG2P:
    """`load()`'s G2P with a deadline, over `below`. Thread-safe: one sentence at a time.

    Parameters
    ----------
    load : callable
        Makes the G2P, ready to answer at once. Called here, and again for each one that stalls.
    below : callable
        The next level: a G2P.
    name, below_name : str
        What they are called in what is reported.

    Raises
    ------
    LanguageError
        The G2P cannot be loaded.
    """

    def __init__(
        self, load: Callable[[], SentenceG2P], below: SentenceG2P, *, name: str, below_name: str
    ) -> None:
        self._load = load
        self._below = below
        self._names = name, below_name
        self._g2p: SentenceG2P | None = load()
        self._turn = threading.Lock()
        self._worker: _Worker | None = None
        self._late: tuple[_Job, float] | None = None
        self._stalled: list[_Worker] = []

    def __call__(
        self, sentence: AlignedText, on_fallback: OnFallback, given: Sequence[Given] = ()
    ) -> list[Word]:
        read = self.read(sentence, given)
        for fallback in read.fallbacks:
            on_fallback(fallback)
        return read.words

    def read(self, sentence: AlignedText, given: Sequence[Given] = ()) -> Read:
        """The words of `sentence`, whatever it takes."""
        job = _Job(sentence, given)
        limit_s = max(DEADLINE_S, DEADLINE_PER_CHARACTER_S * len(sentence))
        with self._turn:
            worker = self._ready_worker()
            if worker is None:
                return self._read_below(job, "has stalled before")
            worker.jobs.put(job)
            answered = worker.answers(job.done, limit_s)
            if not answered:
                self._late = job, time.perf_counter()
        if not answered:
            return self._read_below(job, f"did not answer within {limit_s * 1000:.0f} ms")
        if job.error is not None:
            return self._read_below(job, f"raised {type(job.error).__name__}")
        return Read(job.words, job.fallbacks, lasting=True)

    def _ready_worker(self) -> _Worker | None:
        if self._late is not None:
            job, since = self._late
            if not job.done.is_set() and time.perf_counter() - since < PATIENCE_S:
                return None
            self._late = None
            if not job.done.is_set() and self._worker is not None:
                self._abandon(self._worker)
        self._stalled = [worker for worker in self._stalled if worker.alive]
        if self._worker is not None and not self._worker.alive:
            self._worker = None  # lost in a fork, or could not load
        if self._worker is None and len(self._stalled) < MAX_STALLED:
            self._worker = _Worker(self._load, self._g2p)
            weakref.finalize(self, self._worker.jobs.put, None)  # with this, its thread ends too
        return self._worker if self._worker is not None and self._worker.ready.is_set() else None

    def _abandon(self, worker: _Worker) -> None:
        worker.jobs.put(None)  # should it ever come back, it ends
        self._stalled.append(worker)
        self._worker = self._g2p = None  # who is stuck may hold its lock: the next one is made afresh

    def _read_below(self, job: _Job, what: str) -> Read:
        sentence = job.sentence
        start, end = sentence.span(0, len(sentence))
        name, below_name = self._names
        log.warning("%s %s on characters %d:%d", name, what, start, end)
        fallbacks = [Fallback("g2p", f"{name} {what}: read by {below_name}", start, end)]
        return Read(self._below(sentence, fallbacks.append, job.given), fallbacks, lasting=False)
