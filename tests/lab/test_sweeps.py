"""Every combination has a row, whatever becomes of it, here and on a cluster."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner
from click.testing import Result as Called
from distributed import Client, LocalCluster

from kokoro_lab.__main__ import main
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.results import Result
from kokoro_lab.lab.sweeps import Sweep, grid, run_sweep, table
from kokoro_lab.lab.sweeps.cluster import fingerprint
from tests import toy_notebooks

CRASH = "assert count != 7, 'seven'"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one notebook: it fails from 6 on, misses a fault at 4, crashes at 7."""
    toy_notebooks.make_repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    body = toy_notebooks.BODY.format(name="01_toy")
    toy_notebooks.write(tmp_path / "notebooks/01_toy.ipynb", toy_notebooks.PARAMETERS, CRASH, body)
    return tmp_path


def call(*arguments: str) -> Called:
    return CliRunner().invoke(main, ["run", *arguments])


def test_the_grid_has_every_combination(lab: Path) -> None:
    assert grid("01_toy", {"count": "1, 2", "deep": "true,false"}) == [
        {"count": 1, "deep": True},
        {"count": 1, "deep": False},
        {"count": 2, "deep": True},
        {"count": 2, "deep": False},
    ]


@pytest.mark.parametrize(
    ("name", "values"), [("count", ""), ("count", " , "), ("count", "1,x"), ("cuont", "1")]
)
def test_a_grid_that_cannot_be_is_refused_before_anything_runs(lab: Path, name: str, values: str) -> None:
    with pytest.raises(ParameterError):
        run_sweep("01_toy", {name: values})
    assert not (lab / "results").exists()


@pytest.mark.test_all
@pytest.mark.notebook
def test_a_sweep_keeps_one_table_and_names_its_failures(lab: Path) -> None:
    done = call("01_toy", "--sweep", "count=6,7", "-p", "deep=true", "--jobs", "2")
    assert done.exit_code == 3, done.output  # one broke
    assert "2 of 2: " in done.stderr
    (kept,) = (lab / "results/01_toy").glob("sweep-*")
    found = pd.read_csv(kept / "sweep.csv", keep_default_na=False)
    assert list(found["count"]) == [6, 7]
    assert list(found.verdict) == ["failed", "crashed"]
    assert set(found.deep) == {True}
    assert [message.partition(":")[0] for message in found.message] == ["GateFailed", "AssertionError"]
    for written in (done.stdout, (kept / "sweep.md").read_text("utf-8")):
        assert "| count | verdict | seconds | message |" in written
        assert "seven" in written
    record = json.loads((kept / "sweep.json").read_text())
    assert record["runs"][0]["result"]["verdict"] == "failed"
    assert Path(record["runs"][0]["folder"], "report.html").is_file()
    assert f"{kept.name}/sweep.html" in (kept.parents[1] / "index.html").read_text()


def test_a_process_that_is_killed_takes_no_other_run_along(
    lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kokoro_lab.lab.runs.run_notebook", toy_notebooks.dies_at_3)
    sweep = run_sweep("01_toy", {"count": "3,4"}, jobs=2)
    assert [one.verdict for one in sweep.runs] == ["crashed", "passed"]
    assert "BrokenProcessPool" in sweep.runs[0].message
    assert sweep.runs[1].run_dir == lab


def test_a_table_is_brief_or_has_it_all() -> None:
    checks = [{"name": "x_db", "value": 1.23456, "low": 0.0, "high": None}]
    record = {"checks": checks, "figures": {"y_s": 2.0}}
    ran = Result("01_toy", {"count": 3, "deep": True}, Path("runs/1"), "passed", "", 1.0, record)
    broke = Result(
        "01_toy", {"count": 4, "deep": True}, None, "crashed", "first line\nsecond", where="tcp://one"
    )
    sweep = Sweep("01_toy", ("count",), (ran, broke), Path())
    brief = table(sweep, brief=True)
    assert list(brief.columns) == ["count", "verdict", "seconds", "x_db", "message", "where"]
    assert list(brief.x_db) == ["1.235", ""]
    assert list(brief.message) == ["", "first line"]
    assert {"deep", "y_s", "run_dir"} <= set(table(sweep).columns)
    assert sweep.verdicts == {"passed", "crashed"}


def test_a_parameter_that_names_a_folder_keeps_its_column() -> None:
    """Two notebooks have one; `run_dir` is the one name that a user cannot give."""
    runs = tuple(Result("20_toy", {"folder": f"heard {k}"}, Path(f"runs/{k}"), "passed") for k in range(2))
    sweep = Sweep("20_toy", ("folder",), runs, Path())
    for found in (table(sweep), table(sweep, brief=True)):
        assert list(found.folder) == ["heard 0", "heard 1"]
    assert list(table(sweep).run_dir) == ["runs/0", "runs/1"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("gates", "--cluster", "tcp://127.0.0.1:1"),
        ("01_toy", "--cluster", "tcp://127.0.0.1:1"),
        ("01_toy", "--jobs", "2"),
        ("01_toy", "--sweep", "count=3", "--cluster", "tcp://127.0.0.1:1", "--jobs", "2"),
    ],
)
def test_options_that_would_do_nothing_are_refused(lab: Path, arguments: tuple[str, ...]) -> None:
    done = call(*arguments)
    assert done.exit_code == 2
    assert "cannot be given" in done.output


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port of the loopback that is taken, and at which nobody answers."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def test_a_cluster_that_does_not_answer_is_refused(
    lab: Path, closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kokoro_lab.lab.sweeps.cluster.CONNECT_S", 1)
    for address in (f"tcp://127.0.0.1:{closed_port}", "nowhere", "ftp://127.0.0.1:1"):
        done = call("01_toy", "--sweep", "count=3", "--cluster", address)
        assert done.exit_code == 2, done.output
        assert "no Dask scheduler answers" in done.output
        assert "dask scheduler" in done.output
    assert not (lab / "results").exists()


def test_without_dask_it_is_said_what_to_install(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = call("01_toy", "--sweep", "count=3", "--cluster", "tcp://127.0.0.1:1")
    assert done.exit_code == 2
    assert "kokoro-lab[cluster]" in done.output


@pytest.fixture
def cluster(lab: Path) -> Iterator[Client]:
    """Two workers, in processes of their own, that work in the toy repository."""
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as both,
        Client(both, set_as_default=False) as client,
    ):
        client.run(os.chdir, str(lab))
        yield client


@pytest.mark.test_all
@pytest.mark.notebook
def test_a_cluster_runs_a_sweep(lab: Path, cluster: Client) -> None:
    address = cluster.scheduler.address
    done = call("01_toy", "--sweep", "count=3,7", "--cluster", address, "--json")
    assert done.exit_code == 3, done.output
    record = json.loads(done.stdout)
    assert [one["verdict"] for one in record["runs"]] == ["passed", "crashed"]
    assert record["cluster"] is True
    passed, crashed = record["runs"]
    assert passed["result"]["checks"][0]["value"] == 3
    assert "seven" in crashed["message"]
    assert passed["where"] != crashed["where"]  # both workers had something to do
    assert all(one["where"].startswith("tcp://127.0.0.1:") for one in record["runs"])

    # Workers that lack the notebook are not sent anything
    elsewhere = lab / "elsewhere"
    elsewhere.mkdir()
    toy_notebooks.make_repository(elsewhere)
    cluster.run(os.chdir, str(elsewhere))
    refused = call("01_toy", "--sweep", "count=3", "--cluster", address)
    assert refused.exit_code == 2
    assert "cannot run 01_toy as it is here" in refused.output
    assert "There is no notebook" in refused.output


def test_a_fingerprint_tells_notebooks_apart(lab: Path) -> None:
    before = fingerprint("01_toy")
    toy = lab / "notebooks/01_toy.ipynb"
    toy.write_text(toy.read_text().replace('"outputs": []', '"outputs": [{"output_type": "stream"}]'))
    assert fingerprint("01_toy") == before  # it was only run
    toy.write_text(toy.read_text().replace("count: int = 3", "count: int = 4"))
    assert fingerprint("01_toy") != before
