"""The level at which speech leaves: gain and limiter, by what is asked for of its loudness."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.dsp import Gain, Limiter, normalise_loudness, voice_gain_db
from kokoro_lab.stopwatch import Stopwatch

MEASURABLE_S = 3.0
"""Below this, integrated loudness says more about the words than about the level (0.7 LU of scatter
at 1 s), so a short clip is given its voice's gain, like a stream."""


class Levelling:
    """Gain and limiter of one utterance. Measured loudness must hear the whole; the voice's gain need not.

    Parameters
    ----------
    loudness : str
        `measured`, `voice` or `none`.
    voice_level_lufs : float
        How loud the voice is by itself.
    stopwatch : Stopwatch
        Told what it costs.

    Attributes
    ----------
    gain_db : float
        What was given to all of it.
    limited_db : float
        The most that the limiter took away.
    """

    def __init__(self, loudness: str, voice_level_lufs: float, stopwatch: Stopwatch) -> None:
        self._loudness = loudness
        self._voice_level_lufs = voice_level_lufs
        self._watch = stopwatch
        self.gain_db = self.limited_db = 0.0
        self._entered_samples = 0

    def enter(self, at_sample: int) -> None:
        """The segment that comes next begins with its sample `at_sample`, and not with its first."""
        self._entered_samples = at_sample

    def levelled(self, pieces: Iterator[Samples | None]) -> Iterator[Samples]:
        """The pieces at their level; a None among them is where a segment begins, and the limiter anew."""
        if self._loudness == "measured":
            kept = list(pieces)
            whole = np.concatenate([piece for piece in kept if piece is not None])
            if len(whole) >= MEASURABLE_S * SAMPLE_RATE_HZ:
                with self._watch("dsp"):
                    levelled, self.gain_db, self.limited_db = normalise_loudness(whole, SAMPLE_RATE_HZ)
                yield levelled
                return
            pieces = iter(kept)
        if self._loudness != "none":
            self.gain_db = voice_gain_db(self._voice_level_lufs)
        gain = Gain(self.gain_db)
        limiter = Limiter(SAMPLE_RATE_HZ)
        for piece in chain(pieces, (None,)):
            with self._watch("dsp"):
                limited = limiter.flush() if piece is None else limiter.push(gain.push(piece))
            if piece is None:
                # A new one behind the pause, which is longer than its filter and its look-ahead. What is left
                # by then of a reduction, a fifth of its dB at most, is let go in silence
                self.limited_db = max(self.limited_db, limiter.max_reduction_db)
                limiter = Limiter(SAMPLE_RATE_HZ)
                limiter.enter(self._entered_samples)
            yield limited
