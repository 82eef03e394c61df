"""A ratio of pairs has an interval, and which of the two is called the candidate makes no difference."""

from __future__ import annotations

from dataclasses import astuple  # from 3.13 on, two dataclasses that hold the same `nan` differ

import numpy as np
import pytest

from kokoro_lab.errors import ParameterError
from kokoro_lab.metrics.intervals import Estimate, mean_of, median_of, paired_ratio, rate_of

RNG = np.random.default_rng(3)
BEFORE = 1 + RNG.random(12)
NOISE = np.exp(0.05 * RNG.standard_normal(12))
TEXTS = list(range(12))


def test_a_change_is_within_its_interval() -> None:
    found = paired_ratio(BEFORE, 0.8 * NOISE * BEFORE, TEXTS)
    assert found.low < 0.8 < found.high < 1
    assert found.low < found.value < found.high
    assert found.units == 12


def test_the_other_way_round_it_is_one_over_it() -> None:
    there, back = (paired_ratio(a, b, TEXTS) for a, b in ((BEFORE, NOISE * BEFORE), (NOISE * BEFORE, BEFORE)))
    assert back.value == pytest.approx(1 / there.value)
    assert back.low == pytest.approx(1 / there.high, rel=0.01)


def test_more_confidence_is_a_wider_interval() -> None:
    narrow, wide = (paired_ratio(BEFORE, NOISE * BEFORE, TEXTS, confidence=c) for c in (0.8, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_pairs_of_one_unit_count_once() -> None:
    once = paired_ratio([1, 1, 1], [0.5, 1, 2], ["a", "b", "c"])
    often = paired_ratio([1] * 9, [0.5, 1, 2] * 3, ["a", "b", "c"] * 3)
    assert astuple(often) == astuple(once)
    assert once.value == pytest.approx(1)


def test_units_that_agree_have_no_spread() -> None:
    found = paired_ratio(BEFORE, 0.5 * BEFORE, TEXTS)
    assert (found.low, found.value, found.high) == pytest.approx((0.5, 0.5, 0.5))


def test_an_interval_holds_as_often_as_it_says() -> None:
    draw = np.random.default_rng(0)
    held = 0
    for _ in range(100):
        after = np.exp(0.1 * draw.standard_normal(12))
        found = paired_ratio(np.ones(12), after, TEXTS, confidence=0.9)
        held += found.low <= 1 <= found.high
    assert 78 <= held <= 97


def test_two_units_show_nothing() -> None:
    found = paired_ratio([1, 2, 2], [0.5, 1, 1], ["a", "b", "b"])
    assert (found.value, found.low, found.high) == (pytest.approx(0.5), 0.0, float("inf"))


def test_one_wild_pair_of_a_unit_decides_nothing() -> None:
    found = paired_ratio([1] * 9, [0.9, 0.9, 5] * 3, ["a", "a", "a", "b", "b", "b", "c", "c", "c"])
    assert found.value == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("before", "after", "units"),
    [
        ([1, 2], [1, 2, 3], [1, 2, 3]),
        ([1, 2, 0], [1, 2, 3], [1, 2, 3]),
        ([1, 2, 3], [1, 2, np.nan], [1, 2, 3]),
        ([], [], []),
    ],
)
def test_what_has_no_ratio_is_refused(before: list[float], after: list[float], units: list[int]) -> None:
    with pytest.raises(ParameterError):
        paired_ratio(before, after, units)


def test_a_mean_has_an_interval_over_its_units() -> None:
    values = 20 + RNG.standard_normal(12)
    found = mean_of(values, TEXTS)
    assert found.low < found.value < found.high
    assert found.value == pytest.approx(values.mean())
    often = mean_of(np.repeat(values, 3), np.repeat(TEXTS, 3).tolist())
    assert astuple(often) == astuple(found)


def test_what_is_not_finite_is_no_part_of_a_mean() -> None:
    assert mean_of([np.inf, 1.0, np.nan], ["a", "b", "c"]).units == 1
    none = mean_of([np.inf], ["a"])
    assert np.isnan(none.value)
    assert (none.low, none.high) == (-np.inf, np.inf)


def test_the_interval_of_a_median_holds_it_and_leaves_out_the_ends() -> None:
    assert astuple(median_of([float(n) for n in range(1, 21)])) == astuple(Estimate(10.5, 6, 15, 20))
    assert astuple(median_of([3.0, 1.0, 2.0])) == astuple(Estimate(2, 1, 3, 3))


def test_the_median_of_draws_is_inside_as_often_as_it_says() -> None:
    draw = np.random.default_rng(0)
    found = [median_of(np.exp(draw.standard_normal(12)), confidence=0.9) for _ in range(300)]
    held = sum(one.low <= 1 <= one.high for one in found)
    assert held >= 264
    assert sum(one.low > 1 for one in found) <= 21, "one-sided, 95 %"


def test_a_rate_is_of_all_its_units_and_of_a_few_lies_between_them() -> None:
    found = rate_of([1, 0, 4, 1], [10, 10, 10, 10], ["a", "a", "b", "c"])
    assert found.value == pytest.approx(6 / 40)
    assert found.low < found.value < found.high
    assert astuple(rate_of([1, 3], [10, 10], ["a", "b"])) == astuple(Estimate(0.2, 0.1, 0.3, 2))
