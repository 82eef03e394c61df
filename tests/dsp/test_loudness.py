"""Loudness: -16 LUFS and below -1 dBTP together, wherever that can be."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from kokoro_lab.dsp import Gain, Limiter, normalising_gain_db, voice_gain_db
from kokoro_lab.dsp.limiter import TRUE_PEAK_LIMIT_DBTP
from kokoro_lab.errors import ParameterError, SynthesisError
from kokoro_lab.metrics.loudness import IntegratedLoudness, integrated_lufs, true_peak_dbtp
from tests.dsp.signals import RATE_HZ, noise, speech_like, tone, torture


def normalise_loudness(samples: np.ndarray, rate_hz: int, **options: Any) -> tuple[np.ndarray, float, float]:
    """A clip at the target loudness behind a limiter; the gain that this took, and what was limited."""
    gain_db, limited_db = normalising_gain_db([samples], rate_hz, **options)
    return Limiter(rate_hz).run(Gain(gain_db).run(samples)), gain_db, limited_db


def peaky_speech(duration_s: float = 6.0) -> np.ndarray:
    """Speech that at -16 LUFS peaks 7 dB over full scale, as the worst of Kokoro's does."""
    samples = speech_like(duration_s, -26.0, seed=4)
    at = np.arange(900, len(samples), 9000)
    samples[at] += 0.6
    return samples


@pytest.mark.parametrize("level_dbfs", [-60.0, -40.0, -20.0, 0.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_speech_of_any_level_comes_to_the_target(level_dbfs: float, seed: int) -> None:
    levelled, gain_db, limited_db = normalise_loudness(speech_like(5.0, level_dbfs, seed), RATE_HZ)
    assert integrated_lufs(levelled, RATE_HZ) == pytest.approx(-16.0, abs=0.1)
    assert true_peak_dbtp(levelled, RATE_HZ) <= TRUE_PEAK_LIMIT_DBTP
    assert gain_db == pytest.approx(-level_dbfs - 16.0, abs=3.0)
    assert 0 <= limited_db < 3


def test_the_target_is_met_even_where_the_limiter_must_work() -> None:
    samples = peaky_speech()
    gain_db = -16.0 - integrated_lufs(samples, RATE_HZ)
    assert true_peak_dbtp(Gain(gain_db).run(samples), RATE_HZ) > 4.0  # gain alone cannot do it
    levelled, used_gain_db, limited_db = normalise_loudness(samples, RATE_HZ)
    assert integrated_lufs(levelled, RATE_HZ) == pytest.approx(-16.0, abs=0.1)
    assert true_peak_dbtp(levelled, RATE_HZ) <= TRUE_PEAK_LIMIT_DBTP
    assert used_gain_db > gain_db
    assert limited_db > 5.0


def test_without_corrections_the_limiter_leaves_it_short() -> None:
    levelled, _, _ = normalise_loudness(peaky_speech(), RATE_HZ, iterations=0)
    assert integrated_lufs(levelled, RATE_HZ) < -16.1


def test_a_met_target_is_not_corrected_further(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = []

    def counting(meter: IntegratedLoudness) -> float:
        measured.append(meter)
        return lufs(meter)

    lufs = IntegratedLoudness.lufs
    monkeypatch.setattr(IntegratedLoudness, "lufs", counting)
    normalise_loudness(speech_like(4.0, -30.0), RATE_HZ)
    assert len(measured) == 2  # before and after


@pytest.mark.parametrize("name", torture(1.0))
def test_no_true_peak_is_over_the_limit_even_where_the_target_cannot_be_met(name: str) -> None:
    levelled, _, limited_db = normalise_loudness(torture(1.0, duration_s=3.0)[name], RATE_HZ)
    assert true_peak_dbtp(levelled, RATE_HZ) <= TRUE_PEAK_LIMIT_DBTP
    assert integrated_lufs(levelled, RATE_HZ) <= -15.9
    assert limited_db < 45  # it does not pump up the noise between clicks for ever


def test_the_nearest_attempt_is_given_if_a_later_one_is_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([-30.0, -18.0, -19.0])  # at first; with 14 dB; with 2 dB more, which must not be taken
    monkeypatch.setattr(IntegratedLoudness, "lufs", lambda meter: next(readings))
    samples = speech_like(1.0)
    levelled, gain_db, _ = normalise_loudness(samples, RATE_HZ)
    assert gain_db == 14.0
    assert np.array_equal(levelled, Limiter(RATE_HZ).run(Gain(14.0).run(samples)))


def test_another_target() -> None:
    levelled, _, _ = normalise_loudness(speech_like(4.0), RATE_HZ, target_lufs=-23.0)
    assert integrated_lufs(levelled, RATE_HZ) == pytest.approx(-23.0, abs=0.1)


@pytest.mark.parametrize("duration_s", [0.41, 1.0, 2.5])
def test_clips_under_3_s_are_measured_as_they_are(duration_s: float) -> None:
    levelled, _, _ = normalise_loudness(tone(1000, 0.05, duration_s), RATE_HZ)
    assert integrated_lufs(levelled, RATE_HZ) == pytest.approx(-16.0, abs=0.1)


@pytest.mark.parametrize("duration_s", [0.02, 0.1, 0.39])
def test_clips_under_a_block_are_as_loud_as_if_they_went_on(duration_s: float) -> None:
    """An excerpt of a steady sound gets the gain of the whole, within the excerpt's own scatter."""
    _, whole_db, _ = normalise_loudness(tone(1000, 0.05, 5.0), RATE_HZ)
    levelled, gain_db, _ = normalise_loudness(tone(1000, 0.05, duration_s), RATE_HZ)
    assert len(levelled) == round(duration_s * RATE_HZ)
    assert gain_db == pytest.approx(whole_db, abs=0.1)


@pytest.mark.parametrize(
    "samples",
    [np.zeros(RATE_HZ, np.float32), noise(1e-5, 1.0), np.zeros(10, np.float32), np.zeros(0, np.float32)],
    ids=["zeros", "floor", "few zeros", "nothing"],
)
def test_silence_cannot_be_made_loud(samples: np.ndarray) -> None:
    with pytest.raises(SynthesisError, match="silent"):
        normalise_loudness(samples, RATE_HZ)


def test_samples_that_are_not_finite_are_refused() -> None:
    samples = speech_like(1.0)
    samples[1234] = np.nan
    with pytest.raises(SynthesisError, match=r"clip .* first at 1234"):
        normalise_loudness(samples, RATE_HZ)


def test_the_input_is_not_changed() -> None:
    samples = speech_like(1.0)
    before = samples.copy()
    normalise_loudness(samples, RATE_HZ)
    assert np.array_equal(samples, before)


def test_a_voices_gain_is_the_difference() -> None:
    assert voice_gain_db(-21.5) == 5.5
    assert voice_gain_db(-21.5, target_lufs=-23.0) == -1.5
    with pytest.raises(ParameterError, match="voice_lufs"):
        voice_gain_db(float("-inf"))
    with pytest.raises(ParameterError, match="target_lufs"):
        voice_gain_db(-20.0, float("nan"))


def test_gain_is_in_decibels() -> None:
    samples = speech_like(0.1)
    assert np.array_equal(Gain(0.0).run(samples), samples)
    np.testing.assert_allclose(Gain(-20.0).run(samples), samples / 10, rtol=1e-6)
    with pytest.raises(ParameterError, match="finite"):
        Gain(float("inf"))


def test_finding_the_gain_takes_no_copy_of_the_clip() -> None:
    blocks = [speech_like(2.0)] * 60  # two minutes are 11.5 MB
    normalising_gain_db(blocks[:2], RATE_HZ)  # what is imported late is no part of it
    tracemalloc.start()
    try:
        normalising_gain_db(blocks, RATE_HZ)
        assert tracemalloc.get_traced_memory()[1] < 8e6  # of a block at a time, in float64
    finally:
        tracemalloc.stop()
