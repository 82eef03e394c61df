"""A gain that changes over time: each span of a signal has its own, with ramps between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kokoro_lab.dsp.block import Processor, Samples
from kokoro_lab.errors import ParameterError

RAMP_S = 0.02
"""The length of a ramp: long enough not to click, shorter than the shortest sound of the model (25 ms)."""


class Envelope(Processor[np.float32]):
    """Multiply by a gain that is constant in each span, with a straight ramp over each border.

    Parameters
    ----------
    gains_db : sequence of float
        Gain of each span, in dB.
    lengths_samples : sequence of int
        Length of each span; samples after the last span have its gain.
    sample_rate_hz : int

    Raises
    ------
    ParameterError
        A gain is not finite.
    """

    def __init__(
        self, gains_db: Sequence[float], lengths_samples: Sequence[int], sample_rate_hz: int
    ) -> None:
        gains = 10.0 ** (np.asarray(gains_db, np.float64) / 20)
        if not np.isfinite(gains).all():
            raise ParameterError("A gain must be finite.", field="gains_db", allowed="finite dB")
        borders = np.cumsum(lengths_samples)[:-1]
        changes = np.flatnonzero(gains[1:] != gains[:-1])
        half = RAMP_S * sample_rate_hz / 2
        self._knots = (borders[changes, None] + np.array([-half, half])).reshape(-1)
        self._gains = np.stack([gains[changes], gains[changes + 1]], axis=1).reshape(-1)
        self._level = float(gains[0])
        self._at = 0

    def _push(self, block: Samples) -> Samples:
        places = np.arange(self._at, self._at + len(block), dtype=np.float64)
        self._at += len(block)
        if not len(self._knots):
            return block * np.float32(self._level)
        gains = np.interp(places, self._knots, self._gains).astype(np.float32)
        return np.asarray(block * gains, np.float32)
