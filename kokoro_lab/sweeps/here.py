"""Runs of a sweep on this machine, a few at a time."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from pathlib import Path

from kokoro_lab.sweeps.one import Row, SweepRun, crashed, run_one


def here(name: str, rows: Sequence[Row], jobs: int) -> Iterator[SweepRun]:
    """Each in a process of its own: one that dies, for want of memory, takes no other run along."""
    context = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks as they stand

    def run(number: int) -> SweepRun:
        try:
            with ProcessPoolExecutor(1, mp_context=context) as process:
                return process.submit(run_one, str(Path.cwd()), name, number, rows[number]).result()
        except Exception as error:  # it never began, or its process died
            return crashed(number, rows[number], error)

    with ThreadPoolExecutor(jobs, thread_name_prefix="sweep") as pool:
        started = [pool.submit(run, number) for number in range(len(rows))]
        try:
            for future in as_completed(started):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)  # after an interrupt, what waits is not begun
