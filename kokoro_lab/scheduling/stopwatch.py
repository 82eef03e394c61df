"""Measures how long each stage of an utterance computes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

Listener = Callable[[str], AbstractContextManager[None]]
"""A context for a stage's name, entered when the stage begins and left when it ends."""

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Within this block, `listener` is called for every stage that this thread enters and leaves."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def heard(stage: str) -> AbstractContextManager[None]:
    """A context around the work of `stage`, reported to this thread's listener."""
    listener = _listener.get()
    return nullcontext() if listener is None else listener(stage)


class Stopwatch:
    """Seconds spent in each stage, and in any of them. Thread-safe: stages may overlap.

    The time between two chunks, in which the listener plays, counts for no stage.

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
        """A pause within `stage`: it waits for somebody and computes nothing."""
        return self._counted(stage, -1)

    def stood_still(self, stage: str, seconds: float) -> None:
        """Take `seconds` from a stage that is over: it was held, and computed nothing meanwhile."""
        with self._lock:
            self.stages_s[stage] = self.stages_s.get(stage, 0.0) - seconds
            self.busy_s -= seconds

    @contextmanager
    def _counted(self, stage: str, sign: int) -> Iterator[None]:
        """Count one running stage more or less, and correct its seconds."""
        started_s = self._running_changes(sign)
        try:
            yield
        finally:
            ended_s = self._running_changes(-sign)
            with self._lock:
                self.stages_s[stage] = self.stages_s.get(stage, 0.0) + sign * (ended_s - started_s)

    def _running_changes(self, by: int) -> float:
        """Add the seconds since the last change if any stage was at work, and return the present time."""
        with self._lock:
            now_s = time.perf_counter()
            if self._running:
                self.busy_s += now_s - self._since_s
            self._since_s = now_s
            self._running += by
        return now_s
