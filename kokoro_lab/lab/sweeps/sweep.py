"""A sweep: the grid of parameters, its runs, and one table of all runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from kokoro_lab.containers.plain_json import write_json
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab import notebooks, runs, tables
from kokoro_lab.lab.results import Result, made_by, new_run_folder, write_index
from kokoro_lab.lab.sweeps.cluster import on_cluster

SHOWN_CHARACTERS = 120
"""The number of characters of a message that a table shows."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """All runs, in the order of the grid, and the folder in which their table is kept."""

    notebook: str
    swept: tuple[str, ...]
    runs: tuple[Result, ...]
    folder: Path

    @property
    def verdicts(self) -> set[str]:
        return {one.verdict for one in self.runs}


def grid(name: str, swept: Mapping[str, str]) -> list[dict[str, Any]]:
    """Every combination of the values in `swept` (parameter → values, separated by commas).

    Raises
    ------
    ParameterError
        There is no such notebook or parameter, a value is not of its type, or no parameter is given.
    """
    notebook = notebooks.find_notebook(name)
    columns = []
    for key, values in swept.items():
        given = [value.strip() for value in values.split(",") if value.strip()]
        if not given:
            raise ParameterError(
                f"--sweep {key} has no value.", field="--sweep", value=values, allowed=f"{key}=A,B"
            )
        columns.append([notebooks.parse_parameters(notebook, {key: value})[key] for value in given])
    return [dict(zip(swept, row, strict=True)) for row in itertools.product(*columns)]


def run_sweep(
    name: str,
    swept: Mapping[str, str],
    parameters: Mapping[str, Any] | None = None,
    *,
    jobs: int = 1,
    cluster: str | None = None,
    done: Callable[[Result], None] = lambda one: None,
) -> Sweep:
    """Execute a notebook for every combination of the values in `swept`, and keep one table of all runs.

    Parameters
    ----------
    swept : mapping
        Parameter → values, separated by commas.
    parameters : mapping, optional
        Parameters that all runs share.
    jobs : int
        How many runs this machine executes at a time. It should be 1 if times matter: runs that share cores
        disturb each other's timing.
    cluster : str, optional
        Address of a Dask scheduler, such as `tcp://127.0.0.1:8786`: its workers execute the runs instead, as
        many at a time as they have threads. Workers need this version of kokoro-lab and its notebooks.
    done : callable
        Called with each run as it ends.

    Raises
    ------
    ParameterError
        There is no such notebook, parameter or cluster. A run that fails or crashes does not raise: it has a
        row.
    """
    notebook = notebooks.find_notebook(name)
    given = notebooks.parse_parameters(notebook, parameters or {})
    rows = [{**given, **row} for row in grid(name, swept)]
    if cluster:
        ended = on_cluster(cluster, notebook, rows)
    else:
        ended = runs.run_apart([(notebook.stem, row) for row in rows], jobs)
    found = {}
    for number, one in ended:
        found[number] = one
        done(one)
    folder = new_run_folder(notebook.stem, "sweep-")
    sweep = Sweep(notebook.stem, tuple(swept), tuple(found[number] for number in range(len(rows))), folder)
    _keep(sweep, cluster)
    return sweep


def table(sweep: Sweep, *, brief: bool = False) -> pd.DataFrame:
    """A row for each run: parameters, verdict, seconds, message, where (the worker), run_dir (the folder of
    its results), and every figure.

    With `brief`, only the parameters that vary, the figures with limits, and the beginning of the message.
    """
    found = pd.DataFrame(
        [
            dict(one.parameters)
            | {"verdict": one.verdict, "seconds": round(one.run_s, 1)}
            | one.figures
            | {"message": one.message, "where": one.where, "run_dir": str(one.run_dir or "")}
            for one in sweep.runs
        ]
    )
    if not brief:
        return found
    checks = [check.name for one in sweep.runs for check in one.checks]
    where = ["where"] if found["where"].any() else []
    columns = [*sweep.swept, "verdict", "seconds", *checks, "message", *where]
    begun = found.message.str.partition("\n")[0].str[:SHOWN_CHARACTERS]
    return found.assign(message=begun)[list(dict.fromkeys(columns))].map(_said)


def _said(value: Any) -> str:
    if value is None or value != value:  # a run that crashed has no figure
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _keep(sweep: Sweep, cluster: str | None) -> None:
    counts = ", ".join(
        f"{sum(one.verdict == verdict for one in sweep.runs)} {verdict}" for verdict in sorted(sweep.verdicts)
    )
    title = f"{sweep.notebook}: sweep over {', '.join(sweep.swept)}"
    tables.write(sweep.folder, "sweep", title, f"{len(sweep.runs)} runs: {counts}", table(sweep, brief=True))
    table(sweep).to_csv(sweep.folder / "sweep.csv", index=False)
    record = {
        "notebook": sweep.notebook,
        "swept": list(sweep.swept),
        "cluster": bool(cluster),
        "runs": [
            {"number": number}
            | {name: getattr(one, name) for name in ("parameters", "verdict", "message", "run_s", "where")}
            | {"folder": str(one.run_dir or ""), "result": one.record}
            for number, one in enumerate(sweep.runs)
        ],
        **made_by(),
    }
    write_json(sweep.folder / "sweep.json", record)
    write_index(sweep.folder.parent.parent)
