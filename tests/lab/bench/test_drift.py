"""A figure that rises while a run lasts is told from noise, and from what a window happens to hold."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from kokoro_lab.lab.bench.drift import FigureDrift, adjusted, drift


def drift_of(
    at_s: Sequence[float],
    values: Sequence[float],
    groups: Sequence[str],
    run_s: float,
    percentile: float = 50,
) -> FigureDrift:
    return drift(*map(pd.Series, (at_s, values, groups)), run_s, percentile)


def test_a_rise_over_the_second_half_is_measured_with_its_interval() -> None:
    at_s = np.arange(0, 1200, 5.0)
    values = 0.1 * (1 + 0.2 * np.maximum(at_s / 600 - 1, 0))
    found = drift_of(at_s, values, ["one"] * len(at_s), 1200)
    assert found.percent == pytest.approx(20 / 1.1, abs=0.5)  # of the level in the second half
    assert found.low <= found.percent <= found.high
    assert len(found.levels) == 10
    assert drift_of(at_s, values, ["one"] * len(at_s), 1200, 95).percent == pytest.approx(18, abs=1)


def test_noise_has_an_interval_that_holds_no_drift() -> None:
    missed = 0
    for seed in range(40):
        draw = np.random.default_rng(seed)
        at_s = np.sort(draw.uniform(0, 1200, 150))
        found = drift_of(at_s, draw.lognormal(0, 0.1, 150), ["one"] * 150, 1200)
        missed += not found.low <= 0 <= found.high
    assert missed <= 5


def test_groups_are_never_compared_with_each_other() -> None:
    values, groups = pd.Series([1, 1, 2, 50, 50, 50]), pd.Series(list("aaabbb"))
    assert list(adjusted(values, groups)) == [1, 1, 2, 1, 1, 1]


def test_too_few_values_have_no_drift() -> None:
    assert math.isnan(drift_of([1, 50, 100], [1, 1, 1], ["a"] * 3, 100).percent)
