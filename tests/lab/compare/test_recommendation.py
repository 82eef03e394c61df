"""Only what is shown to be better is recommended; ties go to the default, and so does doubt."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.lab.compare.comparison import Comparison
from kokoro_lab.lab.compare.configurations import Configuration
from kokoro_lab.lab.compare.recommendation import (
    MARGIN,
    advice,
    by_length,
    controls,
    figures_of,
    judge,
    recommend,
)
from kokoro_lab.metrics.intervals import Estimate

CHARACTERS = (100, 150, 180, 240, 260, 300, 450, 480, 700, 800, 1200, 1300)
CONFIG = EngineConfig()


def measured(seed: int = 0, spread: float = 0.03, **times: dict[str, object]) -> Comparison:
    """A comparison of a default and of others whose figures are the given ones, times the default's.

    A figure may be a function of the length of the text.
    """
    draw = np.random.default_rng(seed)
    rows = []
    for name, changes in {"default": {}, **times}.items():
        for round_ in range(2):
            for number, characters in enumerate(CHARACTERS):
                row = {"ttfa_s": 0.15, "wall_s": 0.01 * characters, "rss_peak_mb": 500.0}
                row |= {"snr_db": np.inf, "pesq": np.nan, "longer_s": 0.0, "same_again": True}
                for figure, change in changes.items():
                    value = change(characters) if callable(change) else change
                    timed = figure in ("ttfa_s", "wall_s", "rss_peak_mb")
                    row[figure] = row[figure] * value if timed else value  # type: ignore[operator]
                for figure in ("ttfa_s", "wall_s"):
                    row[figure] *= np.exp(draw.normal(0, spread))  # type: ignore[operator]
                place = {"system": name, "text_number": number, "round": round_, "repetition": seed}
                rows.append({**row, **place, "characters": characters})
    configurations = tuple(Configuration(name, CONFIG) for name in ("default", *times))
    starts = pd.DataFrame({"configuration": ["default", *times], "load_s": 1.0})
    return Comparison(configurations, starts, pd.DataFrame(rows))


def chosen(comparison: Comparison) -> str:
    return recommend(comparison).configuration.name


@pytest.mark.parametrize(
    "better",
    [
        {"ttfa_s": 0.8},
        {"wall_s": 0.8},
        {"rss_peak_mb": 0.7},
        {"wall_s": 0.7, "snr_db": 30.0, "pesq": 4.6},
        {"wall_s": 0.8, "rss_peak_mb": 1.1},
    ],
)
def test_what_gains_without_losing_is_recommended_and_the_reason_says_what(better: dict[str, object]) -> None:
    found = recommend(measured(other=better))
    assert found.configuration.name == "other"
    assert found.reason.startswith("other: gains ")
    assert found.table.better["other"]


@pytest.mark.parametrize(
    ("worse", "reason"),
    [
        ({}, "nothing is gained"),
        ({"wall_s": 1 - MARGIN / 2}, "nothing is gained"),
        ({"wall_s": 0.8, "ttfa_s": 1.3}, "may lose TTFA"),
        ({"ttfa_s": 0.8, "wall_s": 1.3}, "may lose computing"),
        ({"wall_s": 0.8, "rss_peak_mb": 1.5}, "may lose memory"),
        ({"wall_s": 0.5, "snr_db": 10.0, "pesq": 4.1}, "sounds different: PESQ 4.10"),
        ({"wall_s": 0.5, "snr_db": np.nan, "longer_s": 0.025}, "another pace"),
        ({"wall_s": 0.5, "same_again": False}, "twice alike"),
    ],
)
def test_what_gains_nothing_or_loses_something_is_not(worse: dict[str, object], reason: str) -> None:
    found = recommend(measured(other=worse))
    assert found.configuration.name == "default"
    assert reason in found.verdicts[0].reason


@pytest.mark.parametrize("seed", range(8))
def test_repeating_agrees_on_what_is_clear_and_on_ties(seed: int) -> None:
    ties = {f"tie {n}": {} for n in range(9)}
    assert chosen(measured(seed, spread=0.06, **ties)) == "default"
    twins = {"first": {"wall_s": 0.8}, "second": {"wall_s": 0.79}}
    assert chosen(measured(seed, **ties, **twins)) == "first", "of two that are as good, the first listed"
    assert chosen(measured(seed, first={"wall_s": 0.8}, best={"wall_s": 0.5})) == "best"


def test_a_repetition_that_recommends_another_fails_the_run() -> None:
    calm, also, other = measured(0), measured(1), measured(2, other={"wall_s": 0.5})
    plain = [measured(seed, other={}) for seed in (0, 1)]
    assert all(check.passed for check in judge(plain))
    failed = [c.name for c in judge([measured(0, other={}), other]) if not c.passed]
    assert "repetitions_that_recommend_another_count" in failed
    assert [c.name for c in judge([calm, also]) if not c.passed] == ["configurations_count"]


def test_figures_have_the_best_of_the_sessions_for_what_comes_next_unless_the_default_has_them() -> None:
    def of(default: int, spread: float = 0, **others: int) -> dict[str, float]:
        threads = {"default": default, **others}
        found = measured(spread=spread, one={"wall_s": 0.9}, two={"wall_s": 1.2})
        made = tuple(Configuration(name, replace(CONFIG, next_threads=n)) for name, n in threads.items())
        trials = found.trials.assign(rtf=0.2, underruns=0)
        return figures_of(replace(found, configurations=made, trials=trials))

    assert of(0, one=1, two=2)["next_sessions_computing_upper_95_ratio"] == pytest.approx(0.9)
    assert of(0, one=0, two=2)["next_sessions_computing_upper_95_ratio"] == pytest.approx(1.2)
    noisy = of(0, spread=0.3, one=1, two=2)
    assert noisy["next_sessions_computing_upper_95_ratio"] > noisy["one computing ratio"] + 0.01
    for nothing_to_compare in (of(0, one=0, two=0), of(1, one=1, two=2)):
        assert "next_sessions_computing_upper_95_ratio" not in nothing_to_compare
        assert nothing_to_compare["one computing ratio"] == pytest.approx(0.9)


def test_every_configuration_that_is_made_up_is_judged_as_it_must_be() -> None:
    assert all(control.caught for control in controls(measured(other={})))
    too_few = measured(other={})
    few = too_few.only(too_few.trials.text_number < 2)
    assert not all(control.caught for control in controls(few)), "two texts show nothing"


def test_a_choice_by_length_helps_where_configurations_are_good_at_different_lengths() -> None:
    late = {"ttfa_s": lambda n: 1.5 if n < 280 else 0.9, "wall_s": lambda n: 2.0 if n < 280 else 0.4}
    table = by_length(measured(**{"threads=1": late}))
    assert (table.below[280], table.above[280]) == ("default", "threads=1")
    assert table.helps[280]
    assert (table.texts_below[280], table.texts_above[280]) == (5, 7)
    said = advice(table)
    assert said.startswith("Below 280 characters take default, from there on threads=1: TTFA 0.")
    assert said.endswith('Set KOKORO_BY_LENGTH="default < 280; threads=1".')
    setting = re.search(r'"(.*)"', said)
    assert setting
    assert EngineConfig(by_length=setting[1]).by_length_setting() == (280, "default", "threads=1")


def test_the_threshold_is_that_of_the_soonest_first_audio() -> None:
    """Two thresholds help: one more in computing, the other more in TTFA."""
    table = by_length(measured(**{"threads=1": {"wall_s": 0.5, "ttfa_s": 0.9}}))
    table = table.astype(object)
    for at, ttfa, computing in ((200, 0.9, 0.3), (500, 0.5, 0.8)):
        table.loc[at, "helps"] = True
        table.loc[at, ["TTFA", "computing"]] = [Estimate(r, r, r, 9) for r in (ttfa, computing)]
    assert advice(table).startswith("Below 500 characters")


def test_what_an_engine_cannot_choose_by_length_is_said() -> None:
    late = {"ttfa_s": lambda n: 1.5 if n < 280 else 0.9, "wall_s": lambda n: 2.0 if n < 280 else 0.4}
    table = by_length(measured(**{"memory_arena_size_mb=512": late}))
    assert "One engine cannot do that: Texts of one engine cannot differ in memory_arena_size_mb." in advice(
        table
    )


def test_memory_decides_by_its_interval() -> None:
    """A single peak is no gain: half of the texts at half the memory, half at as much as the default."""
    uneven = {"rss_peak_mb": lambda n: 0.5 if n < 400 else 1.0}
    found = recommend(measured(other=uneven))
    assert found.configuration.name == "default"
    memory = found.verdicts[0].ratios["memory"]
    assert memory.low < memory.value < memory.high
    assert memory.units == len(CHARACTERS)


def test_where_one_is_best_at_every_length_no_threshold_helps() -> None:
    for comparison in (measured(other={}), measured(other={"wall_s": 0.5})):
        table = by_length(comparison)
        assert not table.helps.any()
        assert (table.below == chosen(comparison)).all(), "on either side, however few texts there are"
        assert (table.above == chosen(comparison)).all()
        assert "No threshold of 200, 280, 500, 1000 characters helps" in advice(table)
    without = by_length(measured(other={}), thresholds=[50, 5000])
    assert list(without.texts_below) == [0, len(CHARACTERS)]


def test_a_choice_that_its_own_texts_alone_speak_for_does_not_help() -> None:
    """Five texts are enough to choose by; without each of them, too few are left to choose the same."""
    early = {"ttfa_s": lambda n: 0.5 if n < 280 else 1.5, "wall_s": lambda n: 0.5 if n < 280 else 1.5}
    table = by_length(measured(other=early))
    assert (table.below[280], table.above[280]) == ("other", "default")
    assert table.computing[280].value == 1
    assert not table.helps.any()
