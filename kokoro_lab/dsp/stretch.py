"""Time stretch: makes speech longer or shorter at the same pitch.

Waveform similarity overlap-add (WSOLA): W. Verhelst and M. Roelands, "An overlap-add technique based on
waveform similarity (WSOLA) for high quality time-scale modification of speech", ICASSP 1993.
"""

from __future__ import annotations

import math

import numpy as np

from kokoro_lab.dsp.block import SILENT, Processor, Samples, Values, correlate, on_grid, require_rate
from kokoro_lab.typed import require_range

STEP_S = 0.015
"""The output advances by this for each excerpt, which is also how long two excerpts overlap."""
SEARCH_S = 0.010
"""How far an excerpt may be moved from its place, to either side. Both sides together make 20 ms, one period
of 50 Hz, so that an excerpt of any voice above 50 Hz can be put in phase."""
STRETCH_MIN, STRETCH_MAX = 0.25, 4.0
RUN_SAMPLES = 8_192
"""How many samples of a block are taken at a time. Held samples are copied at each step, so this must stay
small."""
_BITS = 16
"""Similarity is found between 16-bit values: so its sums are exact, and the same on every machine."""


class TimeStretch(Processor[np.float32]):
    """Change the duration of speech without its pitch.

    The output is made of excerpts of the input, each moved by up to `SEARCH_S` to where it best continues the
    one before it, and crossfaded. A sound at `t` in the input is at `stretch * t` in the output, give or take
    `SEARCH_S`. At most `2 * STEP_S + 2 * SEARCH_S + STEP_S / stretch` of the input is held back.

    Parameters
    ----------
    stretch : float
        Factor of the length, `STRETCH_MIN` to `STRETCH_MAX`.
    sample_rate_hz : int
        8000 to 192000.

    Notes
    -----
    n samples become exactly `round(stretch * n)`.

    Raises
    ------
    ParameterError
        A parameter is out of its range.
    """

    def __init__(self, stretch: float, sample_rate_hz: int) -> None:
        require_rate(sample_rate_hz)
        message = f"Speech cannot be made {stretch} times as long."
        require_range("stretch", stretch, STRETCH_MIN, STRETCH_MAX, message)
        self._stretch = stretch
        self._step = round(STEP_S * sample_rate_hz)
        self._search = round(SEARCH_S * sample_rate_hz)
        rise = 0.5 - 0.5 * np.cos(np.pi * (np.arange(self._step) + 0.5) / self._step)
        self._fade_in, self._fade_out = rise.astype(np.float32), rise[::-1].astype(np.float32)
        self._held = SILENT
        self._held_from = 0
        """Where in the input the held samples begin."""
        self._taken = self._steps = 0
        self._continued_at = 0
        """Where in the input the last excerpt ended. An excerpt that began there would continue it without a
        seam."""

    def _push(self, block: Samples) -> Samples:
        excerpts = []
        for start in range(0, len(block), RUN_SAMPLES):
            run = block[start : start + RUN_SAMPLES]
            self._held = np.concatenate([self._held, run])
            self._taken += len(run)
            while self._needed() <= self._taken:
                excerpts.append(self._next())
        return np.concatenate(excerpts) if excerpts else SILENT

    def _flush(self) -> Samples:
        rest = round(self._stretch * self._taken) - self._steps * self._step
        excerpts = [SILENT]
        for _ in range(-(-rest // self._step)):
            missing = self._needed() - self._held_from - len(self._held)
            self._held = np.concatenate([self._held, np.zeros(max(0, missing), np.float32)])
            excerpts.append(self._next())
        self._held = SILENT
        return np.concatenate(excerpts)[:rest]

    def _place(self) -> int:
        """Place of the next excerpt in the input before the search moves it."""
        return round(self._steps * self._step / self._stretch)

    def _needed(self) -> int:
        """How many samples of the input the next step needs."""
        seen = max(self._place() + self._search, self._continued_at) + self._step
        return max(seen, math.ceil((self._steps + 1) * self._step / self._stretch))

    def _next(self) -> Samples:
        """The next step of the output."""
        continued = self._cut(self._continued_at, self._step)
        begin = self._continued_at
        if self._steps:
            first = max(0, self._place() - self._search)
            region = self._cut(first, self._place() + self._search + self._step - first)
            begin = first + _likest(region, continued, self._place() - first)
        excerpt = continued.copy()  # a view would keep the whole array alive
        if begin != self._continued_at:
            excerpt = continued * self._fade_out + self._cut(begin, self._step) * self._fade_in
        self._continued_at = begin + self._step
        self._steps += 1
        wanted_from = min(max(0, self._place() - self._search), self._continued_at)
        self._held = self._held[max(0, wanted_from - self._held_from) :].copy()
        self._held_from = max(self._held_from, wanted_from)
        return excerpt

    def _cut(self, start: int, count: int) -> Samples:
        return self._held[start - self._held_from : start - self._held_from + count]


def _likest(region: Samples, wanted: Samples, otherwise: int) -> int:
    """Where in `region` the samples are most like `wanted`, by normalised correlation; `otherwise` if
    nowhere."""
    signal, taps = (on_grid(samples.astype(np.float64), _BITS) for samples in (region, wanted))
    products: Values = correlate(signal, taps)
    sums = np.concatenate([[0.0], np.cumsum(signal * signal)])
    energies = sums[len(taps) :] - sums[: -len(taps)]
    likeness = np.where(energies > 0, products / np.sqrt(np.maximum(energies, 2.0**-32)), 0.0)
    best = int(np.argmax(likeness))
    return best if likeness[best] > 0 else otherwise
