"""Does the loudness meter measure? The standard's own signals, made here, with the standard's answers.

EBU Tech 3341 (2023), Table 1, and Tech 3342, Table 1, without the cases made of authentic programmes
(Tech 3341 cases 7 and 8, Tech 3342 cases 5 and 6), which cannot be synthesised. The meter that is put to
the test is a parameter, so that a test can hand in a broken one and see it found out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kokoro_lab.extras import imported
from kokoro_lab.metrics import loudness

signals = imported("scipy.signal", extra="lab")

Values = npt.NDArray[np.float64]
Measure = Callable[[Values, int], float]
Series = Callable[[Values, int, float], Values]
Level = float | None
"""Peak of a sine in dBFS; None is silence."""

TONE_HZ = 1000.0
MOMENTARY_HOP_S = 0.01
SHORT_TERM_HOP_S = 0.05
"""Fine enough that no window misses a burst by more than the tolerance: 5 ms of 0.4 s are 0.05 LU."""


@dataclass(frozen=True, slots=True)
class Meter:
    """The functions of `metrics.loudness`, or others that claim to do the same."""

    integrated_lufs: Measure = loudness.integrated_lufs
    momentary_lufs: Series = loudness.momentary_lufs
    short_term_lufs: Series = loudness.short_term_lufs
    loudness_range_lu: Measure = loudness.loudness_range_lu
    true_peak_dbtp: Measure = loudness.true_peak_dbtp


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One figure of one case: what the standard expects and what the meter read.

    Where a case asks for many readings, this is the one furthest off. `measured` may exceed `expected`
    by `above` and fall short of it by `below`, in the unit of `quantity`.
    """

    case: str
    quantity: str
    expected: float
    measured: float
    below: float
    above: float

    @property
    def passed(self) -> bool:
        """Within tolerance; a reading that is not a number is not."""
        return -self.below <= self.measured - self.expected <= self.above


def ebu_self_check(sample_rate_hz: int = 24_000, meter: Meter | None = None) -> Iterator[CheckResult]:
    """Let a meter measure the synthetic signals of EBU Tech 3341 and Tech 3342, one when it is asked for.

    Parameters
    ----------
    sample_rate_hz : int
        At which the signals are made, 22050 to 48000.
    meter : Meter, optional
        The meter to be tested; None takes `metrics.loudness`.

    Yields
    ------
    CheckResult
        Peaks first, which take no time: whoever looks for one failure need not wait for the rest. The
        meter is sound if every one passed.

    Notes
    -----
    EBU Tech 3341, Table 1: cases 1 to 6 and 9 to 23. EBU Tech 3342, Table 1: cases 1 to 4.
    """
    meter = meter or Meter()
    for part in (_true_peak, _programme, _short_term, _momentary, _range):
        yield from part(sample_rate_hz, meter)


def _programme(rate: int, meter: Meter) -> Iterator[CheckResult]:
    for case, level in (("1", -23.0), ("2", -33.0)):
        signal = _tones(rate, (level, 20.0))
        momentary = meter.momentary_lufs(signal, rate, loudness.HOP_S)
        short_term = meter.short_term_lufs(signal, rate, loudness.HOP_S)
        yield _lufs(case, "momentary_lufs", level, momentary)
        yield _lufs(case, "short_term_lufs", level, short_term)
        yield _lufs(case, "integrated_lufs", level, [meter.integrated_lufs(signal, rate)])
    steps = {
        "3": ((-36.0, 10.0), (-23.0, 60.0), (-36.0, 10.0)),
        "4": ((-72.0, 10.0), (-36.0, 10.0), (-23.0, 60.0), (-36.0, 10.0), (-72.0, 10.0)),
        "5": ((-26.0, 20.0), (-20.0, 20.1), (-26.0, 20.0)),
    }
    for case, parts in steps.items():
        reading = meter.integrated_lufs(_tones(rate, *parts), rate)
        yield _lufs(case, "integrated_lufs", -23.0, [reading])
    front, centre, surround = (_tone(rate, level, 20.0) for level in (-28.0, -24.0, -30.0))
    five = np.stack([front, front, centre, surround, surround], axis=1)
    yield _lufs("6", "integrated_lufs", -23.0, [meter.integrated_lufs(five, rate)])


def _short_term(rate: int, meter: Meter) -> Iterator[CheckResult]:
    def read(signal: Values) -> Values:
        return meter.short_term_lufs(signal, rate, SHORT_TERM_HOP_S)

    steady = _tones(rate, *[(-20.0, 1.34), (-30.0, 1.66)] * 5)
    yield _lufs("9", "short_term_lufs", -23.0, read(steady))
    bursts = (_tones(rate, (None, 0.15 * i), (-23.0, 3.0), (None, 1.0)) for i in range(20))
    yield _lufs("10", "max short_term_lufs", -23.0, [_max(read(burst)) for burst in bursts])
    yield _rising("11", "max short_term_lufs", rate, read, 3.0, 0.15, SHORT_TERM_HOP_S)


def _momentary(rate: int, meter: Meter) -> Iterator[CheckResult]:
    def read(signal: Values) -> Values:
        return meter.momentary_lufs(signal, rate, MOMENTARY_HOP_S)

    steady = read(_tones(rate, *[(-20.0, 0.18), (-30.0, 0.22)] * 25))
    after_1_s = round((1.0 - loudness.MOMENTARY_S) / MOMENTARY_HOP_S)
    yield _lufs("12", "momentary_lufs", -23.0, steady[after_1_s:])
    bursts = (_tones(rate, (None, 0.02 * i), (-23.0, 0.4), (None, 1.0)) for i in range(20))
    yield _lufs("13", "max momentary_lufs", -23.0, [_max(read(burst)) for burst in bursts])
    yield _rising("14", "max momentary_lufs", rate, read, 0.4, 0.02, MOMENTARY_HOP_S)


def _rising(
    case: str,
    quantity: str,
    rate: int,
    read: Callable[[Values], Values],
    window_s: float,
    delay_s: float,
    hop_s: float,
) -> CheckResult:
    """Ever louder and ever later bursts of one window's length; the maximum is read after each."""
    levels = [-38.0 + i for i in range(20)]
    parts: list[tuple[Level, float]] = []
    for i, level in enumerate(levels):
        parts += [(None, delay_s * i), (level, window_s), (None, window_s - delay_s * i)]
    series = read(_tones(rate, *parts))
    ends = [round((2 * window_s * (i + 1) - window_s) / hop_s) + 1 for i in range(20)]
    readings = [_max(series[:end]) for end in ends]
    expected, measured = max(zip(levels, readings, strict=True), key=lambda pair: _off(pair[1] - pair[0]))
    return CheckResult(case, quantity, expected, measured, below=0.1, above=0.1)


def _true_peak(rate: int, meter: Meter) -> Iterator[CheckResult]:
    sines = {
        "15": (4, 0.50, 0.0, -6.0),
        "16": (4, 0.50, 45.0, -6.0),
        "17": (6, 0.50, 60.0, -6.0),
        "18": (8, 0.50, 67.5, -6.0),
        "19": (4, 1.41, 45.0, 3.0),
    }
    for case, (samples_a_period, amplitude, degrees, expected) in sines.items():
        phase = 2 * np.pi * np.arange(rate) / samples_a_period + np.radians(degrees)
        signal = amplitude * np.sin(phase) * _edges(rate, rate, fade_s=0.01)
        yield _peak(case, expected, meter.true_peak_dbtp(_stereo(signal), rate))
    fine = _burst_at_4_times(rate)
    for offset in range(4):
        reading = meter.true_peak_dbtp(_stereo(fine[offset::4]), rate)
        yield _peak(str(20 + offset), 0.0, reading)


def _range(rate: int, meter: Meter) -> Iterator[CheckResult]:
    cases: dict[str, tuple[float, Sequence[float]]] = {
        "3342-1": (10.0, (-20.0, -30.0)),
        "3342-2": (5.0, (-20.0, -15.0)),
        "3342-3": (20.0, (-40.0, -20.0)),
        "3342-4": (15.0, (-50.0, -35.0, -20.0, -35.0, -50.0)),
    }
    for case, (expected, levels) in cases.items():
        reading = meter.loudness_range_lu(_tones(rate, *[(level, 20.0) for level in levels]), rate)
        yield CheckResult(case, "loudness_range_lu", expected, reading, below=1.0, above=1.0)


def _burst_at_4_times(rate: int) -> Values:
    """Cases 20 to 23 before decimation: one period of fs/4 at 1.00 amid fs/6 at 0.50, no jump in phase."""
    step = np.full(4 * rate, 2 * np.pi / 24)
    amplitude = np.full(4 * rate, 0.50)
    start = 2 * rate // 24 * 24  # where the slow sine crosses zero
    step[start : start + 16] = 2 * np.pi / 16
    amplitude[start : start + 16] = 1.00
    phase = np.cumsum(step) - step[0]
    signal = amplitude * np.sin(phase) * _edges(4 * rate, 4 * rate, fade_s=0.01)
    # half a band wide, as the standard asks: what is above fs/2 must not fold
    low_pass = signals.firwin(1025, 0.25, window=("kaiser", 8.0))
    filtered: Values = signals.upfirdn(low_pass, signal)[512:][: len(signal)]
    return filtered


def _tone(rate: int, level_dbfs: Level, duration_s: float) -> Values:
    count = round(duration_s * rate)
    if level_dbfs is None:
        return np.zeros(count)
    amplitude = 10 ** (level_dbfs / 20)
    tone: Values = amplitude * np.sin(2 * np.pi * TONE_HZ / rate * np.arange(count))
    return tone


def _tones(rate: int, *parts: tuple[Level, float]) -> Values:
    """One part after another, the same in both channels."""
    return _stereo(np.concatenate([_tone(rate, *part) for part in parts]))


def _stereo(signal: Values) -> Values:
    return np.stack([signal, signal], axis=1)


def _edges(count: int, rate: int, fade_s: float) -> Values:
    ramp = np.arange(count) / (fade_s * rate)
    return np.clip(np.minimum(ramp, ramp[::-1]), 0.0, 1.0)


def _lufs(case: str, quantity: str, expected: float, readings: Iterable[float]) -> CheckResult:
    measured = max(readings, key=lambda reading: _off(reading - expected), default=float("nan"))
    return CheckResult(case, quantity, expected, float(measured), below=0.1, above=0.1)


def _peak(case: str, expected: float, measured: float) -> CheckResult:
    return CheckResult(case, "true_peak_dbtp", expected, measured, below=0.4, above=0.2)


def _max(series: Values) -> float:
    return float(series.max()) if series.size else float("nan")


def _off(difference: float) -> float:
    """How bad a reading is; one that is not a number is the worst."""
    return float("inf") if np.isnan(difference) else abs(difference)
