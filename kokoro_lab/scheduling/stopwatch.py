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
        with self._counted(stage, 1), heard(stage):
            yield

    def waiting(self, stage: str) -> AbstractContextManager[None]:
        """In the midst of `stage`, which waits for somebody meanwhile and computes nothing."""
        return self._counted(stage, -1)

    @contextmanager
    def _counted(self, stage: str, sign: int) -> Iterator[None]:
        """One stage more at work, or one less, whose seconds are added, or taken away."""
        started_s = self._running_changes(sign)
        try:
            yield
        finally:
            ended_s = self._running_changes(-sign)
            with self._lock:
                self.stages_s[stage] = self.stages_s.get(stage, 0.0) + sign * (ended_s - started_s)

    def _running_changes(self, by: int) -> float:
        """Count the seconds since the last change, if any stage was at work, and say when it is now."""
        with self._lock:
            now_s = time.perf_counter()
            if self._running:
                self.busy_s += now_s - self._since_s
            self._since_s = now_s
            self._running += by
        return now_s
