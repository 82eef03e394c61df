"""By what factor does the candidate's figure differ? A geometric mean over pairs, with its interval.

And the mean of a figure that is a difference already, such as an SNR, with an interval of the same kind.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import bootstrap
from scipy.stats import t as student_t

from kokoro_lab.errors import ParameterError

RESAMPLES = 10_000
FEWEST_UNITS = 3


@dataclass(frozen=True, slots=True)
class PairedRatio:
    """Candidate ÷ reference.

    Parameters
    ----------
    ratio : float
        Geometric mean; 0.9 is a tenth less.
    low, high : float
        Two-sided confidence interval of it; 0 and infinity where there are too few units for one.
    units : int
        How many texts, or whatever else is drawn, it stands on.
    """

    ratio: float
    low: float
    high: float
    units: int

    def __str__(self) -> str:
        return f"{self.ratio:.3f} ({self.low:.3f} to {self.high:.3f})"


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over units, such as texts.

    Parameters
    ----------
    mean : float
    low, high : float
        Two-sided confidence interval of it; minus and plus infinity where there are too few units for one.
    units : int
    """

    mean: float
    low: float
    high: float
    units: int


def mean_of(
    values: npt.ArrayLike, units: Sequence[Hashable], *, confidence: float = 0.95, seed: int = 0
) -> Mean:
    """Mean of a figure over units, each of which counts once, with its interval as of `paired_ratio`.

    Parameters
    ----------
    values : array_like
        Figures; those that are not finite (an SNR of equal samples) are left out. Of none at all, the mean
        is not a number.
    units : sequence
        What each figure belongs to, such as its text.
    """
    figures = np.asarray(values, np.float64)
    finite = np.isfinite(figures)
    if not finite.any():
        return Mean(np.nan, -np.inf, np.inf, 0)
    by_unit = _by_unit(figures[finite], [unit for unit, kept in zip(units, finite, strict=True) if kept])
    return Mean(float(by_unit.mean()), *_interval(by_unit, confidence, seed), len(by_unit))


def paired_ratio(
    reference: npt.ArrayLike,
    candidate: npt.ArrayLike,
    units: Sequence[Hashable],
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> PairedRatio:
    """Geometric mean of candidate ÷ reference, with its interval.

    The mean of logarithms: a half and a double cancel, whichever of the two is called the candidate.

    Parameters
    ----------
    reference, candidate : array_like
        Positive figures, in pairs.
    units : sequence
        What each pair measured, such as its text: pairs of one unit are not independent, so units are drawn.

    Raises
    ------
    ParameterError
        Lengths that differ or are 0, or a figure that is not finite and above 0.

    Notes
    -----
    Each unit counts once, with the median of its pairs. Each end is the outer one of Efron's BCa bootstrap
    (1987) and of Student's t: of a handful of units a bootstrap is too narrow, since it never leaves their
    range (three that happen to agree would show anything); of skewed ones t is. Where all units are the same
    there is no spread, and both ends are the mean itself.
    """
    before, after = np.asarray(reference, np.float64), np.asarray(candidate, np.float64)
    if not len(before) == len(after) == len(units) > 0:
        raise ParameterError(
            "Reference, candidate and units differ in number.",
            field="candidate",
            value=f"{len(before)}, {len(after)}, {len(units)}",
        )
    if not (np.isfinite([before, after]).all() and (before > 0).all() and (after > 0).all()):
        raise ParameterError("Only finite figures over 0 have a ratio.", field="candidate")
    by_unit = _by_unit(np.log(after / before), units)
    low, high = _interval(by_unit, confidence, seed)
    mean, low, high = (float(np.exp(value)) for value in (by_unit.mean(), low, high))
    return PairedRatio(mean, low, high, len(by_unit))


def _by_unit(values: npt.NDArray[np.float64], units: Sequence[Hashable]) -> npt.NDArray[np.float64]:
    """The median of each unit's values, in the order in which the units come first."""
    return np.array([np.median(values[[unit == name for unit in units]]) for name in dict.fromkeys(units)])


def _interval(values: npt.NDArray[np.float64], confidence: float, seed: int) -> tuple[float, float]:
    mean = float(values.mean())
    if len(values) < FEWEST_UNITS:
        return -np.inf, np.inf
    if np.allclose(values, mean, rtol=0, atol=1e-12):
        return mean, mean
    rng = np.random.default_rng(seed)
    drawn = bootstrap((values,), np.mean, n_resamples=RESAMPLES, confidence_level=confidence, rng=rng)
    ends = [float(end) for end in drawn.confidence_interval]
    if not np.isfinite(ends).all():  # nearly all units alike: BCa has nothing to go by
        ends = [float(values.min()), float(values.max())]
    half = student_t.ppf((1 + confidence) / 2, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
    return min(ends[0], mean - half), max(ends[1], mean + half)
