"""Cuts are repaired by least squares, chosen where they are heard least, and judged with their limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from kokoro_lab.lab.research import candidates, pruning
from kokoro_lab.lab.research.cut_sounds import Sounds
from kokoro_lab.lab.research.pruning import AT_RANDOM, Option
from kokoro_lab.lab.research.regression import Regression, RegressionSum, StepMoments
from kokoro_lab.lab.research.residual_steps import Step, whole

CHANNELS, TAPS = 128, 3
RANDOM = np.random.default_rng(0)


def step(name: str = "/decoder/decoder/generator/resblocks.3/0") -> Step:
    first, second = 0.1 * RANDOM.normal(size=(2, CHANNELS, CHANNELS, TAPS)).astype(np.float32)
    return Step(name, f"{name}/first", f"{name}/second", first, second, 1)


def moments(of: Step, *, taps: int = TAPS, seed: int = 1) -> Regression:
    """Inputs of which each odd channel is twice the even one before it."""
    random = np.random.default_rng(seed)
    total = RegressionSum(taps)
    for _ in range(2):
        inputs = random.normal(1, 1, (CHANNELS, taps, 2000)).astype(np.float32)
        inputs[1::2] = 2 * inputs[::2]
        flat = inputs.reshape(CHANNELS * taps, -1)
        total.add(flat, of.second_weight.reshape(CHANNELS, -1) @ flat)
    return total.moments()


def both(of: Step, seed: int = 1) -> StepMoments:
    found = moments(of, seed=seed)
    return StepMoments(found, replace(found.of(np.arange(0, CHANNELS * TAPS, TAPS)), taps=1))


def test_a_fit_is_told_its_error_exactly() -> None:
    one = step()
    found = moments(one)
    shipped = one.second_weight.reshape(CHANNELS, -1)
    assert found.error(shipped, np.zeros(CHANNELS, np.float32)) == pytest.approx(0, abs=1e-4)
    nothing = 0 * shipped
    assert found.error(nothing, found.shift(nothing)) == pytest.approx(1, abs=1e-3)


def test_channels_that_others_make_up_for_are_left_out_without_an_error() -> None:
    one = step()
    levels = {o.level: o for o in pruning.options(one, both(one), both(one, seed=2))}
    half = levels["kept 0.5"]
    assert half.error < 0.001 < 0.1 < half.unrepaired
    kept = half.cut.kept
    assert kept is not None
    assert len({channel // 2 for channel in kept}) == CHANNELS // 2, "one of each pair"
    assert half.products == one.products / 2
    assert levels["kept 0.25"].error > 0.1
    assert levels[pruning.ONE_TAP].products == pytest.approx(one.products / 2 / TAPS)
    assert levels[pruning.REMOVED].products == 0
    assert levels[pruning.REMOVED].error == pytest.approx(1, abs=0.01)


def option(name: str, level: str, products: float, error: float) -> Option:
    one = step(name)
    return Option(one, level, whole(one), products * one.products, error, 2 * error)


def test_what_is_heard_least_is_cut_first() -> None:
    every = {
        name: [option(name, "all", 1, 0), option(name, "half", 0.5, 0.1), option(name, "none", 0, 1)]
        for name in ("quiet", "loud")
    }
    heard = {"quiet": 1.0, "loud": 100.0}
    assert {n: o.level for n, o in pruning.plan(every, heard, 0.25).items()} == {
        "quiet": "half",
        "loud": "all",
    }
    table = pruning.plans_table(pruning.plans(every, heard, [0.25, 0.75]))
    assert list(table.columns) == ["25 %", "75 %"]
    assert table.loc["quiet"].tolist() == ["half", "none"]
    assert table.loc["loud"].tolist() == ["all", "half"]


def test_a_step_that_keeps_everything_is_not_cut() -> None:
    one = step()
    levels = {o.level: o for o in pruning.options(one, both(one), both(one))}
    half = levels["kept 0.5"]
    assert pruning.cuts_of({"a": half, "b": levels["all"]}) == {"a": (half.step, half.cut)}


class Loudness:
    """Sounds whose distance is the number of channels that were cut."""

    def distance(self, cuts: Any) -> float:
        return float(sum(CHANNELS - len(cut.kept) for _, cut in cuts.values()))


def test_an_error_is_weighted_by_how_well_it_is_heard() -> None:
    one = step()
    levels = {one.name: pruning.options(one, both(one, 3), both(one, 4))}
    heard = pruning.sensitivity(levels, cast(Sounds, Loudness()))
    half = next(o for o in levels[one.name] if o.level == pruning.PROBE)
    assert heard[one.name] == pytest.approx(64 / max(half.error, 1e-9))
    table = pruning.table_of(levels, heard)
    assert "all" not in set(table.level)
    assert table[table.level == "removed"].saved_percent.item() == pytest.approx(100)


def rows(losses: dict[str, float], errors: dict[str, int] | None = None) -> pd.DataFrame:
    noise = np.random.default_rng(0)
    return pd.DataFrame(
        [
            {"text": number, "candidate": name, "pesq": 4.6 - loss + 0.01 * noise.normal(), "stoi": 0.99}
            | {"dnsmos_candidate": 3.2 - loss / 10, "dnsmos_reference": 3.2, "words": 20}
            | {"word_errors_candidate": 1 + (errors or {}).get(name, 0), "word_errors_reference": 1}
            for name, loss in losses.items()
            for number in range(5)
        ]
    )


def trials(seconds: dict[str, float]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"system": name, "text_number": number, "round": turn, "repetition": 0}
            | dict.fromkeys(("wall_s", "compute_s"), each * (1 + 0.001 * number))
            for name, each in seconds.items()
            for number in range(4)
            for turn in range(2)
        ]
    )


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.8, "worth it: within the limits of quality, a cut model (10 %) saves 20.0 % of the computing"),
        (0.9, "not worth it: within the limits of quality, a cut model (10 %) saves 10.0 % of the computing"),
    ],
)
def test_a_candidate_is_worth_it_where_it_saves_enough_within_the_limits(seconds: float, said: str) -> None:
    heard = rows({candidates.UNCUT: 0.0, "10 %": 0.02, "40 %": 0.9})
    timed = trials({candidates.UNCUT: 1.0, "10 %": seconds, "40 %": 0.6})
    curve = candidates.curve(heard, timed)
    assert curve.within.tolist() == [True, True, False]
    assert candidates.verdict(curve, "a cut model").startswith(said)
    assert candidates.figures_of(curve)["10_%_compute_ratio"] == pytest.approx(seconds)
    assert 3.7 < candidates.pesq_at(curve, 0.7) < 4.6


def test_a_saving_counts_by_the_lower_end_of_its_interval() -> None:
    heard = rows({candidates.UNCUT: 0.0, "20 %": 0.02})
    curve = candidates.curve(heard, trials({candidates.UNCUT: 1.0, "20 %": 0.84}))
    curve.loc["20 %", ["compute_low", "compute_high"]] = 0.82, 0.87
    assert candidates.verdict(curve, "a cut model") == (
        "not worth it: within the limits of quality, a cut model (20 %) saves 16.0 % of the computing time "
        "(95 % interval: 13.0 to 18.0 %), where at least 15 % was asked for, by the lower end of the interval"
    )


def test_words_that_are_lost_are_beyond_the_limits_too() -> None:
    heard = rows({candidates.UNCUT: 0.0, "10 %": 0.02}, {"10 %": 1})
    curve = candidates.curve(heard, trials({candidates.UNCUT: 1.0, "10 %": 0.9}))
    assert curve.word_rise_points.tolist() == [0, 5]
    assert candidates.verdict(curve, "a cut model") == (
        "not worth it: no candidate is within the limits of quality; no candidate saves 15 %"
    )


def test_a_fit_on_other_channels_and_a_random_cut_are_caught() -> None:
    one = step()
    steps, seen = {one.name: one}, {one.name: both(one, 3)}
    curve = pd.DataFrame({"within": [False]}, index=[AT_RANDOM])
    found = pruning.controls(steps, seen, {one.name: both(one, 4)}, curve)
    assert [control.caught for control in found] == [True, True]
    assert not pruning.controls(steps, seen, seen, curve.assign(within=True))[1].caught
    table = pd.DataFrame({"level": [pruning.PROBE], "error_db": [-20.0], "unrepaired_db": [-10.0]})
    assert all(check.passed for check in pruning.checks_of(90.0, table))
    assert not any(check.passed for check in pruning.checks_of(70.0, table.assign(error_db=-10.5)))
    assert set(pruning.reordered(steps)) == set(pruning.at_random(steps, 0.5)) == {one.name}
