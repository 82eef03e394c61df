"""Wrong samples and splices are found, and what a voice does by itself is not taken for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from kokoro_lab.datatypes import SAMPLE_RATE_HZ as RATE_HZ
from kokoro_lab.datatypes import Samples
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.gates import damages
from kokoro_lab.lab.gates.seams import CLICK_SCORE_HIGH, SPLICE_SCORE_HIGH
from kokoro_lab.metrics.defects import click_score, splice_score


def recording(name: str) -> Samples:
    samples, rate_hz = soundfile.read(Path(__file__).parent / name, dtype="float32")
    assert rate_hz == RATE_HZ
    return np.asarray(samples[: 4 * RATE_HZ])


@pytest.fixture(scope="module", params=["speech.flac", "closures.flac"])
def speech(request: pytest.FixtureRequest) -> Samples:
    """`closures.flac` is half a second around each of four glottal closures (two of af_nicole, af_heart,
    am_puck) that are bent three times as much as all else within 2 ms on both sides, as a click is."""
    return recording(request.param)


@pytest.fixture(scope="module")
def breath() -> Samples:
    return (0.02 * np.random.default_rng(2).standard_normal(RATE_HZ)).astype(np.float32)


def test_speech_has_none(speech: Samples) -> None:
    assert click_score(speech, RATE_HZ) < CLICK_SCORE_HIGH
    assert splice_score(speech, RATE_HZ) < SPLICE_SCORE_HIGH


def test_neither_has_breath(breath: Samples) -> None:
    assert click_score(breath, RATE_HZ) < 2.5
    assert splice_score(breath, RATE_HZ) < 2.5


def test_a_wrong_sample_is_found_where_speech_is_loudest(speech: Samples) -> None:
    assert click_score(damages.click(speech), RATE_HZ) > CLICK_SCORE_HIGH


def test_a_pulse_that_rings_is_no_click(breath: Samples) -> None:
    """The same pulse, added to what is heard or to what excites the vocal tract."""
    from scipy.signal import lfilter

    excitation = 0.002 * np.random.default_rng(3).standard_normal(RATE_HZ)
    pulse = np.zeros(RATE_HZ)
    pulse[RATE_HZ // 2] = 0.3
    formant = [1.0, -2 * 0.97 * np.cos(2 * np.pi * 700 / RATE_HZ), 0.97**2]
    rung = lfilter([1.0], formant, excitation + pulse).astype(np.float32)
    added = (lfilter([1.0], formant, excitation) + pulse).astype(np.float32)
    assert click_score(rung, RATE_HZ) < CLICK_SCORE_HIGH < click_score(added, RATE_HZ)


def test_a_splice_is_found_and_a_bend_is_none() -> None:
    time_s = np.arange(RATE_HZ) / RATE_HZ
    vowel = 0.3 * np.sin(2 * np.pi * 200 * time_s) + 0.003 * np.random.default_rng(4).standard_normal(RATE_HZ)
    jumps = np.where(time_s < 0.5, vowel, np.roll(vowel, 30)).astype(np.float32)
    bends = (vowel + 0.1 * np.maximum(time_s - 0.5, 0) * RATE_HZ / 20 * (time_s < 0.5 + 20 / RATE_HZ)).astype(
        np.float32
    )
    assert splice_score(vowel.astype(np.float32), RATE_HZ) < SPLICE_SCORE_HIGH
    assert splice_score(jumps, RATE_HZ) > SPLICE_SCORE_HIGH
    assert splice_score(bends[: RATE_HZ // 2 + 10], RATE_HZ) < SPLICE_SCORE_HIGH


def test_silence_around_changes_nothing(speech: Samples) -> None:
    damaged = damages.click(speech)
    padded = np.pad(damaged, RATE_HZ)
    for score in (click_score, splice_score):
        assert score(padded, RATE_HZ) == pytest.approx(score(damaged, RATE_HZ))


def test_rounding_in_silence_is_nothing() -> None:
    silence = np.zeros(RATE_HZ, np.float32)
    assert click_score(silence, RATE_HZ) == splice_score(silence, RATE_HZ) == 0
    silence[RATE_HZ // 2] = 1 / 32768
    assert click_score(silence, RATE_HZ) < 1
    assert splice_score(silence, RATE_HZ) < 1


@pytest.mark.parametrize("score", [click_score, splice_score])
def test_what_cannot_be_measured_is_refused(score: object) -> None:
    assert callable(score)
    with pytest.raises(ParameterError, match="too short"):
        score(np.zeros(100, np.float32), RATE_HZ)
    with pytest.raises(ParameterError, match="one channel"):
        score(np.zeros((RATE_HZ, 2), np.float32), RATE_HZ)
    with pytest.raises(ParameterError, match="not finite"):
        score(np.full(RATE_HZ, np.nan, np.float32), RATE_HZ)
