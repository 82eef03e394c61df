"""HTML pages that open offline: the index of a folder of results, and the comparison of two runs."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kokoro_lab.containers.pcm import write_whole
from kokoro_lab.lab.markup import filled
from kokoro_lab.lab.results import compared
from kokoro_lab.lab.results.kept import SHORT, VERDICTS, KeptRun, read_runs
from kokoro_lab.lab.results.units import unit_of, with_unit, words_of

INDEX = "index.html"
COLUMNS = (
    "run",
    "notebook",
    "verdict",
    "when",
    "variant",
    "commit",
    "duration",
    "worst margin, or what failed",
)
_HISTORY = 30
"""The most runs of a notebook that its curve shows."""


def write_index(folder: Path) -> Path:
    """Write `index.html` over all runs of a folder of results. It replaces an earlier page in one step.

    Raises
    ------
    ParameterError
        The folder cannot be written.
    """
    runs = read_runs(folder)
    by_notebook: dict[str, list[KeptRun]] = {}
    for run in runs:
        by_notebook.setdefault(run.notebook, []).append(run)
    page = filled(
        "results/templates/index",
        rows=[row(run, folder) for run in runs],
        columns=COLUMNS,
        notebooks=[_notebook(name, found) for name, found in sorted(by_notebook.items())],
        verdicts=[each for each in VERDICTS if each in {run.result.verdict for run in runs}],
        newest=f"{runs[0].started_at:%Y-%m-%d %H:%M}" if runs else "",
    )
    folder.mkdir(parents=True, exist_ok=True)
    return write_whole(folder / INDEX, page.encode())


def row(run: KeptRun, beside: Path | None = None) -> dict[str, Any]:
    """A run as the cells of a table with `COLUMNS`, and a link from a page in the folder `beside` to the
    run's report or folder."""
    run_s = run.result.run_s
    report = run.report
    link = report or (run.folder if run.folder.exists() else None)
    return {
        "short_id": run.short_id,
        "run_id": run.run_id,
        "notebook": run.notebook,
        "verdict": run.result.verdict,
        "when": f"{run.started_at:%Y-%m-%d %H:%M}",
        "key": f"{run.started_at:%Y%m%d%H%M%S}",
        "variant": run.variant,
        "commit": run.commit[:7] + (" dirty" if run.dirty else ""),
        "run_s": run_s,
        "duration": "" if not run_s else f"{run_s:.0f} s" if run_s < 120 else f"{run_s / 60:.0f} min",
        "point": run.main_point,
        "note": run.note,
        "link": _link(link, beside) if link and beside else "",
    }


def _link(to: Path, beside: Path) -> str:
    return quote(Path(os.path.relpath(to.resolve(), beside.resolve())).as_posix())


def _notebook(name: str, runs: Sequence[KeptRun]) -> dict[str, Any]:
    """A notebook's newest verdict, and the curve of its main figure."""
    figure = _main_figure(runs)
    series = [one.result.figures.get(figure) for one in reversed(runs[:_HISTORY])]
    values = [value for value in series if isinstance(value, (int, float)) and math.isfinite(value)]
    ends = [with_unit(value, unit_of(figure)) for value in (values[0], values[-1])] if values else []
    return {
        "name": name,
        "verdict": runs[0].result.verdict,
        "count": len(runs),
        "figure": words_of(figure) if values else "",
        "value": ends[-1] if ends else "",
        "points": _points(values),
        "history": f"{words_of(figure)}, from {ends[0]} to {ends[1]} in {len(values)} runs" if ends else "",
    }


def _main_figure(runs: Sequence[KeptRun]) -> str:
    """The main figure of the newest run with checks: the first that is no count, else the first."""
    checks = next((run.result.checks for run in runs if run.result.checks), [])
    names = [check.name for check in checks]
    return next((name for name in names if not name.endswith("_count")), names[0] if names else "")


def _points(values: Sequence[float]) -> list[str]:
    """The values as points of a curve that is 100 wide and 20 high."""
    low, high = (min(values), max(values)) if values else (0.0, 0.0)
    across, up = 100 / max(len(values) - 1, 1), 20 / ((high - low) or 1.0)
    return [f"{place * across:.1f},{20 - (value - low) * up:.1f}" for place, value in enumerate(values)]


def write_comparison(a: KeptRun, b: KeptRun, path: Path) -> Path:
    """Write a page of two runs of one notebook, with the sounds of both side by side.

    Raises
    ------
    ParameterError
        The runs are of different notebooks, or `path` cannot be written.
    """
    changes = compared.compare_figures(a, b)
    path.parent.mkdir(parents=True, exist_ok=True)
    page = filled(
        "results/templates/compare",
        notebook=a.notebook,
        a=row(a, path.parent),
        b=row(b, path.parent),
        sentence=compared.sentence(changes, a, b),
        changed=[one for one in changes if one.change != compared.SAME],
        same=[one for one in changes if one.change == compared.SAME],
        differences=compared.differences(a, b),
        sounds=[
            (name, same, _link(a.folder / of_a, path.parent), _link(b.folder / of_b, path.parent))
            for name, of_a, of_b, same in compared.pairs_of_sounds(a, b)
        ],
    )
    return write_whole(path, page.encode())


def comparison_path(folder: Path, a: KeptRun, b: KeptRun) -> Path:
    """Where the page of two runs is kept, below a folder of results."""
    return folder / "compared" / f"{a.notebook}-{a.run_id[-SHORT:]}-{b.run_id[-SHORT:]}.html"
