"""Single wrong samples and splices: places where a recording is not what its surroundings say.

Speech is full of sharp bends: a glottal closure is one, a plosive begins with one. What tells a fault from
them is its shape. A wrong sample is alone: with it put right, nothing is left to see. A splice steps from one
level to another; a closure bends instead. So each score takes the fault that it looks for out of the signal,
and asks how far what it took is above all that stays nearby.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy.ndimage import maximum_filter1d

from kokoro_lab.metrics.defects import Samples, checked

Values = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

NEIGHBOURS_S = 0.002
OWN_SAMPLES = 2
"""How far the second difference of one wrong sample reaches."""
FLOOR = 1e-4
"""What is nearby counts as this much at least, of full scale: no score for rounding in silence."""
ISOLATED = 1.3
"""How much more bent than its neighbours a place must be to be looked at. Of places from 1.0 on there are
seven times as many, and of 120 clicks 3 more among them."""

ORDER = 16
"""Of the linear prediction. With 10, 16 and 24 it found 93, 95 and 93 % of clicks."""
AROUND_S = 0.015
RIDGE = 1e-6
AT_ONCE = 256


def click_score(samples: Samples, sample_rate_hz: int) -> float:
    """How far the worst single wrong sample is off, over how far any other within 2 ms is.

    A sample is off by its distance from what linear prediction from both sides, fitted to the 15 ms on
    either side without it, makes of it (least-squares interpolation, Janssen, Veldhuis & Vries, IEEE ASSP 34,
    1986); the others are judged with this one put right. So an excitation of the vocal tract, which rings
    on, does not count: it is an innovation, and this looks for additive outliers (Fox, JRSS B 34, 1972).

    Parameters
    ----------
    samples : numpy.ndarray
        float32 (n,), 0.1 s or more.
    sample_rate_hz : int

    Returns
    -------
    float
        A ratio, at least 0. Speech: 1.8 in the median, 4.3 at most in 1,168 clips.

    Raises
    ------
    ParameterError
        Too short, not finite, or not one channel.
    """
    values = checked(samples, sample_rate_hz)
    reach, half = round(NEIGHBOURS_S * sample_rate_hz), round(AROUND_S * sample_rate_hz)
    margin = half + ORDER
    padded = np.pad(values, margin)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * margin + 1)
    nearby = slice(margin - reach - ORDER, margin + reach + ORDER + 1)
    worst = 0.0
    for places in _batches(_isolated(values, sample_rate_hz)):
        interpolators = _interpolators(windows[places], half)
        near = np.lib.stride_tricks.sliding_window_view(windows[places, nearby], 2 * ORDER + 1, axis=1)
        off = (near @ interpolators[:, :, None])[:, :, 0]
        height = off[:, reach].copy()
        off[:, reach - ORDER : reach + ORDER + 1] -= height[:, None] * interpolators
        worst = max(worst, float((np.abs(height) / (np.abs(off).max(1) + FLOOR)).max()))
    return worst


def splice_score(samples: Samples, sample_rate_hz: int) -> float:
    """How high the hardest step between two samples is, over how bent anything within 2 ms is without it.

    A step of h is two second differences, h and -h; what they have in common is taken out. A bend, as
    of a glottal closure, is one, and half of it stays; so does half of a wrong sample.

    Parameters
    ----------
    samples : numpy.ndarray
        float32 (n,), 0.1 s or more.
    sample_rate_hz : int

    Returns
    -------
    float
        A ratio, at least 0. Speech: 1.5 in the median, 2.9 at most in 1,168 clips.

    Raises
    ------
    ParameterError
        Too short, not finite, or not one channel.
    """
    values = checked(samples, sample_rate_hz)
    reach = round(NEIGHBOURS_S * sample_rate_hz)
    padded = np.pad(_second_differences(values), reach)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1)
    isolated = _isolated(values, sample_rate_hz)
    worst = 0.0
    for places in _batches(np.union1d(isolated, np.maximum(isolated - 1, 0))):
        bends = windows[places].copy()
        height = (bends[:, reach] - bends[:, reach + 1]) / 2
        bends[:, reach] -= height
        bends[:, reach + 1] += height
        worst = max(worst, float((np.abs(height) / (np.abs(bends).max(1) + FLOOR)).max()))
    return worst


def _isolated(samples: Values, sample_rate_hz: int) -> Places:
    """Samples that are bent more than all others within 2 ms on both sides.

    Second differences after Kasparis & Lane 1993; held against the loudest neighbour instead of a median,
    since speech is no stationary noise.
    """
    bend = np.abs(_second_differences(samples))
    reach = round(NEIGHBOURS_S * sample_rate_hz)
    width = reach - OWN_SAMPLES
    windows = maximum_filter1d(np.pad(bend, 2 * reach), width, mode="constant")
    middle = OWN_SAMPLES + (width + 1) // 2
    at = np.arange(len(bend)) + 2 * reach
    around = np.maximum(windows[at - middle], windows[at + middle])
    return np.flatnonzero(bend > ISOLATED * (around + FLOOR))


def _second_differences(samples: Values) -> Values:
    return np.diff(np.pad(samples, 1), n=2)


def _batches(places: Places) -> Iterator[Places]:
    return (places[start : start + AT_ONCE] for start in range(0, len(places), AT_ONCE))


def _interpolators(around: Values, half: int) -> Values:
    """What each middle sample's distance from its prediction from both sides is made with: (B, 2·ORDER + 1).

    `around` is (B, 2·(half + ORDER) + 1). The coefficients are of the covariance method, from all equations
    without the middle sample: a wrong one would bend the very rule by which it is judged.
    """
    rows = np.lib.stride_tricks.sliding_window_view(around[:, :-ORDER], ORDER + 1, axis=1)
    last = np.arange(rows.shape[1]) + ORDER  # the sample that each equation predicts
    middle = half + ORDER
    rows = rows[:, (last < middle) | (last > middle + ORDER)]
    target, past = rows[:, :, -1], rows[:, :, -2::-1]
    gram = past.transpose(0, 2, 1) @ past
    power = np.trace(gram, axis1=1, axis2=2) / ORDER
    gram += (RIDGE * power + RIDGE**2)[:, None, None] * np.eye(ORDER)
    solved = np.linalg.solve(gram, past.transpose(0, 2, 1) @ target[:, :, None])[:, :, 0]
    filters = np.concatenate([np.ones((len(around), 1)), -solved], axis=1)
    products = np.stack(
        [(filters[:, : ORDER + 1 - lag] * filters[:, lag:]).sum(1) for lag in range(ORDER + 1)], axis=1
    )
    products /= products[:, :1]
    return np.concatenate([products[:, :0:-1], products], axis=1)
