"""An iterator that works on its next item while the last one is still in use."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from typing import Generic, TypeVar

from kokoro_lab.scheduling.kept_threads import KeptThreads

T = TypeVar("T")

_THREADS = KeptThreads("lookahead")


class Lookahead(Iterator[T], Generic[T]):
    """Hands out the items of an iterator; `begin` has the next one made in a thread meanwhile.

    At most one item is ahead, so memory is bounded. What an item raises is raised by `next`.

    Parameters
    ----------
    items : iterator
        Advanced by one thread at a time.
    """

    def __init__(self, items: Iterator[T]) -> None:
        self._items = items
        self._next: Future[T] | None = None

    def begin(self) -> None:
        """Have the next item made now, unless that has been asked for already."""
        if self._next is None:
            self._next = _THREADS.submit(self._take)

    def _take(self) -> T:
        try:
            return next(self._items)
        except StopIteration:
            # A future cannot hand on StopIteration
            raise _End from None

    def __next__(self) -> T:
        if self._next is None:
            return next(self._items)
        try:
            return self._next.result()
        except _End:
            raise StopIteration from None
        finally:
            self._next = None

    @property
    def ahead(self) -> int:
        """Items that are ready and not taken yet: 0 or 1."""
        return int(self._next is not None and self._next.done())

    def close(self) -> None:
        """Make nothing further. What is being made now is not waited for."""
        if self._next is not None:
            self._next.cancel()


class _End(Exception):
    """The iterator has no further item."""
