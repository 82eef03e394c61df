"""ABX statistics: published thresholds, and both questions that a count of right answers can be asked."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from kokoro_lab.errors import ParameterError
from kokoro_lab.metrics import abx
from kokoro_lab.metrics.intervals import upper_limit


@pytest.mark.parametrize(("right", "trials"), [(12, 16), (15, 20), (26, 40)])
def test_the_published_thresholds_are_significant_and_one_fewer_is_not(right: int, trials: int) -> None:
    assert abx.p_value(right, trials) <= 0.05 < abx.p_value(right - 1, trials)
    assert abx.fewest_right(trials) == right


def test_the_p_value_is_exact() -> None:
    assert abx.p_value(12, 16) == pytest.approx(2517 / 65536)  # counted
    assert abx.p_value(0, 16) == 1
    assert abx.p_value(5, 5) == pytest.approx(1 / 32)


def test_four_trials_can_never_be_significant() -> None:
    assert abx.fewest_right(4) is None
    assert abx.fewest_right(5) == 5
    assert abx.power(4, 1.0) == 0


def test_sixteen_trials_find_a_listener_of_60_percent_in_one_test_of_six() -> None:
    assert abx.power(16, 0.60) == pytest.approx(0.167, abs=0.001)
    assert abx.power(16, 0.90) == pytest.approx(0.983, abs=0.001)


def test_power_is_how_often_simulated_listeners_are_found() -> None:
    rights = np.random.default_rng(0).binomial(25, 0.7, 20_000)
    assert np.mean(rights >= abx.fewest_right(25)) == pytest.approx(abx.power(25, 0.7), abs=0.01)


def test_inaudibility_is_shown_by_the_published_counts() -> None:
    assert abx.trials_to_show() == (39, 22)
    assert upper_limit(22, 39) < abx.INAUDIBLE_BELOW <= upper_limit(23, 39)


def test_too_few_trials_show_nothing_either_way() -> None:
    half_of_16 = abx.outcome(8, 16)
    assert not half_of_16.heard
    assert not half_of_16.shown_inaudible()


@pytest.mark.parametrize(("right", "trials", "missing"), [(1, 6, 33), (0, 38, 1), (22, 39, 0), (250, 500, 0)])
def test_no_count_shows_inaudibility_in_fewer_trials_than_it_takes(
    right: int, trials: int, missing: int
) -> None:
    found = abx.outcome(right, trials)
    assert found.missing_trials == missing
    assert found.shown_inaudible() == (missing == 0)


@pytest.mark.parametrize(("right", "odd"), [(0, True), (11, True), (12, False), (20, False), (39, False)])
def test_far_below_chance_is_odd_and_shows_nothing(right: int, odd: bool) -> None:
    found = abx.outcome(right, 39)
    assert found.odd == odd == (binom.cdf(right, 39, 0.5) <= abx.ODD_P)
    assert not (odd and found.shown_inaudible())


def test_so_many_listeners_hold_one_of_three_in_ten_with_enough_power() -> None:
    assert 1 - 0.7**abx.LEAST_LISTENERS >= abx.POWER > 1 - 0.7 ** (abx.LEAST_LISTENERS - 1)


@pytest.mark.parametrize("trials", [1, 7, 39, 150])
def test_what_is_significant_agrees_with_the_counting_of_tails(trials: int) -> None:
    heard = [right for right in range(trials + 1) if binom.sf(right - 1, trials, 0.5) <= 0.05]
    assert abx.fewest_right(trials) == (min(heard) if heard else None)


@pytest.mark.parametrize(("proportion", "d_prime"), [(0.70, 1.53), (0.75, 1.79), (0.50, 0.0), (0.3, 0.0)])
def test_d_prime_is_that_of_the_tables(proportion: float, d_prime: float) -> None:
    assert abx.d_prime(proportion) == pytest.approx(d_prime, abs=0.005)


def test_d_prime_and_proportion_are_each_others_inverse() -> None:
    for d_prime in (0.1, 1.0, 2.5, 4.0):
        assert abx.d_prime(abx.proportion_of(d_prime)) == pytest.approx(d_prime, abs=1e-6)
    assert math.isinf(abx.d_prime(1.0))


def test_an_outcome_holds_every_figure() -> None:
    found = abx.outcome(30, 40)
    assert found.proportion == 0.75
    assert found.heard
    assert found.d_prime == pytest.approx(1.79, abs=0.005)
    low, high = found.interval
    assert low < 0.75 < high
    assert abx.outcome(19, 40).shown_inaudible()


def test_listeners_are_added_up() -> None:
    pooled = abx.pool({"ada": (9, 16), "bo": (7, 16), "cy": (8, 16)})
    assert (pooled.outcome.right, pooled.outcome.trials, pooled.listeners) == (24, 48, 3)
    assert pooled.differ_p > 0.5
    assert not pooled.differ


def test_one_keen_ear_among_many_is_noticed() -> None:
    pooled = abx.pool({"keen": (16, 16)} | {f"guest {i}": (8, 16) for i in range(5)})
    assert not pooled.outcome.heard  # the guests drown it
    assert pooled.differ


def test_the_comparison_of_listeners_rarely_cries_wolf() -> None:
    random = np.random.default_rng(1)
    found = [
        abx.pool({str(i): (int(right), 12) for i, right in enumerate(random.binomial(12, 0.5, 5))}).differ
        for _ in range(100)
    ]
    assert sum(found) <= 12  # 5 are expected, and over 12 once in 800 times


@pytest.mark.parametrize(
    "counts", [{"ada": (5, 5), "bo": (9, 9)}, {"ada": (0, 5), "bo": (0, 9)}, {"ada": (3, 5)}]
)
def test_where_nothing_can_differ_nothing_does(counts: dict[str, tuple[int, int]]) -> None:
    assert abx.pool(counts).differ_p == 1


@pytest.mark.parametrize(("right", "trials"), [(0, 0), (-1, 4), (5, 4)])
def test_counts_that_cannot_be_are_refused(right: int, trials: int) -> None:
    for function in (abx.p_value, abx.outcome):
        with pytest.raises(ParameterError, match="cannot be"):
            function(right, trials)
    with pytest.raises(ParameterError):
        abx.pool({"ada": (right, trials)})


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: abx.pool({}),
        lambda: abx.power(16, 0.5),
        lambda: abx.power(16, 1.1),
        lambda: abx.power(0, 0.7),
        lambda: abx.fewest_right(0),
        lambda: abx.d_prime(1.2),
        lambda: abx.d_prime(math.nan),
        lambda: abx.proportion_of(-1),
    ],
)
def test_what_has_no_answer_is_refused(wrong) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ParameterError):
        wrong()
