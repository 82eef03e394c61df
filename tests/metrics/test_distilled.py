"""DistillMOS: the published network, read and run without the library that wrote it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.gates.measures import rater
from kokoro_lab.metrics import distilled
from kokoro_lab.metrics.distilled import PART_SAMPLES, parts, spectrum

RATE_HZ = 24_000
PLAIN, THRICE = 4.5464, 4.5003


@pytest.fixture(scope="module")
def speech() -> np.ndarray:
    samples, rate_hz = soundfile.read(Path(__file__).with_name("speech.flac"), dtype="float32")
    assert rate_hz == RATE_HZ
    return samples


@pytest.mark.model
def test_it_rates_as_the_package_does(speech: np.ndarray) -> None:
    """These are the ratings by distillmos 0.9.1 with torch 2.13.0, of the same samples at 16 kHz."""
    assert rater().opinion(speech, RATE_HZ) == pytest.approx(PLAIN, abs=2e-3)
    assert rater().opinion(np.tile(speech, 3), RATE_HZ) == pytest.approx(THRICE, abs=2e-3)
    assert rater().opinion(speech * np.float32(0.1), RATE_HZ) == pytest.approx(PLAIN, abs=2e-3)


@pytest.mark.model
@pytest.mark.parametrize(
    "samples", [np.zeros(0, np.float32), np.array([0.0, np.nan], np.float32), np.zeros((2, 9), np.float32)]
)
def test_what_cannot_be_heard_is_refused(samples: np.ndarray) -> None:
    with pytest.raises(ParameterError, match="cannot be measured"):
        rater().opinion(samples, RATE_HZ)


@pytest.mark.parametrize(
    ("length", "starts"),
    [(1, [0]), (PART_SAMPLES, [0]), (PART_SAMPLES + 1, [0, 1]), (PART_SAMPLES + 32_000, [0, 16_000, 32_000])],
)
def test_a_recording_is_heard_in_parts_of_one_length(length: int, starts: list[int]) -> None:
    found = parts(np.arange(1, length + 1, dtype=np.float32))
    assert [len(part) for part in found] == [PART_SAMPLES] * len(starts)
    assert [part[0] for part in found] == [start + 1 for start in starts]
    assert np.count_nonzero(found[0]) == min(length, PART_SAMPLES), "a short one ends in silence"


def test_the_spectrum_keeps_phases_and_compresses_magnitudes() -> None:
    tone = np.sin(2 * np.pi * 1000 * np.arange(PART_SAMPLES) / 16_000).astype(np.float32)
    found = spectrum(tone)
    assert found.shape == (2, distilled.BINS, distilled.PART_FRAMES)
    magnitude = np.hypot(*found[:, :, 100])
    assert magnitude.argmax() == 20  # bins of 50 Hz
    assert magnitude.max() == pytest.approx((distilled.WINDOW_SAMPLES / 4) ** 0.3, rel=1e-3)
    np.testing.assert_allclose(spectrum(tone / 2), found, atol=1e-3)
    assert np.abs(spectrum(-tone) + found).max() < 1e-3, "the phase is turned"
