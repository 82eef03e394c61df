"""Resampling: exact lengths, no shift, no tail lost, nothing added."""

from __future__ import annotations

import numpy as np
import pytest

from kokoro_lab.dsp import RATES_HZ, Resampler
from kokoro_lab.errors import ParameterError
from tests.dsp.signals import RATE_HZ, noise


def sine(rate_hz: int, duration_s: float = 0.5, frequency_hz: float = 1000.0) -> np.ndarray:
    t = np.arange(round(duration_s * rate_hz)) / rate_hz
    return (0.5 * np.sin(2 * np.pi * frequency_hz * t)).astype(np.float32)


@pytest.mark.parametrize("to_hz", RATES_HZ)
@pytest.mark.parametrize("from_hz", RATES_HZ)
def test_a_sine_is_the_same_sine_at_the_other_rate(from_hz: int, to_hz: int) -> None:
    resampled, expected = Resampler(from_hz, to_hz).run(sine(from_hz)), sine(to_hz)
    assert resampled.dtype == np.float32
    assert len(resampled) == len(expected)
    inner = slice(to_hz // 10, -to_hz // 10)  # the sine starts and ends abruptly, which rings
    assert np.abs(resampled[inner] - expected[inner]).max() < 1e-6


@pytest.mark.parametrize("to_hz", RATES_HZ)
@pytest.mark.parametrize("from_hz", RATES_HZ)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 999, 24_001])
def test_the_length_is_exact(from_hz: int, to_hz: int, count: int) -> None:
    resampled = Resampler(from_hz, to_hz).run(np.ones(count, dtype=np.float32))
    assert len(resampled) == int(np.floor(count * to_hz / from_hz + 0.5))


def test_the_tail_is_not_lost() -> None:
    samples = np.zeros(6000, dtype=np.float32)
    samples[5900:] = 0.5
    resampled = Resampler(RATE_HZ, 48_000).run(samples)
    assert resampled[11_900:11_990] == pytest.approx(0.5, abs=0.06)


def test_equal_rates_change_nothing() -> None:
    samples = noise(1.0, 0.3)
    assert np.array_equal(Resampler(RATE_HZ, RATE_HZ).run(samples), samples)


def test_going_up_adds_nothing_above_the_band() -> None:
    resampled = Resampler(RATE_HZ, 48_000).run(noise(0.1, 2.0))[4800:-4800]
    power = np.abs(np.fft.rfft(resampled * np.hanning(len(resampled)))) ** 2
    above = power[len(power) * 105 // 200 :]
    assert 10 * np.log10(above.max() / power.mean()) < -110


def test_going_down_folds_nothing_back() -> None:
    resampled = Resampler(48_000, RATE_HZ).run(sine(48_000, frequency_hz=13_500.0))
    assert np.abs(resampled[2400:-2400]).max() < 1e-6


@pytest.mark.parametrize(("to_hz", "lag_s"), [(22_050, 0.080), (44_100, 0.038), (48_000, 0.038)])
def test_output_lags_no_more_than_it_says(to_hz: int, lag_s: float) -> None:
    resampler, given = Resampler(RATE_HZ, to_hz), 0
    for taken in range(24, 24_000, 24):
        given += len(resampler.push(np.zeros(24, dtype=np.float32)))
        assert taken / RATE_HZ - given / to_hz <= lag_s


@pytest.mark.parametrize(("from_hz", "to_hz"), [(24_000, 16_000), (16_000, 24_000), (24_000, 0)])
def test_another_rate_is_refused_with_those_that_are_not(from_hz: int, to_hz: int) -> None:
    with pytest.raises(ParameterError) as caught:
        Resampler(from_hz, to_hz)
    assert caught.value.field == "sample_rate"
    assert caught.value.value in (16_000, 0)
    assert caught.value.allowed == "22050, 24000, 44100, 48000"
