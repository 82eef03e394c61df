"""Where an utterance's computing time goes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

Listener = Callable[[str], AbstractContextManager[None]]
"""Entered where a stage begins, and left where it ends; told which one."""

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Have `listener` hear of every stage that this thread is in meanwhile; it hears of no other thread's."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def heard(stage: str) -> AbstractContextManager[None]:
    """Around the work of `stage`, for whoever listens in this thread."""
    listener = _listener.get()
    return nullcontext() if listener is None else listener(stage)


class Stopwatch:
    """Seconds spent in each stage, and in any of them. Thread-safe: stages may overlap.

    Time between two chunks, which is the listener's, is in none.

    Attributes
    ----------
    stages_s : dict
        Seconds by stage; where two overlap, both count.
    busy_s : float
        Seconds in which at least one stage was at work.
    """

    def __init__(self) -> None:
        self.stages_s: dict[str, float] = {}
        self.busy_s = 0.0
        self._lock = threading.Lock()
        self._running = 0
        self._since_s = 0.0

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        with self._at_work(stage), heard(stage):
            yield

    @contextmanager
    def waiting(self, stage: str) -> Iterator[None]:
        """In the midst of `stage`, which waits for somebody meanwhile and computes nothing."""
        started_s = time.perf_counter()
        self._leave(started_s)
        try:
            yield
        finally:
            ended_s = time.perf_counter()
            self._enter(ended_s)
            with self._lock:
                self.stages_s[stage] = self.stages_s.get(stage, 0.0) - (ended_s - started_s)

    @contextmanager
    def _at_work(self, stage: str) -> Iterator[None]:
        started_s = time.perf_counter()
        self._enter(started_s)
        try:
            yield
        finally:
            ended_s = time.perf_counter()
            self._leave(ended_s)
            with self._lock:
                self.stages_s[stage] = self.stages_s.get(stage, 0.0) + ended_s - started_s

    def _enter(self, at_s: float) -> None:
        with self._lock:
            if not self._running:
                self._since_s = at_s
            self._running += 1

    def _leave(self, at_s: float) -> None:
        with self._lock:
            self._running -= 1
            if not self._running:
                self.busy_s += at_s - self._since_s
