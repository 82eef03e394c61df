"""Defects are found in what was damaged, and not in speech as it was recorded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from kokoro_lab.datatypes import SAMPLE_RATE_HZ as RATE_HZ
from kokoro_lab.datatypes import Samples
from kokoro_lab.dsp import Dither
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.gates import damages
from kokoro_lab.metrics import defects


@pytest.fixture(scope="module")
def speech() -> Samples:
    samples, rate_hz = soundfile.read(Path(__file__).parent / "speech.flac", dtype="float32")
    assert rate_hz == RATE_HZ
    return np.asarray(samples[: 4 * RATE_HZ])


def test_speech_has_none(speech: Samples) -> None:
    assert defects.nonfinite_count(speech) == 0
    assert defects.gaps(speech, RATE_HZ) == []
    assert defects.clipped_count(speech, RATE_HZ) == 0
    assert defects.closest_repeat(speech, RATE_HZ).residual_db > -60


def test_a_gap_is_found_where_it_is(speech: Samples) -> None:
    (gap,) = defects.gaps(damages.gap(speech), RATE_HZ)
    assert gap.start_s == pytest.approx(damages.loudest(speech).start / RATE_HZ, abs=0.001)
    assert gap.length_s == pytest.approx(damages.DAMAGE_S, abs=0.001)


def test_speech_that_ends_in_a_sound_falls_hard(speech: Samples) -> None:
    cut_off = speech[: damages.loudest(speech).stop]
    assert defects.hardest_fall_db(cut_off, RATE_HZ) > defects.HARD_DB


def test_a_pause_that_begins_softly_is_no_gap(speech: Samples) -> None:
    span = damages.loudest(speech)
    faded = speech.copy()
    faded[span] = 0
    faded[span.start - 720 : span.start] *= np.geomspace(1, 1e-4, 720, dtype=np.float32)
    faded[span.stop : span.stop + 720] *= np.geomspace(1e-4, 1, 720, dtype=np.float32)
    assert defects.gaps(faded, RATE_HZ) == []


@pytest.mark.parametrize("length_s", [0.02, 0.1, 0.4])
def test_a_repeat_is_found_with_its_lag(speech: Samples, length_s: float) -> None:
    repeat = defects.closest_repeat(damages.repeat(speech, length_s), RATE_HZ)
    assert repeat.lag_s == pytest.approx(length_s, abs=1 / RATE_HZ)
    assert repeat.residual_db < -120


def test_a_repeat_with_dither_of_its_own_is_found(speech: Samples) -> None:
    damaged = Dither(seed=1).run(damages.repeat(speech)).astype(np.float32) / 32768
    assert defects.closest_repeat(damaged, RATE_HZ).residual_db < -70


def test_clipped_peaks_are_counted_and_silence_is_not(speech: Samples) -> None:
    assert defects.clipped_count(damages.clipped(speech), RATE_HZ) > 100
    assert defects.clipped_count(np.pad(speech, 500), RATE_HZ) == 0
    assert defects.clipped_count(np.zeros(RATE_HZ, np.float32), RATE_HZ) == 0


def test_samples_that_are_no_numbers_are_counted_and_measured_by_nothing_else(speech: Samples) -> None:
    damaged = speech.copy()
    damaged[[5, 7]] = np.nan, np.inf
    assert defects.nonfinite_count(damaged) == 2
    measures = (defects.gaps, defects.hardest_fall_db, defects.clipped_count, defects.closest_repeat)
    for measure in measures:
        with pytest.raises(ParameterError, match="not finite"):
            measure(damaged, RATE_HZ)


def test_what_is_too_short_or_no_single_channel_is_refused() -> None:
    with pytest.raises(ParameterError, match="too short"):
        defects.closest_repeat(np.zeros(100, np.float32), RATE_HZ)
    with pytest.raises(ParameterError, match="one channel"):
        defects.nonfinite_count(np.zeros((10, 2), np.float32))
