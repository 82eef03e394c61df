"""Is the candidate at most a little worse? Judged pair by pair, by a bootstrap over texts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import bootstrap

from kokoro_lab.errors import ParameterError

RESAMPLES = 10_000
FEWEST_TEXTS = 3


@dataclass(frozen=True, slots=True)
class PairedChange:
    """How much the candidate's figure differs from the reference's, of the same text and voice.

    Parameters
    ----------
    mean : float
        Mean relative change; −0.01 is 1 % lower.
    lower : float
        One-sided confidence limit: the true change is above this.
    texts : int
        How many texts it stands on.
    """

    mean: float
    lower: float
    texts: int


def paired_change(
    reference: npt.ArrayLike,
    candidate: npt.ArrayLike,
    texts: Sequence[Hashable],
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> PairedChange:
    """Mean relative change with its lower limit; a lower limit above −margin shows non-inferiority.

    Parameters
    ----------
    reference, candidate : array_like
        A positive figure of each clip, higher is better, in pairs.
    texts : sequence
        What text each pair speaks. Several voices of one text are not independent: texts are drawn.

    Raises
    ------
    ParameterError
        Lengths that differ, a figure that is not positive, or fewer than three texts.

    Notes
    -----
    Each text counts once, with the mean of its pairs; Efron's BCa bootstrap of the mean (1987), as
    `scipy.stats.bootstrap` has it.
    """
    before, after = np.asarray(reference, np.float64), np.asarray(candidate, np.float64)
    if not before.shape == after.shape == (len(texts),):
        raise ParameterError(
            "Reference, candidate and texts differ in number.",
            field="candidate",
            value=f"{before.shape}, {after.shape}, ({len(texts)},)",
        )
    if not (np.isfinite(before).all() and np.isfinite(after).all() and (before > 0).all()):
        raise ParameterError("Only finite figures over 0 can be compared.", field="reference")
    change = after / before - 1
    names = list(dict.fromkeys(texts))
    by_text = np.array([change[[t == name for t in texts]].mean() for name in names])
    if len(names) < FEWEST_TEXTS:
        raise ParameterError(
            f"{len(names)} texts say nothing about another one.",
            field="texts",
            value=len(names),
            allowed=f"{FEWEST_TEXTS} or more",
        )
    lower = by_text[0]
    if np.ptp(by_text) > 0:
        drawn = bootstrap(
            (by_text,),
            np.mean,
            n_resamples=RESAMPLES,
            confidence_level=confidence,
            alternative="greater",
            rng=np.random.default_rng(seed),
        )
        lower = drawn.confidence_interval.low
    return PairedChange(float(by_text.mean()), float(lower), len(names))
