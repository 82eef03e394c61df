"""Removes old runs, except those that are under way, have a note, or are evidence for the checklist."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.gates.evidence import Now, Records
from kokoro_lab.lab.results.kept import KeptRun
from kokoro_lab.lab.results.records import INTERRUPTED, RUNNING

MAY_GO_ON = timedelta(days=1)
"""Age below which a run that seems interrupted is not removed: it may still run in JupyterLab or on another
machine."""


def old_runs(
    runs: Sequence[KeptRun], keep: int | None, older_than: timedelta | None, now: datetime | None = None
) -> list[KeptRun]:
    """The runs that are not among the newest `keep` of their notebook, and are older than `older_than`.

    Raises
    ------
    ParameterError
        Neither is given, so that all runs would be removed.
    """
    if keep is None and older_than is None:
        raise ParameterError("prune needs --keep, --older-than, or both.", field="--keep")
    before = (now or datetime.now(UTC)) - (older_than or timedelta())
    seen: Counter[str] = Counter()
    old = []
    for run in runs:
        seen[run.notebook] += 1
        if (keep is None or seen[run.notebook] > keep) and run.started_at < before:
            old.append(run)
    return old


def reason_to_keep(run: KeptRun, evidence: set[Path], now: datetime | None = None) -> str:
    """Why a run must stay, in words; empty if it need not."""
    if run.result.verdict == RUNNING:
        return "it is under way"
    if run.result.verdict == INTERRUPTED and run.started_at > (now or datetime.now(UTC)) - MAY_GO_ON:
        return "it has no result, and may be under way elsewhere"
    if run.note:
        return f"it has a note: {run.note}"
    if run.folder in evidence:
        return "it is the newest of a measurement of the checklist"
    return ""


def evidence_in(folder: Path) -> set[Path]:
    """The folders of all runs that the checklist shows as evidence, both when runs in fast mode count and
    when they do not."""
    nothing = Now(None, "", {})
    return Records(folder, nothing, fast=False).shown_by() | Records(folder, nothing, fast=True).shown_by()


def bytes_of(run: KeptRun) -> int:
    """The size of a run's folder on the disk."""
    return sum(path.stat().st_size for path in run.folder.rglob("*") if path.is_file())


def remove(run: KeptRun) -> None:
    """Delete the run's folder.

    Raises
    ------
    ParameterError
        The folder cannot be deleted.
    """
    try:
        shutil.rmtree(run.folder)
    except OSError as error:
        raise ParameterError(
            f"{run.folder} cannot be removed: {error.strerror}.", field="run", value=run.run_id
        ) from error
