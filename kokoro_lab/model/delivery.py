"""Rate, pitch and gain of each token id of a segment, where a document sets them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from kokoro_lab.config import (
    MODEL_SPEED_MAX,
    MODEL_SPEED_MIN,
    PITCH_MAX,
    PITCH_MIN,
    RATE_MAX,
    RATE_MIN,
    SPEED_MAX,
    SPEED_MIN,
)
from kokoro_lab.datatypes import PLAIN, Fallback, Segment, SpeakingStyle
from kokoro_lab.graphs.signatures import VOICED_HZ, frames_of

Values = npt.NDArray[np.float32]
Frames = npt.NDArray[np.int64]
Curve = npt.NDArray[np.float64]

RAMP_FRAMES = 5
"""Number of F0 values (12.5 ms each) over which the pitch changes from that of one word to that of the next
word."""
F0_PER_FRAME = 2
"""Number of F0 values for each duration frame (25 ms)."""


@dataclass(frozen=True, slots=True)
class ProsodyChanges:
    """The style of each token id of one segment. The pads at both ends are included, and stay plain.

    A space between two words of one style has that style; between words of different styles it is plain.
    `stretch` is how many times as long the model's samples are made afterwards.
    """

    styles: tuple[SpeakingStyle, ...]
    stretch: float = 1.0

    @classmethod
    def of(cls, segment: Segment) -> ProsodyChanges | None:
        """The prosody changes of a segment; None if it has none."""
        if not segment.styles:
            return None
        styles = [PLAIN] * (len(segment.token_ids) + 2)
        for style, (first, stop) in zip(segment.styles, segment.word_tokens, strict=True):
            styles[first + 1 : stop + 1] = [style] * (stop - first)
        words = zip(segment.styles, segment.word_tokens, strict=True)
        for (style, (_, stop)), (following, (first, _)) in pairwise(words):
            if style == following:
                styles[stop + 1 : first + 1] = [style] * (first - stop)
        return cls(tuple(styles))

    @property
    def one_rate(self) -> float | None:
        """If all words have the same rate: that rate; else None."""
        rates = {style.rate for style in self.styles[1:-1]}
        return rates.pop() if len(rates) == 1 else None

    @property
    def changes_pitch(self) -> bool:
        """Whether any word is to be higher or lower."""
        return any(
            (style.pitch_scale, style.pitch_offset_hz, style.pitch_base_hz) != (1.0, 0.0, None)
            for style in self.styles
        )

    @property
    def changes_rate(self) -> bool:
        """Whether any word is to be faster or slower."""
        return any(style.rate != 1 for style in self.styles)

    def kept(self, model_speed: float) -> float:
        """The speed for the model that is nearest to the requested one and keeps the stretched speech within
        the range of speeds."""
        return min(max(model_speed, SPEED_MIN * self.stretch), SPEED_MAX * self.stretch)

    def durations(self, unrounded: Values, speed: float) -> Frames:
        """The length of each input id in duration frames, so that words of one rate are together as long as
        asked.

        Sounds last two or three frames. If each were rounded by itself, all could become too short or all too
        long. So the rounding error of each sound is carried over to the next.

        Parameters
        ----------
        unrounded : numpy.ndarray
            float32 (1, n): the model's durations at speed 1, before rounding.
        speed : float
            Speed of the whole segment.

        Returns
        -------
        numpy.ndarray
            int64 (n,), 1 or more; for ids with a rate of 1, the model's own durations.
        """
        plain = frames_of(unrounded.astype(np.float32) / np.float32(speed))
        found = plain.copy()
        owed, rate = 0.0, 1.0
        for i, style in enumerate(self.styles):
            if style.rate != rate:
                owed, rate = 0.0, style.rate
            if rate != 1:
                asked = plain[i] * speed / self.kept(speed * rate) + owed
                found[i] = max(1, math.floor(asked + 0.5))
                owed = asked - found[i]
        return found

    def pitched(self, f0_hz: Values, durations: Frames) -> Values:
        """The F0 curve with the pitch changes, applied only to voiced frames, with short ramps between words.

        Parameters
        ----------
        f0_hz : numpy.ndarray
            float32 (1, 2T), near 0 where there is no voice.
        durations : numpy.ndarray
            int64, in frames, one for each input id; together T.

        Returns
        -------
        numpy.ndarray
            float32 (1, 2T).
        """
        curve = f0_hz.reshape(-1).astype(np.float64)
        voiced = curve > VOICED_HZ
        if not self.changes_pitch or not voiced.any():
            return f0_hz
        scales, offsets_hz, _ = self._lines(float(curve[voiced].mean()))
        frames = durations * F0_PER_FRAME
        scale, offset_hz = (_ramped(np.repeat(values, frames)) for values in (scales, offsets_hz))
        # A deep fall within a word that is lowered in hertz must not come down to nothing
        moved = np.maximum(scale * curve + offset_hz, PITCH_MIN * np.minimum(scale, 1.0) * curve)
        return np.where(voiced, moved, curve).astype(np.float32).reshape(f0_hz.shape)

    def fallbacks(self, speed: float, f0_hz: Values) -> Iterator[Fallback]:
        """The changes that were limited because they would leave the range in which the model speaks."""
        asked = [speed / self.stretch * style.rate for style in self.styles]
        if min(asked) < SPEED_MIN or max(asked) > SPEED_MAX:
            yield Fallback(
                "prosody",
                f"speed and rate come to {min(asked):.2f} to {max(asked):.2f}: "
                f"kept within {SPEED_MIN:g} to {SPEED_MAX:g}",
            )
        voiced = f0_hz[f0_hz > VOICED_HZ]
        if voiced.size:
            _, _, kept = self._lines(float(voiced.mean()))
            if kept:
                yield Fallback(
                    "prosody",
                    f"the pitch in hertz is not within {PITCH_MIN:g} to {PITCH_MAX:g} times the voice's "
                    f"{voiced.mean():.0f} Hz: brought to the nearest end",
                )

    def _lines(self, mean_hz: float) -> tuple[Curve, Curve, bool]:
        """The scale and the offset (Hz) of the pitch for each input id, and whether any of them had to be
        limited to the range of `PITCH_MIN` to `PITCH_MAX`."""
        scales = np.array([style.pitch_scale for style in self.styles])
        offsets_hz = np.array([style.pitch_offset_hz for style in self.styles])
        bases_hz = [style.pitch_base_hz for style in self.styles]
        scales *= np.array([1.0 if base_hz is None else base_hz / mean_hz for base_hz in bases_hz])
        # Factors were checked when the document was read; what hertz amount to depends on the voice
        in_hertz = (offsets_hz != 0) | np.array([base_hz is not None for base_hz in bases_hz])
        factors = scales + offsets_hz / mean_hz
        kept = np.clip(factors, PITCH_MIN, PITCH_MAX)
        out = in_hertz & (kept != factors)
        return np.where(out, kept, scales), np.where(out, 0.0, offsets_hz), bool(out.any())

    @property
    def gains_db(self) -> tuple[float, ...]:
        """How much louder each input id is to be, in dB."""
        return tuple(style.gain_db for style in self.styles)


def model_speed(speed: float, delivery: ProsodyChanges | None) -> float:
    """The speed at which the model is to speak a segment, if a listener asks for `speed`. It is `speed`,
    limited to the range in which the model speaks well at the rates of all words. A time stretch of the
    samples makes up for the difference."""
    rates = [1.0] if delivery is None else [style.rate for style in delivery.styles]
    slowest, fastest = min(rates), max(rates)
    kept = min(max(speed, MODEL_SPEED_MIN), MODEL_SPEED_MAX)
    # Words may have rates of their own here: rounding errors are carried over to the next id
    if kept * slowest < RATE_MIN and kept < 1:
        kept = min(1.0, RATE_MIN / slowest)
    elif kept * fastest > RATE_MAX and kept > 1:
        kept = max(1.0, RATE_MAX / fastest)
    return kept


def moved_semitones(before_hz: Values, after_hz: Values) -> float:
    """How far the pitch was moved, in semitones, averaged over voiced frames."""
    voiced = before_hz > VOICED_HZ
    if not voiced.any():
        return 0.0
    return float(12 * np.abs(np.log2(after_hz[voiced] / before_hz[voiced])).mean())


def _ramped(values: Curve) -> Curve:
    """The values, one for each F0 value, with each step between two of them replaced by a ramp in the form of
    a raised cosine."""
    window = np.hanning(RAMP_FRAMES + 2)[1:-1]
    around = np.pad(values, RAMP_FRAMES // 2, mode="edge")
    return np.convolve(around, window / window.sum(), mode="valid")
