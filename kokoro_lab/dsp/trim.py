"""Trims silence from the edges of speech, and makes silence for pauses."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kokoro_lab.dsp.block import SILENT, Processor, Samples, require_rate
from kokoro_lab.errors import ParameterError

# Kokoro's floor between words is below -80 dBFS; its softest onsets peak above -45 dBFS.
THRESHOLD_DBFS = -54.0
KEEP_LEAD_S = 0.03
KEEP_TAIL_S = 0.05
FADE_S = 0.005
MAX_HOLD_S = 10.0
# The model ends some short texts with a click of its own, 160 to 550 ms after the last word. The plosive at
# the end of a word comes sooner after the sound before it.
CLICK_AFTER_S = 0.15
CLICK_S = 0.08
CLICK_DBFS = -28.0


def silence(duration_s: float, sample_rate_hz: int) -> Samples:
    """Digital silence.

    Parameters
    ----------
    duration_s : float
        Seconds, 0 or more; rounded to whole samples.
    sample_rate_hz : int
        8000 to 192000.

    Returns
    -------
    numpy.ndarray
        float32 zeros, shape (round(duration_s * sample_rate_hz),).

    Raises
    ------
    ParameterError
        The duration is negative or not finite, or the rate is no rate.
    """
    require_rate(sample_rate_hz)
    if not 0 <= duration_s < float("inf"):
        raise ParameterError(
            f"A pause of {duration_s} s cannot be.", field="duration_s", value=duration_s, allowed="0 or more"
        )
    return np.zeros(round(duration_s * sample_rate_hz), dtype=np.float32)


class EdgeTrimmer(Processor[np.float32]):
    """Drop silence before and after speech, never within it.

    Silence may be a pause or the end of the speech. So it is held back until the next sound; pauses come out
    exactly as they went in. The kept part of a cut edge fades, so that no cut clicks; an edge that needs no
    cut is not touched. A signal without any speech comes out empty. A last sound that is soft and short, and
    that comes after a long silence, is a click of the model: it is removed, with the silence before it.

    Parameters
    ----------
    sample_rate_hz : int
        8000 to 192000.
    keep_lead_s, keep_tail_s : float
        Silence, or softer sound, that is kept before the first sample of `THRESHOLD_DBFS` and after the last
        one. At a cut edge, up to `FADE_S` of it fades.
    click_after_s, click_s : float
        The last sound is a click if the silence before it is at least `click_after_s`, if it is shorter than
        `click_s`, and if its peak is below `CLICK_DBFS`.
    max_hold_s : float
        The longest silence that is held back, which bounds memory. Silence beyond it counts as a pause and is
        passed on.

    Attributes
    ----------
    lead_samples : int
        Samples dropped at the beginning so far; final from the first output on. Word times move by this much.
    tail_samples : int
        Samples dropped at the end; 0 until `flush`.
    kept_lead_samples, kept_tail_samples : int
        Silence kept before the first speech, final from the first output on, and after the last, 0 until
        `flush`.

    Raises
    ------
    ParameterError
        A parameter is out of its range.
    """

    def __init__(
        self,
        sample_rate_hz: int,
        keep_lead_s: float = KEEP_LEAD_S,
        keep_tail_s: float = KEEP_TAIL_S,
        max_hold_s: float = MAX_HOLD_S,
        click_after_s: float = CLICK_AFTER_S,
        click_s: float = CLICK_S,
    ) -> None:
        require_rate(sample_rate_hz)
        durations = {
            "keep_lead_s": keep_lead_s,
            "keep_tail_s": keep_tail_s,
            "click_after_s": click_after_s,
            "click_s": click_s,
            "max_hold_s": max_hold_s - max(keep_tail_s, FADE_S),
        }
        for name, duration_s in durations.items():
            if not 0 <= duration_s < float("inf"):
                raise ParameterError(
                    f"{name} is out of range.",
                    field=name,
                    value=duration_s,
                    allowed=f"0 or more; max_hold_s at least keep_tail_s and {FADE_S}",
                )
        self._threshold = 10.0 ** (THRESHOLD_DBFS / 20)
        self._keep_lead = round(keep_lead_s * sample_rate_hz)
        keep_tail = round(keep_tail_s * sample_rate_hz)
        fade = round(FADE_S * sample_rate_hz)
        self._fade_in = _rise(min(fade, self._keep_lead))
        self._fade_out = _rise(min(fade, keep_tail))[::-1]
        # silence of this length goes out at once; the next samples fade if nothing follows
        self._sure_tail = keep_tail - len(self._fade_out)
        self._max_hold = round(max_hold_s * sample_rate_hz)
        self._click_after = round(click_after_s * sample_rate_hz)
        self._click = round(click_s * sample_rate_hz)
        self._click_peak = 10.0 ** (CLICK_DBFS / 20)
        self._held = SILENT
        self._doubted = np.zeros(0, np.intp)
        """Held samples above the threshold that may be a click, counted from the first held sample."""
        self._speech_end = 0
        """Where speech last ended, counted from the first held sample. It is negative if that sample is no
        longer held."""
        self._speaking = False
        self.lead_samples = 0
        self.tail_samples = 0
        self.kept_lead_samples = 0
        self.kept_tail_samples = 0

    def hears(self, block: Samples) -> bool:
        """Whether `block` has speech in it: a sample louder than any that may belong to a click. The block is
        only looked at, not pushed."""
        return bool((np.abs(block) >= max(self._threshold, self._click_peak)).any())

    def enter(self, lead_samples: int) -> None:
        """Begin in the middle of a signal: the first block to be pushed has speech in it.

        `lead_samples` were dropped at the beginning of that signal. From the first speech on, the output is
        the same as if the whole signal had been pushed.
        """
        self.lead_samples = lead_samples
        self._speaking = True

    def _push(self, block: Samples) -> Samples:
        held = np.concatenate([self._held, block])
        loud = len(self._held) + np.flatnonzero(np.abs(block) >= self._threshold)
        if not self._speaking:
            keep_from = max(0, (loud[0] if loud.size else len(held)) - self._keep_lead)
            self.lead_samples += int(keep_from)
            held = held[keep_from:]
            if not loud.size:
                self._held = held.copy()
                return SILENT
            loud = loud - keep_from
            self.kept_lead_samples = self._speech_end = int(loud[0])
            if self.lead_samples:
                held[: len(self._fade_in)] *= self._fade_in
            self._speaking = True
        loud = np.concatenate([self._doubted, loud])
        if loud.size:
            sure = len(loud) - self._click_at_end(held, loud)
            self._speech_end = int(loud[sure - 1]) + 1 if sure else self._speech_end
            loud = loud[sure:]
        out_to = max(self._speech_end + self._sure_tail, len(held) - self._max_hold)
        out_to = min(max(out_to, 0), len(held))
        self._held = held[out_to:].copy()
        self._speech_end -= out_to
        self._doubted = loud[loud >= out_to] - out_to
        return held[:out_to]

    def _click_at_end(self, held: Samples, loud: npt.NDArray[np.intp]) -> int:
        """How many of the last `loud` samples would be a click if no more speech followed."""
        silences = np.diff(loud, prepend=self._speech_end - 1) - 1
        begins = np.flatnonzero(silences >= self._click_after)
        if not begins.size:
            return 0
        sound = loud[begins[-1] :]
        soft = np.abs(held[sound]).max() < self._click_peak
        return len(sound) if soft and sound[-1] - sound[0] < self._click else 0

    def _flush(self) -> Samples:
        held, self._held = self._held, SILENT
        if not self._speaking:
            self.lead_samples += len(held)
            return SILENT
        kept = len(self._fade_out)
        self.tail_samples = max(0, len(held) - kept)
        self.kept_tail_samples = len(held) - self.tail_samples - self._speech_end
        return held[:kept] * self._fade_out if self.tail_samples else held


def _rise(count: int) -> Samples:
    """A raised cosine from 0 to 1, `count` samples, neither end repeated."""
    return (0.5 - 0.5 * np.cos(np.pi * (np.arange(count) + 0.5) / max(count, 1))).astype(np.float32)
