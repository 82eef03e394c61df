"""Estimates how long a run takes, before it begins and while it is under way."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from kokoro_lab.containers.plain_json import read_object
from kokoro_lab.errors import ParameterError, ResultError
from kokoro_lab.lab.gates.suite import Measurement, measurements
from kokoro_lab.lab.notebooks import OWN_PARAMETERS, defaults, find_notebook
from kokoro_lab.lab.results import RESULT, results_folder
from kokoro_lab.provenance import machine

RUNS_LOOKED_AT = 20
"""How many earlier runs of a notebook are searched, the newest first, for one with the same parameters."""
PACE_S = 5.0
"""Once finished cells have taken this many seconds, their speed predicts the time of the other cells."""
OVERDUE = 1.2
"""A cell is late if it has taken this multiple of its time in the last run, and at least `PACE_S` more than
that time."""
TICK_S, LINE_S = 0.5, 60.0
"""Seconds after which the remaining time is shown again: on a terminal, and in a log."""


def span(seconds: float) -> str:
    """A duration in words."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


@dataclass(frozen=True, slots=True)
class Estimate:
    """How long a run is expected to take.

    Parameters
    ----------
    total_s : float, optional
        Seconds that the whole run takes; None if that is not known.
    cells_s : tuple of float
        Seconds of each cell in the last run of the notebook on this machine with these parameters; empty if
        there is no such run. The first value includes the start of the run.
    """

    total_s: float | None = None
    cells_s: tuple[float, ...] = ()

    def left(self, elapsed_s: float, cell: int = 0, in_cell_s: float = 0.0) -> tuple[float, str]:
        """How much time is left, in seconds and in words, `elapsed_s` after the start of the run, when cell
        number `cell` has been running for `in_cell_s`."""
        if cell < len(self.cells_s):
            done_s = sum(self.cells_s[:cell])
            pace = (elapsed_s - in_cell_s) / done_s if done_s >= PACE_S else 1.0
            this_s, rest_s = pace * self.cells_s[cell], pace * sum(self.cells_s[cell + 1 :])
            if in_cell_s > max(this_s * OVERDUE, this_s + PACE_S):
                return rest_s, f"longer than last time, at least {span(rest_s)} left"
            left_s = rest_s + max(this_s - in_cell_s, 0.0)
            return left_s, f"about {span(left_s)} left"
        if self.total_s is None:
            return 0.0, ""
        left_s = self.total_s - elapsed_s
        if left_s <= 0:
            return 0.0, f"longer than the estimate of {span(self.total_s)}"
        return left_s, f"about {span(left_s)} left"


def listed(notebook: str) -> Measurement | None:
    """The notebook's row of `notebooks/suite.json`, which has its usual times."""
    with suppress(ParameterError):  # a repository without that file
        return next((one for one in measurements() if one.name == notebook), None)
    return None


def estimate(notebook: str, parameters: Mapping[str, Any]) -> Estimate:
    """How long a notebook takes with these parameters: as long as the last run with these parameters on this
    machine took or, without such a run, as long as `notebooks/suite.json` says, if it has a row for the
    notebook."""
    usual = defaults(find_notebook(notebook))
    if cells_s := _last_cells_s(notebook, usual | dict(parameters), usual):
        return Estimate(sum(cells_s), cells_s)
    if row := listed(notebook):
        for fast in (False, True):
            if usual | dict(row.parameters(fast)) == usual | dict(parameters):
                return Estimate(row.seconds(fast))
    return Estimate()


def sentence(notebook: str, parameters: Mapping[str, Any]) -> str:
    """A sentence on how long a run will take, and on how to shorten it."""
    expected, row = estimate(notebook, parameters), listed(notebook)
    if expected.total_s is None:
        said = f"{notebook}: how long it takes with these parameters is not known"
        if row is None:
            return f"{said}."
        full = "".join(f" -p {name}={value}" for name, value in row.full.items())
        return f"{said}; in full{full and ','}{full}, it takes about {span(row.full_s)}, on two cores."
    where = "as last time" if expected.cells_s else "on two cores"
    usual = defaults(find_notebook(notebook))
    less = ""
    if row and row.fast_s < 0.5 * expected.total_s and {**usual, **row.fast} != {**usual, **parameters}:
        less = f"; --fast takes about {span(row.fast_s)}"
    return f"{notebook} takes about {span(expected.total_s)}, {where}{less}."


def _last_cells_s(notebook: str, asked: Mapping[str, Any], usual: Mapping[str, Any]) -> tuple[float, ...]:
    here = machine()
    for run in sorted((results_folder() / notebook).glob("[0-9]*/"), reverse=True)[:RUNS_LOOKED_AT]:
        with suppress(ResultError, LookupError, TypeError):
            if not (run / RESULT).exists():
                continue  # it was not run to its end
            made_on = read_object(run / RESULT)["machine"]
            executed = read_object(run / "executed.ipynb")
            given: dict[str, Any] = executed["metadata"]["papermill"]["parameters"]
            given = {name: value for name, value in given.items() if name not in OWN_PARAMETERS}
            if {**usual, **given} == asked and all(made_on[name] == here[name] for name in ("cpu", "cores")):
                cells_s = [
                    float(cell["metadata"]["papermill"]["duration"] or 0.0)
                    for cell in executed["cells"]
                    if "papermill" in cell["metadata"]  # a failed run has a cell more, which says so
                ]
                cells_s[0] += max(executed["metadata"]["papermill"]["duration"] - sum(cells_s), 0.0)
                return tuple(cells_s)
    return ()


class Countdown:
    """The present cell of a run, when it began, and the time left."""

    def __init__(self, expected: Estimate) -> None:
        self.expected = expected
        self._began = self._cell_began = time.monotonic()
        self._cell = 0

    def cell_begins(self, number: int) -> None:
        self._cell, self._cell_began = number, time.monotonic()

    def now(self) -> tuple[float, float, str]:
        """Seconds since the run began, seconds that are left, and the time that is left in words."""
        now = time.monotonic()
        elapsed_s = now - self._began
        return elapsed_s, *self.expected.left(elapsed_s, self._cell, now - self._cell_began)


@contextmanager
def shown(label: str, countdown: Countdown, place: int) -> Iterator[None]:
    """Show the remaining time on standard error: on a terminal as a bar, `place` lines below the cursor,
    elsewhere as one line a minute."""
    over = threading.Event()
    show = _bar if sys.stderr.isatty() else _lines
    thread = threading.Thread(target=show, args=(label, countdown, place, over), name="countdown")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _bar(label: str, countdown: Countdown, place: int, over: threading.Event) -> None:
    from tqdm import tqdm

    known = countdown.expected.total_s is not None
    form = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}{postfix}" if known else "{desc}: {elapsed}{postfix}"
    with tqdm(total=100, desc=label, position=place, leave=False, bar_format=form) as bar:
        while not over.wait(TICK_S):
            elapsed_s, left_s, said = countdown.now()
            bar.n = min(99, round(100 * elapsed_s / (elapsed_s + left_s)))
            bar.set_postfix_str(said)


def _lines(label: str, countdown: Countdown, place: int, over: threading.Event) -> None:
    while not over.wait(LINE_S):
        elapsed_s, _, said = countdown.now()
        sys.stderr.write(f"{label}: {span(elapsed_s)}{said and ', '}{said}\n")
        sys.stderr.flush()
