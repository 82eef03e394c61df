"""Tests whether a figure rises during a run, by a line through the time windows of its second half."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy.stats import linregress
from scipy.stats import t as student

WINDOWS = 10
"""Number of time windows in the second half of a run, in which drift is looked for."""
FEWEST_VALUES, FEWEST_WINDOWS = 3, 4
"""A window with fewer than `FEWEST_VALUES` is left out; with fewer than `FEWEST_WINDOWS`, no line is
drawn."""


@dataclass(frozen=True, slots=True)
class FigureDrift:
    """How much a figure rose over the second half of a run.

    Parameters
    ----------
    percent : float
        Rise over the second half, in per cent of the mean over its windows; below 0 if the figure fell. Not a
        number if there are too few values.
    low, high : float
        95 % interval, from how the windows scatter about the line.
    at_s, levels : tuple of float
        Middle of each window, in seconds from the start of the run, and the figure in it, as a ratio to the
        median of its group (see `adjusted`).
    """

    percent: float
    low: float
    high: float
    at_s: tuple[float, ...] = ()
    levels: tuple[float, ...] = ()


def adjusted(values: pd.Series, groups: pd.Series) -> pd.Series:
    """Each value ÷ the median of its group over the whole run.

    A long text takes longer than a short one, and the mix of texts in a window must not look like drift. A
    real rise from one half to the other affects every group, and remains visible.
    """
    return values / values.groupby(groups).transform("median")


def drift(
    at_s: pd.Series, values: pd.Series, groups: pd.Series, run_s: float, percentile: float = 50
) -> FigureDrift:
    """Fit a line through the windows of the second half, by least squares.

    Parameters
    ----------
    at_s : pandas.Series
        When each value was taken, in seconds from the start of the run.
    values : pandas.Series
        The figure at these times; every value is above 0.
    groups : pandas.Series
        The group of each value, such as its text; values of different groups are never compared.
    run_s : float
        Length of the run.
    percentile : float
        The percentile that summarises a window. The 95th of fewer than 20 values is nearly the largest.

    Notes
    -----
    The interval is Student's for the slope of a line, with two degrees of freedom fewer than there are
    windows. The interval is computed over windows and not over values, since disturbances of a machine last
    longer than one stream.
    """
    half_s = run_s / 2
    levels = adjusted(values, groups)
    middles, found = [], []
    for start_s, end_s in pairwise(np.linspace(half_s, run_s, WINDOWS + 1)):
        inside = levels[(at_s >= start_s) & (at_s < end_s)]
        if len(inside) >= FEWEST_VALUES:
            middles.append(float(start_s + end_s) / 2)
            found.append(float(np.percentile(inside, percentile)))
    if len(found) < FEWEST_WINDOWS:
        return FigureDrift(math.nan, math.nan, math.nan)
    line = linregress(middles, found)
    percent = 100 * half_s / float(np.mean(found))
    beyond = float(student.ppf(0.975, len(found) - 2)) * line.stderr
    low, high = (float(percent * (line.slope + side * beyond)) for side in (-1, 1))
    return FigureDrift(float(percent * line.slope), low, high, tuple(middles), tuple(found))
