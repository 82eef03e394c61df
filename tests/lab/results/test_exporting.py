"""All runs as one table: what it holds, and that a file holds the same."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from kokoro_lab.errors import MissingExtra, ParameterError
from kokoro_lab.lab.results import load
from kokoro_lab.lab.results.exporting import export, export_to_mlflow, table
from kokoro_lab.lab.results.kept import read_runs
from tests.lab.results.planted import COMMIT, plant


def test_a_row_a_run_with_facts_parameters_checks_and_figures(tmp_path: Path) -> None:
    found = load(plant(tmp_path)).set_index("run_id")
    assert len(found) == 11
    second = found.loc["20260102T100000Z-aa02"]
    assert (second.notebook, second.verdict, second.variant) == ("30_loudness_gate", "failed", "int8")
    assert (second["parameters.texts"], second["checks.stream_true_peak_dbtp"]) == (3, -0.4)
    assert (second["figures.rtf"], second["controls.3 dB louder"]) == (0.1, 1.0)
    assert second.dirty
    first = found.loc["20260101T100000Z-aa01"]
    assert (first.commit, str(first.started_at)) == (COMMIT, "2026-01-01 10:00:00+00:00")
    assert pd.isna(found.loc["20260110T100000Z-aa10"]["figures.rtf"])
    assert len(load(tmp_path / "nowhere")) == 0


def test_a_csv_holds_the_table(tmp_path: Path) -> None:
    runs = read_runs(plant(tmp_path))
    back = pd.read_csv(export(runs, tmp_path / "all.csv"))
    assert list(back.columns) == list(load(tmp_path).columns)
    assert list(back["run_id"]) == [run.run_id for run in runs]
    assert back["checks.stream_true_peak_dbtp"].dropna().tolist() == [-0.4, -1.2]


def test_parquet_holds_the_table(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="the extra `parquet`: make env")
    runs = read_runs(plant(tmp_path))
    mixed = [[1, "a"], {"b": 2}, True, "all", None]
    for run, value in zip(runs, mixed, strict=False):
        run.result.parameters["mixed"] = value  # type: ignore[index]
    path = export(runs, tmp_path / "all.parquet")
    back = duckdb.connect().read_parquet(str(path)).df()
    assert list(back.columns) == list(table(runs).columns)
    assert list(back["run_id"]) == [run.run_id for run in runs]
    assert back["checks.stream_true_peak_dbtp"].dropna().tolist() == [-0.4, -1.2]
    assert str(back["started_at"].dtype).startswith("datetime64")
    assert back["parameters.mixed"].dropna().tolist() == ["[1, 'a']", "{'b': 2}", "True", "all"]


def test_what_is_no_table_or_not_installed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ParameterError, match=r"\.csv, \.parquet"):
        export([], tmp_path / "all.xlsx")
    with pytest.raises(ParameterError, match="cannot be written"):
        export([], tmp_path / "nowhere/all.csv")
    for module in ("duckdb", "mlflow"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match="kokoro-lab\\[parquet\\]"):
        export([], tmp_path / "all.parquet")
    with pytest.raises(ParameterError, match="pip install mlflow-skinny"):
        export_to_mlflow([], "http://127.0.0.1:1")


class StandIn:
    """MLflow's client, as far as it is used: it keeps what it is given."""

    def __init__(self) -> None:
        self.runs: list[dict[str, Any]] = []

    def get_experiment_by_name(self, name: str) -> Any:
        known = any(run["experiment"] == name for run in self.runs)
        return SimpleNamespace(experiment_id=name) if known else None

    def create_experiment(self, name: str) -> str:
        return name

    def search_runs(self, experiments: list[str], wanted: str, max_results: int) -> list[Any]:
        return [run for run in self.runs if f"= '{run['tags']['kokoro_lab.run']}'" in wanted]

    def create_run(self, experiment: str, start_time: int, run_name: str, tags: dict[str, str]) -> Any:
        self.runs.append(
            {"experiment": experiment, "name": run_name, "tags": tags, "metrics": {}, "params": {}}
        )
        return SimpleNamespace(info=SimpleNamespace(run_id=len(self.runs) - 1))

    def log_batch(self, run: int, metrics: list[Any], params: list[Any]) -> None:
        self.runs[run]["metrics"] |= {key: value for key, value, *_ in metrics}
        self.runs[run]["params"] |= dict(params)

    def set_terminated(self, run: int, status: str, end_time: int) -> None:
        self.runs[run]["status"] = status


def test_mlflow_is_given_what_it_has_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client, mlflow = StandIn(), ModuleType("mlflow")
    vars(mlflow).update(
        MlflowClient=lambda tracking_uri: client,
        MlflowException=RuntimeError,
        entities=SimpleNamespace(Metric=lambda *given: given, Param=lambda *given: given),
    )
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    runs = read_runs(plant(tmp_path))
    assert export_to_mlflow(runs, "http://127.0.0.1:1") == 11
    assert export_to_mlflow(runs, "http://127.0.0.1:1") == 0
    second = next(run for run in client.runs if run["name"].endswith("aa02"))
    assert second["experiment"] == "kokoro-lab/30_loudness_gate"
    assert second["metrics"]["checks.stream_true_peak_dbtp"] == -0.4
    assert (second["params"]["texts"], second["status"]) == ("3", "FAILED")
