"""Runs of a sweep on this machine, a few at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from kokoro_lab.lab.sweeps.one import Row, SweepRun, crashed, run_one
from kokoro_lab.scheduling.processes import apart


def here(name: str, rows: Sequence[Row], jobs: int) -> Iterator[SweepRun]:
    """Each in a process of its own, in the order in which they end."""
    calls = [
        partial(_anywhere, partial(run_one, str(Path.cwd()), name, number, row))
        for number, row in enumerate(rows)
    ]
    for number, done in apart(calls, jobs):
        try:
            yield done.result()
        except Exception as error:  # it never began, or its process died
            yield crashed(number, rows[number], error)


def _anywhere(run: Callable[[], SweepRun], place: int) -> SweepRun:
    """No bar is shown, so it does not matter at which place."""
    return run()
