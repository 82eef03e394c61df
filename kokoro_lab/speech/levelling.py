"""Brings speech to the loudness that was asked for, by gain and limiter."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples, Utterance
from kokoro_lab.dsp import Gain, Limiter, in_runs, normalising_gain_db, voice_gain_db
from kokoro_lab.errors import TextError
from kokoro_lab.scheduling.stopwatch import Stopwatch
from kokoro_lab.weights.voices import Voice

MEASURABLE_S = 3.0
"""The shortest clip whose loudness is measured. In a shorter one, integrated loudness depends more on the
words than on how loud the voice is (it scatters by 0.7 LU at 1 s), so the clip gets predicted gains, like a
stream."""
COMPRESSED_LU = 1.6
"""Loss of loudness by a stretch, in LU: this number times the share by which speech becomes shorter. At half
of its length, speech is 0.8 LU softer. Speech that becomes longer loses nothing.

Four voices were measured. The loss was 0.3 to 0.8 LU at a stretch of 0.75 (speed 2), and 0.8 to 1.2 LU at a
stretch of 0.5 (speed 3)."""


class SegmentStart(NamedTuple):
    """Marks that a segment of `token_count` ids begins. The segment is made `stretch` times as long as the
    model spoke it, and spoken by `voice`; None is the utterance's voice.

    `energy` is that of the segment's `DecodedSegment`. If the segment was decoded at once and no word has a
    gain of its own, `whole` holds all of its samples except the end.
    """

    token_count: int
    stretch: float = 1.0
    voice: Voice | None = None
    energy: float | None = None
    whole: Samples | None = None

    @property
    def softened_lu(self) -> float:
        """How many LU softer the stretch makes the segment."""
        return COMPRESSED_LU * max(0.0, 1.0 - self.stretch)


class Levelling:
    """Gain and limiter of one utterance. With `measured` loudness, the whole utterance is measured first.
    With `voice`, each segment's gain follows from the voice's measured loudness, the segment's length, and
    the energy that the model predicts for it. A blend's segment that is decoded at once is measured instead.

    Parameters
    ----------
    utterance : Utterance
        The utterance, whose option `loudness` is `measured`, `voice` or `none`.
    voice : Voice
        The utterance's voice.
    stopwatch : Stopwatch
        Measures the time that gain and limiter take.

    Attributes
    ----------
    gain_db : float
        The gain of the whole utterance or, where each segment has its own, of the first.
    limited_db : float
        The most that the limiter took away, in dB.
    """

    def __init__(self, utterance: Utterance, voice: Voice, stopwatch: Stopwatch) -> None:
        self._loudness = utterance.loudness
        self._voice = voice
        self._watch = stopwatch
        self.gain_db = self.limited_db = 0.0

    def levelled(self, spoken: Iterator[Samples | SegmentStart]) -> Iterator[Samples]:
        """The samples in blocks, after gain and limiter. If the loudness is not measured, both start again at
        each segment."""
        if self._loudness == "measured":
            kept = deque(spoken)
            blocks = deque(self._alike(kept))
            long = sum(map(len, blocks)) >= MEASURABLE_S * SAMPLE_RATE_HZ
            if long and any(block.any() for block in blocks):  # silence alone has no loudness
                kept.clear()
                yield from self._measured(blocks)
                return
            spoken = iter(kept)
        gain, limiter, first = Gain(0.0), Limiter(SAMPLE_RATE_HZ), True
        for each in chain(spoken, (None,)):
            with self._watch("dsp"):
                limited = limiter.push(gain.push(each)) if isinstance(each, np.ndarray) else limiter.flush()
            self.limited_db = max(self.limited_db, limiter.max_reduction_db)
            if isinstance(each, SegmentStart):
                # A new gain and a new limiter after the pause, which is longer than the limiter's filter and
                # look-ahead. A reduction that has not ended by then (at most a fifth of its dB is left) ends
                # at once, within silence
                gain_db = self._gain_db(each)
                gain, limiter = Gain(gain_db), Limiter(SAMPLE_RATE_HZ)
                self.gain_db, first = (gain_db if first else self.gain_db), False
            yield limited

    def _alike(self, spoken: Iterable[Samples | SegmentStart]) -> Iterator[Samples]:
        """The samples, with every other voice made as loud as the utterance's own voice."""
        gain_db = 0.0
        for each in spoken:
            if isinstance(each, SegmentStart):
                voice = each.voice or self._voice
                gain_db = self._voice.level_at(each.token_count) - voice.level_at(each.token_count)
            else:
                yield each * np.float32(10 ** (gain_db / 20)) if gain_db else each

    def _measured(self, blocks: deque[Samples]) -> Iterator[Samples]:
        """All samples with one gain, found by measuring their loudness. Each block is freed once it is
        levelled, so memory holds one copy."""
        with self._watch("dsp"):
            self.gain_db, self.limited_db = normalising_gain_db(blocks, SAMPLE_RATE_HZ)
        gain, limiter = Gain(self.gain_db), Limiter(SAMPLE_RATE_HZ)
        while blocks:
            for block in in_runs([blocks.popleft()]):
                with self._watch("dsp"):
                    levelled = limiter.push(gain.push(block))
                yield levelled
        yield limiter.flush()

    def _gain_db(self, segment: SegmentStart) -> float:
        if self._loudness == "none":
            return 0.0
        voice, whole = segment.voice or self._voice, segment.whole
        level_lufs = voice.level_at(segment.token_count, segment.energy)
        gain_db = voice_gain_db(level_lufs - segment.softened_lu)
        if len(voice.parts) == 1 or whole is None or not whole.any():
            return gain_db
        with self._watch("dsp"):
            measured_db, _ = normalising_gain_db([whole], SAMPLE_RATE_HZ)
        return gain_db + (measured_db - gain_db) * min(1.0, len(whole) / (MEASURABLE_S * SAMPLE_RATE_HZ))


def bounded(spoken: Iterator[Samples | SegmentStart], longest_s: float) -> Iterator[Samples | SegmentStart]:
    """Pass `spoken` on, and raise an error if it becomes longer than allowed.

    Raises
    ------
    TextError
        The speech is longer than `longest_s`.
    """
    left = round(longest_s * SAMPLE_RATE_HZ)
    for each in spoken:
        left -= len(each) if isinstance(each, np.ndarray) else 0
        if left < 0:
            raise TextError(
                f"The speech is longer than {longest_s:g} s.",
                field="input",
                allowed=f"up to {longest_s:g} s in one file",
                mend="Have it streamed, or send it in parts.",
            )
        yield each
