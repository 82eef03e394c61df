"""One run of a sweep: executed wherever this is called, and told in a form that travels."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kokoro_lab.lab import runs

PASSED, FAILED, CRASHED = "passed", "failed", "crashed"

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SweepRun:
    """One run of a sweep.

    Parameters
    ----------
    number : int
        Its place in the grid.
    parameters : mapping
        What it was given.
    verdict : str
        `passed`, `failed`, or `crashed`, which says nothing about what it was to measure.
    message : str
        What is wrong, in a sentence; empty if nothing is.
    run_s : float
    where : str
        The worker that ran it; empty for this machine.
    folder : str
        What it left, on that machine; empty if it never began.
    result : mapping
        Its `result.json`; empty if it wrote none.
    """

    number: int
    parameters: Row
    verdict: str
    message: str = ""
    run_s: float = 0.0
    where: str = ""
    folder: str = ""
    result: Mapping[str, Any] = field(default_factory=dict)

    @property
    def figures(self) -> dict[str, Any]:
        """Its checks and figures by their names."""
        checks = {check["name"]: check["value"] for check in self.result.get("checks", [])}
        return checks | dict(self.result.get("figures", {}))


def run_one(folder: str, name: str, number: int, row: Row) -> SweepRun:
    """Execute one run in this process, from `folder`; empty is where the process is."""
    if folder:
        os.chdir(folder)
    outcome = runs.run_notebook(name, row, progress=False)
    return SweepRun(
        number,
        dict(row),
        outcome.verdict,
        outcome.message,
        outcome.run_s,
        folder=str(outcome.run_dir),
        result=outcome.result(),
    )


def crashed(number: int, row: Row, error: BaseException, where: str = "") -> SweepRun:
    return SweepRun(number, dict(row), CRASHED, f"{type(error).__name__}: {error}".strip(": "), where=where)
