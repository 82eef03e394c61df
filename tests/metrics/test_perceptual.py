"""The perceptual metrics rank damages as ears do, and refuse what they cannot compare."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pesq
import pytest
import soundfile

from kokoro_lab.errors import ParameterError
from kokoro_lab.metrics.perceptual import (
    PESQ_CEILING,
    PESQ_LOWEST,
    log_mel_distance_db,
    log_spectral_distance_db,
    pesq_wb,
    signal_to_difference_db,
    stoi,
)

RATE = 24_000
METRICS: list[Callable[..., float]] = [pesq_wb, stoi, log_spectral_distance_db, log_mel_distance_db]


@pytest.fixture(scope="module")
def speech() -> np.ndarray:
    return recording("speech")


def recording(name: str) -> np.ndarray:
    samples, rate = soundfile.read(Path(__file__).parent / f"{name}.flac", dtype="float32")
    assert rate == RATE
    return samples


def noisy(speech: np.ndarray, snr_db: float) -> np.ndarray:
    noise = np.random.default_rng(1).normal(size=len(speech)).astype(np.float32)
    gain = np.sqrt((speech**2).mean() / (noise**2).mean()) * 10 ** (-snr_db / 20)
    return (speech + noise * gain).astype(np.float32)


def test_speech_against_itself_is_perfect(speech: np.ndarray) -> None:
    assert pesq_wb(speech, speech, RATE) == pytest.approx(PESQ_CEILING, abs=0.001)
    assert stoi(speech, speech, RATE) == pytest.approx(1)
    assert log_spectral_distance_db(speech, speech, RATE) == 0
    assert log_mel_distance_db(speech, speech, RATE) == 0
    assert signal_to_difference_db(speech, speech) == float("inf")


def test_a_delay_that_pesq_imagines_decides_nothing() -> None:
    """An utterance by two builds of int8, 25 dB apart all along: P.862 alone reads 3.87 at its very start."""
    reference, candidate = recording("misaligned_reference"), recording("misaligned_candidate")
    assert signal_to_difference_db(reference, candidate) > 20
    for start in range(0, 960, 96):
        assert pesq_wb(reference[start:], candidate[start:], RATE) > 4.55, start


def test_a_part_that_comes_late_is_still_worse(speech: np.ndarray) -> None:
    late = speech.copy()
    half = len(speech) // 2
    late[half + 120 :] = speech[half:-120]  # 5 ms
    assert pesq_wb(speech, late, RATE) < 4.5


def test_more_noise_is_worse(speech: np.ndarray) -> None:
    levels = (40.0, 20.0, 5.0)
    quality = [pesq_wb(speech, noisy(speech, snr), RATE) for snr in levels]
    assert quality == sorted(quality, reverse=True)
    assert quality[0] > 3.5
    assert quality[1] < 3
    clear = [stoi(speech, noisy(speech, snr), RATE) for snr in levels]
    assert clear == sorted(clear, reverse=True)
    distance = [log_spectral_distance_db(speech, noisy(speech, snr), RATE) for snr in levels]
    assert distance == sorted(distance)
    heard = [log_mel_distance_db(speech, noisy(speech, snr), RATE) for snr in levels]
    assert heard == sorted(heard)
    for snr in levels:
        assert signal_to_difference_db(speech, noisy(speech, snr)) == pytest.approx(snr, abs=0.01)


def test_destroyed_speech_has_the_lowest_pesq(speech: np.ndarray) -> None:
    hum = np.sin(2 * np.pi * 5 * np.arange(len(speech)) / RATE).astype(np.float32)
    assert pesq_wb(hum, speech, RATE) == PESQ_LOWEST, "P.862 finds no utterance in this pair"
    with pytest.raises(pesq.NoUtterancesError), np.errstate(invalid="ignore"):
        pesq_wb(np.zeros_like(speech), speech, RATE)


def test_a_level_is_a_distance_of_as_many_db(speech: np.ndarray) -> None:
    loud = speech[np.abs(speech) > 0.01]  # no silence, which the floor takes out
    assert log_mel_distance_db(loud, loud * np.float32(10 ** (2 / 20)), RATE) == pytest.approx(2, abs=0.05)


def test_a_gap_and_a_shift_are_noticed(speech: np.ndarray) -> None:
    gap = speech.copy()
    gap[RATE // 2 : RATE // 2 + RATE // 10] = 0
    assert pesq_wb(speech, gap, RATE) < 4
    assert stoi(speech, np.roll(speech, RATE // 10), RATE) < 0.7


@pytest.mark.parametrize("metric", METRICS)
def test_what_cannot_be_compared_is_refused(metric: Callable[..., float], speech: np.ndarray) -> None:
    with pytest.raises(ParameterError, match="length"):
        metric(speech, speech[:-1], RATE)
    with pytest.raises(ParameterError, match="short"):
        metric(speech[:5000], speech[:5000], RATE)
    broken = speech.copy()
    broken[7] = np.nan
    with pytest.raises(ParameterError, match="finite"):
        metric(speech, broken, RATE)
