"""A lock shared by the calls of one G2P, which knows the threads that wait for it."""

from __future__ import annotations

import threading
from typing import Any

_WAITING: set[int] = set()


class SharedLock:
    """A lock for a library that holds the state of the text that it reads. Hold the lock for one short call
    of the library and never for a whole text, so that no call waits long for another one's slow text."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if self._lock.acquire(blocking=False):
            return
        ident = threading.get_ident()
        _WAITING.add(ident)
        try:
            self._lock.acquire()
        finally:
            _WAITING.discard(ident)

    def __exit__(self, *_: Any) -> None:
        self._lock.release()


def waits_for_lock(ident: int | None) -> bool:
    """Whether the thread with this `ident` waits for a `SharedLock`, and so for another call of its
    library."""
    return ident in _WAITING
