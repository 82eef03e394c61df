"""Limits of proportions are those of the tables, and what is no proportion is refused."""

from __future__ import annotations

import pytest

from kokoro_lab.errors import ParameterError
from kokoro_lab.metrics.intervals import proportion_interval, upper_limit


def test_the_interval_is_clopper_and_pearsons() -> None:
    assert proportion_interval(12, 16) == pytest.approx((0.4762, 0.9273), abs=1e-4)
    assert proportion_interval(0, 10) == pytest.approx((0, 0.3085), abs=1e-4)
    assert proportion_interval(10, 10)[1] == 1


def test_none_of_n_is_still_three_of_n_at_most() -> None:
    assert upper_limit(0, 299) < 0.01 < upper_limit(0, 298)


@pytest.mark.parametrize(("count", "trials"), [(0, 0), (-1, 4), (5, 4)])
def test_counts_that_cannot_be_are_refused(count: int, trials: int) -> None:
    for function in (proportion_interval, upper_limit):
        with pytest.raises(ParameterError, match="cannot be"):
            function(count, trials)
