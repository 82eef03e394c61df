"""What a run leaves behind: a folder with its figures, its verdict, and what it was made with.

`results/<notebook>/<run_id>/result.json` is the only thing that the checklist and CI read. It is
written before a failed gate raises, so that a failure leaves evidence.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kokoro_lab.containers import save
from kokoro_lab.containers.plain_json import read_object, write_json
from kokoro_lab.datatypes import Clip
from kokoro_lab.errors import GateFailed
from kokoro_lab.native.toolchain import toolchain
from kokoro_lab.provenance import git_state, machine, repository_root, versions

if TYPE_CHECKING:
    # Only for its name: who reads results need not load a model
    from kokoro_lab.speech.engine import Engine

PASSED, FAILED, CRASHED = "passed", "failed", "crashed"
RESULT, CRASH = "result.json", "crash.json"
"""What a run leaves at its end: the one by its notebook, or the other by whoever ran it."""


@dataclass(frozen=True, slots=True)
class Check:
    """One figure against its limits. The name ends in the figure's unit.

    A figure that is not finite never passes: what could not be measured is not good.
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
    def limits(self) -> list[str]:
        """As a person reads them: `at least 1`, `at most 2`."""
        words = (("at least", self.low), ("at most", self.high))
        return [f"{word} {limit:g}" for word, limit in words if limit is not None]

    def __str__(self) -> str:
        low = "" if self.low is None else f"{self.low:g} ≤ "
        high = "" if self.high is None else f" ≤ {self.high:g}"
        return f"{'pass' if self.passed else 'FAIL'}  {low}{self.name} = {self.value:.4g}{high}"


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


class Run:
    """One run's folder, open for writing. Made by `open_run`."""

    def __init__(self, notebook: str, folder: Path, parameters: Mapping[str, Any]) -> None:
        self.notebook = notebook
        self.folder = folder
        self.parameters = dict(parameters)
        self._started = time.time()

    def keep_audio(self, name: str, clip: Clip) -> Path:
        """Write a clip to `audio/<name>.wav` of this run."""
        return save(clip, self.folder / "audio" / f"{name}.wav")

    def finish(
        self,
        ran: Engine | Mapping[str, Any],
        *,
        checks: Sequence[Check],
        controls: Sequence[NegativeControl] = (),
        figures: Mapping[str, float] | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Write `result.json` with the verdict, then raise if it is a failure.

        Parameters
        ----------
        ran : Engine or mapping
            What was measured; its weights, provider and options are recorded. Where the engine is in another
            process, what that says of itself.
        checks : sequence of Check
            Every figure that has a limit. None at all is a failure: nothing was measured.
        controls : sequence of NegativeControl
            Every injected fault. One that was not caught fails the run: the gate is broken.
        figures : mapping, optional
            Figures without a limit, names ending in units.
        details : mapping, optional
            Tables that stand beside the figures, by their names.

        Returns
        -------
        dict
            What was written.

        Raises
        ------
        GateFailed
            The verdict is "failed"; says which checks and controls.
        """
        failures = [str(c) for c in checks if not c.passed] + [str(c) for c in controls if not c.caught]
        if not checks:
            failures.append("nothing was measured")
        result = {
            "notebook": self.notebook,
            "run_id": self.folder.name,
            "verdict": FAILED if failures else PASSED,
            "failures": failures,
            "checks": [{**asdict(c), "passed": c.passed} for c in checks],
            "controls": [asdict(c) for c in controls],
            "figures": dict(figures or {}),
            "parameters": self.parameters,
            "started_at": datetime.fromtimestamp(self._started, UTC).isoformat(timespec="seconds"),
            "run_s": round(time.time() - self._started, 3),
            **(ran if isinstance(ran, Mapping) else facts_of(ran)),
            **(details or {}),
            **made_by(),
        }
        write_json(self.folder / RESULT, result)
        if failures:
            raise GateFailed(f"{self.notebook}: " + "; ".join(failures[:8]))
        return result


@dataclass(frozen=True, slots=True)
class Result:
    """How one run ended, as it was executed here or as its folder has it.

    Parameters
    ----------
    notebook : str
        Its name, or that of a benchmark.
    parameters : mapping
        What it was given.
    run_dir : Path, optional
        What it left, on the machine that ran it; None if it never began.
    verdict : str
        `passed`, `failed` (its gate) or `crashed` (its code, which says nothing of what it was to measure).
    message : str
        What is wrong, in a sentence; empty if nothing is.
    run_s : float
    record : mapping
        Its `result.json`; empty if it wrote none, or crashed behind it.
    where : str
        The worker of a cluster that ran it; empty for this machine.
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
        """Its figures with limits, to be judged anew; NaN where one was not finite."""
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
        """Its checks and figures by their names."""
        return {check.name: check.value for check in self.checks} | dict(self.record.get("figures", {}))


def crashed(notebook: str, parameters: Mapping[str, Any], error: Exception) -> Result:
    """Of a run that never began, or whose process died."""
    message = f"{type(error).__name__}: {error}".strip(": ")
    return Result(notebook, dict(parameters), None, CRASHED, message)


def read_result(folder: Path) -> Result | None:
    """What a run left in its folder; None while it runs, or if it was killed.

    Raises
    ------
    ResultError
        It cannot be read.
    """
    broke = (folder / CRASH).exists()
    path = folder / (CRASH if broke else RESULT)
    if not path.exists():
        return None
    found = read_object(path)
    # A benchmark that only measures has no verdict, and calls its parameters otherwise
    parameters = found.get("parameters", found.get("asked")) or {}
    if broke:
        return Result(folder.parent.name, parameters, folder, CRASHED, found.get("message", ""))
    return Result(
        folder.parent.name,
        parameters,
        folder,
        found.get("verdict", PASSED),
        "; ".join(found.get("failures", [])),
        found.get("run_s", 0.0),
        found,
    )


def facts_of(engine: Engine) -> dict[str, Any]:
    """What an engine says of itself in a result: weights, how they were converted, provider and options."""
    return {
        "variant": engine.config.variant,
        "model_sha256": engine.model_sha256,
        "requested_provider": engine.config.provider,
        "active_provider": engine.active_provider,
        "session": engine.session_record,
        "conversion": dict(engine.conversion),
    }


def made_by() -> dict[str, Any]:
    """What every result says of where it was made: versions, toolchain, commit, machine."""
    return {"versions": versions(), "toolchain": toolchain(), "git": git_state(), "machine": machine()}


def open_run(notebook: str, run_dir: str | Path = "", parameters: Mapping[str, Any] | None = None) -> Run:
    """The folder to write to: `run_dir` if papermill gave one, else a new one under `results/`."""
    folder = Path(run_dir) if run_dir else new_run_folder(notebook)
    (folder / "audio").mkdir(parents=True, exist_ok=True)
    return Run(notebook, folder, parameters or {})


def results_folder() -> Path:
    """Where runs write: `results/` of the repository."""
    return repository_root() / "results"


def new_run_folder(notebook: str, prefix: str = "") -> Path:
    """A folder's path that no other run has, sorted by time."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return results_folder() / notebook / f"{prefix}{stamp}-{secrets.token_hex(2)}"
