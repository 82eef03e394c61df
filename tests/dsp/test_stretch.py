"""A stretch: as long as asked to the sample, at the same pitch, the same however it is cut."""

from __future__ import annotations

import numpy as np
import pytest

from kokoro_lab.dsp.stretch import SEARCH_S, STEP_S, TimeStretch
from kokoro_lab.errors import ParameterError

RATE_HZ = 24_000


def buzz(hz: float, duration_s: float, rate_hz: int = RATE_HZ) -> np.ndarray:
    """A harmonic tone, as a voice is one."""
    time_s = np.arange(round(duration_s * rate_hz)) / rate_hz
    return sum(0.1 / k * np.sin(2 * np.pi * k * hz * time_s) for k in range(1, 9)).astype(np.float32)


def pitch_hz(samples: np.ndarray, rate_hz: int = RATE_HZ) -> float:
    """Of a harmonic tone: the lag at which it is most like itself."""
    middle = samples[len(samples) // 4 : -(len(samples) // 4)].astype(np.float64)
    likeness = np.fft.irfft(np.abs(np.fft.rfft(middle, 2 * len(middle))) ** 2)
    lags = np.arange(rate_hz // 400, rate_hz // 60)
    return rate_hz / float(lags[np.argmax(likeness[lags])])


@pytest.mark.parametrize("stretch", [0.25, 0.375, 0.5, 0.75, 0.99, 1.0, 1.4, 2.8, 4.0])
@pytest.mark.parametrize("count", [0, 1, 359, 360, 10_000, 48_001])
def test_the_length_is_right_to_the_sample(stretch: float, count: int) -> None:
    samples = np.random.default_rng(0).uniform(-0.5, 0.5, count).astype(np.float32)
    assert len(TimeStretch(stretch, RATE_HZ).run(samples)) == round(stretch * count)


@pytest.mark.parametrize("hz", [75.0, 120.0, 210.0, 330.0])
@pytest.mark.parametrize("stretch", [0.375, 0.75, 1.4, 2.8])
def test_the_pitch_and_the_level_stay(hz: float, stretch: float) -> None:
    samples = buzz(hz, 2.0)
    stretched = TimeStretch(stretch, RATE_HZ).run(samples)
    assert pitch_hz(stretched) == pytest.approx(pitch_hz(samples), rel=0.02)
    within = stretched[2000:-2000]
    assert np.std(within) == pytest.approx(np.std(samples), rel=0.05)
    assert np.abs(np.diff(within)).max() < 1.5 * np.abs(np.diff(samples)).max(), "no click"


def test_a_sound_comes_when_it_should() -> None:
    samples = np.zeros(4 * RATE_HZ, np.float32)
    samples[RATE_HZ : 2 * RATE_HZ] = buzz(150.0, 1.0)
    for stretch in (0.375, 2.8):
        loud = np.flatnonzero(np.abs(TimeStretch(stretch, RATE_HZ).run(samples)) > 0.01)
        within = (SEARCH_S + STEP_S) * RATE_HZ * max(1.0, stretch)
        assert abs(loud[0] - stretch * RATE_HZ) < within
        assert abs(loud[-1] - stretch * 2 * RATE_HZ) < within


def test_silence_stays_silence_and_the_beginning_is_not_touched() -> None:
    assert not TimeStretch(0.5, RATE_HZ).run(np.zeros(5000, np.float32)).any()
    samples = buzz(200.0, 0.5)
    step = round(STEP_S * RATE_HZ)
    assert np.array_equal(TimeStretch(1.7, RATE_HZ).run(samples)[:step], samples[:step])


@pytest.mark.parametrize("stretch", [0.4, 2.5])
def test_what_comes_out_does_not_depend_on_the_blocks_and_little_is_held(stretch: float) -> None:
    random = np.random.default_rng(1)
    samples = buzz(130.0, 1.5) + random.normal(0, 0.02, round(1.5 * RATE_HZ)).astype(np.float32)
    whole = TimeStretch(stretch, RATE_HZ).run(samples)
    cut = TimeStretch(stretch, RATE_HZ)
    blocks, given, came = [], 0, 0
    while given < len(samples):
        size = int(random.integers(1, 900))
        block = cut.push(samples[given : given + size])
        given, came = min(given + size, len(samples)), came + len(block)
        blocks.append(block)
        held_s = (given - came / stretch) / RATE_HZ
        assert held_s <= 2 * STEP_S + 2 * SEARCH_S + STEP_S / stretch
    assert np.array_equal(np.concatenate([*blocks, cut.flush()]), whole)


@pytest.mark.parametrize("stretch", [0.0, 0.2, 4.1, float("nan")])
def test_what_cannot_be_is_refused(stretch: float) -> None:
    with pytest.raises(ParameterError, match="times as long"):
        TimeStretch(stretch, RATE_HZ)
