"""Pruning takes old runs, and never what somebody still needs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kokoro_lab.containers.plain_json import write_json
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.gates.suite import measurements
from kokoro_lab.lab.results.kept import find_run, read_runs
from kokoro_lab.lab.results.pruning import MAY_GO_ON, evidence_in, old_runs, reason_to_keep, remove
from tests.lab.results.planted import GATE, begun, plant, record

NOW = datetime(2026, 1, 12, tzinfo=UTC)


def test_the_newest_of_each_notebook_and_the_young_stay(tmp_path: Path) -> None:
    runs = read_runs(plant(tmp_path))

    def old(keep: int | None, days: int | None) -> list[str]:
        return [run.short_id for run in old_runs(runs, keep, days and timedelta(days), NOW)]

    assert old(1, None) == ["aa05", "aa03", "aa02", "aa01"]
    assert old(2, None) == ["aa01"]
    assert old(None, 9) == ["aa02", "aa01"]
    assert old(2, 11) == []
    with pytest.raises(ParameterError, match="--keep"):
        old_runs(runs, None, None)


def test_what_is_under_way_or_may_be_is_kept(tmp_path: Path) -> None:
    runs = read_runs(plant(tmp_path))
    begun_on = find_run("aa05", runs).started_at
    assert reason_to_keep(find_run("aa06", runs), set()) == "it is under way"
    assert "may be under way" in reason_to_keep(find_run("aa05", runs), set(), begun_on + MAY_GO_ON / 2)
    assert reason_to_keep(find_run("aa05", runs), set(), begun_on + MAY_GO_ON * 2) == ""


def test_a_run_that_began_on_another_machine_is_kept_for_a_day(tmp_path: Path) -> None:
    run = tmp_path / GATE / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-aaaa"
    write_json(run / "begun.json", begun(host="elsewhere"))
    (found,) = read_runs(tmp_path)
    assert reason_to_keep(found, set())


def test_a_run_with_a_note_is_kept(tmp_path: Path) -> None:
    runs = read_runs(plant(tmp_path))
    assert reason_to_keep(find_run("aa01", runs), set()) == ""
    (find_run("aa01", runs).folder / "note.txt").write_text("before the upgrade\n")
    assert reason_to_keep(find_run("aa01", runs), set()) == "it has a note: before the upgrade"


@pytest.mark.parametrize("mode", ["fast", "full"])
def test_the_newest_of_a_measurement_is_evidence_in_either_mode(tmp_path: Path, mode: str) -> None:
    gate = next(one for one in measurements("gates") if one.name == GATE)
    asked = record(parameters=dict(gate.parameters(mode == "fast")))
    for day in ("20260101", "20260102"):
        write_json(tmp_path / GATE / f"{day}T000000Z-aaaa/result.json", asked)
    write_json(tmp_path / GATE / "20260103T000000Z-aaaa/result.json", record(parameters={"texts": 77}))
    newest, other, old = read_runs(tmp_path)
    evidence = evidence_in(tmp_path)
    assert reason_to_keep(other, evidence) == "it is the newest of a measurement of the checklist"
    assert [reason_to_keep(one, evidence) for one in (newest, old)] == ["", ""]


def test_a_run_is_removed_whole(tmp_path: Path) -> None:
    run = find_run("aa01", read_runs(plant(tmp_path)))
    remove(run)
    assert not run.folder.exists()
    assert find_run("30", read_runs(tmp_path)).short_id == "aa02"
