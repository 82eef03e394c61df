"""Writes a run's folder: figures, verdict, tables, clips and environment.

`results/<notebook>/<run_id>/result.json` is the only thing that the checklist and CI read. It is
written before a failed gate raises, so that a failure leaves evidence.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kokoro_lab.containers import save
from kokoro_lab.containers.plain_json import write_json
from kokoro_lab.datatypes import Clip
from kokoro_lab.errors import GateFailed
from kokoro_lab.lab.results.records import BEGUN, FAILED, PASSED, RESULT, Check, NegativeControl, Result
from kokoro_lab.lab.results.units import unit_of
from kokoro_lab.native.toolchain import toolchain
from kokoro_lab.provenance import git_state, machine, repository_root, versions

if TYPE_CHECKING:
    import pandas as pd

    from kokoro_lab.lab.clips import ClipsView, JudgedClip, Limits

    # For type checking alone: reading results need not load a model
    from kokoro_lab.speech.engine import Engine


class Finished(dict[str, Any]):
    """What `Run.finish` wrote. At the end of a notebook it shows itself as the header of the run's report."""

    def __init__(self, written: Mapping[str, Any], folder: Path) -> None:
        super().__init__(written)
        self.folder = folder

    def __repr__(self) -> str:
        return f"{self['notebook']}: {self['verdict']}"

    def _repr_html_(self) -> str:
        from kokoro_lab.lab.markup import own
        from kokoro_lab.lab.report.header import header_html

        about = self["notebook"], self["parameters"], self.folder, self["verdict"]
        result = Result(*about, run_s=self["run_s"], record=self)
        base = f"{Path(os.path.relpath(self.folder)).as_posix()}/"  # links are relative to the notebook
        return f"{header_html(result, base)}<style>{own('report/header.css')}</style>"


class Run:
    """One run's folder, open for writing. Made by `open_run`."""

    def __init__(
        self, notebook: str, folder: Path, parameters: Mapping[str, Any], *, reported: bool = True
    ) -> None:
        self.notebook = notebook
        self.folder = folder
        self.parameters = dict(parameters)
        self._started = time.time()
        self._reported = reported  # whether the folder will have a report beside its sounds
        self._tables: list[dict[str, Any]] = []
        self._clips: list[dict[str, Any]] = []

    def keep_audio(self, name: str, clip: Clip) -> Path:
        """Write a clip to `audio/<name>.wav` of this run."""
        return save(clip, self.folder / "audio" / f"{name}.wav")

    def keep_table(self, name: str, frame: pd.DataFrame, units: Mapping[str, str] | None = None) -> Path:
        """Write a table to `tables/<name>.csv` of this run, and name it with its units in `result.json`.

        Parameters
        ----------
        name : str
            Name of the file, without its ending.
        frame : DataFrame
            A row for each thing that was measured. An index that has a name is a column of the file.
        units : mapping, optional
            Column → unit, for columns whose names do not end in it.
        """
        if any(frame.index.names):
            frame = frame.reset_index()
        path = self.folder / "tables" / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        frame.to_csv(path, index=False)
        columns = [str(column) for column in frame.columns]
        self._tables.append(
            {
                "name": name,
                "file": path.relative_to(self.folder).as_posix(),
                "row_count": len(frame),
                "units": {column: unit_of(column) for column in columns} | dict(units or {}),
            }
        )
        return path

    def keep_clips(self, clips: Iterable[JudgedClip], limits: Limits) -> ClipsView:
        """Write the sounds of the ten worst clips to `audio/`, and name them in `result.json`.

        Parameters
        ----------
        clips : iterable of JudgedClip
            All clips that were judged, in any order.
        limits : mapping
            Figure → the least and the most that it may be (None for no limit); these figures are drawn.

        Returns
        -------
        ClipsView
            The view of the clips, to be the last expression of a cell.
        """
        from kokoro_lab.lab.clips import WORST_COUNT, ClipsView, kept, worst_first

        ranked = worst_first(clips)
        worst = [kept(clip, place, self.folder) for place, clip in enumerate(ranked[:WORST_COUNT], 1)]
        self._clips = [each.record(self.folder) for each in worst]
        return ClipsView(worst, ranked, limits, self.folder, embedded=not self._reported)

    def finish(
        self,
        ran: Engine | Mapping[str, Any],
        *,
        checks: Sequence[Check],
        controls: Sequence[NegativeControl] = (),
        figures: Mapping[str, float] | None = None,
        details: Mapping[str, Any] | None = None,
        remarks: Sequence[str] = (),
    ) -> Finished:
        """Write `result.json` with the verdict, and show the verdict in a notebook; then raise if it is a
        failure.

        Parameters
        ----------
        ran : Engine or mapping
            What was measured; its weights, provider and options are recorded. For an engine in another
            process, its facts.
        checks : sequence of Check
            Every figure that has a limit. A run without checks fails, since nothing was measured.
        controls : sequence of NegativeControl
            Every injected fault. A fault that was not caught fails the run: the gate is broken.
        figures : mapping, optional
            Figures without a limit, names ending in units.
        details : mapping, optional
            Tables that stand beside the figures, by their names.
        remarks : sequence of str
            Reservations about the verdict, such as "no time decides".

        Returns
        -------
        Finished
            The record that was written.

        Raises
        ------
        GateFailed
            The verdict is "failed"; the error says which checks and controls.
        """
        failures = [str(c) for c in checks if not c.passed] + [str(c) for c in controls if not c.caught]
        if not checks:
            failures.append("nothing was measured")
        result = {
            "notebook": self.notebook,
            "run_id": self.folder.name,
            "verdict": FAILED if failures else PASSED,
            "failures": failures,
            "remarks": list(remarks),
            "checks": [{**asdict(c), "passed": c.passed} for c in checks],
            "controls": [asdict(c) for c in controls],
            "figures": dict(figures or {}),
            "parameters": self.parameters,
            "tables": self._tables,
            "clips": self._clips,
            "started_at": datetime.fromtimestamp(self._started, UTC).isoformat(timespec="seconds"),
            "run_s": round(time.time() - self._started, 3),
            **(ran if isinstance(ran, Mapping) else facts_of(ran)),
            **(details or {}),
            **made_by(),
        }
        write_json(self.folder / RESULT, result)
        if not self._reported:
            (self.folder / BEGUN).unlink(missing_ok=True)
        finished = Finished(result, self.folder)
        if failures:
            if ipython := _ipython():
                ipython.display.display(finished)
            raise GateFailed(f"{self.notebook}: " + "; ".join(failures[:8]))
        return finished


def facts_of(engine: Engine) -> dict[str, Any]:
    """The facts of an engine for a result: weights, how they were converted, provider and options."""
    return {
        "variant": engine.config.variant,
        "model_sha256": engine.model_sha256,
        "requested_provider": engine.config.provider,
        "active_provider": engine.active_provider,
        "session": engine.session_record,
        "conversion": dict(engine.conversion),
    }


def made_by() -> dict[str, Any]:
    """The environment that every result records: versions, toolchain, commit, machine."""
    return {"versions": versions(), "toolchain": toolchain(), "git": git_state(), "machine": machine()}


def open_run(notebook: str, run_dir: str | Path = "", parameters: Mapping[str, Any] | None = None) -> Run:
    """The folder to write to: `run_dir` if papermill gave one, else a new one under `results/`."""
    folder = Path(run_dir) if run_dir else new_run_folder(notebook)
    (folder / "audio").mkdir(parents=True, exist_ok=True)
    if not run_dir:  # else the runner has written that note
        note_beginning(folder, notebook, parameters or {})
    return Run(notebook, folder, parameters or {}, reported=bool(run_dir))


def note_beginning(run_dir: Path, name: str, values: Mapping[str, Any]) -> None:
    """Write the note that marks a run as under way. If the process of the note is gone, the run was killed.

    The runner removes the note at the end.
    """
    began = {
        "notebook": name,
        "parameters": dict(values),
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    write_json(run_dir / BEGUN, began)


def results_folder() -> Path:
    """Where runs write: `results/` of the repository."""
    return repository_root() / "results"


def new_run_folder(notebook: str, prefix: str = "") -> Path:
    """The path of a folder for a new run, which no other run has. It has the time in its name, so that the
    names of a notebook's runs sort by time."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return results_folder() / notebook / f"{prefix}{stamp}-{secrets.token_hex(2)}"


def _ipython() -> Any:
    """The IPython shell in a notebook; None elsewhere."""
    ipython: Any = sys.modules.get("IPython")
    return ipython if ipython and ipython.get_ipython() else None
