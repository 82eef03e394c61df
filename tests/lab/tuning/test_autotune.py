"""The tuner as a whole: processes of their own, a decision, a file that the engine reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from kokoro_lab.__main__ import main
from kokoro_lab.config import settings
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.compare.engine_process import EngineFailed
from kokoro_lab.lab.tuning import autotune
from kokoro_lab.lab.tuning.adoption import DefaultsComparison
from kokoro_lab.lab.tuning.autotune import TunePlan, Tuning, tune
from kokoro_lab.lab.tuning.search import FAILED, FEASIBLE, Search
from kokoro_lab.lab.tuning.search_space import Space
from kokoro_lab.metrics.intervals import Estimate
from kokoro_lab.sessions.provider_registry import choose
from kokoro_lab.sessions.tuned import TuningConditions, read_tuned, with_tuned
from tests.toy_engine import fails_at_1_thread, make_engine

CONFIG = EngineConfig(threads=2)
ONE = "threads=1,2 spinning=false memory_pattern=false chunk_ms=50 window_frames=120"
SMALL = TunePlan(trials=2, texts=1, compared=3, rounds=0, preset="short", tried=ONE)


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that all cores are a value that is tried, on any machine."""
    monkeypatch.setattr("kokoro_lab.engine_config.usable_cores", lambda: 2)


@pytest.mark.test_all
def test_a_search_measures_each_candidate_beside_the_defaults(tmp_path: Path, two_cores: None) -> None:
    said: list[str] = []
    tuning = tune(SMALL, make_engine=fails_at_1_thread, folder=tmp_path, say=said.append)
    assert list(tuning.table.state) == [FEASIBLE, FAILED]
    assert list(tuning.table.threads) == [2, 1]
    assert "One thread" in tuning.table.message[1]
    assert tuning.table.snr_db[0] == 200
    assert (tuning.chosen, tuning.comparison, tuning.adopted) == (None, None, False)
    assert "The defaults stay" in tuning.decision
    assert tuning.store.exists()
    assert any("2 of 2 configurations" in line for line in said)


@pytest.mark.test_all
def test_values_that_are_not_the_defaults_are_tried_beside_them(tmp_path: Path, two_cores: None) -> None:
    plan = replace(SMALL, tried=ONE.replace("threads=1,2", "threads=3"))
    tuning = tune(plan, make_engine=make_engine, folder=tmp_path)
    assert list(tuning.table.threads) == [2, 3]


@pytest.mark.test_all
def test_what_is_not_tuned_and_changes_figures_makes_another_study(tmp_path: Path) -> None:
    def name_with(texts: tuple[str, ...] = ("One.",), **said: Any) -> str:
        base = replace(CONFIG, **said)
        depends_on = autotune.identity(TuningConditions.of(base, "5" * 64), base, "hum", texts)
        return Search(tmp_path, depends_on, Space(), {}).name

    others = [
        name_with(("Two.",)),
        name_with(optimisation="basic"),
        name_with(memory_arena_size_mb=2048),
        name_with(placement="all", coreml={"ModelFormat": "NeuralNetwork"}),
    ]
    assert name_with() == name_with()
    assert len({name_with(), *others}) == 1 + len(others)


def test_defaults_that_cannot_speak_end_it(tmp_path: Path) -> None:
    with pytest.raises(EngineFailed, match="has no attribute"):
        tune(SMALL, make_engine=replace, folder=tmp_path)  # no engine at all


@pytest.mark.parametrize(
    "wrong",
    [
        {"trials": 0},
        {"texts": 0},
        {"compared": 2},
        {"rounds": 2},
        {"texts": 20, "compared": 12},
        {"preset": "epic"},
    ],
)
def test_a_plan_that_can_show_nothing_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        TunePlan(**wrong)  # type: ignore[arg-type]


COSTS = ("ttfa_ratio", "rtf_ratio", "memory_ratio")


def decided(home: Path, *, high: float = 0.95) -> Tuning:
    """A run of the tuner that found one thread to be better, and had it confirmed up to `high`."""
    base = EngineConfig(home=home)
    space = Space(threads=(1, 2))
    default = space.default(replace(base, threads=2))
    rows = [{**default, "state": FEASIBLE, "message": "", **dict.fromkeys(COSTS, 1.0), "snr_db": 200.0}]
    rows += [rows[0] | {"threads": 1, "ttfa_ratio": 0.9}]
    table = pd.DataFrame(rows).assign(front=True, pesq=float("nan"))
    ratios = {name: Estimate(0.9, 0.85, high, 12) for name in ("ttfa", "rtf", "memory")}
    return Tuning(
        made_for=TuningConditions.of(base, "5" * 64),
        base=base,
        default=default,
        space=space,
        table=table,
        chosen=default | {"threads": 1},
        comparison=DefaultsComparison(ratios, 0.0),
        store=home / "int8-1.sqlite3",
        facts={"active_provider": "CPUExecutionProvider"},
    )


def test_what_is_adopted_is_read_by_the_engine(tmp_path: Path) -> None:
    tuning = decided(tmp_path)
    assert autotune.keep(tuning, tmp_path) == tmp_path / "tuned.json"
    (kept,) = read_tuned(tmp_path)
    assert kept.settings == {name: value for name, value in tuning.chosen.items() if name != "provider"}  # type: ignore[union-attr]
    assert kept.gains["ttfa_gain_least_percent"] == 5
    assert with_tuned(tuning.base, "5" * 64).threads == 1
    assert tuning.decision.endswith("It holds.")


def test_a_tuned_provider_is_preferred_and_never_keeps_an_engine_from_loading(tmp_path: Path) -> None:
    found = decided(tmp_path)
    tuning = replace(found, chosen=found.default | {"provider": "coreml"})
    assert tuning.tuned.settings["provider"] == "auto:coreml"
    autotune.keep(tuning, tmp_path)
    read = with_tuned(tuning.base, "5" * 64)
    assert read.provider == "auto:coreml"
    assert not choose(read).explicit


def test_what_is_not_adopted_is_not_written(tmp_path: Path) -> None:
    tuning = decided(tmp_path, high=1.03)
    assert autotune.keep(tuning, tmp_path) is None
    assert not (tmp_path / "tuned.json").exists()
    assert "The defaults stay" in tuning.decision


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The command line in a repository and a home of its own, with a tuner that has made up its mind."""
    for folder in ("notebooks", "fixtures"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KOKORO_HOME", str(tmp_path))
    monkeypatch.setattr(autotune, "tune", lambda plan, **how: decided(tmp_path))
    settings.cache_clear()
    yield tmp_path
    monkeypatch.undo()
    settings.cache_clear()


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["tune", *arguments])


def test_tune_adopts_and_keeps_its_evidence(lab: Path) -> None:
    done = call("--trials", "2")
    assert done.exit_code == 0, done.output
    assert "It holds." in done.stdout
    assert "adopted in" in done.stdout
    (run,) = (lab / "results/tune").iterdir()
    assert {p.name for p in run.iterdir()} >= {"result.json", "trials.csv", "pareto.png"}
    assert len(read_tuned(lab)) == 1


def test_a_dry_run_adopts_nothing(lab: Path) -> None:
    done = call("--trials", "2", "--dry-run", "--json")
    assert json.loads(done.stdout)["decision"].endswith("It holds.")
    assert read_tuned(lab) == []


def test_a_run_that_fails_adopts_nothing_and_says_so(lab: Path) -> None:
    done = call("--trials", "40")  # the tuner has measured 2
    assert done.exit_code == 1
    assert "Nothing is adopted" in done.stderr
    assert read_tuned(lab) == []


def test_what_was_adopted_is_shown_and_forgotten(lab: Path) -> None:
    shown = "int8: nothing is adopted for int8; `kokoro-lab tune` finds what suits this machine\n"
    assert call("--show").stdout == shown
    assert "nothing to forget" in call("--forget").stdout
    assert call("--show", "--forget").exit_code == 2
    assert call("--compared", "1").exit_code == 2
