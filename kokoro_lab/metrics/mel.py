"""Power in the bands of the ear.

The same figures as librosa's, which compiles itself on a machine's first use: half a minute until a newcomer
sees a spectrogram, and 260 MB to install.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]

LINEAR_HZ = 1000.0
"""Up to here bands are equally wide, beyond they grow with their frequency."""
MELS_TO_LINEAR = 15.0
MELS_TO_6400_HZ = 27.0
"""From `LINEAR_HZ` on."""


def mel_power(
    samples: npt.NDArray[np.floating[Any]],
    sample_rate_hz: int,
    *,
    window_samples: int,
    hop_samples: int,
    bands: int,
) -> Values:
    """Power of a recording by frame and mel band.

    Parameters
    ----------
    samples : numpy.ndarray
        Floating point, shape (n,). What is beyond its ends is silence.
    sample_rate_hz : int
    window_samples : int
        Length of the Hann window, even; frame i is centred on sample `i * hop_samples`.
    hop_samples : int
    bands : int

    Returns
    -------
    numpy.ndarray
        float64, shape (1 + n // hop_samples, bands).
    """
    padded = np.pad(samples.astype(np.float64), window_samples // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, window_samples)[::hop_samples]
    window = np.hanning(window_samples + 1)[:-1]  # periodic
    power = np.abs(np.fft.rfft(frames * window, axis=1)) ** 2
    found: Values = power @ mel_filters(sample_rate_hz, window_samples, bands)
    return found


@cache
def mel_filters(sample_rate_hz: int, window_samples: int, bands: int) -> Values:
    """Triangles from 0 to half the rate, of equal area, each from the middle of one neighbour to the other's.

    Returns
    -------
    numpy.ndarray
        float64, shape (1 + window_samples // 2, bands). Shared: not to be written to.

    Notes
    -----
    Slaney, "Auditory Toolbox" (1998).
    """
    corners_hz = _hz(np.linspace(0.0, _mels(sample_rate_hz / 2), bands + 2))
    bins_hz = np.fft.rfftfreq(window_samples, 1 / sample_rate_hz)[:, None]
    below, middle, above = corners_hz[:-2], corners_hz[1:-1], corners_hz[2:]
    rising, falling = (bins_hz - below) / (middle - below), (above - bins_hz) / (above - middle)
    filters: Values = np.maximum(np.minimum(rising, falling), 0.0) * (2 / (above - below))
    filters.flags.writeable = False
    return filters


def _mels(hz: float) -> float:
    if hz < LINEAR_HZ:
        return MELS_TO_LINEAR * hz / LINEAR_HZ
    return MELS_TO_LINEAR + MELS_TO_6400_HZ * float(np.log(hz / LINEAR_HZ) / np.log(6.4))


def _hz(mels: Values) -> Values:
    linear = mels * LINEAR_HZ / MELS_TO_LINEAR
    beyond = LINEAR_HZ * np.exp((mels - MELS_TO_LINEAR) / MELS_TO_6400_HZ * np.log(6.4))
    found: Values = np.where(mels < MELS_TO_LINEAR, linear, beyond)
    return found
