"""Rounds float samples to 16 bits, with white dither, or with noise shaped so that it is heard less.

With shaped noise, each sample's error is fed back into the next ones through a filter, which leaves the
error's spectrum in the shape |1 - C(f)|². Its mean over all frequencies, in dB, is never below 0 (Gerzon and
Craven, "Optimal noise shaping and dither of digital signals", AES 87th Convention, 1989): less noise at 3 kHz
is more at 10 kHz, and more in all. Up to 12 kHz, half of the sample rate of the model, there is little room
for it, and the audible noise falls by 3 dB; at 44.1 and 48 kHz by 12 dB.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from kokoro_lab.dsp.block import Processor, Samples, Values
from kokoro_lab.errors import ParameterError
from kokoro_lab.typed import require_range, require_type

Pcm = npt.NDArray[np.int16]

PCM_MAX = 32767
PCM_MIN = -32768
DRAWS = 2
"""Random numbers for a sample; each is one step of the generator."""


class Dither(Processor[np.int16]):
    """Round to 16 bit with triangular dither, so that the error is noise and not distortion.

    The error is white, 0.5 steps rms (-96.3 dBFS) and independent of the signal's level, which is why
    silence is dithered as well: a switch would make the noise come and go with the speech.

    Parameters
    ----------
    seed : int
        Same seed, same samples, same PCM.
    skipped_samples : int
        Samples that came before the first one pushed: the draws are those of this place in the stream.

    Raises
    ------
    ParameterError
        A seed that is no whole number from 0 on.

    Attributes
    ----------
    clipped_samples : int
        How many samples so far were beyond the 16-bit range; each was set to the nearer end of that range.

    Notes
    -----
    Two uniform draws a sample, as Lipshitz, Wannamaker and Vanderkooy, "Quantization and dither: a
    theoretical survey", J. Audio Eng. Soc. 40(5), 1992. Draws follow the samples in order, so blocks do
    not matter.
    """

    def __init__(self, seed: int = 0, skipped_samples: int = 0) -> None:
        require_type("seed", seed, int, ParameterError)
        require_range("seed", seed, 0)
        bits = np.random.PCG64(seed)
        bits.advance(DRAWS * skipped_samples)
        self._random = np.random.Generator(bits)
        self.clipped_samples = 0

    def _push(self, block: Samples) -> Pcm:
        draws = self._random.random((len(block), DRAWS))
        return self._within(np.rint(block.astype(np.float64) * PCM_MAX + draws[:, 0] - draws[:, 1]))

    def _within(self, steps: Values) -> Pcm:
        within = np.clip(steps, PCM_MIN, PCM_MAX)
        self.clipped_samples += int(np.count_nonzero(within != steps))
        return within.astype(np.int16)


Dithering = Literal["tpdf", "shaped"]
TAPS = 5
"""Length of the filter. More taps would gain 0.2 dB at 24 kHz."""
LOUDEST_THRESHOLD_DB = 30.0
"""A threshold in quiet above this number of dB counts as this number. Without the bound nearly all noise
would go to 20 kHz at 48 kHz, and there would be 17.6 dB more of it in all, instead of 9.5."""
_BINS = 4096


def threshold_in_quiet_db(frequency_hz: Values) -> Values:
    """The sound pressure level of a tone that is just heard in silence.

    Source: E. Terhardt, "Calculating virtual pitch", Hearing Research 1(2), 1979.
    """
    khz = np.maximum(frequency_hz, 20.0) / 1000
    low, ear_canal = 3.64 * khz**-0.8, 6.5 * np.exp(-0.6 * (khz - 3.3) ** 2)
    threshold: Values = low - ear_canal + 1e-3 * khz**4
    return threshold


def audibility(sample_rate_hz: int) -> tuple[Values, Values]:
    """How much noise counts at each frequency up to half the sample rate: frequencies in Hz, and weights of
    power, the inverse of the threshold in quiet."""
    frequency_hz = (np.arange(_BINS) + 0.5) * sample_rate_hz / 2 / _BINS
    threshold_db = np.minimum(threshold_in_quiet_db(frequency_hz), LOUDEST_THRESHOLD_DB)
    return frequency_hz, 10 ** (-threshold_db / 10)


@cache
def feedback_taps(sample_rate_hz: int) -> tuple[float, ...]:
    """The filter C that leaves the least audible noise at this rate, of `TAPS` taps.

    The weighted power of 1 - C is least where C predicts a signal whose spectrum is the weight: the normal
    equations of linear prediction, on the weight's autocorrelation. The taps are rounded to three decimals,
    so that they are the same on every machine.

    Source: R. A. Wannamaker, "Psychoacoustically optimal noise shaping", J. Audio Eng. Soc. 40(7/8), 1992.
    """
    frequency_hz, weight = audibility(sample_rate_hz)
    lags = np.arange(TAPS + 1)
    waves = np.cos(2 * np.pi * np.outer(lags, frequency_hz) / sample_rate_hz)
    correlation = (waves * weight).mean(axis=1)
    matrix = correlation[np.abs(np.subtract.outer(lags[:TAPS], lags[:TAPS]))]
    return tuple(np.round(np.linalg.solve(matrix, correlation[1:]), 3).tolist())


class ShapedDither(Dither):
    """Round to 16 bit with triangular dither, and noise that is heard less.

    Each sample needs the error of the one before, so it works sample by sample: 5 ms of computing for a
    second of audio at 24 kHz and 10 ms at 48 kHz; white dither takes 0.2 ms. Shaped dither cannot begin in
    the middle of a stream, since the earlier errors are not known.

    Parameters
    ----------
    seed : int
        As `Dither`; the same numbers are drawn.
    sample_rate_hz : int
        The rate of the pushed samples.

    Notes
    -----
    Error feedback with the dither inside the loop: S. P. Lipshitz, J. Vanderkooy and R. A. Wannamaker,
    "Minimally audible noise shaping", J. Audio Eng. Soc. 39(11), 1991. The error of clipped samples is not
    fed back: the loop would go on oscillating after them.
    """

    def __init__(self, seed: int, sample_rate_hz: int) -> None:
        super().__init__(seed)
        self._taps = feedback_taps(sample_rate_hz)
        self._errors = (0.0,) * TAPS

    def _push(self, block: Samples) -> Pcm:
        draws = self._random.random((len(block), DRAWS))
        noise = draws[:, 0] - draws[:, 1]
        c1, c2, c3, c4, c5 = self._taps
        e1, e2, e3, e4, e5 = self._errors
        steps = []
        for sample, draw in zip((block.astype(np.float64) * PCM_MAX).tolist(), noise.tolist(), strict=True):
            wanted = sample - (c1 * e1 + c2 * e2 + c3 * e3 + c4 * e4 + c5 * e5)
            step = math.floor(wanted + draw + 0.5)
            e1, e2, e3, e4, e5 = step - wanted, e1, e2, e3, e4
            steps.append(step)
        self._errors = (e1, e2, e3, e4, e5)
        return self._within(np.array(steps, np.float64))


def ditherer(kind: Dithering, sample_rate_hz: int, seed: int = 0, skipped_samples: int = 0) -> Dither:
    """A new dither of the given kind. `skipped_samples` is as for `Dither`; with shaped noise it must be 0.

    Raises
    ------
    ValueError
        Shaped noise in the middle of a stream.
    """
    if kind == "tpdf":
        return Dither(seed, skipped_samples)
    if skipped_samples:
        raise ValueError("shaped noise depends on all samples before: they cannot be left out")
    return ShapedDither(seed, sample_rate_hz)
