"""Reads the runs in a folder of results, and finds them by the names that people type.

Runs, sweeps, summaries of all gates and benchmarks are entries; so are interrupted runs and unreadable ones.
"""

from __future__ import annotations

import math
import re
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil

from kokoro_lab.containers.plain_json import read_object
from kokoro_lab.errors import ParameterError, ResultError
from kokoro_lab.lab.results.records import (
    BEGUN,
    CRASHED,
    FAILED,
    INTERRUPTED,
    PASSED,
    RUNNING,
    Check,
    Result,
    read_result,
    room,
)
from kokoro_lab.lab.results.units import unit_of, unit_of_difference, with_unit, words_of

UNREADABLE = "unreadable"
VERDICTS = (FAILED, CRASHED, UNREADABLE, INTERRUPTED, RUNNING, PASSED)
"""The verdicts, the worst first."""
SWEEP, SUMMARY, NOTE = "sweep.json", "summary.json", "note.txt"
"""Files: the result of a sweep, the summary of all gates, and a person's note on a run."""
LATEST = "latest"
OWN_FOLDER = "golden"
"""The folder of new golden recordings, which are no runs."""
SHORT = 4
"""Characters at the end of a run's id that usually name it."""
_RUN_ID = re.compile(r"(?:sweep-)?(\d{8}T\d{6}Z)-[0-9a-f]{4}")
_SLACK_S = 5.0
"""A process may seem to have started this much later than the run that it began, because clocks are
rounded."""


@dataclass(frozen=True)
class KeptRun:
    """One entry of a folder of results.

    Parameters
    ----------
    folder : Path
        The run's folder: `results/<notebook>/<run_id>`.
    result : Result
        The content of the run's result file.
    started_at : datetime
        When the run began, in UTC, read from its id.
    short_id : str
        The end of the run's id, if no other run's id ends so; otherwise the whole id.
    """

    folder: Path
    result: Result
    started_at: datetime
    short_id: str = ""

    @property
    def notebook(self) -> str:
        return self.folder.parent.name

    @property
    def run_id(self) -> str:
        return self.folder.name

    @property
    def sweep(self) -> bool:
        """Whether this entry is a sweep: a table of other runs."""
        return self.run_id.startswith("sweep-")

    @property
    def variant(self) -> str:
        """The variant; for a benchmark, that of its first system; empty if it is not known."""
        ran = next(iter(self.mapping("systems").values()), self.result.record)
        given = ran.get("variant") if isinstance(ran, Mapping) else None
        return str(given or self.result.parameters.get("variant") or "")

    @property
    def commit(self) -> str:
        return str(self.mapping("git").get("commit") or "")

    @property
    def dirty(self) -> bool:
        """Whether the run was made from files that were not committed."""
        return bool(self.mapping("git").get("dirty"))

    @property
    def report(self) -> Path | None:
        """The run's report; None if the run left none."""
        pages = (self.folder / name for name in ("report.html", "sweep.html", "summary.html"))
        return next((page for page in pages if page.exists()), None)

    @cached_property
    def sounds(self) -> list[str]:
        """Paths of the run's sounds, below its folder: first the sounds of the worst clips, as the record
        lists them, then all other sounds by name."""
        told = [clip.get("candidate") for clip in self.rows("clips")]
        there = sorted(f"audio/{path.name}" for path in (self.folder / "audio").glob("*.*"))
        return [*(one for one in dict.fromkeys(told) if one in there), *(o for o in there if o not in told)]

    @property
    def note(self) -> str:
        """A person's note in the run's folder. A run with a note is never pruned."""
        path = self.folder / NOTE
        return path.read_text("utf-8", errors="replace").strip() if path.exists() else ""

    @property
    def main_point(self) -> str:
        """The failed checks, or the check with the least room to its limit; without checks, the message."""
        broken = [_said(check) for check in self.result.checks if not check.passed]
        missed = [f"missed: {control.name}" for control in self.result.controls if not control.caught]
        if wrong := "; ".join([*broken, *missed]) or self.result.message.partition("\n")[0]:
            return wrong
        tight = min(self.result.checks, key=room, default=None)
        # A run without checks only measures
        best = _said(tight, spare=tight.margin > 0) if tight else self.result.record.get("conditions")
        return "; ".join(str(said) for said in (*self.remarks, best) if said)

    @property
    def remarks(self) -> list[str]:
        """The remarks on the run's verdict."""
        found = self.result.record.get("remarks")
        return list(map(str, found)) if isinstance(found, list) else []

    def mapping(self, name: str) -> Mapping[str, Any]:
        """The entry `name` of the run's record, if it is a mapping; else an empty mapping."""
        found = self.result.record.get(name)
        return found if isinstance(found, Mapping) else {}

    def rows(self, name: str) -> list[Mapping[str, Any]]:
        """The entry `name` of the run's record, such as `clips`, if it is a list; else an empty list.
        Elements that are not mappings are left out."""
        found = self.result.record.get(name)
        return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def measured(check: Check) -> tuple[str, str, str]:
    """Figure, limits and margin of a check, as a person reads them."""
    margin = with_unit(check.margin, unit_of_difference(check.name))
    return with_unit(check.value, unit_of(check.name)), " and ".join(check.limits), margin


def read_runs(folder: Path) -> list[KeptRun]:
    """All runs in `results/`, or in a folder like it, the newest first; empty if there is none."""
    found = [
        KeptRun(run, read_kept(run), started_at)
        for run in folder.glob("*/*/")
        if run.parent.name != OWN_FOLDER and (started_at := _time_of(run.name))
    ]
    ends = Counter(one.run_id[-SHORT:] for one in found)
    named = [
        replace(one, short_id=one.run_id[-SHORT:] if ends[one.run_id[-SHORT:]] == 1 else one.run_id)
        for one in found
    ]
    return sorted(named, key=lambda one: (one.started_at, one.notebook, one.run_id), reverse=True)


def _time_of(run_id: str) -> datetime | None:
    """When a run began; None if the folder is no run."""
    found = _RUN_ID.fullmatch(run_id)
    try:
        return datetime.strptime(found[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC) if found else None
    except ValueError:
        return None


def read_kept(folder: Path) -> Result:
    """The entry of a folder, in whatever state its run is."""
    notebook = folder.parent.name
    try:
        found = read_result(folder) or _read_summary(folder) or _unfinished(folder)
        # An entry with the right name and the wrong shape cannot be read, either
        _ = found.figures, found.controls, found.parameters.keys(), f"{found.run_s:f}"
    except ResultError as error:
        return Result(notebook, {}, folder, UNREADABLE, error.message)
    except (OSError, AttributeError, KeyError, TypeError, ValueError) as error:
        why = f"{notebook}/{folder.name} holds no result: {type(error).__name__}: {error}."
        return Result(notebook, {}, folder, UNREADABLE, why)
    return found


def _read_summary(folder: Path) -> Result | None:
    """The result of a sweep or of all gates; its verdict is the worst of its runs' verdicts."""
    path = next((folder / name for name in (SWEEP, SUMMARY) if (folder / name).exists()), None)
    if path is None:
        return None
    record = read_object(path)
    rows = record.get("runs") or record.get("gates") or []
    ended = [(one.get("gate") or f"run {one.get('number')}", one["verdict"]) for one in rows]
    verdict = next((each for each in VERDICTS if each in {verdict for _, verdict in ended}), FAILED)
    wrong = [f"{name} {verdict}" for name, verdict in ended if verdict != PASSED]
    said = f"{len(ended) - len(wrong)} of {len(ended)} passed"
    parameters: dict[str, Any] = {name: record[name] for name in ("swept", "fast") if name in record}
    return Result(folder.parent.name, parameters, folder, verdict, "; ".join([said, *wrong]), record=record)


def _unfinished(folder: Path) -> Result:
    path = folder / BEGUN
    begun = read_object(path) if path.exists() else {}
    notebook, parameters = folder.parent.name, begun.get("parameters", {})
    if _goes_on(begun):
        ran_s = datetime.now(UTC).timestamp() - datetime.fromisoformat(begun["started_at"]).timestamp()
        return Result(notebook, parameters, folder, RUNNING, run_s=round(ran_s, 1))
    host = begun.get("host", socket.gethostname())
    elsewhere = "" if host == socket.gethostname() else f"Begun on {host}. "
    said = f"{elsewhere}No result; it left {left_in(folder)}."
    return Result(notebook, parameters, folder, INTERRUPTED, said)


def left_in(folder: Path) -> str:
    """The contents of a run's folder, in words."""
    found = []
    for path in sorted(folder.iterdir()) if folder.exists() else ():
        inside = len(list(path.iterdir())) if path.is_dir() else None
        if inside != 0 and path.name != BEGUN:
            found.append(path.name if inside is None else f"{path.name}/ ({inside})")
    return ", ".join(found) or "nothing"


def _goes_on(begun: Mapping[str, Any]) -> bool:
    """Whether the process that began a run still runs on this machine. A later process with the same id does
    not count."""
    if not begun or begun["host"] != socket.gethostname():
        return False
    try:
        process = psutil.Process(begun["pid"])
        since = datetime.fromisoformat(begun["started_at"]).timestamp()
        is_it = float(process.create_time()) <= since + _SLACK_S
        return is_it and bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def select(
    runs: Sequence[KeptRun],
    *,
    notebook: str = "",
    verdict: str = "",
    commit: str = "",
    variant: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
) -> list[KeptRun]:
    """The runs that match all given conditions; notebook and commit are compared by their beginnings."""
    return [
        one
        for one in runs
        if one.notebook.startswith(notebook)
        and verdict in ("", one.result.verdict)
        and one.commit.startswith(commit)
        and variant in ("", one.variant)
        and (since is None or one.started_at >= since)
        and (until is None or one.started_at < until)
    ]


def find_run(name: str, runs: Sequence[KeptRun]) -> KeptRun:
    """The run that `name` names.

    Parameters
    ----------
    name : str
        `latest`; the name of a notebook or its beginning, for its newest run that is no sweep; a run's id or
        its beginning or end; or a folder. With `~1` at the end, the run before it: of the same notebook, or
        of all runs for `latest`.
    runs : sequence of KeptRun
        The newest first.

    Raises
    ------
    ParameterError
        No run, or more than one, has this name.
    """
    stem, _, back = name.partition("~")
    if back and not back.isdecimal():
        raise ParameterError(
            f"{name!r} is no name of a run.", field="run", value=name, allowed="~ and a number, such as 30~1"
        )
    line = list(runs)
    if stem != LATEST:
        first = _first_of(stem, runs)
        of_it = [one for one in runs if one.notebook == first.notebook and (one == first or not one.sweep)]
        line = of_it[of_it.index(first) :]
    if int(back or 0) >= len(line):
        raise ParameterError(
            f"There is no run {name!r}: {stem} and those before are {len(line)}.", field="run", value=name
        )
    return line[int(back or 0)]


def _first_of(stem: str, runs: Sequence[KeptRun]) -> KeptRun:
    notebooks = {one.notebook for one in runs}
    of_name = {stem} & notebooks or {each for each in notebooks if stem and each.startswith(stem)}
    named = [one for one in runs if one.notebook in of_name and not one.sweep]
    if len(of_name) == 1 and named:
        return named[0]
    place = Path(stem).resolve()
    found = [
        one
        for one in runs
        if stem
        and (one.run_id.startswith(stem) or one.run_id.endswith(stem) or one.folder.resolve() == place)
    ]
    exact = [one for one in found if one.run_id == stem]
    if len(exact or found) == 1 and not of_name:
        return (exact or found)[0]
    many = sorted(of_name) or [f"{one.notebook}/{one.run_id}" for one in found]
    raise ParameterError(
        f"{'More than one run is' if many else 'There is no run'} {stem!r}.",
        field="run",
        value=stem,
        allowed=", ".join(many[:8]) or f"{LATEST}, a notebook, its number, or an id",
        mend="`kokoro-lab results list` shows what there is.",
    )


def _said(check: Check, *, spare: bool = False) -> str:
    value, limits, margin = measured(check)
    return f"{words_of(check.name)} {f'{margin} to spare' if spare else value} ({limits})"
