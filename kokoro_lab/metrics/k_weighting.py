"""K-weighting, the filter of a loudness meter, written in NumPy only.

A recursive filter works from sample to sample, and NumPy has no function for that. But the filter is linear.
So its output for a stretch of samples is a sum of two matrix products: with the input, and with the four
numbers of the filter's memory. The matrices are the filter's own responses to a single 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]

SHELF_HZ, SHELF_Q, SHELF_DB = 1681.9744509555319, 0.7071752369554193, 3.99984385397
SHELF_POWER = 0.499666774155
HIGH_PASS_HZ, HIGH_PASS_Q = 38.13547087613982, 0.5003270373253953
"""Brecht De Man's analogue filters. Their coefficients at 48 kHz are those of the standard."""
STRETCH_SAMPLES = 128
"""How many samples are filtered at a time. Longer stretches cost more in matrix products, shorter ones more
in Python."""


class _Responses(NamedTuple):
    """The responses of a filter with a memory of 4 numbers, for a stretch of n samples."""

    answer: Values
    """The output at each sample in response to a 1 at each sample: shape (n, n)."""
    recalled: Values
    """The output at each sample in response to a 1 in each number of the memory: (4, n)."""
    left: Values
    """The memory after the stretch in response to a 1 at each sample: (n, 4)."""
    kept: Values
    """The memory after 1 to n samples in response to a 1 in each number of the memory: (n, 4, 4)."""


class KWeighting:
    """The two filters of BS.1770, for one channel that comes in blocks of any size.

    Parameters
    ----------
    sample_rate_hz : int

    Notes
    -----
    ITU-R BS.1770-5, Annex 1, figures 2 and 4; within 1e-12 of the filters going from sample to sample.
    """

    def __init__(self, sample_rate_hz: int) -> None:
        self._responses = _responses(sample_rate_hz)
        self._memory = np.zeros(4)

    def push(self, samples: Values) -> Values:
        """The next samples, weighted: float64, shape (n,)."""
        whole = len(samples) - len(samples) % STRETCH_SAMPLES
        parts = [self._weighted(samples[:whole].reshape(-1, STRETCH_SAMPLES))]
        if whole < len(samples):
            parts.append(self._weighted(samples[None, whole:]))
        return np.concatenate(parts)

    def _weighted(self, stretches: Values) -> Values:
        answer, recalled, left, kept = self._responses
        length = stretches.shape[1]
        added = stretches @ left[len(left) - length :]
        before = np.empty_like(added)
        for k, each in enumerate(added):
            before[k] = self._memory
            self._memory = self._memory @ kept[length - 1] + each
        return (stretches @ answer[:length, :length] + before @ recalled[:, :length]).ravel()


@cache
def _responses(sample_rate_hz: int) -> _Responses:
    sections = _sections(sample_rate_hz)
    # Five filters side by side: one hears a 1 and then silence, each other begins with a 1 in its memory
    memory = np.vstack([np.zeros(4), np.eye(4)])
    heard = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    answers, memories = [], []
    for _ in range(STRETCH_SAMPLES):
        answer, memory = _step(sections, heard, memory)
        answers.append(answer)
        memories.append(memory)
        heard = np.zeros(5)
    said, kept = np.array(answers), np.array(memories)
    delay = np.arange(STRETCH_SAMPLES) - np.arange(STRETCH_SAMPLES)[:, None]
    return _Responses(np.where(delay >= 0, said[delay, 0], 0.0), said[:, 1:].T, kept[::-1, 0], kept[:, 1:])


Section = tuple[Sequence[float], Sequence[float]]


def _sections(sample_rate_hz: int) -> tuple[Section, Section]:
    """Numerator and denominator of the shelf and of the high pass."""
    k = np.tan(np.pi * SHELF_HZ / sample_rate_hz)
    high = 10.0 ** (SHELF_DB / 20.0)
    band = high**SHELF_POWER
    scale = 1.0 + k / SHELF_Q + k * k
    shelf = (
        (
            (high + band * k / SHELF_Q + k * k) / scale,
            2.0 * (k * k - high) / scale,
            (high - band * k / SHELF_Q + k * k) / scale,
        ),
        (1.0, 2.0 * (k * k - 1.0) / scale, (1.0 - k / SHELF_Q + k * k) / scale),
    )
    k = np.tan(np.pi * HIGH_PASS_HZ / sample_rate_hz)
    scale = 1.0 + k / HIGH_PASS_Q + k * k
    denominator = (1.0, 2.0 * (k * k - 1.0) / scale, (1.0 - k / HIGH_PASS_Q + k * k) / scale)
    return shelf, ((1.0, -2.0, 1.0), denominator)


def _step(sections: Sequence[Section], heard: Values, memory: Values) -> tuple[Values, Values]:
    """One sample through both filters (transposed direct form II), for several pairs of filters side by
    side."""
    kept = []
    for section, ((b0, b1, b2), (_, a1, a2)) in enumerate(sections):
        first, second = memory[:, 2 * section], memory[:, 2 * section + 1]
        out = b0 * heard + first
        kept += [b1 * heard - a1 * out + second, b2 * heard - a2 * out]
        heard = out
    return heard, np.stack(kept, axis=1)
