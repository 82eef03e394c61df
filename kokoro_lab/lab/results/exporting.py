"""Exports all runs as one table: a DataFrame, CSV, Parquet, or runs of an MLflow server."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kokoro_lab.typed import require_choice
from kokoro_lab.errors import ParameterError
from kokoro_lab.extras import imported
from kokoro_lab.lab.results.compared import CAUGHT, figures_of
from kokoro_lab.lab.results.kept import KeptRun, read_runs
from kokoro_lab.lab.results.records import PASSED
from kokoro_lab.lab.results.run import results_folder

if TYPE_CHECKING:
    import pandas as pd

MLFLOW = "pip install mlflow-skinny; or mlflow for a URI such as sqlite:///mlflow.db."
_BATCH = 100
"""The most parameters or tags that MLflow takes in one request. Of metrics, it takes more."""
_RUN_TAG = "kokoro_lab.run"


def load(folder: str | Path | None = None) -> pd.DataFrame:
    """A table of all runs in a folder of results, the newest first.

    Parameters
    ----------
    folder : str or Path, optional
        Folder of results; `results/` of the repository unless given.

    Returns
    -------
    DataFrame
        A row for each run. Columns: facts such as `notebook`, `run_id`, `verdict`, `started_at` (UTC),
        `run_s`; then the run's parameters as `parameters.<name>`, and each number as `checks.<name>`,
        `controls.<name>` (1 where the fault was caught) and `figures.<name>`. A column is NaN for a run
        without that value.
    """
    return table(read_runs(Path(folder) if folder else results_folder()))


def table(runs: Sequence[KeptRun]) -> pd.DataFrame:
    """The table of `load`, for these runs."""
    import pandas as pd

    return pd.DataFrame([_facts(run) | _parameters(run) | _numbers(run) for run in runs])


def _facts(run: KeptRun) -> dict[str, Any]:
    return {
        "notebook": run.notebook,
        "run_id": run.run_id,
        "verdict": run.result.verdict,
        "message": run.result.message,
        "started_at": run.started_at,
        "run_s": float(run.result.run_s),
        "variant": run.variant,
        "provider": str(run.result.record.get("active_provider") or ""),
        "model_sha256": str(run.result.record.get("model_sha256") or ""),
        "commit": run.commit,
        "dirty": run.dirty,
        "cpu": str(run.mapping("machine").get("cpu") or ""),
        "note": run.note,
        "folder": str(run.folder),
    }


def _parameters(run: KeptRun) -> dict[str, Any]:
    return {f"parameters.{name}": value for name, value in run.result.parameters.items()}


def _numbers(run: KeptRun) -> dict[str, float]:
    """All numbers of a run, named `checks.…`, `controls.…` or `figures.…`."""
    kinds = {check.name: "checks" for check in run.result.checks}
    kinds |= {f"{CAUGHT}{control.name}": "controls" for control in run.result.controls}
    found = figures_of(run).items()
    return {f"{kinds.get(name, 'figures')}.{name.removeprefix(CAUGHT)}": value for name, value in found}


def export(runs: Sequence[KeptRun], path: Path) -> Path:
    """Write the `table` of runs to a file: CSV or Parquet, as the ending of its name says.

    Raises
    ------
    ParameterError
        The name has another ending, or the file cannot be written.
    MissingExtra
        The package that writes Parquet is not installed.
    """
    require_choice("path", path.suffix, (".csv", ".parquet"), f"{path.name} is neither CSV nor Parquet.")
    frame = table(runs)
    try:
        if path.suffix == ".csv":
            frame.to_csv(path, index=False)
        else:
            duckdb = imported("duckdb", extra="parquet")
            # A column of Parquet has one type: a parameter that is a number in one run and a list in another
            # is text
            mixed = {name: "string" for name in frame if frame[name].dtype == object}
            duckdb.connect().from_df(frame.astype(mixed)).write_parquet(str(path))
    except OSError as error:
        raise ParameterError(
            f"{path} cannot be written: {error.strerror or error}.", field="path", value=str(path)
        ) from error
    return path


def export_to_mlflow(runs: Sequence[KeptRun], uri: str) -> int:
    """Make a run in MLflow for each of `runs` that is not there yet. Each notebook is an experiment.

    Parameters
    ----------
    uri : str
        What MLflow calls a tracking URI: the address of a server, or of a database.

    Returns
    -------
    int
        How many runs were new to MLflow.

    Raises
    ------
    ParameterError
        MLflow is not installed, or refuses; the error says why.
    """
    try:
        mlflow: Any = import_module("mlflow")
    except ModuleNotFoundError as error:
        raise ParameterError("MLflow's client is not installed.", field="--mlflow", mend=MLFLOW) from error
    try:
        client = mlflow.MlflowClient(tracking_uri=uri)
        return sum(_keep(client, mlflow.entities, run) for run in runs)
    except mlflow.MlflowException as error:
        raise ParameterError(f"MLflow refuses: {error}", field="--mlflow", value=uri) from error


def _keep(client: Any, entities: Any, run: KeptRun) -> bool:
    name = f"kokoro-lab/{run.notebook}"
    known = client.get_experiment_by_name(name)
    experiment = known.experiment_id if known else client.create_experiment(name)
    tag = f"{run.notebook}/{run.run_id}"
    if client.search_runs([experiment], f"tags.`{_RUN_TAG}` = '{tag}'", max_results=1):
        return False
    began_ms = int(run.started_at.timestamp() * 1000)
    ended_ms = began_ms + int(run.result.run_s * 1000)
    facts = {key: str(value) for key, value in _facts(run).items() if value != ""} | {_RUN_TAG: tag}
    made = client.create_run(experiment, start_time=began_ms, run_name=run.run_id, tags=facts).info.run_id
    numbers = {_metric(key): value for key, value in _numbers(run).items() if value == value}
    metrics = [entities.Metric(key, value, ended_ms, 0) for key, value in numbers.items()]
    params = [entities.Param(key, str(value)[:6000]) for key, value in run.result.parameters.items()]
    for start in range(0, max(len(metrics), len(params)), _BATCH):
        batch = slice(start, start + _BATCH)
        client.log_batch(made, metrics=metrics[batch], params=params[batch])
    client.set_terminated(made, "FINISHED" if run.result.verdict == PASSED else "FAILED", ended_ms)
    return True


def _metric(name: str) -> str:
    """A name that MLflow allows for a metric: letters, digits, and some marks."""
    return "".join(mark if mark.isalnum() or mark in "_-. /" else "_" for mark in name)
