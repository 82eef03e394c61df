"""Calls in processes of their own, a few at a time: one that dies, for want of memory, takes none along."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
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
        How many run at a time.
    begins : callable
        Told the number of a call before it is run, in a thread of this process.

    Yields
    ------
    tuple of int and Future
        The future is done: its `result()` returns, or raises what the call raised, or `BrokenProcessPool` if
        its process died.
    """
    context = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks as they stand
    places: SimpleQueue[int] = SimpleQueue()
    for place in range(jobs):
        places.put(place)

    def run(number: int) -> R:
        place = places.get()
        try:
            begins(number)
            with ProcessPoolExecutor(1, mp_context=context) as process:
                return process.submit(calls[number], place).result()
        finally:
            places.put(place)

    with ThreadPoolExecutor(jobs, thread_name_prefix="apart") as pool:
        started = {pool.submit(run, number): number for number in range(len(calls))}
        try:
            for future in as_completed(started):
                yield started[future], future
        finally:
            pool.shutdown(cancel_futures=True)  # after an interrupt, what waits is not begun
