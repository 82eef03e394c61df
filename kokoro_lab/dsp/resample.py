"""Resamples from Kokoro's 24 kHz to the requested rate."""

from __future__ import annotations

import numpy as np
import soxr

from kokoro_lab.dsp.block import SILENT, Processor, Samples
from kokoro_lab.typed import require_choice

RATES_HZ = (22_050, 24_000, 44_100, 48_000)


def require_offered_rate(rate_hz: int) -> None:
    """Refuse a sample rate that is not one of `RATES_HZ`.

    Raises
    ------
    ParameterError
        A rate is not one of `RATES_HZ`.
    """
    require_choice("sample_rate", rate_hz, RATES_HZ, f"Sample rate {rate_hz} Hz is not offered.")


class Resampler(Processor[np.float32]):
    """Change the sample rate by soxr's VHQ recipe, in step with the input.

    How the samples are cut into blocks changes no bit of the output (soxr computes in frames of its own).
    Nothing is shifted and no tail is lost: n samples make exactly `n * to_hz / from_hz`, rounded half up.
    Equal rates pass unchanged. From 24 kHz to 44.1 or 48 kHz, the output lags behind the input by at most 38
    ms, and to 22.05 kHz by at most 80 ms. The TTFA of a resampled stream is later by this lag.

    Parameters
    ----------
    from_hz, to_hz : int
        Input and output rate, each one of `RATES_HZ`.

    Raises
    ------
    ParameterError
        A rate is not one of `RATES_HZ`.
    """

    def __init__(self, from_hz: int, to_hz: int) -> None:
        for rate_hz in (from_hz, to_hz):
            require_offered_rate(rate_hz)
        self._from_hz, self._to_hz = from_hz, to_hz
        self._taken = self._given = 0
        self._soxr = (
            None
            if from_hz == to_hz
            else soxr.ResampleStream(from_hz, to_hz, 1, dtype="float32", quality="VHQ")
        )

    def _push(self, block: Samples) -> Samples:
        if self._soxr is None:
            return block.copy()
        out: Samples = self._soxr.resample_chunk(block)
        self._taken += len(block)
        self._given += len(out)
        return out

    def _flush(self) -> Samples:
        if self._soxr is None:
            return SILENT
        tail: Samples = self._soxr.resample_chunk(SILENT, last=True)
        whole = (2 * self._taken * self._to_hz + self._from_hz) // (2 * self._from_hz)
        missing = whole - self._given - len(tail)
        # This version of soxr gives this length by itself. A player's clock must not depend on that
        return np.pad(tail, (0, missing)) if missing > 0 else tail[: whole - self._given]
