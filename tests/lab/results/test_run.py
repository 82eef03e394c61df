"""A run leaves evidence, and a gate cannot be passed by measuring nothing."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import kokoro_lab
from kokoro_lab.errors import GateFailed
from kokoro_lab.lab.results import Check, NegativeControl, open_run
from kokoro_lab.speech.engine import Engine


@pytest.mark.parametrize(
    ("check", "passed"),
    [
        (Check("x_db", 1.0, low=0.0, high=2.0), True),
        (Check("x_db", 0.0, low=0.0), True),
        (Check("x_db", 2.1, high=2.0), False),
        (Check("x_db", -0.1, low=0.0), False),
        (Check("x_db", math.nan, low=0.0), False),
        (Check("x_db", math.inf), False),
    ],
)
def test_a_check_has_limits(check: Check, passed: bool) -> None:
    assert check.passed is passed


def result(folder: Path) -> dict[str, object]:
    loaded: dict[str, object] = json.loads((folder / "result.json").read_text())
    return loaded


def test_a_passed_run_says_what_it_ran_on(hum: Engine, tmp_path: Path) -> None:
    run = open_run("99_test", tmp_path, {"texts": 3})
    run.finish(hum, checks=[Check("x_db", 1.0, high=2.0)], figures={"y_s": math.nan})
    found = result(tmp_path)
    assert found["verdict"] == "passed"
    assert found["parameters"] == {"texts": 3}
    assert found["figures"] == {"y_s": None}
    for key in ("git", "model_sha256", "versions", "machine", "requested_provider", "active_provider"):
        assert found[key]
    toolchain: Any = found["toolchain"]
    assert {"compiler", "compiler_flags", "onnxruntime", "onnxruntime_build", "onnx"} <= set(toolchain)
    assert all(len(digest) == 64 for digest in toolchain["shipped_sha256"].values())
    rooms = (Path(kokoro_lab.__file__).parent / name for name in ("weights", "graphs", "model", "text"))
    shipped = {path.name for room in rooms for path in room.iterdir() if path.suffix in (".npz", ".json")}
    assert set(toolchain["shipped_sha256"]) == shipped
    assert found["conversion"] == {}, "published weights are run as they are"
    options = {"threads", "optimisation", "memory_pattern", "spinning", "memory_arena_size_mb", "native"}
    assert options <= set(found["session"])  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("checks", "controls"),
    [
        ([], []),
        ([Check("x_db", 3.0, high=2.0)], []),
        ([Check("x_db", math.nan, high=2.0)], []),
        ([Check("x_db", 1.0, high=2.0)], [NegativeControl("a click", caught=False)]),
    ],
)
def test_a_failed_run_writes_before_it_raises(
    hum: Engine, tmp_path: Path, checks: list[Check], controls: list[NegativeControl]
) -> None:
    with pytest.raises(GateFailed):
        open_run("99_test", tmp_path).finish(hum, checks=checks, controls=controls)
    assert result(tmp_path)["verdict"] == "failed"
    assert result(tmp_path)["failures"]


@pytest.mark.model
def test_a_result_says_how_its_graphs_were_made(engine: Engine, tmp_path: Path) -> None:
    open_run("99_test", tmp_path).finish(engine, checks=[Check("x_db", 1.0)])
    made: Any = result(tmp_path)["conversion"]
    assert made["source_sha256"] == result(tmp_path)["model_sha256"]
    assert made["variant"] == "fp32"
    assert {"recipe", "onnx", "onnxruntime", "passes"} <= set(made)
    assert {"prosody", "trunk", "vocoder"} <= set(made["graphs"])
    assert all(len(graph["sha256"]) == 64 for graph in made["graphs"].values())


def test_a_table_is_a_file_that_the_result_names_with_its_units(hum: Engine, tmp_path: Path) -> None:
    run = open_run("99_test", tmp_path)
    frame = pd.DataFrame({"pause_ms": [12.5, 80.0], "score": [1, 2]}, index=pd.Index(["a", "b"], name="clip"))
    path = run.keep_table("pauses", frame, units={"score": "points"})
    run.finish(hum, checks=[Check("x_db", 1.0, high=2.0)])
    assert path.read_text() == "clip,pause_ms,score\na,12.5,1\nb,80.0,2\n"
    (table,) = result(tmp_path)["tables"]  # type: ignore[attr-defined]
    assert table == {
        "name": "pauses",
        "file": "tables/pauses.csv",
        "row_count": 2,
        "units": {"clip": "", "pause_ms": "ms", "score": "points"},
    }


def test_a_run_in_a_notebook_is_under_way_until_it_ends(hum: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("kokoro_lab.lab.results.run.new_run_folder", lambda name: tmp_path / name / "run")
    run = open_run("99_test")
    assert json.loads((run.folder / "begun.json").read_text())["pid"] == os.getpid()
    run.finish(hum, checks=[Check("x_db", 1.0, high=2.0)])
    assert not (run.folder / "begun.json").exists()
