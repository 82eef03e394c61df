"""Threads that are kept for the next task, and an iterator that works ahead in one of them.

Our operators compute in memory that belongs to their thread. A new thread for each stream would get that
memory from the system page by page, about 2,000 pages, while somebody waits for the first sound.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from itertools import count
from typing import Any, Generic, TypeVar

from kokoro_lab.scheduling.native_work import native_work

T = TypeVar("T")
_Jobs = queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]]


class KeptThreads:
    """A pool of threads that grows to the most tasks there were at once. The thread that finished last gets
    the next task.

    They are daemons, so work that hangs does not keep a process from ending.

    Parameters
    ----------
    name : str
        Name of the threads, to which a number is added.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._forget()
        # After a fork, a child has only the thread that forked
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._numbers = count(1)
        self._lock = threading.Lock()
        self._idle: list[_Jobs] = []

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Run `work` at once in a thread; the future has what it returns or raises."""
        future: Future[T] = Future()
        with self._lock:
            jobs = self._idle.pop() if self._idle else self._started()
        jobs.put((work, future))
        return future

    def _started(self) -> _Jobs:
        jobs: _Jobs = queue.SimpleQueue()
        name = f"{self._name}-{next(self._numbers)}"
        threading.Thread(target=self._run, args=(jobs,), name=name, daemon=True).start()
        return jobs

    def _run(self, jobs: _Jobs) -> None:
        while True:
            work, future = jobs.get()
            with native_work():
                self._done(jobs, work, future)
            del work, future  # a finished task must not be kept alive here

    def _done(self, jobs: _Jobs, work: Callable[[], Any], future: Future[Any]) -> None:
        if not future.set_running_or_notify_cancel():
            self._rest(jobs)
            return
        try:
            result = work()
        except BaseException as error:
            self._rest(jobs)
            future.set_exception(error)
        else:
            self._rest(jobs)
            future.set_result(result)

    def _rest(self, jobs: _Jobs) -> None:
        """Become idle before the result is set: the thread that waits for the result may submit the next task
        at once."""
        with self._lock:
            self._idle.append(jobs)


SPEAKING = KeptThreads("speech")
"""The threads that compute the speech that a server sends."""


_THREADS = KeptThreads("lookahead")
_END: Any = object()
"""Is used in place of an item to say that the iterator has ended."""


class Lookahead(Iterator[T], Generic[T]):
    """Hands out the items of an iterator; `begin` computes the next one in a thread meanwhile.

    At most one item is computed ahead, so memory is bounded. If computing an item raises an error, `next`
    raises it.

    Parameters
    ----------
    items : iterator
        Advanced by one thread at a time.
    """

    def __init__(self, items: Iterator[T]) -> None:
        self._items = items
        self._next: Future[T | Any] | None = None

    def begin(self) -> None:
        """Start computing the next item, unless that has begun already."""
        if self._next is None:
            # A future cannot hand on StopIteration
            self._next = _THREADS.submit(lambda: next(self._items, _END))

    def __next__(self) -> T:
        if self._next is None:
            return next(self._items)
        try:
            item = self._next.result()
        finally:
            self._next = None
        if item is _END:
            raise StopIteration
        return item

    @property
    def ahead(self) -> int:
        """Items that are ready and not taken yet: 0 or 1."""
        return int(self._next is not None and self._next.done())

    def close(self) -> None:
        """Compute no further item, without waiting for the one that is being computed."""
        if self._next is not None:
            self._next.cancel()
