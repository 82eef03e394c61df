"""Calls a G2P with a deadline: if it raises an error or stalls, the next level reads at once.

Each call has a thread of its own, so that a text that is slow to read delays no other. If the call raises, or
has not answered in time, the next level reads the sentence at once, and a fallback is recorded. A thread
cannot be stopped: a late one ends when its call returns.

The reading of a sentence must not depend on what else the machine does. So only the thread's own CPU time
counts, not its waits for a core, for the interpreter, for a page from the disk, or for a lock that another
call holds. A thread that waits for anything else counts as stalled. A stalled G2P may hold a lock for ever: a
fresh one replaces it, and loads while the next level reads.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from kokoro_lab.datatypes import Fallback, Word
from kokoro_lab.g2p.protocol import OnFallback, Readings, SentenceG2P
from kokoro_lab.g2p.shared_lock import waits_for_lock
from kokoro_lab.text.aligned import AlignedText

log = logging.getLogger(__name__)

DEADLINE_S = 0.050
"""Time limit of a sentence of up to 100 characters: ten times the time that 100 characters take."""
DEADLINE_PER_CHARACTER_S = 0.0005
"""Time limit for each character of a longer sentence."""
SLICE_S = 0.005
"""How often an unfinished thread is checked."""
MOST_S = 2 * SLICE_S
"""Between two checks, at most this many seconds of a thread's CPU time count. The interpreter switches
threads every 5 ms. If a thread computed for longer, it did not let the interpreter switch, so no other thread
could have read instead."""
PATIENCE_S = 2.0
"""How long a stalled thread may take to return before its G2P is replaced."""
LONGEST_S = 30.0
"""The longest wait for a thread that is ready to compute and gets no CPU time. A request that has no sound
yet is given up before that."""
MAX_STALLED = 3
"""While this number of threads is stalled, the next level reads all sentences."""
MAX_STALLED_IN_ONE = 2
"""If this many of the stalled threads are in the same G2P, the next level reads. One is not enough, since a
single stall may be chance."""
MAX_SLOW = 2
"""How many threads may still be computing after their callers have given them up. If a call gives up one
more, it waits until there are fewer of them, so that a text of many slow sentences does not occupy more and
more cores."""


class SentenceReading(NamedTuple):
    """The words of a sentence. `lasting` is False if another call might read the sentence differently, so
    that it must not be cached."""

    words: list[Word]
    fallbacks: list[Fallback]
    lasting: bool


@dataclass(slots=True, eq=False)
class _Job:
    g2p: SentenceG2P
    sentence: AlignedText
    given: Readings
    done: threading.Event = field(default_factory=threading.Event)
    words: list[Word] = field(default_factory=list)
    fallbacks: list[Fallback] = field(default_factory=list)
    error: Exception | None = None


Answer = Literal["in time", "slow", "stalled"]


class _Worker:
    """One thread, which reads one sentence at a time."""

    def __init__(self) -> None:
        self.jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self.g2p: SentenceG2P | None = None
        """The G2P that the thread was running when it was given up; None before that."""
        self.late_s = 0.0
        """When the caller stopped waiting for the thread, by `time.perf_counter`."""
        self._thread = threading.Thread(target=_work, args=(self.jobs,), name="g2p", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def cpu_s(self) -> float | None:
        """The thread's CPU time in seconds, where the system tells it (not on macOS)."""
        clock_of = getattr(time, "pthread_getcpuclockid", None)
        ident = self._thread.ident
        return time.clock_gettime(clock_of(ident)) if clock_of and ident else None

    def wants_to_run(self) -> bool:
        """Whether the thread waits for something that is no stall: a lock that another call holds or, on
        Linux, a core or a page of its code or data from the disk. A thread that waits for the interpreter
        asks every 5 ms whether it is its turn, and so computes a little."""
        if waits_for_lock(self._thread.ident):
            return True
        try:
            stat = Path(f"/proc/self/task/{self._thread.native_id}/stat").read_text("ascii", "replace")
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] in "RD"

    def answer(self, job: _Job, limit_s: float) -> Answer:
        """Run `job` in the thread, and wait for it until it has computed for `limit_s` or stalled for
        `DEADLINE_S`."""
        last_s, started = self.cpu_s(), time.perf_counter()
        self.jobs.put(job)
        tells = last_s is not None
        computed_s = idle_s = 0.0
        while not job.done.wait(SLICE_S):
            now_s = self.cpu_s()
            if now_s is None or last_s is None or now_s == last_s:
                idle_s += 0.0 if self.wants_to_run() else SLICE_S
            else:
                # A stop of all threads, such as a garbage collection, counts as one look
                computed_s += min(now_s - last_s, MOST_S)
                idle_s = 0.0
            last_s = now_s
            late = idle_s >= (DEADLINE_S if tells else limit_s)
            if late or computed_s >= limit_s or time.perf_counter() - started >= LONGEST_S:
                if job.done.is_set():
                    break
                return "stalled" if late and tells else "slow"
        return "in time"


def _work(jobs: queue.SimpleQueue[_Job | None]) -> None:
    while (job := jobs.get()) is not None:
        try:
            job.words = job.g2p(job.sentence, job.fallbacks.append, job.given)
        except Exception as error:
            job.error = error
        job.done.set()
        del job  # else the G2P would live as long as this thread


class GuardedG2P:
    """The G2P that `load` returns, with a deadline; if it fails, `below` reads. Thread-safe: any number of
    sentences at a time.

    Parameters
    ----------
    load : callable
        Returns a G2P that is ready to answer. Called at once, and again to replace a G2P that stalls.
    below : callable
        The next level: a G2P.
    name, below_name : str
        The names of both readers in reports.

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
        self._lock = threading.Lock()
        self._fewer = threading.Condition(self._lock)
        self._free: list[_Worker] = []
        self._slow: list[_Worker] = []
        self._stalled: list[_Worker] = []
        self._loading: threading.Thread | None = None
        # When this object is deleted, its idle threads end too; busy ones are ended by their callers
        weakref.finalize(self, _dismiss, self._free)

    def __call__(self, sentence: AlignedText, on_fallback: OnFallback, given: Readings = ()) -> list[Word]:
        read = self.read(sentence, given)
        for fallback in read.fallbacks:
            on_fallback(fallback)
        return read.words

    def read(self, sentence: AlignedText, given: Readings = ()) -> SentenceReading:
        """The words of `sentence`, read by the G2P or, if it fails, by the next level."""
        if not sentence.text.strip():  # all of it was left out
            return SentenceReading([], [], lasting=True)
        limit_s = max(DEADLINE_S, DEADLINE_PER_CHARACTER_S * len(sentence))
        taken = self._take()
        if taken is None:
            return self._read_below(sentence, given, "has stalled before")
        g2p, worker = taken
        job = _Job(g2p, sentence, given)
        answer = worker.answer(job, limit_s)
        if answer == "in time":
            with self._lock:
                self._free.append(worker)
        else:
            self._give_up(worker, g2p, answer)
            return self._read_below(sentence, given, f"did not answer within {limit_s * 1000:.0f} ms")
        if job.error is not None:
            return self._read_below(sentence, given, f"raised {type(job.error).__name__}")
        return SentenceReading(job.words, job.fallbacks, lasting=True)

    def _take(self) -> tuple[SentenceG2P, _Worker] | None:
        """The G2P and a thread that nobody else uses; None while the G2P stalls."""
        with self._lock:
            self._stalled = [worker for worker in self._stalled if worker.alive]
            here = [worker for worker in self._stalled if worker.g2p is self._g2p]
            if any(time.perf_counter() - worker.late_s >= PATIENCE_S for worker in here):
                self._g2p = None  # the stalled thread may hold its lock: a fresh one is made
            if self._g2p is None:
                self._replace()
                return None
            if len(self._stalled) >= MAX_STALLED or len(here) >= MAX_STALLED_IN_ONE:
                return None
            while self._free:
                worker = self._free.pop()
                if worker.alive:  # the thread does not survive a fork
                    return self._g2p, worker
            return self._g2p, _Worker()

    def _replace(self) -> None:
        """Load another G2P in a thread, unless that is under way."""
        if self._loading is not None and self._loading.is_alive():
            return
        load, me = self._load, weakref.ref(self)

        def replaced() -> None:
            try:
                g2p = load()
            except Exception:
                log.exception("a stalled G2P could not be replaced")
                return
            found = me()
            if found is not None:
                with found._lock:
                    found._g2p = g2p

        self._loading = threading.Thread(target=replaced, name="g2p-loading", daemon=True)
        self._loading.start()

    def _give_up(self, worker: _Worker, g2p: SentenceG2P, answer: Answer) -> None:
        """Stop waiting for `worker`; its thread ends when its call returns."""
        worker.jobs.put(None)
        worker.g2p, worker.late_s = g2p, time.perf_counter()
        if answer == "stalled":
            with self._lock:
                self._stalled.append(worker)
            return
        until_s = time.perf_counter() + LONGEST_S
        with self._lock:
            while self._still_slow() >= MAX_SLOW and time.perf_counter() < until_s:
                self._fewer.wait(SLICE_S)
            self._slow.append(worker)

    def _still_slow(self) -> int:
        self._slow = [worker for worker in self._slow if worker.alive]
        return len(self._slow)

    def _read_below(self, sentence: AlignedText, given: Readings, what: str) -> SentenceReading:
        start, end = sentence.span(0, len(sentence))
        name, below_name = self._names
        log.warning("%s %s on characters %d:%d", name, what, start, end)
        fallbacks = [Fallback("g2p", f"{name} {what}: read by {below_name}", start, end)]
        return SentenceReading(self._below(sentence, fallbacks.append, given), fallbacks, lasting=False)


def _dismiss(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.jobs.put(None)
