"""Runs of a model that another thread can break off: what nobody waits for any more takes no more time.

A stream prepares its next segment beside the decoding of this one. When its listener leaves, a tenth of a
second of work or more may be under way for nobody, just when the next listener asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Protocol


class RunOptions(Protocol):
    """What of ONNX Runtime's options of a run is needed here: it looks at them between any two operators."""

    terminate: bool


class Interruption:
    """Breaks off the runs that threads make `within` it, once and for all.

    Attributes
    ----------
    over : bool
        Whether `end` was called: a run that failed since then was broken off.
    """

    def __init__(self) -> None:
        self.over = False
        self._running: list[RunOptions] = []
        self._lock = Lock()

    def end(self) -> None:
        """Break off what runs now, and whatever is begun later. From any thread; returns at once."""
        with self._lock:
            self.over = True
            for options in self._running:
                options.terminate = True

    @contextmanager
    def within(self) -> Iterator[None]:
        """Runs that this thread makes meanwhile can be broken off."""
        before = _current.set(self)
        try:
            yield
        finally:
            _current.reset(before)

    @contextmanager
    def watching(self, options: RunOptions) -> Iterator[None]:
        """For whoever makes a run with these options."""
        with self._lock:
            options.terminate = self.over
            self._running.append(options)
        try:
            yield
        finally:
            with self._lock:
                self._running.remove(options)


_current: ContextVar[Interruption | None] = ContextVar("interruption", default=None)


def current() -> Interruption | None:
    """What the runs of this thread are `within`, if anything."""
    return _current.get()
