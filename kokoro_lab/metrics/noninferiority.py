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
    before, after = _paired(texts, reference, candidate)
    if not (np.isfinite(before).all() and np.isfinite(after).all() and (before > 0).all()):
        raise ParameterError("Only finite figures over 0 can be compared.", field="reference")
    change = after / before - 1
    by_text = np.array([change[clips].mean() for clips in _clips_of(texts)])
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
    return PairedChange(float(by_text.mean()), float(lower), len(by_text))


@dataclass(frozen=True, slots=True)
class PairedRise:
    """How many more errors the candidate has than the reference, in the same words of the same voices.

    Parameters
    ----------
    rise : float
        Errors more ÷ words; 0.01 is one more in a hundred words, below 0 are fewer.
    upper : float
        One-sided confidence limit: the true rise is below this.
    texts : int
        How many texts it stands on.
    """

    rise: float
    upper: float
    texts: int


def paired_rise(
    reference_errors: npt.ArrayLike,
    candidate_errors: npt.ArrayLike,
    words: npt.ArrayLike,
    texts: Sequence[Hashable],
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> PairedRise:
    """Difference of two error rates with its upper limit; a limit under a margin shows non-inferiority.

    Both rates are those of all words together. A relative change would not do: most clips have no error,
    so that there is nothing to divide by.

    Parameters
    ----------
    reference_errors, candidate_errors : array_like
        Errors in each clip, 0 or more, in pairs.
    words : array_like
        How many words each pair speaks, over 0.
    texts : sequence
        What text each pair speaks. Several voices of one text are not independent: texts are drawn.

    Raises
    ------
    ParameterError
        Lengths that differ, errors below 0, a pair without words, or fewer than three texts.

    Notes
    -----
    Efron's BCa bootstrap (1987) of the ratio of sums, texts drawn whole. Where the same share differs in
    every text there is no spread to draw from, and the limit is the rise itself: that few words differ in
    few texts shows little, so look at how many there were.
    """
    before, after, said = _paired(texts, reference_errors, candidate_errors, words)
    clips = _clips_of(texts)
    if not (
        min(before.min(), after.min()) >= 0 and said.min() > 0 and np.isfinite([before, after, said]).all()
    ):
        raise ParameterError(
            "Errors are counted from 0, in clips of one word or more.",
            field="words",
            value=f"errors from {min(before.min(), after.min())}, words from {said.min()}",
        )
    more = np.array([(after - before)[own].sum() for own in clips])
    of = np.array([said[own].sum() for own in clips])
    rise = more.sum() / of.sum()
    upper = rise
    if not np.allclose(more, rise * of):
        drawn = bootstrap(
            (more, of),
            lambda more, of, axis: more.sum(axis) / of.sum(axis),
            paired=True,
            n_resamples=RESAMPLES,
            confidence_level=confidence,
            alternative="less",
            rng=np.random.default_rng(seed),
        )
        upper = drawn.confidence_interval.high
    return PairedRise(float(rise), float(upper), len(clips))


@dataclass(frozen=True, slots=True)
class ErrorRate:
    """Errors ÷ words of some clips, and the interval in which the rate of all such texts is expected."""

    rate: float
    low: float
    high: float


def error_rate(
    errors: npt.ArrayLike,
    words: npt.ArrayLike,
    texts: Sequence[Hashable],
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> ErrorRate:
    """An error rate with its two-sided confidence interval.

    Parameters
    ----------
    errors, words : array_like
        Of each clip: 0 or more, and over 0.
    texts : sequence
        What text each clip speaks; texts are drawn.

    Raises
    ------
    ParameterError
        As `paired_rise`.

    Notes
    -----
    Efron's BCa bootstrap (1987), as in `paired_rise`. Where no text has an error there is nothing to draw
    from: the upper end is then that of Clopper and Pearson (1934), words taken as independent, which of 300
    words is 1.2 %.
    """
    wrong, said = _paired(texts, errors, words)
    clips = _clips_of(texts)
    if not (wrong.min() >= 0 and said.min() > 0 and np.isfinite([wrong, said]).all()):
        raise ParameterError(
            "Errors are counted from 0, in clips of one word or more.",
            field="words",
            value=f"errors from {wrong.min()}, words from {said.min()}",
        )
    of_text = np.array([[wrong[own].sum(), said[own].sum()] for own in clips])
    rate = wrong.sum() / said.sum()
    if not rate:
        return ErrorRate(0.0, 0.0, float(1 - ((1 - confidence) / 2) ** (1 / said.sum())))
    if np.allclose(of_text[:, 0], rate * of_text[:, 1]):
        return ErrorRate(float(rate), float(rate), float(rate))
    drawn = bootstrap(
        (of_text[:, 0], of_text[:, 1]),
        lambda wrong, said, axis: wrong.sum(axis) / said.sum(axis),
        paired=True,
        n_resamples=RESAMPLES,
        confidence_level=confidence,
        rng=np.random.default_rng(seed),
    )
    return ErrorRate(float(rate), *map(float, drawn.confidence_interval))


def _paired(texts: Sequence[Hashable], *columns: npt.ArrayLike) -> list[npt.NDArray[np.float64]]:
    """The columns as arrays, one value a clip."""
    arrays = [np.asarray(column, np.float64) for column in columns]
    if any(array.shape != (len(texts),) for array in arrays):
        raise ParameterError(
            "Reference, candidate and texts differ in number.",
            field="candidate",
            value=", ".join(str(array.shape) for array in arrays) + f", ({len(texts)},)",
        )
    return arrays


def _clips_of(texts: Sequence[Hashable]) -> list[npt.NDArray[np.intp]]:
    """Which clips speak each text."""
    names = list(dict.fromkeys(texts))
    if len(names) < FEWEST_TEXTS:
        raise ParameterError(
            f"{len(names)} texts say nothing about another one.",
            field="texts",
            value=len(names),
            allowed=f"{FEWEST_TEXTS} or more",
        )
    return [np.flatnonzero([text == name for text in texts]) for name in names]
