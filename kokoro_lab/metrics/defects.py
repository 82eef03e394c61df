"""Detectors of defects in a recording (clicks, gaps, splices, repeats, clipping) that need no reference.

Such detectors miss some defects, and each docstring says how many. Figures of speech are those of 110 streams
of the int8 variant: sentences of 30 to 75 characters that nothing was fitted on, read by the English voices
in turn, 24 kHz, at their voices' gain; figures of faults are of the same clips, damaged at their loudest
place by `kokoro_lab.lab.gates.damages`. Limits were set on these clips; `kokoro_lab.lab.gates.seams` counts
false alarms and detections on other clips.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kokoro_lab.extras import imported
from kokoro_lab.metrics.recordings import require_recording

fft = imported("scipy.fft", extra="lab")
ndimage = imported("scipy.ndimage", extra="lab")

Samples = npt.NDArray[np.float32]
Values = npt.NDArray[np.float64]

SHORTEST_S = 0.1

EDGE_S, SILENT_S = 0.001, 0.005
FLOOR_DBFS = -100.0
LONGEST_GAP_S = 0.5
HARD_DB = 45.0
"""Limit, in dB, of the step from the loudest sample within 1 ms to the loudest one within the 5 ms next to
it. Natural speech fell by at most 32 dB that fast; silenced speech fell by 73 dB or more. The beginning of
speech may be as hard: a plosive rises by up to 60 dB."""

FLAT_SAMPLES = 4
FLAT_SHARE = 0.1
HALF_STEP = 0.5 / 32768

FRAME_S = 0.010
LAG_MIN_S, LAG_MAX_S = 0.020, 0.500
AUDIBLE_DBFS = -50.0
FRAMES_AT_ONCE = 64


class Gap(NamedTuple):
    """A silent span that begins and ends hard; `step_db` is the smaller one of its two steps."""

    start_s: float
    length_s: float
    step_db: float


class Repeat(NamedTuple):
    """A span that is most like the span `lag_s` later; `residual_db` is the power of the difference of both,
    relative to the power of the first."""

    start_s: float
    lag_s: float
    residual_db: float


def nonfinite_count(samples: Samples) -> int:
    """How many samples are NaN or infinite. Only this detector accepts such samples, and it finds all of
    them."""
    require_recording(samples, finite=False)
    return int((~np.isfinite(samples)).sum())


def hardest_fall_db(samples: Samples, sample_rate_hz: int) -> float:
    """The hardest end of a sound, in dB: the loudest sample within 1 ms divided by the loudest in the 5 ms
    after it.

    The end of the recording is measured, too, as if silence followed. A speaker's pauses begin softly, since
    throats resonate: a formant of 50 Hz bandwidth falls by 7 dB in 5 ms, by exp(-πBt). A sample below -100
    dBFS counts as -100 dBFS. Speech: 12 to 32 dB. Silenced speech: 73 dB and more.

    Raises
    ------
    ParameterError
        The recording is shorter than 0.1 s, has samples that are not finite, or has several channels.
    """
    return float(_steps_db(checked(samples, sample_rate_hz), sample_rate_hz)[0].max())


def gaps(samples: Samples, sample_rate_hz: int, *, hard_db: float = HARD_DB) -> list[Gap]:
    """Spans of 5 to 500 ms within speech that begin and end with a step of `hard_db` or more.

    Pauses are not found, since they begin softly. This detector makes the errors of `hardest_fall_db`.
    """
    fall_db, rise_db = _steps_db(checked(samples, sample_rate_hz), sample_rate_hz)
    falls, rises = (_peaks(step_db, hard_db) for step_db in (fall_db, rise_db))
    found = []
    for start in falls:
        ends = rises[(rises > start) & (rises <= start + round(LONGEST_GAP_S * sample_rate_hz))]
        if len(ends):
            step_db = min(fall_db[start], rise_db[ends[0]])
            length_s = float(ends[0] - start) / sample_rate_hz
            found.append(Gap(float(start) / sample_rate_hz, length_s, float(step_db)))
    return found


def clipped_count(samples: Samples, sample_rate_hz: int) -> int:
    """The number of samples that end a run of 4 or more samples of one value, at a tenth of the peak or more.

    Clipping cuts peaks to one value; speech at such a level does not stand still for 4 samples, not even in
    16 bit (0 such samples in 110 clips, 1 in a later clip; 178 or more in clips of which 1 % was clipped).
    Flat runs are a criterion of Laguna & Lerch 2016 ("An Efficient Algorithm for Clipping Detection and
    Declipping Audio"). A limiter that turns the gain down leaves no such run.

    Raises
    ------
    ParameterError
        In the cases in which `hardest_fall_db` raises it.
    """
    values = checked(samples, sample_rate_hz)
    loud = np.abs(values[1:]) > FLAT_SHARE * np.abs(values).max()
    still = (np.abs(np.diff(values)) < HALF_STEP) & loud
    return int(np.lib.stride_tricks.sliding_window_view(still, FLAT_SAMPLES - 1).all(1).sum())


def closest_repeat(samples: Samples, sample_rate_hz: int) -> Repeat:
    """The frame of 10 ms that comes again most exactly, 20 to 500 ms later.

    Each audible frame is compared with what follows by the normalised cross-correlation ρ. The residual, 1 -
    ρ² in dB, is the least-squares error of predicting one from the other. For sound that is sent twice, it
    is below -130 dB, or below -85 dB if each copy has its own dither. Voiced speech repeats itself from
    period to period: its residual is -12 to -41 dB. A steady tone is a repetition.

    Raises
    ------
    ParameterError
        In the cases in which `hardest_fall_db` raises it.
    """
    values = checked(samples, sample_rate_hz)
    size, least, most = (round(length_s * sample_rate_hz) for length_s in (FRAME_S, LAG_MIN_S, LAG_MAX_S))
    best = (0.0, 0, 0)
    for starts, lags in _likely_repeats(values, size, least, most):
        for start, lag in zip(starts, lags, strict=True):
            frame, later = values[start : start + size], values[start + lag : start + lag + size]
            if len(later) == size and (later @ later) > 0.01 * (frame @ frame):
                best = min(best, (_residual_db(frame, later), int(start), int(lag)))
    residual_db, start, lag = best
    return Repeat(start / sample_rate_hz, lag / sample_rate_hz, residual_db)


def checked(samples: Samples, sample_rate_hz: int) -> Values:
    """The samples in double precision, if defects can be looked for in them.

    Raises
    ------
    ParameterError
        The recording is shorter than 0.1 s, has samples that are not finite, or has several channels.
    """
    require_recording(samples, sample_rate_hz, SHORTEST_S)
    return samples.astype(np.float64)


def _steps_db(values: Values, sample_rate_hz: int) -> tuple[Values, Values]:
    """By how many dB sound falls at each sample, and by how many it rises; silence is assumed before and
    after the recording."""
    edge, silent = (round(length_s * sample_rate_hz) for length_s in (EDGE_S, SILENT_S))
    magnitude = np.maximum(np.pad(np.abs(values), silent), 10 ** (FLOOR_DBFS / 20))
    level_db = 20 * np.log10(magnitude)
    near, far = (
        np.lib.stride_tricks.sliding_window_view(level_db, length).max(1) for length in (edge, silent)
    )
    at = silent + np.arange(len(values) + 1)
    return near[at - edge] - far[at], near[np.minimum(at, len(near) - 1)] - far[at - silent]


def _peaks(step_db: Values, hard_db: float) -> npt.NDArray[np.int64]:
    """The place of the hardest step in each group of neighbouring steps over the limit."""
    over = np.flatnonzero(step_db >= hard_db)
    groups = np.split(over, np.flatnonzero(np.diff(over) > 1) + 1) if len(over) else []
    return np.array([group[np.argmax(step_db[group])] for group in groups], np.int64)


def _likely_repeats(
    values: Values, size: int, least: int, most: int
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Audible frames and the lag at which each correlates best, found in single precision."""
    padded = np.pad(values, (0, most + size))
    energy = np.concatenate([[0.0], np.cumsum(padded**2)])
    starts = np.arange(0, max(len(values) - least - size, 0), size)
    starts = starts[energy[starts + size] - energy[starts] > size * 10 ** (AUDIBLE_DBFS / 10)]
    reach = most + size
    lags = np.arange(least, most + 1)
    single = padded.astype(np.float32)
    for first in range(0, len(starts), FRAMES_AT_ONCE):
        some = starts[first : first + FRAMES_AT_ONCE, None]
        frames, later = (
            fft.rfft(single[some + np.arange(n)], 1 << reach.bit_length()) for n in (size, reach)
        )
        products: Values = fft.irfft(np.conj(frames) * later)[:, least : most + 1]
        powers = energy[some + lags + size] - energy[some + lags]
        audible = powers > 0.01 * (energy[some + size] - energy[some])
        yield some[:, 0], lags[np.where(audible, products / np.sqrt(powers + 1e-12), -1).argmax(1)]


def _residual_db(frame: Values, later: Values) -> float:
    coherence = (frame @ later) ** 2 / ((frame @ frame) * (later @ later))
    return float(10 * np.log10(max(1 - float(coherence), 1e-16))) if frame @ later > 0 else 0.0


# ------------------------------------------------------------------ wrong samples and splices
#
# Speech is full of sharp bends: a glottal closure is one, a plosive begins with one. The shape tells a fault
# from them. A wrong sample is alone: once it is corrected, its neighbourhood is smooth. A splice is a step
# from one level to another; a closure is a bend. So each score removes the fault that it looks for from the
# signal, and divides the size of what it removed by the largest that remains nearby.

Places = npt.NDArray[np.int64]

NEIGHBOURS_S = 0.002
OWN_SAMPLES = 2
"""How many samples on either side the second difference of one wrong sample reaches."""
FLOOR = 1e-4
"""Added to the largest error of a neighbourhood, as a share of full scale, so that rounding in silence gets
no score."""
ISOLATED = 1.3
"""How much more bent than its neighbours a place must be to be examined. With 1.0 there would be seven times
as many places, and only 3 more of 120 clicks would be among them."""

ORDER = 16
"""Order of the linear prediction. With 10, 16 and 24 `click_score` found 93, 95 and 93 % of clicks."""
AROUND_S = 0.015
RIDGE = 1e-6
AT_ONCE = 256


def click_score(samples: Samples, sample_rate_hz: int) -> float:
    """The error of the worst single sample, divided by the largest error of any other sample within 2 ms.

    The error of a sample is its distance from its linear prediction from both sides, fitted to the 15 ms on
    either side without the sample (least-squares interpolation, Janssen, Veldhuis & Vries, IEEE ASSP 34,
    1986). The errors of its neighbours are computed with this sample corrected. So an excitation of the vocal
    tract, which rings on, does not count: it is an innovation, and this looks for additive outliers (Fox,
    JRSS B 34, 1972).

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
        The recording is too short, is not finite, or has several channels.
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
    """The height of the hardest step between two samples, divided by the largest second difference within 2
    ms without it.

    A step of height h makes two neighbouring second differences, h and -h. That part is subtracted. A bend,
    as of a glottal closure, is a single second difference: half of it remains after the subtraction, as does
    half of the difference that a wrong sample makes.

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
        The recording is too short, is not finite, or has several channels.
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

    Second differences after Kasparis & Lane 1993; compared with the largest neighbour instead of a median,
    since speech is no stationary noise.
    """
    bend = np.abs(_second_differences(samples))
    reach = round(NEIGHBOURS_S * sample_rate_hz)
    width = reach - OWN_SAMPLES
    windows = ndimage.maximum_filter1d(np.pad(bend, 2 * reach), width, mode="constant")
    middle = OWN_SAMPLES + (width + 1) // 2
    at = np.arange(len(bend)) + 2 * reach
    around = np.maximum(windows[at - middle], windows[at + middle])
    return np.flatnonzero(bend > ISOLATED * (around + FLOOR))


def _second_differences(samples: Values) -> Values:
    return np.diff(np.pad(samples, 1), n=2)


def _batches(places: Places) -> Iterator[Places]:
    return (places[start : start + AT_ONCE] for start in range(0, len(places), AT_ONCE))


def _interpolators(around: Values, half: int) -> Values:
    """Weights that give each middle sample's distance from its prediction from both sides: (B, 2·ORDER + 1).

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
