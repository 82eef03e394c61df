"""Mel spectrograms: librosa's mel filters after a Fourier transform by NumPy.

librosa's own transform is compiled when it is first called, which takes half a minute on a new machine, and
1.5 s in every later process.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from kokoro_lab.extras import imported

Values = npt.NDArray[np.float64]


def mel_power(
    samples: npt.NDArray[np.floating[Any]],
    sample_rate_hz: int,
    *,
    window_samples: int,
    hop_samples: int,
    bands: int,
) -> Values:
    """Power of a recording by frame and mel band, as `librosa.feature.melspectrogram` computes it.

    Parameters
    ----------
    samples : numpy.ndarray
        Floating point, shape (n,). Samples beyond its ends count as silence.
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
    window = np.hanning(window_samples + 1)[:-1]  # periodic
    power = frame_power(np.pad(samples, window_samples // 2), window, hop_samples)
    found: Values = power @ mel_filters(sample_rate_hz, window_samples, bands)
    return found


def frame_power(samples: npt.NDArray[np.floating[Any]], window: Values, hop_samples: int) -> Values:
    """Power of each whole frame by frequency, 0 to half the rate: float64 (frames, 1 + len(window) // 2)."""
    frames = np.lib.stride_tricks.sliding_window_view(samples.astype(np.float64), len(window))[::hop_samples]
    power: Values = np.abs(np.fft.rfft(frames * window, axis=1)) ** 2
    return power


@cache
def mel_filters(sample_rate_hz: int, window_samples: int, bands: int) -> Values:
    """Triangles of equal area from 0 to half the rate, after Slaney (1998).

    Returns
    -------
    numpy.ndarray
        float64, shape (1 + window_samples // 2, bands). Shared: not to be written to.
    """
    mel = imported("librosa.filters", extra="lab").mel
    filters: Values = mel(sr=sample_rate_hz, n_fft=window_samples, n_mels=bands, dtype=np.float64).T
    filters.flags.writeable = False
    return filters
