"""Non-inferiority tests: is a candidate worse by less than a margin? By pairs, with a bootstrap over texts.

Each test has 95 % confidence; for several tests, `holm` keeps that for all together.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from kokoro_lab.errors import ParameterError
from kokoro_lab.extras import imported
from kokoro_lab.metrics.intervals import (
    FEWEST_UNITS,
    Estimate,
    bootstrapped,
    columns_of,
    rate_of,
    ratio_of_sums,
    rows_of,
)
from kokoro_lab.typed import require_range

special = imported("scipy.special", extra="lab")

MARGIN = 0.03
CONFIDENCE = 0.95


def paired_change(
    reference: npt.ArrayLike,
    candidate: npt.ArrayLike,
    texts: Sequence[Hashable],
    *,
    margin: float = MARGIN,
) -> Estimate:
    """Mean relative change with its lower limit; a lower limit above −margin shows non-inferiority.

    Parameters
    ----------
    reference, candidate : array_like
        A positive figure of each clip, higher is better, in pairs.
    texts : sequence
        The text of each pair. Several voices of one text are not independent: whole texts are drawn.
    margin : float
        The loss that `p` tests, as a share of the reference.

    Returns
    -------
    Estimate
        The mean relative change: −0.01 is 1 % lower. The interval is one-sided: the true change is above
        `low`. `p` is the probability of a loss as small as this one, if the true loss were the margin. `p` is
        at or below 0.05 if `low` with 95 % confidence is above −margin. `units` are texts.

    Raises
    ------
    ParameterError
        The lengths differ, a reference is not positive, or there are fewer than three texts.

    Notes
    -----
    Each text counts once, with the mean of its pairs. The limit is that of Efron's BCa bootstrap of the mean
    (1987), as `scipy.stats.bootstrap` computes it. `p` is the error probability for which the lower limit
    would be exactly −margin.
    """
    before, after = columns_of(texts, reference, candidate)
    if not (np.isfinite(before).all() and np.isfinite(after).all() and (before > 0).all()):
        raise ParameterError("Only finite figures over 0 can be compared.", field="reference")
    change = after / before - 1
    by_text = np.array([change[clips].mean() for clips in _clips_of(texts)])
    lower, p = by_text[0], 0.0 if by_text[0] > -margin else 1.0
    if np.ptp(by_text) > 0:
        drawn = bootstrapped([by_text], confidence=CONFIDENCE, alternative="greater")
        lower = drawn.confidence_interval.low
        p = _level_at(-margin, by_text, drawn.bootstrap_distribution)
    return Estimate(float(by_text.mean()), float(lower), np.inf, len(by_text), p)


def _level_at(limit: float, values: npt.NDArray[np.float64], drawn: npt.NDArray[np.float64]) -> float:
    """The one-sided error probability with which the BCa limit of a mean is `limit`: Efron 1987, equation
    3.9, solved for it."""
    mean = values.mean()
    bias = special.ndtri((np.mean(drawn < mean) + np.mean(drawn <= mean)) / 2)
    # Of a mean, the jackknife's acceleration is a sixth of the skewness ÷ √n
    centred = values - mean
    acceleration = (centred**3).sum() / (6 * (centred**2).sum() ** 1.5)
    # One is added, so that no p is 0: a number of draws can show no less (Davison & Hinkley 1997, 4.11)
    share = (1 + np.count_nonzero(drawn <= limit)) / (1 + len(drawn))
    moved = special.ndtri(min(share, len(drawn) / (1 + len(drawn)))) - bias
    scale = 1 + acceleration * moved
    if scale <= 0:
        return 0.0 if moved < 0 else 1.0
    return float(special.ndtr(moved / scale - bias))


def holm(p: Mapping[str, float]) -> dict[str, float]:
    """Adjusted p of a family of tests, each named: those at or below 0.05 may be claimed together.

    Source: Holm 1979, "A simple sequentially rejective multiple test procedure". The smallest of m is
    multiplied by m, the next by m − 1, and so on; none is smaller than the one before, nor above 1. The
    correction is valid for any dependence between the tests.

    Raises
    ------
    ParameterError
        There is no test, or a p is not from 0 to 1.
    """
    if not p or not all(0 <= value <= 1 for value in p.values()):
        raise ParameterError(
            "A family of tests has a p from 0 to 1 for each.", field="p", value=str(dict(p)), allowed="0 to 1"
        )
    adjusted: dict[str, float] = {}
    largest = 0.0
    for rank, name in enumerate(sorted(p, key=lambda name: p[name])):
        largest = max(largest, min(1.0, (len(p) - rank) * p[name]))
        adjusted[name] = largest
    return {name: adjusted[name] for name in p}


def paired_rise(
    reference_errors: npt.ArrayLike,
    candidate_errors: npt.ArrayLike,
    words: npt.ArrayLike,
    texts: Sequence[Hashable],
) -> Estimate:
    """Difference of two error rates with its upper limit; a limit under a margin shows non-inferiority.

    Each rate is the number of all errors divided by the number of all words. A relative change would not do:
    most clips have no error, so that there is nothing to divide by.

    Parameters
    ----------
    reference_errors, candidate_errors : array_like
        Errors in each clip, 0 or more, in pairs.
    words : array_like
        How many words each pair speaks, over 0.
    texts : sequence
        The text of each pair. Several voices of one text are not independent: whole texts are drawn.

    Returns
    -------
    Estimate
        Additional errors divided by words: 0.01 is one more in a hundred words; below 0 there are fewer. The
        interval is one-sided: the true rise is below `high`. `units` are texts.

    Raises
    ------
    ParameterError
        The lengths differ, errors are below 0, a pair has no words, or there are fewer than three texts.

    Notes
    -----
    The limit is that of Efron's BCa bootstrap (1987) of the ratio of sums, which draws whole texts. If the
    same share of words differs in every text, there is no spread, and the limit is the rise itself. With few
    texts, equal shares show little, so look at the number of texts.
    """
    before, after, said = columns_of(texts, reference_errors, candidate_errors, words)
    clips = _clips_of(texts)
    _require_counts(said, before, after)
    more = np.array([(after - before)[own].sum() for own in clips])
    of = np.array([said[own].sum() for own in clips])
    rise = more.sum() / of.sum()
    upper = rise
    if not np.allclose(more, rise * of):
        drawn = bootstrapped([more, of], ratio_of_sums, confidence=CONFIDENCE, alternative="less")
        upper = drawn.confidence_interval.high
    return Estimate(float(rise), -np.inf, float(upper), len(clips))


def error_rate(
    errors: npt.ArrayLike,
    words: npt.ArrayLike,
    texts: Sequence[Hashable],
) -> Estimate:
    """An error rate with its two-sided confidence interval.

    Parameters
    ----------
    errors, words : array_like
        Errors of each clip, 0 or more, and its words, over 0.
    texts : sequence
        The text of each clip; the bootstrap draws texts.

    Raises
    ------
    ParameterError
        In the cases in which `paired_rise` raises it.

    Notes
    -----
    Efron's BCa bootstrap (1987), as in `paired_rise`. If no text has an error, the upper end is that of
    Clopper and Pearson (1934), with words taken as independent: 1.2 % for 300 words.
    """
    wrong, said = columns_of(texts, errors, words)
    clips = _clips_of(texts)
    _require_counts(said, wrong)
    if not wrong.sum():
        return Estimate(0.0, 0.0, float(1 - ((1 - CONFIDENCE) / 2) ** (1 / said.sum())), len(clips))
    return rate_of(wrong, said, texts, confidence=CONFIDENCE)


def _require_counts(said: npt.NDArray[np.float64], *errors: npt.NDArray[np.float64]) -> None:
    least = min(column.min() for column in errors)
    if not (least >= 0 and said.min() > 0 and np.isfinite([said, *errors]).all()):
        raise ParameterError(
            "Errors are counted from 0, in clips of one word or more.",
            field="words",
            value=f"errors from {least}, words from {said.min()}",
        )


def _clips_of(texts: Sequence[Hashable]) -> list[npt.NDArray[np.intp]]:
    """For each text, the numbers of the clips that speak it."""
    clips = rows_of(texts)
    message = f"{len(clips)} texts say nothing about another one."
    require_range("texts", len(clips), FEWEST_UNITS, message=message)
    return clips
