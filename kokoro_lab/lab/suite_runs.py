"""Runs many measurements: gates, or the notebooks and benchmarks whose results the checklist lacks.

If one fails or crashes, the next is run all the same.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from kokoro_lab.containers.plain_json import write_json
from kokoro_lab.lab import results, runs, tables
from kokoro_lab.lab.estimates import span
from kokoro_lab.lab.gates import checklist, evidence
from kokoro_lab.lab.gates.suite import Measurement
from kokoro_lab.lab.results import CRASHED, FAILED, INTERRUPTED, PASSED, Result
from kokoro_lab.provenance import repository_root

Say = Callable[[str], None]

SHARED = 0.7
"""The time of gates that run two at a time on two cores, divided by their time one after another."""


def verdict(gates: Sequence[Result]) -> str:
    """The worst verdict of `gates`, from the worst on: interrupted, crashed, failed, passed. Without a gate
    it is failed."""
    verdicts = {one.verdict for one in gates} or {FAILED}
    return next(one for one in (INTERRUPTED, CRASHED, FAILED, PASSED) if one in verdicts)


def about(measured: Sequence[Measurement], fast: bool, jobs: int = 1) -> str:
    """A sentence that names the measurements to run, and says how long they take."""
    if not measured:
        return "Nothing is missing."
    names = ", ".join(one.name for one in measured)
    return f"{len(measured)} to run, about {span(span_s(measured, fast, jobs))}: {names}."


def span_s(measured: Sequence[Measurement], fast: bool, jobs: int) -> float:
    """About how many seconds all measurements take, if `jobs` run at a time. Those with `runs_alone` run one
    after another."""
    alone = sum(one.seconds(fast) for one in measured if one.runs_alone(fast))
    shared = [one.seconds(fast) for one in measured if not one.runs_alone(fast)]
    return alone + (sum(shared) if jobs == 1 else max(sum(shared) * SHARED, *shared, 0.0))


def run_gates(
    gates: Sequence[Measurement], *, fast: bool, jobs: int = 1, progress: bool = True, say: Say
) -> tuple[list[Result], Path]:
    """Run every gate, and keep a summary in `results/gates/<run_id>/` as JSON, Markdown and HTML.

    Parameters
    ----------
    gates : sequence of Measurement
    fast : bool
        Whether to take the parameters of the fast mode; otherwise those of the full mode.
    jobs : int
        How many gates run at a time. A gate whose verdict depends on measured times runs after the others,
        alone.
    progress : bool
        Whether to show a progress bar for each gate.
    say : callable
        Called with a line about each long step.

    Returns
    -------
    list of Result
        The result of each gate, in the order of `gates`.
    Path
        The folder of the summary.
    """
    ended = _gates(gates, fast, jobs, progress, say)
    folder, said = results.new_run_folder("gates"), verdict(ended)
    rows = [_row(one) for one in ended]
    write_json(folder / "summary.json", {"verdict": said, "fast": fast, "gates": rows, **results.made_by()})
    mode = "fast" if fast else "full"
    tables.write(folder, "summary", "Gates", f"{said}, in {mode} mode", table(ended))
    results.write_index(folder.parent.parent)
    return ended, folder


def _row(one: Result) -> dict[str, Any]:
    report = one.run_dir / "report.html" if one.run_dir else None
    return {
        "gate": one.notebook,
        "verdict": one.verdict,
        "failed": results.failed(one.checks),
        "missed": [control.name for control in one.controls if not control.caught],
        "run_s": one.run_s,
        "report": str(report.relative_to(repository_root())) if report and report.exists() else "",
        "message": one.message,
    }


def table(gates: Sequence[Result]) -> pd.DataFrame:
    """The results as a table of text, with one row for each gate."""
    return pd.DataFrame(
        [
            {
                "gate": one["gate"],
                "verdict": one["verdict"],
                "checks failed": ", ".join(one["failed"]),
                "controls missed": ", ".join(one["missed"]),
                "seconds": f"{one['run_s']:.1f}",
                "report": one["report"] or one["message"],
            }
            for one in map(_row, gates)
        ]
    )


def run_missing(fast: bool, *, progress: bool = True, say: Say) -> None:
    """Run what the checklist lacks: notebooks and benchmarks without a result, or with a stale one."""
    records = evidence.Records(results.results_folder(), evidence.now(), fast)
    lacking = checklist.missing(checklist.read_lines(), records)
    say(about(lacking, fast))
    for number, one in enumerate(lacking):
        _tell(lacking, fast, say, number)
        try:
            if one.benchmark:
                _run_benchmark(one, fast, say)
            else:
                outcome = runs.run_notebook(one.name, one.parameters(fast), progress=progress)
                say(f"  {outcome.verdict}" + (f": {outcome.message}" if outcome.message else ""))
                if outcome.verdict == INTERRUPTED:
                    raise KeyboardInterrupt
        except Exception as error:  # the checklist says that it was not measured
            say(f"  crashed: {type(error).__name__}: {error}")


def _gates(gates: Sequence[Measurement], fast: bool, jobs: int, progress: bool, say: Say) -> list[Result]:
    """The results in the order of `gates`, whatever the order in which they ran."""
    say(about(gates, fast, jobs))
    shared = [gate for gate in gates if jobs > 1 and not gate.runs_alone(fast)]
    # The longest first, so that at the end no core waits for a long one
    shared.sort(key=lambda gate: -gate.seconds(fast))
    order = [*shared, *(gate for gate in gates if gate not in shared)]
    begins = partial(_tell, order, fast, say)
    ended = {}
    asked = [(gate.name, gate.parameters(fast)) for gate in shared]
    for number, one in runs.run_apart(asked, jobs, progress=progress, begins=begins):
        ended[order[number].name] = one
        say(f"{one.notebook}: {one.verdict} in {one.run_s:.1f} s")
    for number, gate in list(enumerate(order))[len(shared) :]:
        if any(one.verdict == INTERRUPTED for one in ended.values()):
            ended[gate.name] = runs.not_begun(gate.name, gate.parameters(fast))
            continue
        begins(number)
        try:
            ended[gate.name] = runs.run_notebook(gate.name, gate.parameters(fast), progress=progress)
        except Exception as error:  # it did not start: wrong parameters, no kernel
            ended[gate.name] = results.crashed(gate.name, gate.parameters(fast), error)
    return [ended[gate.name] for gate in gates]


def _run_benchmark(one: Measurement, fast: bool, say: Say) -> None:
    """Run a benchmark by its command in a process of its own, so that its memory is freed."""
    command = [sys.executable, "-m", "kokoro_lab", *one.arguments(fast)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        say(f"  exit code {done.returncode}; {done.stdout.strip().rpartition(chr(10))[2]}")


def _tell(measured: Sequence[Measurement], fast: bool, say: Say, number: int) -> None:
    one = measured[number]
    say(f"{number + 1} of {len(measured)}: {one.name}, about {span(one.seconds(fast))}: {one.guards}")
