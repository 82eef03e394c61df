"""From float to 16 bit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kokoro_lab.dsp.block import Processor, Samples, Values
from kokoro_lab.errors import ParameterError
from kokoro_lab.typed import require_least, require_type

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
        Samples beyond the 16-bit range so far; they were set to its ends.

    Notes
    -----
    Two uniform draws a sample, as Lipshitz, Wannamaker and Vanderkooy, "Quantization and dither: a
    theoretical survey", J. Audio Eng. Soc. 40(5), 1992. Draws follow the samples in order, so blocks do
    not matter.
    """

    def __init__(self, seed: int = 0, skipped_samples: int = 0) -> None:
        require_type("seed", seed, int, ParameterError)
        require_least("seed", seed, 0, ParameterError)
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

    def _flush(self) -> Pcm:
        return np.zeros(0, dtype=np.int16)
