"""The limiter: nothing over the ceiling, nothing touched below it, and gain that nobody hears move."""

from __future__ import annotations

import numpy as np
import pyebur128
import pytest
from scipy.ndimage import maximum_filter1d
from scipy.signal import firwin, lfilter, resample_poly

from kokoro_lab.dsp import Limiter, Resampler
from kokoro_lab.dsp.limiter import CEILING_DBTP, LOOK_AHEAD_S, SETTLED_S, TRUE_PEAK_LIMIT_DBTP
from kokoro_lab.dsp.true_peak import (
    REACH_SAMPLES,
    STEEP_REACH_SAMPLES,
    WIDE_REACH_SAMPLES,
    PeakDetector,
    _filters,
)
from kokoro_lab.metrics.loudness import true_peak_dbtp
from tests.dsp.signals import RATE_HZ, Samples, noise, speech_like, tone, torture

LOOK_AHEAD_SAMPLES = 72  # 3 ms
RELEASE_SAMPLES = 1200  # 50 ms


def gain_around_a_click(click: float = 8.0) -> tuple[np.ndarray, int]:
    """The gain at every sample, seen on a constant, and where the click in it is."""
    at, probe = 2000, 0.25
    samples = np.full(6000, probe, dtype=np.float32)
    samples[at] = click
    limited = Limiter(RATE_HZ).run(samples)
    return limited / samples, at


@pytest.mark.parametrize("amplitude", [0.5, 1.0, 4.0, 16.0, 1000.0])
@pytest.mark.parametrize("name", torture(1.0))
def test_no_true_peak_is_over_the_limit(name: str, amplitude: float) -> None:
    limited = Limiter(RATE_HZ).run(torture(amplitude)[name])
    assert true_peak_dbtp(limited, RATE_HZ) <= TRUE_PEAK_LIMIT_DBTP


@pytest.mark.parametrize("rate", [8_000, 22_050, 44_100, 48_000])
def test_the_limit_holds_at_other_rates(rate: int) -> None:
    limited = Limiter(rate).run(torture(4.0)["noise that jumps in level"])
    assert true_peak_dbtp(limited, rate) <= TRUE_PEAK_LIMIT_DBTP


@pytest.mark.parametrize("name", ["fs/4 at 45 degrees", "square, high", "clicks", "clicks of two samples"])
def test_what_is_too_loud_is_brought_to_the_ceiling_and_not_below(name: str) -> None:
    limited = Limiter(RATE_HZ).run(torture(4.0)[name])
    assert true_peak_dbtp(limited, RATE_HZ) == pytest.approx(CEILING_DBTP, abs=0.01)


def test_ideal_interpolation_agrees_where_the_top_of_the_band_is_empty() -> None:
    band_limited = lfilter(firwin(301, 0.85), 1.0, noise(4.0, 1.0)).astype(np.float32)
    limited = Limiter(RATE_HZ).run(band_limited)
    count = len(limited) + 8192  # zeros, so that the end does not wrap around to the start
    spectrum = np.fft.rfft(limited, count)
    interpolated = 32 * np.fft.irfft(spectrum, 32 * count)
    assert 20 * np.log10(np.abs(interpolated).max()) <= TRUE_PEAK_LIMIT_DBTP


def test_libebur128_agrees_on_speech() -> None:
    limited = Limiter(RATE_HZ).run(speech_like(5.0, level_dbfs=-8.0))
    meter = pyebur128.R128State(1, RATE_HZ, pyebur128.MeasurementMode.MODE_TRUE_PEAK)
    meter.add_frames(limited, len(limited))
    assert 20 * np.log10(pyebur128.get_true_peak(meter, 0)) <= TRUE_PEAK_LIMIT_DBTP


@pytest.mark.parametrize(
    ("filters", "reach", "factor", "beta"),
    [(0, STEEP_REACH_SAMPLES, 2, 12.0), (1, 2 * WIDE_REACH_SAMPLES, 4, 5.9)],
    ids=["by 2", "by 4"],
)
def test_the_detectors_filters_are_kaisers(filters: int, reach: int, factor: int, beta: float) -> None:
    prototype = factor * firwin(2 * reach * factor + 1, 1 / factor, window=("kaiser", beta))
    steep, wide = _filters()
    for phase, taps in enumerate(([steep], wide)[filters], 1):
        assert np.array_equal(taps, np.rint(prototype[phase::factor] * 2**18) / 2**18)


@pytest.mark.parametrize("rate_hz", [8_000, 11_000, RATE_HZ, 192_000])
def test_the_largest_need_is_held_over_the_look_ahead(rate_hz: int) -> None:
    limiter = Limiter(rate_hz)
    window, needed = round(LOOK_AHEAD_S * rate_hz), np.random.default_rng(0).random(5000)
    held = np.concatenate([limiter._held(needed[:700]), limiter._held(needed[700:])])
    expected = maximum_filter1d(np.concatenate([np.zeros(window - 1), needed]), window, origin=-(window // 2))
    assert np.array_equal(held, expected[: len(needed)])


@pytest.mark.parametrize("to_hz", [22_050, 44_100, 48_000])
def test_limited_speech_stays_within_the_limit_at_the_rates_we_offer(to_hz: int) -> None:
    limited = Limiter(RATE_HZ).run(speech_like(5.0, level_dbfs=-8.0))
    assert true_peak_dbtp(Resampler(RATE_HZ, to_hz).run(limited), to_hz) <= TRUE_PEAK_LIMIT_DBTP


@pytest.mark.parametrize(
    "samples",
    [
        speech_like(1.0, level_dbfs=-24.0),
        tone(RATE_HZ / 4, 10 ** (CEILING_DBTP / 20) - 0.001, 0.2, degrees=45.0)[100:-100],
        np.zeros(1000, dtype=np.float32),
        noise(1e-30, 0.1),
    ],
    ids=["speech", "sine that just fits between the samples", "silence", "almost nothing"],
)
def test_what_is_below_the_ceiling_passes_bit_by_bit(samples: Samples) -> None:
    faded = samples * np.hanning(len(samples)).astype(np.float32)  # hard edges would overshoot
    limiter = Limiter(RATE_HZ)
    assert np.array_equal(limiter.run(faded), faded)
    assert limiter.max_reduction_db == 0.0
    assert not np.signbit(limiter.max_reduction_db)


def test_long_after_a_peak_samples_pass_bit_by_bit_again() -> None:
    samples = speech_like(2.0, level_dbfs=-30.0)
    samples[100] = 4.0
    assert np.array_equal(Limiter(RATE_HZ).run(samples)[-RATE_HZ:], samples[-RATE_HZ:])


def test_the_order_of_summation_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries change it with the size of a block, its place in memory and the machine."""

    def backwards(signal: np.ndarray, taps: np.ndarray) -> np.ndarray:
        out = np.zeros(len(signal) - len(taps) + 1)
        for j in reversed(range(len(taps))):
            out += taps[j] * signal[j : j + len(out)]
        return out

    samples = torture(16.0)["noise that jumps in level"]
    forwards = Limiter(RATE_HZ).run(samples)
    peaks = PeakDetector().push(samples)
    ramped = Limiter(RATE_HZ)._ramped(peaks)
    for module in ("limiter", "true_peak"):
        monkeypatch.setattr(f"kokoro_lab.dsp.{module}.correlate", backwards)
    assert np.array_equal(PeakDetector().push(samples), peaks)
    assert np.array_equal(Limiter(RATE_HZ)._ramped(peaks), ramped)
    assert np.array_equal(Limiter(RATE_HZ).run(samples), forwards)


def test_as_many_samples_come_out_as_went_in_without_shift() -> None:
    for count in (0, 1, 137, 138, 5000):
        samples = noise(0.1, count / RATE_HZ)
        assert np.array_equal(Limiter(RATE_HZ).run(samples), samples)


def test_latency_is_what_it_says_and_under_6_ms() -> None:
    limiter = Limiter(RATE_HZ)
    assert limiter.push(noise(0.1, 0.05)).shape == (1200 - limiter.latency_samples,)
    assert limiter.flush().shape == (limiter.latency_samples,)
    assert limiter.latency_samples == REACH_SAMPLES + LOOK_AHEAD_SAMPLES - 1
    assert limiter.latency_samples / RATE_HZ < 0.006


def test_gain_falls_within_the_look_ahead_and_not_before() -> None:
    gain, at = gain_around_a_click()
    ringing = REACH_SAMPLES  # of the interpolated click, which is a peak as well
    assert np.all(gain[: at - LOOK_AHEAD_SAMPLES - ringing] == 1.0)
    reduction_db = -20 * np.log10(gain)
    assert reduction_db[at - LOOK_AHEAD_SAMPLES + 4] < 0.05 * reduction_db[at]
    assert reduction_db[at - LOOK_AHEAD_SAMPLES // 2] == pytest.approx(reduction_db[at] / 2, rel=0.1)
    # a quarter of the way up a raised cosine is at 9 %, of a triangle's ramp at 12.5, of a straight one at 25
    assert reduction_db[at - 3 * LOOK_AHEAD_SAMPLES // 4] < 0.12 * reduction_db[at]
    assert np.all(np.diff(gain[at - LOOK_AHEAD_SAMPLES : at]) <= 0)


def test_gain_moves_without_steps() -> None:
    gain, _ = gain_around_a_click()
    reduction = -np.log(gain)
    hann_top = 2 / (LOOK_AHEAD_SAMPLES + 1)
    assert np.abs(np.diff(reduction)).max() <= 1.01 * hann_top * reduction.max()
    bend = np.pi * hann_top / LOOK_AHEAD_SAMPLES
    assert np.abs(np.diff(reduction, 2)).max() <= 1.1 * bend * reduction.max()


def test_gain_recovers_by_the_release_time() -> None:
    gain, at = gain_around_a_click()
    for start in (at + 2 * LOOK_AHEAD_SAMPLES, at + 400):
        left = np.log(gain[start + RELEASE_SAMPLES]) / np.log(gain[start])
        assert left == pytest.approx(np.exp(-1), rel=0.001)


def test_the_release_is_the_same_an_hour_into_the_stream() -> None:
    samples = np.full(6000, 0.25, dtype=np.float32)
    samples[2000] = 8.0
    late = Limiter(RATE_HZ)
    late._clock_samples = 3600 * RATE_HZ
    np.testing.assert_allclose(late.run(samples), Limiter(RATE_HZ).run(samples), rtol=1e-5)


def test_a_smaller_peak_during_the_release_does_not_speed_it_up() -> None:
    samples = np.full(6000, 0.25, dtype=np.float32)
    samples[2000] = 8.0
    alone = Limiter(RATE_HZ).run(samples)
    samples[2300] = 1.0  # with the release, already below the ceiling
    together = Limiter(RATE_HZ).run(samples)
    kept = np.arange(6000) != 2300
    assert np.array_equal(alone[kept], together[kept])


def test_it_reports_its_deepest_reduction() -> None:
    limiter = Limiter(RATE_HZ)
    limiter.push(tone(1000, 0.5, 0.5))
    assert limiter.max_reduction_db == 0.0
    limiter.push(tone(1000, 2.0, 0.5))
    limiter.push(tone(1000, 0.5, 0.5))
    limiter.flush()
    assert limiter.max_reduction_db == pytest.approx(6.02 - CEILING_DBTP, abs=0.01)


def test_absurd_levels_do_not_raise() -> None:
    limiter = Limiter(RATE_HZ)
    limited = limiter.run(np.full(3000, 1e30, dtype=np.float32))
    assert np.isfinite(limited).all()
    assert limiter.max_reduction_db > 600


@pytest.mark.parametrize(
    "samples",
    [noise(0.3, 1.0), np.sign(noise(0.3, 1.0, seed=1)), tone(11_000, 1.0, 1.0), tone(3000, 1.0, 1.0, 45.0)],
    ids=["noise", "random signs", "11 kHz", "3 kHz"],
)
def test_the_detector_reads_as_one_long_8x_filter_does(samples: Samples) -> None:
    padded = np.concatenate([samples, np.zeros(REACH_SAMPLES, dtype=np.float32)])
    peaks = PeakDetector().push(padded)[REACH_SAMPLES:]
    taps = firwin(2 * 64 * 8 + 1, 1 / 8, window=("kaiser", 12.0))
    points = resample_poly(samples.astype(np.float64), 8, 1, window=taps, padtype="constant")
    reference = np.abs(points).reshape(-1, 8).max(axis=1)
    loud = reference > 0.3 * reference.max()
    error_db = 20 * np.log10(peaks[loud] / reference[loud])
    assert np.abs(error_db).max() < 0.03


@pytest.mark.parametrize("amplitude", [1.0, 8.0, 1e6])
def test_entered_in_the_middle_it_is_soon_the_same_to_the_last_bit(amplitude: float) -> None:
    samples = np.concatenate([amplitude * speech_like(4.0), speech_like(4.0)]).astype(np.float32)
    whole = Limiter(RATE_HZ).run(samples)
    settled = round(SETTLED_S * RATE_HZ)
    for at in (1, 1200, len(samples) // 2 - 1, len(samples) // 2 + 7000):
        rest = Limiter(RATE_HZ).run(samples[at:])
        assert np.array_equal(rest[settled:], whole[at + settled :])


def test_a_release_does_not_depend_on_where_it_is_counted_from() -> None:
    needed = np.maximum(np.random.default_rng(0).normal(-3, 2, 200_000), 0)
    whole = Limiter(RATE_HZ)._released(needed)
    for at in (1, 7_777, 100_001):
        later = Limiter(RATE_HZ)
        later._released(needed[at - 1 : at])
        parts = [later._released(part) for part in np.array_split(needed[at:], 7)]
        settled = at + round(SETTLED_S * RATE_HZ)
        assert np.array_equal(np.concatenate(parts)[settled - at :], whole[settled:])


@pytest.mark.test_all
def test_hours_of_silence_change_nothing() -> None:
    limiter, fresh = Limiter(RATE_HZ), Limiter(RATE_HZ)
    limiter._released(np.ones(1))
    for _ in range(100):
        limiter._released(np.zeros(1_000_000))
    needed = np.random.default_rng(0).random(5000)
    assert np.array_equal(limiter._released(needed), fresh._released(needed))


def test_entered_on_a_peak_it_takes_the_time_that_it_says() -> None:
    samples = np.full(3 * RATE_HZ, 0.25, dtype=np.float32)
    samples[:400] = 1e30
    whole = Limiter(RATE_HZ).run(samples)
    later = Limiter(RATE_HZ)
    assert not np.array_equal(later.run(samples[400:])[: RATE_HZ // 2], whole[400 : 400 + RATE_HZ // 2])
