"""Runs calls in other processes, a few at a time: a process that dies ends no other call."""

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
    """Run `calls` in processes; yields the number and the future of each call, in the order in which they
    end.

    Parameters
    ----------
    calls : sequence of callable
        Each is called with the number, 0 to jobs - 1, of the place where it runs; no other call runs there
        meanwhile. A call goes to another process, so it and what it returns must be picklable.
    jobs : int
        How many calls run at a time, each at a place of its own. A place keeps its process for the next call,
        so that imports are done once; if the process dies, the next call gets a new one.
    begins : callable
        Called with the number of a call before it is run, in a thread of this process.

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
            pool.shutdown(cancel_futures=True)  # after an interrupt, no waiting call is begun
            for place in places:
                place.close()


def _hear_no_interrupt() -> None:
    """Ignore Ctrl-C, which reaches every process of a terminal: the process that made the calls decides which
    one ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


class _Place:
    """Runs one call at a time, in a process that is started with the first."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._process: ProcessPoolExecutor | None = None

    def run(self, call: Callable[[int], R]) -> R:
        if self._process is None:  # spawned: a fork would copy the threads' locks as they stand
            spawn = multiprocessing.get_context("spawn")
            self._process = ProcessPoolExecutor(1, mp_context=spawn, initializer=_hear_no_interrupt)
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # also in a starting process
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
