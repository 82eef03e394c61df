"""A lock that calls of one G2P share, of which it is known who waits for it."""

from __future__ import annotations

import threading
from typing import Any

_WAITING: set[int] = set()


class SharedLock:
    """For a library that keeps the text in hand. To be held for one short call of it and never for a text,
    so that nobody waits for long behind another's text, however slow that is to read."""

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
    """Whether the thread with this `ident` waits for its turn, and so for another call and not for itself."""
    return ident in _WAITING
