"""The search goes on where it was cut off, learns what fails, and chooses by its rule."""

from __future__ import annotations

import math
import sqlite3
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import MissingExtra, TuningError
from kokoro_lab.lab.tuning.candidate import CandidateFailed, CandidateFigures
from kokoro_lab.lab.tuning.search import FAILED, FEASIBLE, TOO_FAR, Search, choose, run_trials
from kokoro_lab.lab.tuning.search_space import Space

SPACE = Space(threads=(1, 2), chunk_ms=(50,), window_frames=(90, 120))
DEFAULT = SPACE.default(EngineConfig(threads=2))


def search_in(folder: Path, **more: Any) -> Search:
    return Search(folder, {"variant": "int8"}, SPACE, DEFAULT, **more)


def costs(chosen: Mapping[str, Any]) -> CandidateFigures:
    """One thread fails if it spins, memory patterns sound otherwise, the windows decide on TTFA."""
    if chosen["spinning"] and chosen["threads"] == 1:
        raise CandidateFailed("It died.")
    ttfa, rtf = chosen["window_frames"] / 120, 1.3 if chosen["threads"] == 1 else 1.0
    snr_db, pesq = (20.0, 3.0) if chosen["memory_pattern"] else (100.0, math.nan)
    return CandidateFigures(ttfa, rtf, 1.01 if chosen["spinning"] else 1.0, 100.0, 0.2, 300.0, snr_db, pesq)


class Counting:
    def __init__(self, stop_at: int = 1000) -> None:
        self.asked: list[dict[str, Any]] = []
        self.stop_at = stop_at

    def __call__(self, chosen: Mapping[str, Any]) -> CandidateFigures:
        self.asked.append(dict(chosen))
        if len(self.asked) == self.stop_at:
            raise KeyboardInterrupt
        return costs(chosen)


def test_every_configuration_is_measured_once_and_the_best_is_found(tmp_path: Path) -> None:
    measure = Counting()
    table = run_trials(search_in(tmp_path), measure, 100)
    assert len(table) == SPACE.size == len(measure.asked) == len({str(each) for each in measure.asked})
    assert measure.asked[0] == DEFAULT
    failed = table[table.state == FAILED]
    assert set(failed.index) == set(table[table.spinning & (table.threads == 1)].index)
    assert set(failed.message) == {"It died."}
    assert set(table[table.state == TOO_FAR].memory_pattern) == {True}
    front = table[table.front]
    assert set(front.state) == {FEASIBLE}
    assert choose(table, DEFAULT) == DEFAULT | {"window_frames": 90}


def test_a_study_that_was_cut_off_goes_on(tmp_path: Path) -> None:
    cut = Counting(stop_at=4)
    with pytest.raises(KeyboardInterrupt):
        run_trials(search_in(tmp_path), cut, 6)
    after = Counting()
    told: list[int] = []
    table = run_trials(search_in(tmp_path), after, 6, done=lambda number, row: told.append(number))
    assert after.asked[0] == cut.asked[3]  # what was under way is asked for again
    assert len(cut.asked) - 1 + len(after.asked) == len(table) == 6
    assert told == [3, 4, 5, 6]
    again = Counting()
    assert run_trials(search_in(tmp_path), again, 6).equals(table)
    assert again.asked == []


def test_another_machine_is_another_study(tmp_path: Path) -> None:
    here, there = search_in(tmp_path), Search(tmp_path, {"variant": "int8", "cpu": "another"}, SPACE, DEFAULT)
    assert here.store != there.store
    assert here.store.name.startswith("int8-")


def test_two_cannot_work_on_one_study(tmp_path: Path) -> None:
    search = search_in(tmp_path)
    with (
        FileLock(search.store.with_suffix(".lock")),
        pytest.raises(TuningError, match="Another process is at work"),
    ):
        run_trials(search, costs, 2)


def test_without_optuna_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtra, match=r"kokoro-lab\[tune\]"):
        run_trials(search_in(tmp_path), costs, 2)
    assert not list(tmp_path.iterdir())


def test_an_error_that_is_no_candidates_ends_the_search(tmp_path: Path) -> None:
    def broken(chosen: Mapping[str, Any]) -> CandidateFigures:
        raise TuningError("The defaults do not speak.")

    with pytest.raises(TuningError, match="defaults"):
        run_trials(search_in(tmp_path), broken, 2)


def test_the_store_is_a_database_that_others_can_read(tmp_path: Path) -> None:
    search = search_in(tmp_path)
    run_trials(search, costs, 1)
    connection = sqlite3.connect(search.store)
    assert connection.execute("select study_name from studies").fetchall() == [(search.name,)]
    connection.close()


def table_with(tmp_path: Path, measure: Any) -> Any:
    return run_trials(search_in(tmp_path), measure, 4)


def test_what_is_worse_in_one_objective_is_not_chosen(tmp_path: Path) -> None:
    def sooner_and_heavier(chosen: Mapping[str, Any]) -> CandidateFigures:
        other = dict(chosen) != DEFAULT
        return CandidateFigures(0.5 if other else 1.0, 1.0, 1.05 if other else 1.0, 1, 1, 1, 100.0, math.nan)

    assert choose(table_with(tmp_path, sooner_and_heavier), DEFAULT) is None


def test_what_sounds_otherwise_is_not_chosen(tmp_path: Path) -> None:
    def sooner_and_rough(chosen: Mapping[str, Any]) -> CandidateFigures:
        if dict(chosen) == DEFAULT:
            return CandidateFigures(1, 1, 1, 1, 1, 1, 200.0, math.nan)
        return CandidateFigures(0.5, 0.5, 0.5, 1, 1, 1, 39.0, 4.49)

    table = table_with(tmp_path, sooner_and_rough)
    assert choose(table, DEFAULT) is None
    assert list(table[table.front].index) == [0]
    assert table.message[1] == "SNR 39.0 dB, PESQ 4.49"


def test_the_defaults_are_measured_first_where_other_values_were_asked_for(tmp_path: Path) -> None:
    narrowed = SPACE.narrowed("threads=1 window_frames=90")
    space = narrowed.including(DEFAULT)
    assert (space.threads, space.window_frames) == ((1, 2), (90, 120))
    assert space.including(DEFAULT) == space
    measure = Counting()
    run_trials(Search(tmp_path, {"variant": "int8"}, space, DEFAULT), measure, 3)
    assert measure.asked[0] == DEFAULT
