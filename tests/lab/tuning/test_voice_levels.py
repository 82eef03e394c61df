"""Levels of voices: a line through loudness over length, from texts that differ enough."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from kokoro_lab.dsp import Gain, Limiter, voice_gain_db
from kokoro_lab.dsp.loudness import TARGET_LUFS
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.tuning.voice_levels import (
    USUAL_SLOPE_LU,
    behind_the_limiter,
    level_of,
    measure_voice_levels,
    octaves,
    plain_texts,
    usual_energy,
)
from kokoro_lab.metrics.loudness import integrated_lufs
from kokoro_lab.model.decoder import SegmentRequest
from kokoro_lab.speech.engine import Engine
from kokoro_lab.weights.voices import ENERGY_SLOPE


def test_a_line_is_found_at_its_reference() -> None:
    lengths = np.linspace(-3, 3, 50)
    assert level_of(list(lengths), list(-21 - 0.3 * lengths))[:2] == pytest.approx((-21.0, -0.3), abs=0.01)


def test_clips_of_one_length_say_nothing_of_the_slope() -> None:
    level = level_of([-1.0, -1.0], [-20.0, -20.4])
    assert level.slope_lu == USUAL_SLOPE_LU
    assert level.lufs - level.slope_lu == pytest.approx(-20.2), "at their own length it is their mean"


def test_no_clip_has_no_level() -> None:
    with pytest.raises(ParameterError, match="needs a clip"):
        level_of([], [])


def test_texts_are_plain_and_few_of_them_differ_in_length() -> None:
    texts = plain_texts()
    assert len(texts) == 8
    shortest, longest = plain_texts(2)
    assert len(longest.text) > 2.5 * len(shortest.text)


def test_the_level_is_that_of_the_streams_before_any_gain(hum: Engine) -> None:
    text = "The kettle is on the stove now."
    clip = hum.stream(text, voice="hum", loudness="none").joined()
    found = measure_voice_levels(hum, ["hum"], [text])["hum"]
    at_its_length = found.lufs + found.slope_lu * octaves(clip)
    assert at_its_length == pytest.approx(integrated_lufs(clip.samples, 24_000))


def test_the_energy_is_what_the_model_predicts_at_the_reference_length(hum: Engine) -> None:
    clip = hum.stream("The kettle is on the stove now.", voice="hum").joined()
    assert usual_energy(hum, "hum", [clip]) is None, "the tiny voice predicts none"
    decoded = hum.parts.decoder.decode(SegmentRequest([1], hum.voice("hum").style(1)))
    steady = SimpleNamespace(decode=lambda asked: replace(decoded, energy=2.0))
    found = usual_energy(Engine(replace(hum.parts, decoder=steady)), "hum", [clip])
    assert found == pytest.approx(2.0 - ENERGY_SLOPE * octaves(clip))


def test_what_the_limiter_takes_away_is_made_up_for(hum: Engine) -> None:
    clip = hum.stream("The kettle is on the stove now.", voice="hum", loudness="none").joined()
    peaks = clip.samples.copy()
    peaks[:: len(peaks) // 20] = 6 * np.abs(peaks).max()
    clip = replace(clip, samples=peaks)
    before = level_of([octaves(clip)], [integrated_lufs(peaks, 24_000)])
    found = behind_the_limiter(before, [clip])
    assert found.slope_lu == before.slope_lu
    gain_db = voice_gain_db(found.lufs + found.slope_lu * octaves(clip))
    heard = Limiter(24_000).run(Gain(gain_db).run(peaks))
    assert integrated_lufs(heard, 24_000) == pytest.approx(TARGET_LUFS, abs=0.3)
    assert found.lufs < before.lufs - 0.3
