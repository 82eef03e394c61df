"""The parts of a result: checks of figures against limits, negative controls, and how a run ended."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kokoro_lab.containers.plain_json import read_object

PASSED, FAILED, CRASHED = "passed", "failed", "crashed"
INTERRUPTED, RUNNING = "interrupted", "running"
RESULT, CRASH, BEGUN = "result.json", "crash.json", "begun.json"
"""Files of a run: the result, which its notebook writes at the end; the runner's note of a crash or an
interruption; the runner's note that the run is under way."""


@dataclass(frozen=True, slots=True)
class Check:
    """One figure against its limits. The name ends in the figure's unit.

    A figure that is not finite never passes, since it could not be measured.
    """

    name: str
    value: float
    low: float | None = None
    high: float | None = None

    @property
    def passed(self) -> bool:
        return (
            math.isfinite(self.value)
            and (self.low is None or self.value >= self.low)
            and (self.high is None or self.value <= self.high)
        )

    @property
    def margin(self) -> float:
        """How far the figure is inside its nearest limit, in its own unit: negative if it is beyond a limit,
        infinite without a limit, NaN if the figure is not finite."""
        if not math.isfinite(self.value):
            return math.nan
        low = math.inf if self.low is None else self.value - self.low
        return min(low, math.inf if self.high is None else self.high - self.value)

    @property
    def limits(self) -> list[str]:
        """The limits as a person reads them: `at least 1`, `at most 2`."""
        words = (("at least", self.low), ("at most", self.high))
        return [f"{word} {limit:g}" for word, limit in words if limit is not None]

    def __str__(self) -> str:
        low = "" if self.low is None else f"{self.low:g} ≤ "
        high = "" if self.high is None else f" ≤ {self.high:g}"
        return f"{'pass' if self.passed else 'FAIL'}  {low}{self.name} = {self.value:.4g}{high}"


def room(check: Check) -> float:
    """The margin of a check divided by its limit, or by half the band between two limits: 0 is on the limit.

    Infinite for a check that passes without a limit, or with nothing between passing and failing: a count
    that must be 0, or a figure with one right value.
    """
    found = check.margin
    if math.isnan(found):  # it was not measured
        return -math.inf
    if check.low is not None and check.high is not None:
        scale = (check.high - check.low) / 2
    else:
        scale = abs(next((limit for limit in (check.low, check.high) if limit is not None), 0.0))
    if check.passed and (scale == 0 or math.isinf(found)):
        return math.inf
    return found / (scale or 1.0)


def ranked(checks: Iterable[Check]) -> list[Check]:
    """The checks in order: failed ones first, then those nearest to their limits."""
    return sorted(checks, key=lambda check: (check.passed, room(check)))


def failed(checks: Iterable[Check]) -> list[str]:
    """Names of the checks that failed, in their order."""
    return [check.name for check in checks if not check.passed]


@dataclass(frozen=True, slots=True)
class NegativeControl:
    """A fault that was put in on purpose, and whether the gate caught it."""

    name: str
    caught: bool

    def __str__(self) -> str:
        return f"{'caught' if self.caught else 'MISSED'}  {self.name}"


@dataclass(frozen=True, slots=True)
class Result:
    """How one run ended, whether it was executed by this process or read from its folder.

    Parameters
    ----------
    notebook : str
        Name of the notebook or benchmark.
    parameters : mapping
        Parameters of the run.
    run_dir : Path, optional
        The run's folder, on the machine that ran it; None if the run did not start.
    verdict : str
        `passed`: every check holds. `failed`: a check does not hold, or a control was missed. `crashed`: its
        code raised an error, so nothing is known about the figures. `interrupted`: a person stopped it, or
        its process ended.
    message : str
        The reason for a failure, in a sentence; empty if the run passed.
    run_s : float
    record : mapping
        The content of the run's `result.json`; empty if there is no such file, or if the run crashed after
        writing it.
    where : str
        The worker of a cluster that executed the run; empty for this machine.
    """

    notebook: str
    parameters: Mapping[str, Any]
    run_dir: Path | None
    verdict: str
    message: str = ""
    run_s: float = 0.0
    record: Mapping[str, Any] = field(default_factory=dict)
    where: str = ""

    @property
    def checks(self) -> list[Check]:
        """The checks of the record, so that they can be judged again; NaN if a figure was not finite."""
        return [
            Check(one["name"], math.nan if one["value"] is None else one["value"], one["low"], one["high"])
            for one in self.record.get("checks", [])
        ]

    @property
    def controls(self) -> list[NegativeControl]:
        """The faults that were put in on purpose."""
        return [NegativeControl(one["name"], one["caught"]) for one in self.record.get("controls", [])]

    @property
    def figures(self) -> dict[str, Any]:
        """The values of the run's checks and figures, by their names."""
        return {check.name: check.value for check in self.checks} | dict(self.record.get("figures", {}))


def crashed(notebook: str, parameters: Mapping[str, Any], error: Exception) -> Result:
    """The result of a run that did not start, or whose process died."""
    message = f"{type(error).__name__}: {error}".strip(": ")
    return Result(notebook, dict(parameters), None, CRASHED, message)


def read_result(folder: Path) -> Result | None:
    """The result in a run's folder; None while the run is under way, or if it was killed.

    Raises
    ------
    ResultError
        The result file cannot be read.
    """
    broke = (folder / CRASH).exists()
    path = folder / (CRASH if broke else RESULT)
    if not path.exists():
        return None
    found = read_object(path)
    # A benchmark that only measures has no verdict, and its parameters stand under `asked`
    parameters = found.get("parameters", found.get("asked")) or {}
    if broke:
        verdict = INTERRUPTED if found.get("verdict") == INTERRUPTED else CRASHED
        run_s = found.get("run_s", 0.0)
        return Result(folder.parent.name, parameters, folder, verdict, found.get("message", ""), run_s)
    return Result(
        folder.parent.name,
        parameters,
        folder,
        found.get("verdict", PASSED),
        "; ".join(found.get("failures", [])),
        found.get("run_s", 0.0),
        found,
    )
