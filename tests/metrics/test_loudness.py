"""The loudness meter against libebur128, against the definitions, and against bad input."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pyebur128
import pytest
from pyebur128 import MeasurementMode, R128State
from scipy.signal import firwin, resample_poly

from kokoro_lab.errors import ParameterError
from kokoro_lab.metrics import loudness
from tests.dsp.signals import RATE_HZ, noise, speech_like, tone

METRICS: dict[str, Callable] = {
    name: getattr(loudness, name)
    for name in (
        "integrated_lufs",
        "momentary_lufs",
        "short_term_lufs",
        "loudness_range_lu",
        "true_peak_dbtp",
        "sample_peak_dbfs",
    )
}


def oracle(samples: np.ndarray, rate: int, mode: MeasurementMode) -> R128State:
    channels = 1 if samples.ndim == 1 else samples.shape[1]
    state = R128State(channels, rate, mode)
    # libebur128 takes a single channel for left, as we do
    state.add_frames(np.ascontiguousarray(samples.reshape(-1)), len(samples))
    return state


def varying_noise(count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    level = np.repeat(10 ** rng.uniform(-2, 0, count // 1000 + 1), 1000)[:count]
    return 0.1 * level * rng.standard_normal(count)


@pytest.mark.parametrize("rate", [22_050, 24_000, 44_100, 48_000])
@pytest.mark.parametrize("duration_s", [0.4, 0.449, 0.451, 0.49999, 1.27, 3.3333, 9.0007])
def test_integrated_loudness_is_libebur128s_at_any_length(rate: int, duration_s: float) -> None:
    samples = varying_noise(round(duration_s * rate))
    expected = pyebur128.get_loudness_global(oracle(samples, rate, MeasurementMode.MODE_I))
    assert loudness.integrated_lufs(samples, rate) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_integrated_loudness_of_speech_is_libebur128s(seed: int) -> None:
    samples = speech_like(6.0, seed=seed)
    expected = pyebur128.get_loudness_global(oracle(samples, RATE_HZ, MeasurementMode.MODE_I))
    assert loudness.integrated_lufs(samples, RATE_HZ) == pytest.approx(expected, abs=1e-6)


def test_integrated_loudness_of_two_channels_is_libebur128s() -> None:
    samples = np.stack([varying_noise(96_000, 1), varying_noise(96_000, 2)], axis=1)
    expected = pyebur128.get_loudness_global(oracle(samples, RATE_HZ, MeasurementMode.MODE_I))
    assert loudness.integrated_lufs(samples, RATE_HZ) == pytest.approx(expected, abs=1e-6)


def test_momentary_and_short_term_loudness_are_libebur128s_at_every_reading() -> None:
    samples = speech_like(5.0)
    momentary = loudness.momentary_lufs(samples, RATE_HZ)
    short_term = loudness.short_term_lufs(samples, RATE_HZ)
    assert momentary.shape == (47,)
    assert short_term.shape == (21,)
    state = R128State(1, RATE_HZ, MeasurementMode.MODE_S)
    hop = RATE_HZ // 10
    for step in range(50):
        state.add_frames(np.ascontiguousarray(samples[step * hop : (step + 1) * hop]), hop)
        if step >= 3:
            expected = pyebur128.get_loudness_momentary(state)
            assert momentary[step - 3] == pytest.approx(expected, abs=1e-6)
        if step >= 29:
            expected = pyebur128.get_loudness_shortterm(state)
            assert short_term[step - 29] == pytest.approx(expected, abs=1e-6)


def test_windows_are_a_hop_apart_and_whole() -> None:
    samples = np.concatenate([np.zeros(RATE_HZ), tone(1000, 0.1, 0.4), np.zeros(RATE_HZ)])
    for hop_s, count in ((0.01, 201), (0.1, 21), (0.4, 6)):
        readings = loudness.momentary_lufs(samples, RATE_HZ, hop_s)
        assert readings.shape == (count,)
    fine = loudness.momentary_lufs(samples, RATE_HZ, 0.01)
    assert np.argmax(fine) == 100
    assert fine[0] == -np.inf


def test_loudness_range_is_near_libebur128s() -> None:
    levels = (-20, -32, -26, -40)
    samples = np.concatenate([speech_like(20.0, level, seed) for seed, level in enumerate(levels)])
    expected = pyebur128.get_loudness_range(oracle(samples, RATE_HZ, MeasurementMode.MODE_LRA))
    # it reads once a second, we ten times
    assert loudness.loudness_range_lu(samples, RATE_HZ) == pytest.approx(expected, abs=1.0)
    assert expected > 8


def test_loudness_range_ignores_silence_and_what_is_20_lu_below() -> None:
    steady = tone(1000, 0.1, 10.0)
    faint = tone(1000, 0.001, 10.0)
    quiet = np.concatenate([steady, np.zeros(10 * RATE_HZ, np.float32)])
    assert loudness.loudness_range_lu(steady, RATE_HZ) == pytest.approx(0.0, abs=0.01)
    assert loudness.loudness_range_lu(np.concatenate([steady] * 5 + [faint]), RATE_HZ) < 1.0
    assert loudness.loudness_range_lu(quiet, RATE_HZ) < 20.0
    assert np.isnan(loudness.loudness_range_lu(np.zeros(4 * RATE_HZ), RATE_HZ))


def test_one_channel_counts_once() -> None:
    mono = speech_like(4.0)
    dual = np.stack([mono, mono], axis=1)
    difference = loudness.integrated_lufs(dual, RATE_HZ) - loudness.integrated_lufs(mono, RATE_HZ)
    assert difference == pytest.approx(3.01, abs=0.001)
    column = loudness.integrated_lufs(mono[:, None], RATE_HZ)
    assert column == loudness.integrated_lufs(mono, RATE_HZ)


def test_a_full_scale_sine_at_997_hz_reads_minus_3_01() -> None:
    """The calibration of BS.1770-5, Annex 1."""
    assert loudness.integrated_lufs(tone(997, 1.0, 5.0), RATE_HZ) == pytest.approx(-3.01, abs=0.05)


def test_silence_is_minus_infinity_and_warns_of_nothing() -> None:
    silent = np.zeros(4 * RATE_HZ, dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert loudness.integrated_lufs(silent, RATE_HZ) == -np.inf
        assert loudness.integrated_lufs(noise(1e-5, 1.0), RATE_HZ) == -np.inf
        assert np.all(loudness.momentary_lufs(silent, RATE_HZ) == -np.inf)
        assert np.all(loudness.short_term_lufs(silent, RATE_HZ) == -np.inf)
        assert loudness.true_peak_dbtp(silent, RATE_HZ) == -np.inf
        assert loudness.sample_peak_dbfs(silent, RATE_HZ) == -np.inf


def test_true_peak_is_that_of_one_long_oversampling() -> None:
    samples = noise(0.3, 12.0)  # longer than what is oversampled at a time
    taps = firwin(1025, 1 / 8, window=("kaiser", 12.0))
    points = resample_poly(samples.astype(np.float64), 8, 1, window=taps, padtype="constant")
    expected = 20 * np.log10(np.abs(points).max())
    assert loudness.true_peak_dbtp(samples, RATE_HZ) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("at", [510, 511, 512, 513, 5, 2_600])
def test_true_peak_finds_a_peak_wherever_it_is(at: int) -> None:
    samples = np.zeros(2_610, dtype=np.float32)
    samples[at : at + 2] = 0.5  # peaks between the two
    assert loudness.true_peak_dbtp(samples, RATE_HZ) == pytest.approx(20 * np.log10(0.5 * 4 / np.pi), abs=0.2)


def test_true_peak_reads_what_sample_peak_misses() -> None:
    between = tone(RATE_HZ / 4, 1.0, 0.5, degrees=45.0) * np.hanning(12_000)
    assert loudness.sample_peak_dbfs(between, RATE_HZ) == pytest.approx(-3.01, abs=0.01)
    assert loudness.true_peak_dbtp(between, RATE_HZ) == pytest.approx(0.0, abs=0.01)


def test_peaks_are_those_of_the_loudest_channel() -> None:
    stereo = np.zeros((1000, 2))
    stereo[500] = 0.1, -0.5
    assert loudness.sample_peak_dbfs(stereo, RATE_HZ) == pytest.approx(-6.02, abs=0.01)
    assert loudness.true_peak_dbtp(stereo, RATE_HZ) == pytest.approx(-6.02, abs=0.01)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(
    ("samples", "rate", "field"),
    [
        (np.zeros(80_000, np.int16), RATE_HZ, "samples"),
        (np.zeros((80_000, 6)), RATE_HZ, "samples"),
        (np.zeros((80_000, 0)), RATE_HZ, "samples"),
        (np.zeros((80_000, 1, 1)), RATE_HZ, "samples"),
        (np.array(0.5), RATE_HZ, "samples"),
        (np.zeros(0), RATE_HZ, "samples"),
        (np.full(80_000, np.nan), RATE_HZ, "samples"),
        (np.zeros(80_000), 0, "sample_rate"),
    ],
    ids=["int16", "six channels", "no channels", "3-D", "0-D", "empty", "NaN", "no rate"],
)
def test_what_cannot_be_measured_is_refused(name: str, samples: np.ndarray, rate: int, field: str) -> None:
    with pytest.raises(ParameterError) as caught:
        METRICS[name](samples, rate)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("name", "shortest"),
    [
        ("integrated_lufs", 9600),
        ("momentary_lufs", 9600),
        ("short_term_lufs", 72_000),
        ("loudness_range_lu", 72_000),
        ("true_peak_dbtp", 1),
        ("sample_peak_dbfs", 1),
    ],
)
def test_what_is_too_short_is_refused(name: str, shortest: int) -> None:
    samples = noise(0.1, shortest / RATE_HZ)
    METRICS[name](samples, RATE_HZ)
    with pytest.raises(ParameterError, match="too short"):
        METRICS[name](samples[1:], RATE_HZ)


@pytest.mark.parametrize("hop_s", [0.0, 0.0005, 0.5, float("nan")])
def test_a_hop_out_of_range_is_refused(hop_s: float) -> None:
    with pytest.raises(ParameterError) as caught:
        loudness.momentary_lufs(noise(0.1, 1.0), RATE_HZ, hop_s)
    assert caught.value.field == "hop_s"


def test_the_input_is_not_changed() -> None:
    samples = speech_like(4.0)
    before = samples.copy()
    for measure in METRICS.values():
        measure(samples, RATE_HZ)
    assert np.array_equal(samples, before)


@pytest.mark.parametrize("rate", [8_000, 22_050, 24_000, 44_100, 48_000])
@pytest.mark.parametrize("duration_s", [0.4, 0.55, 3.0, 9.77])
@pytest.mark.parametrize("block", [1_000, 7_919, 10**9])
def test_in_blocks_and_without_scipy_it_is_the_same(rate: int, duration_s: float, block: int) -> None:
    samples = varying_noise(round(duration_s * rate)).astype(np.float32)
    samples[len(samples) // 2 :] *= np.float32(1e-3)  # some are below the relative gate
    meter = loudness.IntegratedLoudness(rate)
    for start in range(0, len(samples), block):
        meter.push(samples[start : start + block])
    assert meter.lufs() == pytest.approx(loudness.integrated_lufs(samples, rate), abs=1e-9)


def test_silence_in_blocks_has_no_loudness() -> None:
    meter = loudness.IntegratedLoudness(RATE_HZ)
    assert meter.lufs() == -np.inf
    meter.push(np.zeros(RATE_HZ, np.float32))
    assert meter.lufs() == -np.inf
