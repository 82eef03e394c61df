"""Many measurements in one go: all gates, and whatever the checklist lacks.

Whatever becomes of one, the next is run.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from kokoro_lab.lab import runs
from kokoro_lab.lab.gates import checklist, evidence, tables
from kokoro_lab.lab.gates.suite import Measurement
from kokoro_lab.lab.results import new_run_folder, results_folder, write_json
from kokoro_lab.native.toolchain import toolchain
from kokoro_lab.provenance import git_state, machine, repository_root, versions
from kokoro_lab.scheduling.processes import apart

Say = Callable[[str], None]

PASSED, FAILED, CRASHED = "passed", "failed", "crashed"
SHARED = 0.7
"""Of the time that gates take one after another, two at a time, on two cores."""


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """How one gate ended.

    Parameters
    ----------
    gate, verdict : str
        Its notebook; `passed`, `failed` or `crashed`.
    failed, missed : tuple of str
        Checks that failed, and faults put in on purpose that it did not catch, by name.
    run_s : float
    report : str
        Of the run, from the root of the repository; empty if there is none.
    message : str
        What is wrong, in a sentence; empty if nothing is.
    """

    gate: str
    verdict: str
    failed: tuple[str, ...]
    missed: tuple[str, ...]
    run_s: float
    report: str
    message: str


@dataclass(frozen=True, slots=True)
class Summary:
    """All gates, and the folder in which that is kept."""

    gates: tuple[GateOutcome, ...]
    folder: Path

    @property
    def verdict(self) -> str:
        """`crashed` if any crashed, else `failed` if any failed or there was none, else `passed`."""
        verdicts = {one.verdict for one in self.gates} or {FAILED}
        return next(one for one in (CRASHED, FAILED, PASSED) if one in verdicts)


def about(measured: Sequence[Measurement], fast: bool, jobs: int = 1) -> str:
    """How much there is to run, and how long it takes, in a sentence."""
    if not measured:
        return "Nothing is missing."
    names = ", ".join(one.name for one in measured)
    return f"{len(measured)} to run, about {_span(span_s(measured, fast, jobs))}: {names}."


def span_s(measured: Sequence[Measurement], fast: bool, jobs: int) -> float:
    """About how long all take, `jobs` at a time where they may share the machine."""
    alone = sum(one.seconds(fast) for one in measured if one.runs_alone(fast))
    shared = [one.seconds(fast) for one in measured if not one.runs_alone(fast)]
    return alone + (sum(shared) if jobs == 1 else max(sum(shared) * SHARED, *shared, 0.0))


def run_gates(
    gates: Sequence[Measurement], *, fast: bool, jobs: int = 1, progress: bool = True, say: Say
) -> Summary:
    """Run every gate, and keep a summary in `results/gates/<run_id>/` as JSON, Markdown and HTML.

    Parameters
    ----------
    gates : sequence of Measurement
    fast : bool
        With the parameters of the fast mode, or of the full one.
    jobs : int
        How many run at a time. One whose times decide runs after the others, alone: it would be spoilt.
    progress : bool
        Whether to show a bar for each.
    say : callable
        Told in a line each what takes its time.
    """
    summary = Summary(tuple(_gates(gates, fast, jobs, progress, say)), new_run_folder("gates"))
    record: dict[str, Any] = {
        "verdict": summary.verdict,
        "fast": fast,
        "gates": [{name: getattr(one, name) for name in one.__slots__} for one in summary.gates],
        "versions": versions(),
        "toolchain": toolchain(),
        "git": git_state(),
        "machine": machine(),
    }
    write_json(summary.folder / "summary.json", record)
    mode = "fast" if fast else "full"
    tables.write(summary.folder, "summary", "Gates", f"{summary.verdict}, in {mode} mode", table(summary))
    return summary


def table(summary: Summary) -> pd.DataFrame:
    """A row a gate, as text."""
    return pd.DataFrame(
        [
            {
                "gate": one.gate,
                "verdict": one.verdict,
                "checks failed": ", ".join(one.failed),
                "controls missed": ", ".join(one.missed),
                "seconds": f"{one.run_s:.1f}",
                "report": one.report or one.message,
            }
            for one in summary.gates
        ]
    )


def run_missing(fast: bool, *, progress: bool = True, say: Say) -> None:
    """Run what the checklist lacks: notebooks and benchmarks without a result, or with a stale one."""
    records = evidence.Records(results_folder(), evidence.now(), fast)
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
        except Exception as error:  # the checklist says that it was not measured
            say(f"  crashed: {type(error).__name__}: {error}")


def _gates(
    gates: Sequence[Measurement], fast: bool, jobs: int, progress: bool, say: Say
) -> Iterable[GateOutcome]:
    """In the order of the suite, whatever the order in which they were run."""
    say(about(gates, fast, jobs))
    shared = [gate for gate in gates if jobs > 1 and not gate.runs_alone(fast)]
    # The longest first: whatever is left at the end is short, and no core waits for it
    shared.sort(key=lambda gate: -gate.seconds(fast))
    order = [*shared, *(gate for gate in gates if gate not in shared)]
    begins = partial(_tell, order, fast, say)
    calls = [partial(_run_gate, gate.name, gate.parameters(fast), progress) for gate in order]
    ended = {}
    for number, done in apart(calls[: len(shared)], jobs, begins):
        ended[order[number].name] = one = _ended(order[number], done.result)
        say(f"{one.gate}: {one.verdict} in {one.run_s:.1f} s")
    for number in range(len(shared), len(order)):
        begins(number)
        ended[order[number].name] = _ended(order[number], partial(calls[number], 0))
    return [ended[gate.name] for gate in gates]


def _run_gate(name: str, parameters: Mapping[str, Any], progress: bool, place: int) -> runs.RunOutcome:
    return runs.run_notebook(name, parameters, progress=progress, place=place)


def _ended(gate: Measurement, run: Callable[[], runs.RunOutcome]) -> GateOutcome:
    try:
        return _gate_outcome(run())
    except Exception as error:  # it never began: wrong parameters, no kernel; or its process died
        return GateOutcome(gate.name, CRASHED, (), (), 0.0, "", f"{type(error).__name__}: {error}")


def _gate_outcome(outcome: runs.RunOutcome) -> GateOutcome:
    result = outcome.result()
    report = outcome.run_dir / "report.html"
    return GateOutcome(
        gate=outcome.notebook,
        verdict=outcome.verdict,
        failed=tuple(one["name"] for one in result.get("checks", []) if not one["passed"]),
        missed=tuple(one["name"] for one in result.get("controls", []) if not one["caught"]),
        run_s=outcome.run_s,
        report=str(report.relative_to(repository_root())) if report.exists() else "",
        message=outcome.message,
    )


def _run_benchmark(one: Measurement, fast: bool, say: Say) -> None:
    """In a process of its own, by the command that a person would type: what it holds is given back."""
    command = [sys.executable, "-m", "kokoro_lab", *one.arguments(fast)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        say(f"  exit code {done.returncode}; {done.stdout.strip().rpartition(chr(10))[2]}")


def _tell(measured: Sequence[Measurement], fast: bool, say: Say, number: int) -> None:
    one = measured[number]
    say(f"{number + 1} of {len(measured)}: {one.name}, about {_span(one.seconds(fast))}: {one.guards}")


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
