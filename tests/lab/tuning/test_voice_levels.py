"""Levels of voices: a line through loudness over length, from texts that differ enough."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from kokoro_lab.dsp import Gain, Limiter, voice_gain_db
from kokoro_lab.dsp.loudness import TARGET_LUFS
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.results import failed
from kokoro_lab.lab.tuning import voice_levels
from kokoro_lab.lab.tuning.voice_levels import (
    FEWEST_TEXTS,
    USUAL_SLOPE_LU,
    VoiceLevel,
    behind_the_limiter,
    beside_shipped,
    judge,
    level_of,
    measure_voice_levels,
    octaves,
    plain_texts,
    usual_energy,
    write_voice_levels,
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


TEXTS = [f"text {number}" for number in range(FEWEST_TEXTS)]


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of two voices in place of the package's."""
    path = tmp_path / "voice_levels.json"
    path.write_text(
        json.dumps(
            {"model_sha256": "model", "texts": TEXTS}
            | {
                "lufs": {"a": -20.0, "b": -21.0},
                "slope_lu": {"a": -0.8, "b": -0.7},
                "energy": {"a": 1, "b": 2},
            }
        )
    )
    monkeypatch.setattr(voice_levels, "LEVELS_FILE", path)
    return path


def test_levels_of_voices_that_were_not_measured_stay(shipped: Path) -> None:
    write_voice_levels({"b": VoiceLevel(-19.5, -0.9, 3.0)}, model_sha256="model", texts=TEXTS)
    table = json.loads(shipped.read_text())
    assert table["lufs"] == {"a": -20.0, "b": -19.5}
    assert table["slope_lu"] == {"a": -0.8, "b": -0.9}
    assert table["energy"] == {"a": 1.0, "b": 3.0}


@pytest.mark.parametrize(
    ("measured_with", "level", "said"),
    [
        ({"texts": TEXTS[:2]}, -20.0, "few texts"),
        ({"model_sha256": "another"}, -20.0, "another model"),
        ({"texts": [*TEXTS[1:], "other"]}, -20.0, "other texts"),
        ({}, math.nan, "has no level"),
    ],
)
def test_levels_that_would_not_fit_the_others_are_not_written(
    shipped: Path, measured_with: Mapping[str, object], level: float, said: str
) -> None:
    before = shipped.read_text()
    facts = {"model_sha256": "model", "texts": TEXTS, **measured_with}
    with pytest.raises(ParameterError, match=said):
        write_voice_levels({"b": VoiceLevel(level, -0.8)}, **facts)  # type: ignore[arg-type]
    assert shipped.read_text() == before


def test_all_voices_may_be_measured_anew_with_another_model(shipped: Path) -> None:
    levels = {name: VoiceLevel(-18.0, -0.8, 1.0) for name in "ab"}
    write_voice_levels(levels, model_sha256="another", texts=TEXTS)
    assert json.loads(shipped.read_text())["model_sha256"] == "another"


@pytest.mark.usefixtures("shipped")
def test_a_voice_off_its_shipped_level_fails_and_so_does_one_without() -> None:
    right, off = VoiceLevel(-20.5, -0.8), VoiceLevel(-22.1, -0.8)
    assert not failed(judge(beside_shipped({"a": right, "b": right})))
    for wrong in ({"a": right, "b": off}, {"a": right, "new": right}, {"a": VoiceLevel(math.nan, 0.0)}):
        assert failed(judge(beside_shipped(wrong))) == ["largest_difference_lu"]


def test_the_table_that_ships_was_measured_with_enough_texts() -> None:
    table = json.loads(voice_levels.LEVELS_FILE.read_text())
    assert len(table["texts"]) >= FEWEST_TEXTS
    assert table["texts"] == [text.id for text in plain_texts()]
