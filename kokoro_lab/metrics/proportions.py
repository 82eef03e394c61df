"""How sure a share is: exact limits of a proportion, from how many of how many."""

from __future__ import annotations

from scipy.stats import binomtest

from kokoro_lab.errors import ParameterError

ALPHA = 0.05
"""Of a false alarm."""


def proportion_interval(count: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Two-sided interval of a proportion.

    Returns
    -------
    tuple of float
        Low and high end, 0 to 1.

    Raises
    ------
    ParameterError
        Counts that cannot be, or `confidence` is no probability.

    Notes
    -----
    Clopper & Pearson, Biometrika 26(4), 1934: never covers less often than `confidence` says.
    """
    check_counts(count, trials)
    check_probability("confidence", confidence)
    interval = binomtest(count, trials).proportion_ci(confidence, method="exact")
    return float(interval.low), float(interval.high)


def upper_limit(count: int, trials: int, alpha: float = ALPHA) -> float:
    """One-sided upper confidence limit of a proportion, after Clopper & Pearson.

    Raises
    ------
    ParameterError
        Counts that cannot be, or `alpha` is no probability.
    """
    check_counts(count, trials)
    check_probability("alpha", alpha)
    interval = binomtest(count, trials, alternative="less").proportion_ci(1 - alpha, method="exact")
    return float(interval.high)


def check_counts(count: int, trials: int) -> None:
    """So many of so many trials.

    Raises
    ------
    ParameterError
        More than there are, fewer than none, or no trial.
    """
    if trials < 1 or not 0 <= count <= trials:
        raise ParameterError(
            f"{count} of {trials} trials cannot be.",
            field="count" if trials >= 1 else "trials",
            value=count if trials >= 1 else trials,
            allowed="0 ≤ count ≤ trials, and one trial or more",
        )


def check_probability(field: str, value: float) -> None:
    """`value` is a probability that is neither impossible nor certain.

    Raises
    ------
    ParameterError
        It is not; `field` is named.
    """
    if not 0 < value < 1:
        raise ParameterError(
            f"{value} is no {field.replace('_', ' ')}.", field=field, value=value, allowed="over 0, under 1"
        )
