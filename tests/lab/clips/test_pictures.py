"""A picture shows what is heard where it is, and is small however long the sound is."""

from __future__ import annotations

import io
from base64 import b64decode

import numpy as np
import pytest
from PIL import Image

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.lab.clips.pictures import (
    COLUMNS_MOST,
    ROWS,
    TICKS_HZ,
    height_of,
    spectrogram_png,
    waveform_path,
)
from tests.lab.clips.planted import tone


def pixels(samples: Samples) -> np.ndarray:
    """Brightness by row, 0 Hz first, and column."""
    kind, _, data = spectrogram_png(samples).partition(",")
    assert kind == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(b64decode(data))).convert("L"))[::-1]


@pytest.mark.parametrize("hz", TICKS_HZ)
def test_a_tone_is_brightest_at_the_height_of_its_tick(hz: int) -> None:
    brightest = int(pixels(tone(hz=hz)).mean(axis=1).argmax())
    assert brightest == pytest.approx(height_of(hz) * ROWS - 0.5, abs=1)


def test_a_click_of_one_sample_in_a_minute_is_seen_in_both_pictures() -> None:
    samples = np.zeros(60 * SAMPLE_RATE_HZ, np.float32)
    samples[0], samples[20 * SAMPLE_RATE_HZ] = 0.9, 0.9
    seen = pixels(samples).max(axis=0)
    assert list(np.flatnonzero(seen == seen.max())) == [0, COLUMNS_MOST // 3]
    marks = [mark for mark in waveform_path(samples).split("M") if mark and not mark.endswith(" 0V1")]
    assert marks == ["0 -90V1", f"{COLUMNS_MOST // 3} -90V1"]


def test_noise_of_a_minute_takes_no_more_than_a_column_of_600() -> None:
    noise = np.random.default_rng(1).uniform(-1, 1, 60 * SAMPLE_RATE_HZ).astype(np.float32)
    assert pixels(noise).shape == (ROWS, COLUMNS_MOST)
    # Ten clips with their references are below 1 MB, whatever they are
    assert 20 * (len(spectrogram_png(noise)) + len(waveform_path(noise))) < 1_000_000


@pytest.mark.parametrize("length", [1, 100])
def test_next_to_nothing_and_silence_can_be_drawn(length: int) -> None:
    silence = np.zeros(length, np.float32)
    assert pixels(silence).shape[0] == ROWS
    assert waveform_path(silence).startswith("M0 0V1")
