"""A look-ahead limiter for true peaks.

Peaks over the ceiling are made softer by a gain that begins to fall before a peak and recovers after it. The
logarithm of this gain is built in four steps: the reduction that each peak needs, an exponential release, the
largest reduction within the look-ahead, and a smooth ramp over the same window. The ramp averages `window`
values. At a peak, each of them is at least the reduction that the peak needs, and so is their average.

Reductions are in nepers, natural logarithms of a factor, positive downwards. If the factor itself were
released, and not its logarithm, the gain would recover so fast after a deep reduction that it changes within
the length of the filter with which the peaks were found, and peaks would slip through.
"""

from __future__ import annotations

import math

import numpy as np

from kokoro_lab.dsp.block import (
    EXACT_BITS,
    History,
    Processor,
    Samples,
    Values,
    correlate,
    on_grid,
    require_rate,
)
from kokoro_lab.dsp.true_peak import REACH_SAMPLES, PeakDetector

DB_A_NEPER = 20 / math.log(10)

TRUE_PEAK_LIMIT_DBTP = -1.0
"""The highest true peak for a listener's converter (EBU R 128)."""

METER_MARGIN_DB = 0.2
"""Allowance for the differences between meters' interpolation filters, and for dither and resampling."""

CEILING_DBTP = TRUE_PEAK_LIMIT_DBTP - METER_MARGIN_DB
"""The limit less the margin. Meters differ by their filters near half the rate: `metrics.loudness` reads up
to 0.15 dB more on the worst signals, libebur128 0.3 dB on white noise, and both next to nothing on speech."""

LOOK_AHEAD_S = 0.003
"""How long before a peak the gain starts to fall; part of the latency."""
RELEASE_S = 0.05
"""Time constant of the recovery: after this long 37 % of the dB are left."""

_MAX_REDUCTION_BITS = 7
"""The deepest reduction is 2**7 nepers (1100 dB): no float32 sample is that far over any ceiling."""

_LOG_BITS = 30
"""Logarithms of reductions, and their decay from one sample to the next, are rounded to steps of 2**-30
nepers. Even with a release of 10 s at 192 kHz, the decay is some 500 such steps. Sums up to 2**23 are
exact."""
_LOG_OF_NOTHING = -1000.0
"""A logarithm that stands for 0: its `exp` is 0."""

_GRID_BITS = (EXACT_BITS - _MAX_REDUCTION_BITS) // 2

SETTLED_S = RELEASE_S * math.log(2) * (_MAX_REDUCTION_BITS + _GRID_BITS + 1) + 3 * LOOK_AHEAD_S
"""How far back the output depends on the input, with the usual times: by then the deepest reduction has been
released to less than half a step of the grid, and the filter and the windows are past."""


class Limiter(Processor[np.float32]):
    """Keep true peaks at or below `CEILING_DBTP`; leave everything else alone.

    A signal that never exceeds the ceiling comes out bit by bit as it went in. There is no shift: the
    latency is taken off the beginning, and as many samples come out as went in.

    Parameters
    ----------
    sample_rate_hz : int
        8000 to 192000.

    Attributes
    ----------
    latency_samples : int
        How much later a sample comes out than it goes in.

    Raises
    ------
    ParameterError
        The sample rate is out of range.

    Notes
    -----
    Peaks are found by 8x oversampling (ITU-R BS.1770-5, Annex 2, asks for at least 4x at 48 kHz; at
    24 kHz that means 8x).
    """

    def __init__(self, sample_rate_hz: int) -> None:
        require_rate(sample_rate_hz)
        self._ceiling = 10.0 ** (CEILING_DBTP / 20)
        self._decay = float(on_grid(np.array(1 / (RELEASE_S * sample_rate_hz)), _LOG_BITS))
        self._window = round(LOOK_AHEAD_S * sample_rate_hz)
        self.latency_samples = REACH_SAMPLES + self._window - 1

        hann = np.hanning(self._window + 2)[1:-1]  # its two zeros would only cost latency
        self._ramp = on_grid(hann / hann.sum(), _GRID_BITS)
        self._detector = PeakDetector()
        self._before_hold = History(self._window - 1)
        self._before_ramp = History(self._window - 1)
        self._audio = History(self.latency_samples)
        self._raised = -math.inf
        self._early_samples = self.latency_samples
        self._deepest = 0.0

    @property
    def max_reduction_db(self) -> float:
        """The deepest reduction so far, in dB, 0 if nothing was limited."""
        return DB_A_NEPER * self._deepest

    def _push(self, block: Samples) -> Samples:
        if not len(block):
            return block.copy()
        peaks = self._detector.push(block)
        needed = np.log(np.maximum(peaks / self._ceiling, 1.0))
        reduction = self._ramped(self._held(self._released(needed)))
        self._deepest = max(self._deepest, float(reduction.max()))
        late = self._audio.extend(block)[: len(block)]
        ready = (late * np.exp(-reduction)).astype(np.float32)[self._early_samples :]
        self._early_samples = max(0, self._early_samples - len(block))
        return ready

    def _flush(self) -> Samples:
        return self._push(np.zeros(self.latency_samples, dtype=np.float32))

    def _released(self, needed: Values) -> Values:
        """`r[n] = max(needed[n], r[n-1] * exp(-1 / release))`, without a loop.

        In logarithms, with the decay since the start of the block added, the recursion is a running maximum.
        The maximum is exact, because all values are on a grid. So it does not depend on where a block or the
        stream begins.
        """
        decay = self._decay * np.arange(1, len(needed) + 1)
        with np.errstate(divide="ignore"):
            raised = on_grid(np.log(needed), _LOG_BITS) + decay
        raised = np.maximum.accumulate(np.concatenate([[self._raised], raised]))
        last = raised[-1] - decay[-1]
        # Falling on and on, it would leave the grid in the end
        self._raised = last if last > _LOG_OF_NOTHING else -math.inf
        released: Values = np.exp(raised[1:] - decay)
        return released

    def _held(self, released: Values) -> Values:
        """The largest of each value and the `window - 1` before it, so that peaks are known ahead."""
        held, reach = self._before_hold.extend(released), 1
        while reach < self._window:  # doubled, or as far as is left
            step = min(reach, self._window - reach)
            held = np.maximum(held[:-step], held[step:])
            reach += step
        return held

    def _ramped(self, held: Values) -> Values:
        """A weighted mean over the last `window` values."""
        return correlate(on_grid(self._before_ramp.extend(held), _GRID_BITS), self._ramp)
