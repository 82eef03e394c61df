"""The silence between two segments: as long as the punctuation calls for, or exactly as a document asks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples, Segment
from kokoro_lab.dsp import EdgeTrimmer
from kokoro_lab.dsp.trim import CLICK_AFTER_S, CLICK_S, KEEP_LEAD_S, KEEP_TAIL_S

_LEAD_SAMPLES = round(KEEP_LEAD_S * SAMPLE_RATE_HZ)
SILENCE_SAMPLES = SAMPLE_RATE_HZ // 4
"""The largest array of silence: a long pause is made array by array."""
_USUAL_S = KEEP_LEAD_S + KEEP_TAIL_S


@dataclass(frozen=True, slots=True)
class Pause:
    """The silence before a segment; its methods return samples.

    Parameters
    ----------
    between_s : float
        Silence added between the trimmed edges of two segments, unless a document asks for another length.
    asked_s : float, optional
        The silence that a document asks for, from the last sample of speech to the next one. The silence that
        trimming leaves at the edges is part of it.
    """

    between_s: float
    asked_s: float | None = None

    def sure(self, behind: int, *, first: bool) -> int:
        """The samples of silence that can be given before the next segment is decoded.

        Parameters
        ----------
        behind : int
            Samples of silence that are left after the last speech.
        first : bool
            Whether nothing was spoken yet.
        """
        if self.asked_s is None:
            return 0 if first else round(self.between_s * SAMPLE_RATE_HZ)
        return max(0, self._owed(behind) - _LEAD_SAMPLES)

    def rest(self, behind: int, ahead: int) -> int:
        """The samples still to be given, once it is known that `ahead` samples before the speech are
        silent."""
        if self.asked_s is None:
            return 0
        return max(0, min(self._owed(behind), _LEAD_SAMPLES) - ahead)

    def made(self, stretch: float, *, ruled: bool) -> Pause:
        """The pause, trimmed edges included, made `stretch` times as long.

        Parameters
        ----------
        ruled : bool
            Whether `between_s` is the length of the whole pause. It has no effect if a document asks for a
            length.
        """
        if self.asked_s is None and self.between_s and ruled:
            return Pause(0.0, stretch * self.between_s)
        if stretch == 1:
            return self
        between_s = stretch * (self.between_s + _USUAL_S) - min(1.0, stretch) * _USUAL_S
        return replace(self, between_s=between_s)

    def _owed(self, behind: int) -> int:
        return round((self.asked_s or 0.0) * SAMPLE_RATE_HZ) - behind


def trimmer_of(segment: Segment, stretch: float = 1.0) -> EdgeTrimmer:
    """The trimmer of a segment's edges. It trims closer if less silence is asked for than is usually left, or
    if a stretch makes the speech shorter. It also removes clicks at the edges, which a stretch lengthens and
    delays like all samples."""
    before, after = (
        min(1.0, stretch) * (1.0 if asked_s is None else min(1.0, asked_s / _USUAL_S))
        for asked_s in (segment.break_before_s, segment.break_after_s)
    )
    return EdgeTrimmer(
        SAMPLE_RATE_HZ,
        keep_lead_s=KEEP_LEAD_S * before,
        keep_tail_s=KEEP_TAIL_S * after,
        click_after_s=CLICK_AFTER_S * stretch,
        click_s=CLICK_S * stretch,
    )


def added(first_s: float | None, second_s: float | None) -> float | None:
    """The sum of two pauses in seconds. None stands for a pause that nobody asked for, and is the result if
    both are None."""
    if first_s is None or second_s is None:
        return second_s if first_s is None else first_s
    return first_s + second_s


def silence_of(samples: int) -> Iterator[Samples]:
    """Silence of the length `samples`, in blocks of at most `SILENCE_SAMPLES`."""
    for start in range(0, samples, SILENCE_SAMPLES):
        yield np.zeros(min(SILENCE_SAMPLES, samples - start), np.float32)
