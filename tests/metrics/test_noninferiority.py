"""Paired changes, with a limit that texts stand for and not clips."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest

from kokoro_lab.errors import ParameterError
from kokoro_lab.metrics.noninferiority import error_rate, holm, paired_change, paired_rise

TEXTS = [f"text {i}" for i in range(20)]


def figures(change: float, *, scatter: float = 0.01, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    reference = random.uniform(3, 4, len(TEXTS))
    return reference, reference * (1 + random.normal(change, scatter, len(TEXTS)))


def test_the_mean_is_that_of_relative_changes() -> None:
    found = paired_change([2.0, 4.0, 4.0], [2.0, 3.0, 4.2], ["a", "b", "c"])
    assert found.value == pytest.approx((0 - 0.25 + 0.05) / 3)
    assert found.low < found.value


def test_what_does_not_change_has_no_spread() -> None:
    found = paired_change([2.0, 3.0, 4.0], [2.0, 3.0, 4.0], ["a", "b", "c"])
    assert (found.value, found.low) == (0, 0)


def test_the_true_change_is_above_the_limit_in_95_tests_of_100() -> None:
    above = sum(paired_change(*figures(-0.02, seed=seed), TEXTS).low < -0.02 for seed in range(200))
    assert 178 <= above <= 199  # 190 expected; a bootstrap of 20 texts is a little short


def test_a_small_loss_is_not_inferior_and_a_larger_one_is() -> None:
    assert paired_change(*figures(-0.01), TEXTS).low > -0.03
    assert paired_change(*figures(-0.04), TEXTS).low < -0.03


@pytest.mark.parametrize("seed", range(30))
def test_p_and_limit_say_the_same(seed: int) -> None:
    before, after = figures(-0.022, scatter=0.02, seed=seed)
    found = paired_change(before, after, TEXTS, margin=0.03)
    if abs(found.low + 0.03) > 1e-4:  # nearer, ten thousand draws do not tell them apart
        assert (found.p <= 0.05) == (found.low > -0.03)
    assert paired_change(before, after, TEXTS, margin=0.05).p <= found.p
    assert paired_change(before, after, TEXTS, margin=-found.low).p == pytest.approx(0.05, abs=0.002)


def test_p_is_small_one_time_in_twenty_where_the_true_loss_is_the_margin() -> None:
    small = sum(paired_change(*figures(-0.03, seed=seed), TEXTS).p <= 0.05 for seed in range(200))
    assert 1 <= small <= 22  # 10 expected


def test_p_of_what_does_not_change_is_that_of_the_one_value() -> None:
    same = [2.0, 3.0, 4.0], [2.0, 3.0, 4.0], ["a", "b", "c"]
    assert paired_change(*same).p == 0
    assert paired_change(*same, margin=-0.01).p == 1


def test_holm_multiplies_the_smallest_most() -> None:
    # Worked by hand: 4 × 0.005, 3 × 0.01, 2 × 0.03, and 0.04, which may not be below the one before
    found = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert found == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06, "d": 0.02})
    assert list(found) == ["a", "b", "c", "d"]
    assert holm({"alone": 0.04}) == {"alone": 0.04}
    assert holm({"a": 0.6, "b": 0.7}) == {"a": 1.0, "b": 1.0}


def test_holm_keeps_false_claims_of_a_family_at_one_in_twenty() -> None:
    p = np.random.default_rng(0).uniform(size=(2000, 7))  # seven tests, none of which is true
    claimed = np.mean([min(holm(dict(enumerate(map(float, row)))).values()) <= 0.05 for row in p])
    assert claimed == pytest.approx(0.05, abs=0.015)
    assert np.mean(p.min(axis=1) <= 0.05) > 0.25  # without it


@pytest.mark.parametrize("p", [{}, {"a": 1.2}, {"a": -0.1}, {"a": float("nan")}])
def test_what_is_no_family_is_refused(p: dict[str, float]) -> None:
    with pytest.raises(ParameterError):
        holm(p)


def test_more_voices_of_the_same_texts_do_not_make_it_surer() -> None:
    reference, candidate = figures(-0.02, scatter=0.05)
    once = paired_change(reference, candidate, TEXTS)
    thrice = paired_change(np.tile(reference, 3), np.tile(candidate, 3), TEXTS * 3)
    assert thrice.low == pytest.approx(once.low)
    assert thrice.units == once.units == 20


def test_it_is_the_same_each_time() -> None:
    assert paired_change(*figures(-0.02), TEXTS) == paired_change(*figures(-0.02), TEXTS)


@pytest.mark.parametrize(
    ("reference", "candidate", "texts"),
    [
        ([3.0, 3.0], [3.0, 3.0], ["a", "b"]),
        ([3.0, 3.0, 3.0], [3.0, 3.0, 3.0], ["a", "a", "b"]),
        ([3.0, 3.0, 3.0], [3.0, 3.0], ["a", "b", "c"]),
        ([3.0, 0.0, 3.0], [3.0, 3.0, 3.0], ["a", "b", "c"]),
        ([3.0, 3.0, 3.0], [3.0, np.nan, 3.0], ["a", "b", "c"]),
    ],
)
def test_what_cannot_be_compared_is_refused(
    reference: list[float], candidate: list[float], texts: list[str]
) -> None:
    with pytest.raises(ParameterError):
        paired_change(reference, candidate, texts)


# ------------------------------------------------------------------------------------------ error rates


def errors(rise: float, *, seed: int = 0, texts: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Errors of both, and words: of a reference at 5 %, and a candidate that adds `rise` to it."""
    random = np.random.default_rng(seed)
    words = random.integers(10, 40, texts)
    shared = random.binomial(words, 0.04)
    return (
        shared + random.binomial(words, 0.01),
        shared + random.binomial(words, 0.01 + rise),
        words,
    )


def test_a_rise_is_of_all_words_and_not_a_mean_over_clips() -> None:
    found = paired_rise([0, 1, 0], [1, 1, 0], [2, 10, 88], ["a", "b", "c"])
    assert found.value == pytest.approx(0.01)
    assert found.units == 3
    assert found.high > found.value


def test_errors_that_both_make_are_no_rise() -> None:
    found = paired_rise([0, 3, 1], [0, 3, 1], [5, 9, 7], ["a", "b", "c"])
    assert (found.value, found.high) == (0, 0)


def test_the_true_rise_is_below_the_limit_in_95_tests_of_100() -> None:
    names = [f"text {i}" for i in range(40)]
    below = sum(paired_rise(*errors(0.03, seed=seed), names).high > 0.03 for seed in range(200))
    assert 178 <= below <= 199


def test_a_small_rise_is_not_inferior_and_a_larger_one_is() -> None:
    names = [f"text {i}" for i in range(40)]
    assert paired_rise(*errors(0.005), names).high < 0.03
    assert paired_rise(*errors(0.05), names).high > 0.03
    fewer = paired_rise(*errors(0.05)[1::-1], errors(0.05)[2], names)
    assert fewer.high < 0


def test_more_voices_of_the_same_texts_do_not_make_a_rise_surer() -> None:
    names = [f"text {i}" for i in range(40)]
    once = paired_rise(*errors(0.02), names)
    thrice = paired_rise(*(np.tile(column, 3) for column in errors(0.02)), names * 3)
    assert thrice.high == pytest.approx(once.high)
    assert thrice.units == once.units == 40
    assert astuple(once) == astuple(paired_rise(*errors(0.02), names))


@pytest.mark.parametrize(
    ("reference", "candidate", "words", "texts"),
    [
        ([], [], [], []),
        ([0, 0], [0, 0], [4, 4], ["a", "b"]),
        ([0, 0, 0], [0, 0, 0], [4, 4, 4], ["a", "a", "b"]),
        ([0, 0, 0], [0, 0], [4, 4, 4], ["a", "b", "c"]),
        ([0, 0, 0], [0, 0, 0], [4, 4], ["a", "b", "c"]),
        ([0, 0, 0], [0, -1, 0], [4, 4, 4], ["a", "b", "c"]),
        ([0, 0, 0], [0, 0, 0], [4, 0, 4], ["a", "b", "c"]),
        ([0, 0, np.nan], [0, 0, 0], [4, 4, 4], ["a", "b", "c"]),
    ],
)
def test_counts_that_cannot_be_compared_are_refused(
    reference: list[float], candidate: list[float], words: list[int], texts: list[str]
) -> None:
    with pytest.raises(ParameterError):
        paired_rise(reference, candidate, words, texts)


def test_an_error_rate_is_of_all_words_within_its_interval() -> None:
    found = error_rate([0, 1, 0, 2], [5, 10, 5, 80], ["a", "b", "c", "d"])
    assert found.value == pytest.approx(0.03)
    assert 0 <= found.low < found.value < found.high < 0.2


def test_the_true_error_rate_is_inside_in_95_tests_of_100() -> None:
    names = [f"text {i}" for i in range(40)]
    found = [error_rate(wrong, words, names) for wrong, _, words in (errors(0, seed=i) for i in range(200))]
    inside = sum(rate.low <= 0.05 <= rate.high for rate in found)  # errors() makes 4 % and 1 %
    assert 178 <= inside <= 199


def test_no_error_in_few_words_shows_less_than_in_many() -> None:
    few, many = (error_rate([0, 0, 0], [words] * 3, ["a", "b", "c"]) for words in (10, 1000))
    assert (few.value, few.low) == (0, 0)
    assert few.high == pytest.approx(1 - 0.025 ** (1 / 30))
    assert many.high < few.high / 50


def test_the_same_share_everywhere_is_the_rate_itself() -> None:
    found = error_rate([1, 2, 3], [10, 20, 30], ["a", "b", "c"])
    assert (found.low, found.value, found.high) == pytest.approx((0.1, 0.1, 0.1))


@pytest.mark.parametrize(
    ("wrong", "words"), [([0, -1, 0], [4, 4, 4]), ([0, 0, 0], [4, 0, 4]), ([0, 0], [4, 4, 4])]
)
def test_counts_that_are_no_rate_are_refused(wrong: list[float], words: list[int]) -> None:
    with pytest.raises(ParameterError):
        error_rate(wrong, words, ["a", "b", "c"])
    with pytest.raises(ParameterError, match="say nothing"):
        error_rate([0, 0], [1, 1], ["a", "b"])
