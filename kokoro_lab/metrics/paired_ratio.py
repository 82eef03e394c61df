"""By what factor does the candidate's figure differ? A geometric mean over pairs, with its interval."""

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
    mean : float
        Geometric mean; 0.9 is a tenth less.
    low, high : float
        Two-sided confidence interval of it.
    units : int
        How many texts, or whatever else is drawn, it stands on.
    """

    mean: float
    low: float
    high: float
    units: int

    def __str__(self) -> str:
        return f"{self.mean:.3f} ({self.low:.3f} to {self.high:.3f})"


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
        Lengths that differ, a figure that is not above 0, or fewer than three units.

    Notes
    -----
    Each unit counts once, with the mean of its pairs. Each end is the outer one of Efron's BCa bootstrap
    (1987) and of Student's t: of a handful of units a bootstrap is too narrow, since it never leaves their
    range (three that happen to agree would show anything); of skewed ones t is. Where all units are the same
    there is no spread, and both ends are the mean itself.
    """
    before, after = np.asarray(reference, np.float64), np.asarray(candidate, np.float64)
    if not len(before) == len(after) == len(units):
        raise ParameterError(
            "Reference, candidate and units differ in number.",
            field="candidate",
            value=f"{len(before)}, {len(after)}, {len(units)}",
        )
    if not (np.isfinite([before, after]).all() and (before > 0).all() and (after > 0).all()):
        raise ParameterError("Only finite figures over 0 have a ratio.", field="candidate")
    names = list(dict.fromkeys(units))
    if len(names) < FEWEST_UNITS:
        raise ParameterError(
            f"{len(names)} pairs say nothing about another one.",
            field="units",
            value=len(names),
            allowed=f"{FEWEST_UNITS} or more",
        )
    logs = np.log(after / before)
    by_unit = np.array([logs[[unit == name for unit in units]].mean() for name in names])
    low = high = by_unit.mean()
    if not np.allclose(by_unit, low, rtol=0, atol=1e-12):
        drawn = bootstrap(
            (by_unit,),
            np.mean,
            n_resamples=RESAMPLES,
            confidence_level=confidence,
            rng=np.random.default_rng(seed),
        )
        half = (
            student_t.ppf((1 + confidence) / 2, len(by_unit) - 1) * by_unit.std(ddof=1) / len(by_unit) ** 0.5
        )
        low = min(drawn.confidence_interval.low, by_unit.mean() - half)
        high = max(drawn.confidence_interval.high, by_unit.mean() + half)
    mean, low, high = (float(np.exp(value)) for value in (by_unit.mean(), low, high))
    return PairedRatio(mean, low, high, len(names))
