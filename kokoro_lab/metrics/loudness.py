"""Loudness and peaks, as ITU-R BS.1770-5 and EBU R 128 define them.

All functions take float samples of shape (n,) or (n, channels), up to five channels in the order left,
right, centre, left surround, right surround. **One channel counts once**: speech in mono at -16 LUFS reads
-13 LUFS when the same samples are sent to two channels. K-weighting depends a little on the sample rate
(24 kHz and 48 kHz read up to 0.07 LU apart), so compare at one rate.

`IntegratedLoudness` and `true_peak_dbtp`, which are used while speaking, need only NumPy. All else is
measured by pyloudnorm, of the extra `lab`, with these things put right: its default filters read 0.04 to 0.08
LU low, while its "DeMan" set agrees with libebur128 to 1e-11 LU; it divides a last, partial block by the
length of a whole one, so only whole steps are given to it; it filters in the input's precision, so it is
given float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from kokoro_lab.extras import imported
from kokoro_lab.metrics.k_weighting import KWeighting
from kokoro_lab.metrics.recordings import require_recording
from kokoro_lab.typed import require_range

Signal = npt.NDArray[np.floating[Any]]
Values = npt.NDArray[np.float64]

MOMENTARY_S = 0.4
SHORT_TERM_S = 3.0
HOP_S = 0.1
"""Tech 3341, 2.2: meters are read at least ten times a second; gating blocks overlap by 75 %."""

STEP = 0.25
"""Step between gating blocks, as a share of their length."""

ABSOLUTE_GATE_LUFS = -70.0
RANGE_GATE_LU = -20.0
RANGE_PERCENTILES = (0.10, 0.95)

OVERSAMPLING = 8
"""Factor of oversampling: BS.1770-5, Annex 2, asks for 192 kHz, which is 8 times 24 kHz."""
INTERPOLATOR_REACH_SAMPLES = 64
INTERPOLATOR_BETA = 12.0
MAX_CHANNELS = 5

_NUDGE = 1e-9

_TRUE_PEAK_STRETCH_SAMPLES = 512
"""Samples that are oversampled at a time: with the neighbours of each, half a megabyte, which fits into a
processor's cache."""


def integrated_lufs(samples: Signal, sample_rate_hz: int) -> float:
    """Integrated, gated loudness of the whole signal.

    Parameters
    ----------
    samples : numpy.ndarray
        Floating point, shape (n,) or (n, channels), at least 0.4 s; a last part shorter than 0.1 s is
        not measured, as the standard's gating blocks are whole.
    sample_rate_hz : int
        8000 to 192000.

    Returns
    -------
    float
        LUFS; `-inf` if no block is above the absolute gate of -70 LUFS.

    Raises
    ------
    ParameterError
        `samples` is no such array, is not finite, or is shorter than 0.4 s.

    Notes
    -----
    ITU-R BS.1770-5, Annex 1, equations 1 to 7.
    """
    signal = _checked(samples, sample_rate_hz, shortest_s=MOMENTARY_S)
    meter = _meter(sample_rate_hz, MOMENTARY_S)
    return float(meter.integrated_loudness(_whole_hops(signal, sample_rate_hz, MOMENTARY_S, HOP_S)))


class IntegratedLoudness:
    """`integrated_lufs` of one channel that comes in blocks of any size, within 1e-9 LU, in memory that grows
    by 80 bytes for a second. Needs no extra.

    Parameters
    ----------
    sample_rate_hz : int
        8000 to 192000.

    Notes
    -----
    ITU-R BS.1770-5, Annex 1, equations 1 to 7.
    """

    def __init__(self, sample_rate_hz: int) -> None:
        self._rate_hz = sample_rate_hz
        self._weighting = KWeighting(sample_rate_hz)
        self._weighted = np.zeros(0)
        self._samples = self._gone = 0
        self._powers: list[float] = []

    def push(self, samples: Signal) -> None:
        """Measure the next samples: floating point, shape (n,)."""
        weighted = self._weighting.push(samples.astype(np.float64))
        self._samples += len(samples)
        self._weighted = np.concatenate([self._weighted, weighted])
        while True:
            start, stop = self._gating_block()
            if stop > self._samples:
                break
            power = np.sum(np.square(self._weighted[start - self._gone : stop - self._gone]))
            self._powers.append(float((1.0 / (MOMENTARY_S * self._rate_hz)) * power))
        self._weighted = self._weighted[start - self._gone :].copy()
        self._gone = start

    def lufs(self) -> float:
        """Loudness of all pushed samples; `-inf` if no block of 0.4 s is above -70 LUFS."""
        powers = np.array(self._powers)
        with np.errstate(divide="ignore"):
            loudness = -0.691 + 10.0 * np.log10(powers)
        audible = powers[loudness >= ABSOLUTE_GATE_LUFS]
        if not audible.size:
            return float("-inf")
        relative_lufs = -0.691 + 10.0 * np.log10(np.mean(audible)) - 10.0
        gated = powers[(loudness > relative_lufs) & (loudness > ABSOLUTE_GATE_LUFS)]
        return float(-0.691 + 10.0 * np.log10(np.mean(gated)))

    def _gating_block(self) -> tuple[int, int]:
        """The next gating block, in samples from the beginning."""
        number = len(self._powers)
        start = int(MOMENTARY_S * (number * STEP) * self._rate_hz)
        return start, int(MOMENTARY_S * (number * STEP + 1) * self._rate_hz)


def momentary_lufs(samples: Signal, sample_rate_hz: int, hop_s: float = HOP_S) -> Values:
    """Momentary loudness: an ungated window of 0.4 s, moved along the signal.

    Parameters
    ----------
    samples : numpy.ndarray
        Floating point, shape (n,) or (n, channels), at least 0.4 s.
    sample_rate_hz : int
        8000 to 192000.
    hop_s : float
        Step between windows, 0.001 to 0.4 s.

    Returns
    -------
    numpy.ndarray
        float64 LUFS, `-inf` for silence. Value i is the loudness of the window that begins at `i * hop_s`.

    Raises
    ------
    ParameterError
        In the cases in which `integrated_lufs` raises it; or `hop_s` is out of range.

    Notes
    -----
    EBU Tech 3341, 2.2; ITU-R BS.1770-5, equations 1 to 4.
    """
    return _windows_lufs(samples, sample_rate_hz, MOMENTARY_S, hop_s)


def short_term_lufs(samples: Signal, sample_rate_hz: int, hop_s: float = HOP_S) -> Values:
    """Short-term loudness: an ungated window of 3 s, moved along the signal.

    Parameters
    ----------
    samples : numpy.ndarray
        Floating point, shape (n,) or (n, channels), at least 3 s.
    sample_rate_hz : int
        8000 to 192000.
    hop_s : float
        Step between windows, 0.001 to 3 s.

    Returns
    -------
    numpy.ndarray
        float64 LUFS, `-inf` for silence. Value i is the loudness of the window that begins at `i * hop_s`.

    Raises
    ------
    ParameterError
        In the cases in which `integrated_lufs` raises it; or `hop_s` is out of range.

    Notes
    -----
    EBU Tech 3341, 2.2; ITU-R BS.1770-5, equations 1 to 4.
    """
    return _windows_lufs(samples, sample_rate_hz, SHORT_TERM_S, hop_s)


def loudness_range_lu(samples: Signal, sample_rate_hz: int) -> float:
    """Loudness range: how far the loud parts are above the soft ones.

    Parameters
    ----------
    samples : numpy.ndarray
        Floating point, shape (n,) or (n, channels), at least 3 s. The range of less than a minute means
        little.
    sample_rate_hz : int
        8000 to 192000.

    Returns
    -------
    float
        LU, 0 or more; NaN if nothing is above -70 LUFS.

    Raises
    ------
    ParameterError
        `samples` is no such array, is not finite, or is shorter than 3 s.

    Notes
    -----
    EBU Tech 3342, 2: the 10th to the 95th percentile of short-term loudness, above an absolute gate of
    -70 LUFS and a relative gate 20 LU below the mean power of what passed the first.
    """
    loudness = short_term_lufs(samples, sample_rate_hz)
    audible = loudness[loudness >= ABSOLUTE_GATE_LUFS]
    if not audible.size:
        return float("nan")
    mean_lufs = 10 * np.log10(np.mean(10 ** (audible / 10)))
    ranked = np.sort(audible[audible >= mean_lufs + RANGE_GATE_LU])
    low, high = (ranked[round((ranked.size - 1) * part)] for part in RANGE_PERCENTILES)
    return float(high - low)


def true_peak_dbtp(samples: Signal, sample_rate_hz: int) -> float:
    """The largest magnitude of the waveform between and at its samples.

    Parameters
    ----------
    samples : numpy.ndarray
        Floating point, shape (n,) or (n, channels), at least one sample.
    sample_rate_hz : int
        8000 to 192000. Does not change the figure; taken so that all metrics are called alike.

    Returns
    -------
    float
        dB relative to full scale, of the loudest channel; `-inf` for silence.

    Raises
    ------
    ParameterError
        `samples` is no such array, is empty, or is not finite.

    Notes
    -----
    ITU-R BS.1770-5, Annex 2, with 8x instead of 4x oversampling and a Kaiser window (beta 12) of 1025 taps
    instead of 48: the annex's own filter reads speech up to 0.17 dB low at 24 kHz.
    """
    signal = _checked(samples, sample_rate_hz)
    reach = INTERPOLATOR_REACH_SAMPLES
    taps = _interpolator(reach)
    # A point between samples is a sum of those around it, so all points are one product of matrices: five
    # times as fast as a filter that goes from sample to sample
    phases = np.ascontiguousarray(np.pad(taps, (0, OVERSAMPLING - 1)).reshape(-1, OVERSAMPLING)[::-1])
    peak = 0.0
    for channel in signal.T:
        around = sliding_window_view(np.pad(channel, reach), len(phases))
        for start in range(0, len(around), _TRUE_PEAK_STRETCH_SAMPLES):
            stretch = np.ascontiguousarray(around[start : start + _TRUE_PEAK_STRETCH_SAMPLES])
            peak = max(peak, float(np.abs(stretch @ phases).max()))
    return _db(peak)


def sample_peak_dbfs(samples: Signal, sample_rate_hz: int) -> float:
    """The largest magnitude of any sample.

    Parameters
    ----------
    samples : numpy.ndarray
        Floating point, shape (n,) or (n, channels), at least one sample.
    sample_rate_hz : int
        8000 to 192000. Does not change the figure; taken so that all metrics are called alike.

    Returns
    -------
    float
        dB relative to full scale (1.0), of the loudest channel; `-inf` for silence.

    Raises
    ------
    ParameterError
        `samples` is no such array, is empty, or is not finite.

    Notes
    -----
    AES17: a full-scale square wave and a full-scale sine both peak at 0 dBFS. This figure may be 3 dB below
    the true peak; never gate on it.
    """
    return _db(float(np.abs(_checked(samples, sample_rate_hz)).max()))


def _interpolator(reach: int) -> Values:
    """Taps of the low-pass filter between `reach` samples on either side."""
    steps = np.arange(-reach * OVERSAMPLING, reach * OVERSAMPLING + 1)
    taps = np.sinc(steps / OVERSAMPLING) * np.kaiser(len(steps), INTERPOLATOR_BETA)
    return np.asarray(OVERSAMPLING * taps / taps.sum())


def _meter(sample_rate_hz: int, block_s: float, overlap: float = 1 - STEP) -> Any:
    pyloudnorm = imported("pyloudnorm", extra="lab")
    return pyloudnorm.Meter(sample_rate_hz, filter_class="DeMan", block_size=block_s, overlap=overlap)


def _db(magnitude: float) -> float:
    return 20 * float(np.log10(magnitude)) if magnitude else float("-inf")


def _windows_lufs(samples: Signal, sample_rate_hz: int, window_s: float, hop_s: float) -> Values:
    signal = _checked(samples, sample_rate_hz, shortest_s=window_s)
    require_range("hop_s", hop_s, 0.001, window_s, f"A hop of {hop_s} s is out of range.")
    # pyloudnorm cuts off fractions of a sample; the nudge keeps 2400.0 from counting as 2399.999...
    meter = _meter(sample_rate_hz, window_s, overlap=1 - (1 + _NUDGE) * hop_s / window_s)
    meter.integrated_loudness(_whole_hops(signal, sample_rate_hz, window_s, hop_s))
    return np.array(meter.blockwise_loudness, dtype=np.float64)


def _whole_hops(signal: Values, sample_rate_hz: int, window_s: float, hop_s: float) -> Values:
    """The part of the signal that whole windows, a hop apart, cover."""
    window, hop = window_s * sample_rate_hz, hop_s * sample_rate_hz
    hops = int((len(signal) - window) / hop + _NUDGE)
    return signal[: round(window + hops * hop)]


def _checked(samples: Signal, sample_rate_hz: int, shortest_s: float = 0.0) -> Values:
    """The samples as float64, shape (n, channels), if they can be measured."""
    message = f"{sample_rate_hz} Hz cannot be measured."
    require_range("sample_rate", sample_rate_hz, 8_000, 192_000, message)
    require_recording(samples, sample_rate_hz, shortest_s, channels=MAX_CHANNELS)
    return samples.astype(np.float64).reshape(len(samples), -1)
