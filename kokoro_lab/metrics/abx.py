"""Exact statistics of the right answers of an ABX test.

In each trial a listener hears A, B and X, and says which of the two X is. A listener who hears no difference
is right in half of the trials. Two questions can be asked of the same count, and usually only the first is:

- *Is a difference heard?* `p_value`: a listener who hears nothing rarely gives this many right answers. A p
  over 0.05 shows nothing by itself: 16 trials find a listener who is right 60 % of the time in one test of
  six (`power`).
- *Is the difference shown to be inaudible?* `intervals.upper_limit`: the true proportion of right answers is
  below this limit. To show that it is below 70 % takes at least 39 trials (`trials_to_show`).

A count far below chance (`AbxResult.odd`) answers neither question.

Both statistics are exact for trials that are independent of each other, with an X drawn by a fair coin each
time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from kokoro_lab.errors import ParameterError
from kokoro_lab.extras import imported
from kokoro_lab.metrics.intervals import (
    ALPHA,
    check_counts,
    proportion_interval,
    upper_limit,
)
from kokoro_lab.typed import require_range

optimize = imported("scipy.optimize", extra="lab")
stats = imported("scipy.stats", extra="lab")

CHANCE = 0.5
INAUDIBLE_BELOW = 0.70
"""A listener who is right less often than this hears a difference at most now and then: 0.5 is guessing,
0.75 the usual threshold of hearing."""
POWER = 0.8
MOST_TRIALS = 100
ODD_P = 0.01
"""A count of right answers is odd if guessing gives as few in only one test of a hundred."""
LEAST_LISTENERS = 5
"""The fewest listeners for a statement on people in general. If three people in ten hear a difference, at
least one of them is among five listeners with a probability of 0.83, more than `POWER`."""
_HIGHEST_D_PRIME = 40.0
"""Upper end of the search for d′; above 6, the proportion of right answers is 1 in float64."""


def p_value(right: int, trials: int) -> float:
    """Probability that guessing gives as many right answers, or more. A small value means that a difference
    was heard.

    Parameters
    ----------
    right, trials : int
        Counts, 0 ≤ right ≤ trials, at least one trial.

    Returns
    -------
    float
        One-sided, exact, 0 to 1.

    Raises
    ------
    ParameterError
        The counts are impossible.

    Notes
    -----
    The binomial test against one half: Burstein, "Approximation formulas for error risk and sample size
    in ABX testing", J. Audio Eng. Soc. 36(11), 1988, without the approximation.
    """
    check_counts(right, trials)
    return float(stats.binomtest(right, trials, CHANCE, alternative="greater").pvalue)


def fewest_right(trials: int) -> int | None:
    """How many right answers are significant: the least count with `p_value` ≤ `ALPHA`.

    Returns
    -------
    int or None
        Examples: 12 of 16, 15 of 20, 26 of 40. None if even all answers right would not be significant.

    Raises
    ------
    ParameterError
        No trials.
    """
    check_counts(0, trials)
    least = int(stats.binom.isf(ALPHA, trials, CHANCE)) + 1
    return least if least <= trials else None


def power(trials: int, true_proportion: float) -> float:
    """Probability that the right answers of a listener with this `true_proportion` are significant.

    Parameters
    ----------
    trials : int
        1 or more.
    true_proportion : float
        Over 0.5, up to 1.

    Returns
    -------
    float
        0 to 1: 0.17 for 0.60 in 16 trials.

    Raises
    ------
    ParameterError
        There are no trials, or the proportion is not above chance.
    """
    least = fewest_right(trials)
    if not CHANCE < true_proportion <= 1:
        raise ParameterError(
            f"A true proportion of {true_proportion} is not above guessing.",
            field="true_proportion",
            value=true_proportion,
            allowed=f"over {CHANCE}, up to 1",
        )
    return 0.0 if least is None else float(stats.binom.sf(least - 1, trials, true_proportion))


@cache
def trials_to_show() -> tuple[int, int]:
    """The fewest trials that show inaudibility, if nobody hears anything, with a probability of `POWER`.

    Returns
    -------
    tuple of int
        Trials, and the right answers that they may hold at most: (39, 22).
    """
    trials = np.arange(1, MOST_TRIALS + 1)
    most = stats.binom.ppf(ALPHA, trials, INAUDIBLE_BELOW)
    # ppf is the first count whose probability exceeds ALPHA, unless one hits it exactly
    most -= stats.binom.cdf(most, trials, INAUDIBLE_BELOW) > ALPHA
    needed = int(trials[np.argmax(stats.binom.cdf(most, trials, CHANCE) >= POWER)])
    return needed, int(most[needed - 1])


def proportion_of(d_prime_value: float) -> float:
    """The proportion of right answers that a sensitivity d′ gives in ABX.

    Raises
    ------
    ParameterError
        d′ is negative or not a number.

    Notes
    -----
    A listener who compares X with A and X with B as independent observations, without bias: Macmillan &
    Creelman, "Detection Theory: A User's Guide", 2nd edition, 2005, equation 9.5:
    pc = Φ(d′/√2) Φ(d′/2) + Φ(−d′/√2) Φ(−d′/2).
    """
    require_range("d_prime", d_prime_value, 0, message="A sensitivity is 0 or more.")
    wide, narrow = d_prime_value / math.sqrt(2), d_prime_value / 2
    return float(
        stats.norm.cdf(wide) * stats.norm.cdf(narrow) + stats.norm.cdf(-wide) * stats.norm.cdf(-narrow)
    )


def d_prime(proportion_right: float) -> float:
    """How far apart A and B are for the listener, in standard deviations: `proportion_of`, inverted.

    Parameters
    ----------
    proportion_right : float
        0 to 1. At or below one half, d′ is 0, since nothing is heard. At 1, d′ is infinite.

    Returns
    -------
    float
        1.53 for 0.70, 1.79 for 0.75.

    Raises
    ------
    ParameterError
        The value is no proportion.
    """
    require_range("proportion_right", proportion_right, 0, 1, "That is no proportion.")
    if proportion_right <= CHANCE:
        return 0.0
    if proportion_right >= proportion_of(_HIGHEST_D_PRIME):
        return math.inf
    return float(optimize.brentq(lambda d: proportion_of(d) - proportion_right, 0.0, _HIGHEST_D_PRIME))


@dataclass(frozen=True, slots=True)
class AbxResult:
    """The conclusions from one count of right answers. Made by `outcome`.

    Parameters
    ----------
    p : float
        One-sided, exact.
    interval : tuple of float
        95 % interval of the true proportion, two-sided.
    upper : float
        One-sided 95 % upper limit of the proportion of right answers.
    d_prime : float
        Sensitivity for the proportion.
    """

    right: int
    trials: int
    p: float
    interval: tuple[float, float]
    upper: float
    d_prime: float

    @property
    def proportion(self) -> float:
        """Right answers ÷ trials."""
        return self.right / self.trials

    @property
    def heard(self) -> bool:
        """Whether a difference is shown to be heard."""
        return self.p <= ALPHA

    @property
    def odd(self) -> bool:
        """Whether the count is far below chance. A listener who hears nothing is right about half of the
        time, so this listener must have confused the answers."""
        return float(stats.binom.cdf(self.right, self.trials, CHANCE)) <= ODD_P

    @property
    def missing_trials(self) -> int:
        """How many more trials it takes before inaudibility can be shown at all."""
        return max(trials_to_show()[0] - self.trials, 0)

    def shown_inaudible(self) -> bool:
        """Whether the true proportion is shown to be below `INAUDIBLE_BELOW`: the trials suffice, and the
        count is not odd.

        A few trials with few right answers have a low limit, too, but that is chance: by guessing half are
        right.
        """
        return self.upper < INAUDIBLE_BELOW and not self.missing_trials and not self.odd


def outcome(right: int, trials: int) -> AbxResult:
    """Everything that a count of right answers shows.

    Raises
    ------
    ParameterError
        The counts are impossible.
    """
    return AbxResult(
        right=right,
        trials=trials,
        p=p_value(right, trials),
        interval=proportion_interval(right, trials),
        upper=upper_limit(right, trials),
        d_prime=d_prime(right / trials),
    )


@dataclass(frozen=True, slots=True)
class PooledListeners:
    """Several listeners as one, and whether they may be pooled.

    Parameters
    ----------
    outcome : AbxResult
        The outcome of all their answers together.
    listeners : int
        The number of listeners.
    differ_p : float
        Probability that proportions of right answers differ this much if all listeners hear equally well; 1
        for one listener.
    """

    outcome: AbxResult
    listeners: int
    differ_p: float

    @property
    def differ(self) -> bool:
        """Whether the listeners are shown to hear differently: then the pool describes none of them."""
        return self.differ_p <= ALPHA


def pool(counts: Mapping[str, tuple[int, int]]) -> PooledListeners:
    """The answers of several listeners, added up.

    Parameters
    ----------
    counts : mapping
        Listener → right answers and trials.

    Raises
    ------
    ParameterError
        There is no listener, or a count is impossible.

    Notes
    -----
    The listeners are compared by Pearson's chi-square on right and wrong answers, with its p from 9999 random
    tables of the same margins (Patefield's algorithm): counts are too small for the chi-square distribution.
    """
    if not counts:
        raise ParameterError("Nobody has answered.", field="counts", value=0, allowed="one listener or more")
    for right, trials in counts.values():
        check_counts(right, trials)
    total, of = (sum(column) for column in zip(*counts.values(), strict=True))
    differ_p = 1.0
    if len(counts) > 1 and 0 < total < of:
        table = np.array([(right, trials - right) for right, trials in counts.values()])
        resampled = stats.MonteCarloMethod(n_resamples=9999, rng=np.random.default_rng(0))
        differ_p = float(stats.chi2_contingency(table, correction=False, method=resampled).pvalue)
    return PooledListeners(outcome(total, of), len(counts), differ_p)
