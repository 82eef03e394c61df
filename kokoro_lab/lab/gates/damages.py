"""Damages for negative controls: each a function of samples at 24 kHz, such as a click, a gap or noise.

Every gate names the damages that it must catch, applies them to good speech, and judges the result like any
other clip. A damage is applied where speech is loudest, since in a pause it would be another fault, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.dsp.stretch import TimeStretch
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.clips.judged import TimedWord

DAMAGE_S = 0.1
"""Length of the silenced, cut, repeated or swapped part: two chunks of a stream."""
CLICK_HEIGHT = 0.3
NOISE_SNR_DB = 20.0
GAIN_DB = 3.0
FASTER = 1.1
CLIPPED_SHARE = 0.01
"""The share of samples that clipping cuts."""

Damage = Callable[[Samples], Samples]


def loudest(samples: Samples, length_s: float = DAMAGE_S) -> slice:
    """The range of the loudest span of `length_s` that has at least `length_s` of samples before and after
    it.

    Raises
    ------
    ParameterError
        The samples are shorter than three such spans.
    """
    length = round(length_s * SAMPLE_RATE_HZ)
    if len(samples) < 3 * length:
        raise ParameterError(
            "The recording is too short to be damaged.",
            field="samples",
            value=len(samples),
            allowed=f"{3 * length_s:g} s or more",
        )
    energy = np.cumsum(np.pad(samples.astype(np.float64) ** 2, (1, 0)))
    sums = energy[length:] - energy[:-length]
    start = length + int(np.argmax(sums[length : len(sums) - length]))
    return slice(start, start + length)


def click(samples: Samples) -> Samples:
    """One sample off by `CLICK_HEIGHT` of full scale."""
    damaged, at = samples.copy(), loudest(samples).start
    damaged[at] += np.float32(-CLICK_HEIGHT if damaged[at] > 0 else CLICK_HEIGHT)
    return damaged


def gap(samples: Samples) -> Samples:
    """Silence instead of the loudest span."""
    damaged = samples.copy()
    damaged[loudest(samples)] = 0
    return damaged


def cut(samples: Samples) -> Samples:
    """The loudest span left out, the samples on both sides joined without a fade."""
    return without(samples, loudest(samples))


def repeat(samples: Samples, length_s: float = DAMAGE_S) -> Samples:
    """The loudest span, heard twice."""
    span = loudest(samples, length_s)
    return np.concatenate([samples[: span.stop], samples[span], samples[span.stop :]])


def swapped(samples: Samples, length_s: float = DAMAGE_S) -> Samples:
    """The loudest span and the one after it in each other's place."""
    span = loudest(samples, length_s)
    after = slice(span.stop, 2 * span.stop - span.start)
    return np.concatenate([samples[: span.start], samples[after], samples[span], samples[after.stop :]])


def noisy(samples: Samples, snr_db: float = NOISE_SNR_DB, *, seed: int = 0) -> Samples:
    """White noise `snr_db` below the speech, from the beginning to the end."""
    noise = np.random.default_rng(seed).standard_normal(len(samples))
    level = np.sqrt(np.mean(samples.astype(np.float64) ** 2)) * 10 ** (-snr_db / 20)
    damaged: Samples = (samples + level * noise).astype(np.float32)
    return damaged


def gained(samples: Samples, db: float = GAIN_DB) -> Samples:
    """The samples louder by `db`; below 0, quieter."""
    return (samples * 10 ** (db / 20)).astype(np.float32)


def faster(samples: Samples) -> Samples:
    """Spoken `FASTER` times as fast at the same pitch."""
    return TimeStretch(1 / FASTER, SAMPLE_RATE_HZ).run(samples)


def clipped(samples: Samples) -> Samples:
    """The loudest samples, `CLIPPED_SHARE` of all, cut to the height of the loudest of the others."""
    level = float(np.quantile(np.abs(samples), 1 - CLIPPED_SHARE))
    return np.clip(samples, -level, level)


def without(samples: Samples, word: slice) -> Samples:
    """The samples without those in the range `word`."""
    return np.delete(samples, word)


def longest_word(words: Iterable[TimedWord]) -> slice:
    """The range of samples in which the longest of `words` is heard."""
    word = max(words, key=lambda each: each.end_s - each.start_s)
    return slice(round(word.start_s * SAMPLE_RATE_HZ), round(word.end_s * SAMPLE_RATE_HZ))


DAMAGES: dict[str, Damage] = {
    "a click of 0.3": click,
    "100 ms of silence": gap,
    "100 ms cut out": cut,
    "100 ms heard twice": repeat,
    "two chunks swapped": swapped,
    "noise at 20 dB SNR": noisy,
    "3 dB louder": gained,
    "3 dB quieter": partial(gained, db=-GAIN_DB),
    "10 % faster": faster,
    "clipped peaks": clipped,
}
"""Damages that need nothing but the samples. Two others need more: a dropped word (`without`) needs the times
of words, and a wrong voice needs another clip."""
