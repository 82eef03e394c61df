"""Tests a loudness meter with the EBU's own test signals, which are synthesised here.

EBU Tech 3341 (2023), Table 1, and Tech 3342, Table 1, without the cases made of authentic programmes
(Tech 3341 cases 7 and 8, Tech 3342 cases 5 and 6), which cannot be synthesised. The meter is a parameter, so
that a test can check that a broken one fails.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.resources import files

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
HOPS_S = {"momentary_lufs": 0.01, "short_term_lufs": 0.05}
"""Steps between readings, so short that no window misses a burst by more than the tolerance: 5 ms of 0.4 s
are 0.05 LU."""


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

    If a case has many readings, the figure is the reading with the largest error. `measured` may exceed
    `expected` by `above` and fall short of it by `below`, in the unit of `quantity`.
    """

    case: str
    quantity: str
    expected: float
    measured: float
    below: float
    above: float

    @property
    def passed(self) -> bool:
        """Whether the reading is within tolerance; NaN is not."""
        return -self.below <= self.measured - self.expected <= self.above


def ebu_self_check(sample_rate_hz: int = 24_000, meter: Meter | None = None) -> Iterator[CheckResult]:
    """Let a meter measure the synthetic signals of EBU Tech 3341 and Tech 3342; each signal is made only when
    its turn comes.

    Parameters
    ----------
    sample_rate_hz : int
        Sample rate of the signals, 22050 to 48000.
    meter : Meter, optional
        The meter to be tested; None takes `metrics.loudness`.

    Yields
    ------
    CheckResult
        Peaks come first, since they take no time and a caller may stop at the first failure. The meter is
        right if every one passed.

    Notes
    -----
    EBU Tech 3341, Table 1: cases 1 to 6 and 9 to 23. EBU Tech 3342, Table 1: cases 1 to 4.
    """
    meter = meter or Meter()
    for part in (_true_peak, _steady, _bursts):
        yield from part(sample_rate_hz, meter)


def _steady(rate: int, meter: Meter) -> Iterator[CheckResult]:
    """Cases of tones one after another, in which every reading has one expected value; and case 6, with tones
    of different levels in five channels."""
    with files(__package__).joinpath("ebu_tones.tsv").open(encoding="utf-8") as table:
        for row in csv.DictReader(table, delimiter="\t"):
            levels, lengths_s = (map(float, row[name].split()) for name in ("levels_dbfs", "lengths_s"))
            signal = _tones(rate, *[*zip(levels, lengths_s, strict=True)] * int(row["times"]))
            quantity, expected, within = row["quantity"], float(row["expected"]), float(row["within"])
            readings = _read(meter, quantity, signal, rate)
            yield _furthest(row["case"], quantity, expected, readings, within)
    front, centre, surround = (_tone(rate, level, 20.0) for level in (-28.0, -24.0, -30.0))
    five = np.stack([front, front, centre, surround, surround], axis=1)
    yield _furthest("6", "integrated_lufs", -23.0, [meter.integrated_lufs(five, rate)])


def _read(meter: Meter, quantity: str, signal: Values, rate: int) -> Values:
    """All readings of a meter during the signal, or the one reading of the whole."""
    hops_s = [HOPS_S[quantity]] if quantity in HOPS_S else []
    return np.atleast_1d(getattr(meter, quantity)(signal, rate, *hops_s))


def _bursts(rate: int, meter: Meter) -> Iterator[CheckResult]:
    """Cases of bursts as long as the meter's window: each in a signal of its own, later and later; then all
    in one signal, louder and louder."""
    windows = {"short_term_lufs": ("10", "11", 3.0, 0.15), "momentary_lufs": ("13", "14", 0.4, 0.02)}
    for quantity, (single, rising, window_s, delay_s) in windows.items():
        read = partial(_read, meter, quantity, rate=rate)
        bursts = (_tones(rate, (None, delay_s * i), (-23.0, window_s), (None, 1.0)) for i in range(20))
        yield _furthest(single, f"max {quantity}", -23.0, [_max(read(burst)) for burst in bursts])
        levels = [-38.0 + i for i in range(20)]
        parts: list[tuple[Level, float]] = []
        for i, level in enumerate(levels):
            parts += [(None, delay_s * i), (level, window_s), (None, window_s - delay_s * i)]
        series = read(_tones(rate, *parts))
        # The maximum is read after each burst
        ends = [round((2 * window_s * (i + 1) - window_s) / HOPS_S[quantity]) + 1 for i in range(20)]
        readings = [_max(series[:end]) for end in ends]
        expected, measured = max(zip(levels, readings, strict=True), key=lambda pair: _off(pair[1] - pair[0]))
        yield CheckResult(rising, f"max {quantity}", expected, measured, below=0.1, above=0.1)


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


def _burst_at_4_times(rate: int) -> Values:
    """The signal of cases 20 to 23, at four times the rate fs: a sine of fs/6 with amplitude 0.50, in it one
    period of fs/4 with amplitude 1.00, without a jump in phase."""
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
    """Tones one after another, the same in both channels."""
    return _stereo(np.concatenate([_tone(rate, *part) for part in parts]))


def _stereo(signal: Values) -> Values:
    return np.stack([signal, signal], axis=1)


def _edges(count: int, rate: int, fade_s: float) -> Values:
    ramp = np.arange(count) / (fade_s * rate)
    return np.clip(np.minimum(ramp, ramp[::-1]), 0.0, 1.0)


def _furthest(
    case: str, quantity: str, expected: float, readings: Iterable[float], within: float = 0.1
) -> CheckResult:
    measured = max(readings, key=lambda reading: _off(reading - expected), default=float("nan"))
    return CheckResult(case, quantity, expected, float(measured), below=within, above=within)


def _peak(case: str, expected: float, measured: float) -> CheckResult:
    return CheckResult(case, "true_peak_dbtp", expected, measured, below=0.4, above=0.2)


def _max(series: Values) -> float:
    return float(series.max()) if series.size else float("nan")


def _off(difference: float) -> float:
    """The size of a reading's error; a reading that is not a number counts as the largest error."""
    return float("inf") if np.isnan(difference) else abs(difference)
