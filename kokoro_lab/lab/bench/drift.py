"""Does a figure creep? Its slope over the second half of a run, with an interval."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.stats import linregress
from scipy.stats import t as student

WINDOWS = 10
"""Of the second half."""
FEWEST_VALUES, FEWEST_WINDOWS = 3, 4
"""A window of fewer values is left out; a line through fewer windows says nothing."""

Statistic = Callable[[npt.NDArray[np.float64]], float]


def median(values: npt.NDArray[np.float64]) -> float:
    return float(np.median(values))


def p95(values: npt.NDArray[np.float64]) -> float:
    """Of fewer than 20 values this is nearly the largest."""
    return float(np.percentile(values, 95))


@dataclass(frozen=True, slots=True)
class FigureDrift:
    """How much a figure rose over the second half of a run.

    Parameters
    ----------
    percent : float
        Rise over that half ÷ its level there; below 0 where it fell. Not a number of too few values.
    low, high : float
        95 % interval, from how the windows scatter about the line.
    at_s, levels : tuple of float
        Middle of each window, and the figure there, 1 being the usual one of the same group.
    """

    percent: float
    low: float
    high: float
    at_s: tuple[float, ...] = ()
    levels: tuple[float, ...] = ()


def adjusted(values: Sequence[float], groups: Sequence[Hashable]) -> npt.NDArray[np.float64]:
    """Each value ÷ the median of its group over the whole run.

    A long text takes longer than a short one: what a window happens to hold must not look like drift. A level
    that rises from one half to the other raises every group alike, and stays to be seen.
    """
    found = np.asarray(values, np.float64)
    members: dict[Hashable, list[int]] = defaultdict(list)
    for index, group in enumerate(groups):
        members[group].append(index)
    for indices in members.values():
        found[indices] /= np.median(found[indices])
    return found


def drift(
    at_s: Sequence[float],
    values: Sequence[float],
    groups: Sequence[Hashable],
    run_s: float,
    statistic: Statistic = median,
) -> FigureDrift:
    """A line through the windows of the second half, by least squares.

    Parameters
    ----------
    at_s : sequence of float
        When each value was taken, in seconds from the start of the run.
    values : sequence of float
        Above 0.
    groups : sequence
        What each value is of; values of different groups are never compared.
    run_s : float
        Length of the run.
    statistic : callable
        What a window is summed up by: `median` or `p95`.

    Notes
    -----
    The interval is Student's of a slope, with two degrees of freedom fewer than there are windows. It is
    taken over windows and not over values, since what disturbs a machine lasts longer than one stream.
    """
    half_s = run_s / 2
    moments, levels = np.asarray(at_s, np.float64), adjusted(values, groups)
    edges = np.linspace(half_s, run_s, WINDOWS + 1)
    middles, found = [], []
    for start_s, end_s in pairwise(edges):
        inside = levels[(moments >= start_s) & (moments < end_s)]
        if len(inside) >= FEWEST_VALUES:
            middles.append((start_s + end_s) / 2)
            found.append(statistic(inside))
    if len(found) < FEWEST_WINDOWS:
        return FigureDrift(math.nan, math.nan, math.nan)
    line = linregress(middles, found)
    percent = 100 * half_s / float(np.mean(found))
    beyond = float(student.ppf(0.975, len(found) - 2)) * line.stderr
    low, high = (percent * (line.slope + side * beyond) for side in (-1, 1))
    return FigureDrift(
        float(percent * line.slope), float(low), float(high), tuple(map(float, middles)), tuple(found)
    )
