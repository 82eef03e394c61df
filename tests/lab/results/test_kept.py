"""Runs are found, named and filtered; what did not end, or cannot be read, is an entry that says so."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kokoro_lab.containers.plain_json import write_json
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.results.kept import find_run, read_kept, read_runs, select
from kokoro_lab.lab.results.records import Check, room
from tests.lab.results.planted import COMMIT, GATE, begun, plant, record


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plant(tmp_path_factory.mktemp("results"))


def ends(planted: Path) -> dict[str, tuple[str, str]]:
    return {run.short_id: (run.result.verdict, run.main_point) for run in read_runs(planted)}


def test_the_newest_is_the_first_and_all_are_there(planted: Path) -> None:
    found = read_runs(planted)
    assert [run.short_id for run in found] == [f"aa{number:02}" for number in range(11, 0, -1)]
    assert read_runs(planted / "nowhere") == []


def test_each_says_how_it_ended_and_what_matters(planted: Path) -> None:
    found = ends(planted)
    assert found["aa01"] == ("passed", "stream true peak 0.2 dB to spare (at most -1)")
    assert found["aa02"] == ("failed", "stream true peak −0.4 dBTP (at most -1)")
    assert found["aa03"] == ("crashed", "ZeroDivisionError: division by zero")
    assert found["aa04"] == ("interrupted", "Interrupted after 12 s.")
    assert found["aa05"] == ("interrupted", "No result; it left audio/ (1).")
    assert found["aa06"][0] == "running"
    assert found["aa08"] == ("failed", "1 of 2 passed; run 1 failed")
    assert found["aa09"] == ("passed", "1 of 1 passed")
    assert found["aa10"][0] == "unreadable"
    assert "cannot be read" in found["aa10"][1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"checks": 1},
        {"checks": [{"name": "rtf"}]},
        {"controls": [1]},
        {"figures": 3},
        {"parameters": 3},
        {"run_s": "long"},
        {"failures": [1]},
    ],
)
def test_a_record_of_another_shape_is_unreadable_and_no_traceback(
    tmp_path: Path, wrong: dict[str, object]
) -> None:
    run = tmp_path / GATE / "20260101T000000Z-aaaa"
    write_json(run / "result.json", record(**wrong))
    found = read_kept(run)
    assert found.verdict == "unreadable"
    assert "20260101T000000Z-aaaa holds no result" in found.message


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "running"),
        ({"pid": 2**22 + 1}, "interrupted"),
        ({"host": "elsewhere"}, "interrupted"),
        # the process of that number was started after the run: it is another
        ({"started_at": "2020-01-01T00:00:00+00:00"}, "interrupted"),
    ],
)
def test_a_run_goes_on_while_the_process_that_began_it_does(
    tmp_path: Path, changes: dict[str, object], verdict: str
) -> None:
    run = tmp_path / GATE / "20260101T000000Z-aaaa"
    write_json(run / "begun.json", begun(**changes))
    assert read_kept(run).verdict == verdict
    write_json(run / "result.json", record())
    assert read_kept(run).verdict == "passed", "a result is a result, whoever still runs"


def test_a_process_that_ended_and_was_not_waited_for_does_not_go_on(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    run = tmp_path / GATE / "20260101T000000Z-aaaa"
    write_json(run / "begun.json", begun(pid=ended.pid))
    assert read_kept(run).verdict == "interrupted"
    ended.wait()


@pytest.mark.parametrize(
    ("name", "run"),
    [
        ("latest", "aa11"),
        ("latest~10", "aa01"),
        (GATE, "aa02"),
        ("30", "aa02"),
        ("30~1", "aa01"),
        ("aa08", "aa08"),
        ("aa08~1", "aa02"),
        ("20260102T100000Z-aa02", "aa02"),
        ("sweep-2026", "aa08"),
    ],
)
def test_names_of_runs(planted: Path, name: str, run: str) -> None:
    assert find_run(name, read_runs(planted)).short_id == run


def test_a_folder_names_its_run(planted: Path) -> None:
    runs = read_runs(planted)
    assert find_run(str(runs[-1].folder), runs) == runs[-1]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("30~2", "30 and those before are 2"),
        ("30~x", "30~1"),
        ("4", "More than one run is '4'. Allowed: 41_soak, 42_faults"),
        ("Z-aa0", "There is no run"),
        ("2026", "More than one run is '2026'"),
        ("", "There is no run ''"),
    ],
)
def test_a_name_of_none_or_of_many_says_so(planted: Path, name: str, said: str) -> None:
    with pytest.raises(ParameterError, match=re.escape(said)):
        find_run(name, read_runs(planted))


def test_two_ids_with_one_end_are_named_in_full(tmp_path: Path) -> None:
    for day in ("20260101", "20260102"):
        write_json(tmp_path / GATE / f"{day}T000000Z-aaaa" / "result.json", record())
    assert [run.short_id for run in read_runs(tmp_path)] == ["20260102T000000Z-aaaa", "20260101T000000Z-aaaa"]


def test_filters(planted: Path) -> None:
    def left(**given: object) -> list[str]:
        return [run.short_id for run in select(read_runs(planted), **given)]  # type: ignore[arg-type]

    assert left(notebook="30") == ["aa08", "aa02", "aa01"]
    assert left(verdict="crashed") == ["aa03"]
    assert left(commit=COMMIT[:6]) == ["aa11", "aa01"]
    assert left(variant="int8", notebook="30") == ["aa02", "aa01"]
    day = datetime(2026, 1, 3, tzinfo=UTC)
    assert left(until=day) == ["aa02", "aa01"]
    assert left(since=day, until=day + timedelta(days=1)) == ["aa03"]


def test_the_worst_clip_comes_first(planted: Path) -> None:
    assert find_run("30", read_runs(planted)).sounds == ["audio/loud.wav", "audio/calm.wav"]
    assert find_run("aa01", read_runs(planted)).sounds == ["audio/calm.wav", "audio/loud.wav"]


@pytest.mark.parametrize(
    "folder",
    [
        "golden/20260101T000000Z-aaaa",  # recordings that were made anew
        "listening/fp32-int8",
        "tune/studies",
        f"{GATE}/20269901T000000Z-aaaa",
    ],
)
def test_what_is_no_run_is_none(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir(parents=True)
    assert read_runs(tmp_path) == []


def test_a_verdict_that_rests_on_little_says_so(tmp_path: Path) -> None:
    rests = record(remarks=["41 of 46 lines not measured"])
    write_json(tmp_path / GATE / "20260101T000000Z-aaaa/result.json", rests)
    (run,) = read_runs(tmp_path)
    assert run.main_point.startswith("41 of 46 lines not measured; stream true peak 0.2 dB to spare")


def test_a_count_is_not_near_its_limit() -> None:
    none = Check("clicks_count", 0, high=0)
    near, far = Check("peak_dbtp", -1.01, high=-1), Check("level_lufs", -16, -17, -15)
    assert min([none, far, near], key=room) == near


@pytest.mark.parametrize(
    ("check", "margin"),
    [
        (Check("a", 3, low=1), 2),
        (Check("a", 0.5, low=1), -0.5),
        (Check("a", 3, 1, 4), 1),
        (Check("a", 3, high=0), -3),
        (Check("a", 3), float("inf")),
    ],
)
def test_a_margin_is_to_the_nearest_limit(check: Check, margin: float) -> None:
    assert check.margin == margin
