"""Confidence intervals of a mean, a ratio of pairs, a rate, a median and a share.

Units, such as texts, are resampled as a whole, because figures of one unit are not independent. Efron's BCa
bootstrap (1987) assumes no distribution of the noise. A bootstrap never leaves the range of the units'
values, which is too narrow for a handful of units; the interval of Student's t is wider then. A median's
interval follows from the ranks of the values, for any distribution. A share has exact limits if its trials
are independent, and wider ones if some units have most of the hits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from kokoro_lab.errors import ParameterError
from kokoro_lab.extras import imported

stats = imported("scipy.stats", extra="lab")

RESAMPLES = 10_000
FEWEST_UNITS = 3
ALPHA = 0.05
"""The probability of a false alarm that every test allows; 1 minus this is the confidence."""

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and its confidence interval.

    Parameters
    ----------
    value : float
    low, high : float
        Confidence interval; one end of a one-sided interval is infinite.
    units : int
        The number of units, such as texts, from which it was computed.
    p : float
        The p value of the test, if there is one.
    """

    value: float
    low: float
    high: float
    units: int
    p: float = np.nan

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


def mean_of(values: npt.ArrayLike, units: Sequence[Hashable], *, confidence: float = 0.95) -> Estimate:
    """Mean of a figure over units, each of which counts once, with the median of its figures.

    Parameters
    ----------
    values : array_like
        Figures; those that are not finite (an SNR of equal samples) are left out. Without any figures, the
        mean is not a number.
    units : sequence
        The unit of each figure, such as its text.

    Notes
    -----
    Two intervals are computed, by the BCa bootstrap and by Student's t, and each end is the one that lies
    further out. With a handful of units the bootstrap's interval is too narrow (three units that happen to
    agree would show anything), and with skewed units that of t is. If all units have the same value, both
    ends are the mean itself. With fewer than three units, both ends are infinite.
    """
    figures = np.asarray(values, np.float64)
    finite = np.isfinite(figures)
    if not finite.any():
        return Estimate(np.nan, -np.inf, np.inf, 0)
    kept = [unit for unit, counts in zip(units, finite, strict=True) if counts]
    by_unit = np.array([np.median(figures[finite][rows]) for rows in rows_of(kept)])
    mean, count = float(by_unit.mean()), len(by_unit)
    if count < FEWEST_UNITS:
        return Estimate(mean, -np.inf, np.inf, count)
    low, high = _bootstrap_ends([by_unit], np.mean, confidence)
    half = stats.t.ppf((1 + confidence) / 2, count - 1) * by_unit.std(ddof=1) / count**0.5
    return Estimate(mean, min(low, float(mean - half)), max(high, float(mean + half)), count)


def paired_ratio(
    reference: npt.ArrayLike, candidate: npt.ArrayLike, units: Sequence[Hashable], *, confidence: float = 0.95
) -> Estimate:
    """Geometric mean of candidate ÷ reference, with its interval: 0.9 is a tenth less.

    It is the exponential of `mean_of` the logarithms, so that a half and a double cancel, whichever of the
    two is called the candidate. With too few units for an interval, its ends are 0 and infinity.

    Parameters
    ----------
    reference, candidate : array_like
        Positive figures, in pairs.
    units : sequence
        The unit of each pair, such as its text.

    Raises
    ------
    ParameterError
        The lengths differ or are 0, or a figure is not finite and above 0.
    """
    before, after = columns_of(units, reference, candidate)
    if not (len(before) and np.isfinite([before, after]).all() and min(before.min(), after.min()) > 0):
        raise ParameterError("Only finite figures over 0 have a ratio.", field="candidate")
    found = mean_of(np.log(after / before), units, confidence=confidence)
    value, low, high = (float(np.exp(end)) for end in (found.value, found.low, found.high))
    return Estimate(value, low, high, found.units)


def rate_of(
    amounts: npt.ArrayLike, of: npt.ArrayLike, units: Sequence[Hashable], *, confidence: float = 0.95
) -> Estimate:
    """One sum divided by another, such as errors by words. The BCa bootstrap draws whole units.

    With fewer than three units, or nearly equal ones, the ends are the least and the largest rate of a unit.

    Parameters
    ----------
    amounts, of : array_like
        Amounts in the numerator and in the denominator; those in the denominator are over 0.
    units : sequence
        The unit of each amount, such as its text.
    """
    above, below = columns_of(units, amounts, of)
    sums = [np.array([column[rows].sum() for rows in rows_of(units)]) for column in (above, below)]
    low, high = _bootstrap_ends(sums, ratio_of_sums, confidence)
    return Estimate(float(above.sum() / below.sum()), low, high, len(sums[0]))


def median_of(values: npt.ArrayLike, *, confidence: float = 0.95) -> Estimate:
    """Median with its interval, computed from ranks, which holds for any distribution of the noise.

    Notes
    -----
    David and Nagaraja, Order Statistics (2003), 7.1: between the j-th smallest and the j-th largest of n
    values lies the true median unless fewer than j of n fair coins fall on one side. With fewer than six
    values, the interval spans the smallest to the largest, which covers less than 95 %.
    """
    ordered = np.sort(np.asarray(values, np.float64))
    beyond = max(int(stats.binom.ppf((1 - confidence) / 2, len(ordered), 0.5)) - 1, 0)
    return Estimate(
        float(np.median(ordered)), float(ordered[beyond]), float(ordered[-1 - beyond]), len(ordered)
    )


def columns_of(units: Sequence[Hashable], *columns: npt.ArrayLike) -> list[Doubles]:
    """The columns as arrays, one value for each of `units`.

    Raises
    ------
    ParameterError
        The lengths differ.
    """
    arrays = [np.asarray(column, np.float64) for column in columns]
    if any(array.shape != (len(units),) for array in arrays):
        raise ParameterError(
            "Reference, candidate and units differ in number.",
            field="candidate",
            value=", ".join(str(array.shape) for array in arrays) + f", ({len(units)},)",
        )
    return arrays


def rows_of(units: Sequence[Hashable]) -> list[npt.NDArray[np.intp]]:
    """For each unit, the numbers of its rows; units are in the order of their first rows."""
    rows: dict[Hashable, list[int]] = {}
    for row, unit in enumerate(units):
        rows.setdefault(unit, []).append(row)
    return [np.array(own) for own in rows.values()]


def ratio_of_sums(above: Doubles, below: Doubles, axis: int = -1) -> Any:
    """A rate: the sum of `above` divided by the sum of `below`."""
    return above.sum(axis) / below.sum(axis)


def bootstrapped(
    columns: Sequence[Doubles],
    statistic: Callable[..., Any] = np.mean,
    *,
    confidence: float,
    alternative: Literal["two-sided", "less", "greater"] = "two-sided",
) -> Any:
    """Efron's BCa bootstrap of units, as `scipy.stats.bootstrap` returns it: the interval, and the statistics
    that were drawn.

    `columns` have a value for each unit; with several columns, units are drawn as whole rows.
    """
    return stats.bootstrap(
        tuple(columns),
        statistic,
        paired=len(columns) > 1,
        n_resamples=RESAMPLES,
        confidence_level=confidence,
        alternative=alternative,
        rng=np.random.default_rng(0),
    )


def _bootstrap_ends(
    columns: Sequence[Doubles], statistic: Callable[..., Any], confidence: float
) -> tuple[float, float]:
    """Both ends of the interval; if the bootstrap cannot compute them, the least and the largest value of the
    units."""
    own = [float(statistic(*(column[k : k + 1] for column in columns))) for k in range(len(columns[0]))]
    ends = [min(own), max(own)]
    if len(own) >= FEWEST_UNITS and not np.allclose(own, own[0], rtol=0, atol=1e-12):
        drawn = bootstrapped(columns, statistic, confidence=confidence).confidence_interval
        if np.isfinite(drawn).all():
            ends = list(map(float, drawn))
    return ends[0], ends[1]


def proportion_interval(count: int, trials: int, confidence: float = 1 - ALPHA) -> tuple[float, float]:
    """Two-sided interval of a proportion whose trials are independent.

    Returns
    -------
    tuple of float
        Low and high end, 0 to 1.

    Raises
    ------
    ParameterError
        The counts are impossible.

    Notes
    -----
    Clopper & Pearson, Biometrika 26(4), 1934: its coverage is never below 95 %.
    """
    check_counts(count, trials)
    interval = stats.binomtest(count, trials).proportion_ci(confidence, method="exact")
    return float(interval.low), float(interval.high)


def share_of(hits: npt.ArrayLike, *groupings: Sequence[Hashable], confidence: float = 1 - ALPHA) -> Estimate:
    """A share of clips whose voices and texts recur, with its two-sided interval.

    Parameters
    ----------
    hits : array_like
        For each clip, whether it counts.
    *groupings : sequence
        The unit of each clip in one respect: its voice, its text.

    Raises
    ------
    ParameterError
        There is no clip, or the lengths differ.

    Notes
    -----
    Clips of one voice resemble each other, so if one voice has all the hits, they say less than as many hits
    in as many voices. Several intervals are computed: that of independent clips (`proportion_interval`), and
    one for each grouping, of whose units whole ones are drawn (`rate_of`). Each end is the one that lies
    furthest out. Where no clip or every clip counts, only independent clips have an interval.
    """
    counted = np.asarray(hits, np.float64)
    ends = [proportion_interval(int(counted.sum()), len(counted), confidence)]
    for units in groupings:
        found = rate_of(counted, np.ones(len(counted)), units, confidence=confidence)
        ends.append((found.low, found.high))
    lows, highs = zip(*ends, strict=True)
    return Estimate(float(counted.mean()), min(lows), max(highs), len(counted))


def upper_limit(count: int, trials: int) -> float:
    """One-sided upper 95 % confidence limit of a proportion, after Clopper & Pearson.

    Raises
    ------
    ParameterError
        The counts are impossible.
    """
    check_counts(count, trials)
    interval = stats.binomtest(count, trials, alternative="less").proportion_ci(1 - ALPHA, method="exact")
    return float(interval.high)


def check_counts(count: int, trials: int) -> None:
    """Refuse impossible counts: `count` must be 0 to `trials`.

    Raises
    ------
    ParameterError
        The count is below 0 or above the number of trials, or there is no trial.
    """
    if trials < 1 or not 0 <= count <= trials:
        raise ParameterError(
            f"{count} of {trials} trials cannot be.",
            field="count" if trials >= 1 else "trials",
            value=count if trials >= 1 else trials,
            allowed="0 ≤ count ≤ trials, and one trial or more",
        )
