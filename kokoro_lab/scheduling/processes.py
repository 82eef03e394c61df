"""Calls in other processes, a few at a time: one that dies, for want of memory, takes no other call along."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from queue import SimpleQueue
from typing import TypeVar

R = TypeVar("R")


def apart(
    calls: Sequence[Callable[[int], R]], jobs: int, begins: Callable[[int], None] = lambda number: None
) -> Iterator[tuple[int, Future[R]]]:
    """The number of each call and what became of it, in the order in which they end.

    Parameters
    ----------
    calls : sequence of callable
        Each is told at which of the places 0 to jobs - 1 it runs: no other runs there meanwhile. It goes to
        another process, so it must be one that can be pickled, and so must what it returns.
    jobs : int
        How many run at a time. A place has one process, which has imported what a call needs when the next
        one comes; if it dies, the next one has a new process.
    begins : callable
        Told the number of a call before it is run, in a thread of this process.

    Yields
    ------
    tuple of int and Future
        The future is done: its `result()` returns, or raises what the call raised, or `BrokenProcessPool` if
        its process died.
    """
    free: SimpleQueue[_Place] = SimpleQueue()
    places = [_Place(number) for number in range(jobs)]
    for place in places:
        free.put(place)

    def run(number: int) -> R:
        place = free.get()
        try:
            begins(number)
            return place.run(calls[number])
        finally:
            free.put(place)

    with ThreadPoolExecutor(jobs, thread_name_prefix="apart") as pool:
        started = {pool.submit(run, number): number for number in range(len(calls))}
        try:
            for future in as_completed(started):
                yield started[future], future
        finally:
            pool.shutdown(cancel_futures=True)  # after an interrupt, what waits is not begun
            for place in places:
                place.close()


def _hear_no_interrupt() -> None:
    """Ctrl-C reaches every process of a terminal: which call is to end is said by who asked for it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


class _Place:
    """Where one call runs at a time, in a process that is begun with the first."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._process: ProcessPoolExecutor | None = None

    def run(self, call: Callable[[int], R]) -> R:
        if self._process is None:  # spawned: a fork would copy the threads' locks as they stand
            spawn = multiprocessing.get_context("spawn")
            self._process = ProcessPoolExecutor(1, mp_context=spawn, initializer=_hear_no_interrupt)
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # of a process that is begun now, too
            try:
                done = self._process.submit(call, self._number)
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            return done.result()
        except BrokenProcessPool:
            self.close()
            raise

    def close(self) -> None:
        if self._process is not None:
            self._process.shutdown()
            self._process = None
