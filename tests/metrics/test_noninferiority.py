"""Paired changes, with a limit that texts stand for and not clips."""

from __future__ import annotations

import numpy as np
import pytest

from kokoro_lab.errors import ParameterError
from kokoro_lab.metrics.noninferiority import paired_change

TEXTS = [f"text {i}" for i in range(20)]


def figures(change: float, *, scatter: float = 0.01, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    reference = random.uniform(3, 4, len(TEXTS))
    return reference, reference * (1 + random.normal(change, scatter, len(TEXTS)))


def test_the_mean_is_that_of_relative_changes() -> None:
    found = paired_change([2.0, 4.0, 4.0], [2.0, 3.0, 4.2], ["a", "b", "c"])
    assert found.mean == pytest.approx((0 - 0.25 + 0.05) / 3)
    assert found.lower < found.mean


def test_what_does_not_change_has_no_spread() -> None:
    found = paired_change([2.0, 3.0, 4.0], [2.0, 3.0, 4.0], ["a", "b", "c"])
    assert (found.mean, found.lower) == (0, 0)


def test_the_true_change_is_above_the_limit_in_95_tests_of_100() -> None:
    above = sum(paired_change(*figures(-0.02, seed=seed), TEXTS).lower < -0.02 for seed in range(200))
    assert 178 <= above <= 199  # 190 expected; a bootstrap of 20 texts is a little short


def test_a_small_loss_is_not_inferior_and_a_larger_one_is() -> None:
    assert paired_change(*figures(-0.01), TEXTS).lower > -0.03
    assert paired_change(*figures(-0.04), TEXTS).lower < -0.03


def test_more_voices_of_the_same_texts_do_not_make_it_surer() -> None:
    reference, candidate = figures(-0.02, scatter=0.05)
    once = paired_change(reference, candidate, TEXTS)
    thrice = paired_change(np.tile(reference, 3), np.tile(candidate, 3), TEXTS * 3)
    assert thrice.lower == pytest.approx(once.lower)
    assert thrice.texts == once.texts == 20


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
