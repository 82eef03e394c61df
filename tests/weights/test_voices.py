"""Voices, blends, and the row that a segment is spoken with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kokoro_lab.errors import VoiceError
from kokoro_lab.weights.store import voice_names
from kokoro_lab.weights.voices import (
    LANGUAGE_OF_PREFIX,
    OPENAI_VOICES,
    PACK_SHAPE,
    Voice,
    level_lufs,
    level_slope_lu,
    load_voice,
    parts_of,
    usual_energy,
)


def test_every_voice_has_a_language_and_a_level() -> None:
    assert len(voice_names()) == 54
    for name in voice_names():
        assert name[0] in LANGUAGE_OF_PREFIX
        assert -30 < level_lufs(name) < -14
        assert -2 < level_slope_lu(name) <= 0.5
        assert 5 < usual_energy(name) < 9


def test_every_openai_name_is_a_voice() -> None:
    assert len(OPENAI_VOICES) == 13
    assert set(OPENAI_VOICES.values()) <= set(voice_names())
    assert len(set(OPENAI_VOICES.values())) == 13


def test_each_length_has_its_row() -> None:
    pack = np.arange(510, dtype=np.float32)[:, None, None] * np.ones((1, 1, 256), np.float32)
    voice = Voice("v", ("v",), "en-us", pack, -20.0)
    assert voice.style(1)[0, 0] == 0
    assert voice.style(510)[0, 0] == 509
    assert voice.style(7).shape == (1, 256)


def test_the_level_follows_the_length_within_what_was_measured() -> None:
    voice = Voice("v", ("v",), "en-us", np.zeros(PACK_SHAPE, np.float32), -20.0, level_slope_lu=-0.6)
    assert voice.level_at(100) == -20
    assert voice.level_at(200) == pytest.approx(-20.6)
    assert voice.level_at(50) == pytest.approx(-19.4) == voice.level_at(1)
    assert voice.level_at(510) == voice.level_at(300) < voice.level_at(299)


def test_the_level_follows_the_energy_where_that_is_known() -> None:
    voice = Voice("v", ("v",), "en-us", np.zeros(PACK_SHAPE, np.float32), -20.0, usual_energy=6.0)
    assert voice.level_at(100, 6.5) == pytest.approx(-19.25)
    assert voice.level_at(200, 6.5) == pytest.approx(-19.25 + 1.5 * 0.18), "long ones usually have less"
    assert replace(voice, usual_energy=None).level_at(100, 6.5) == voice.level_at(100, None) == -20
    blend = load_voice("af_heart(3)+am_onyx(1)")
    assert blend.usual_energy == pytest.approx(
        0.75 * usual_energy("af_heart") + 0.25 * usual_energy("am_onyx")
    )


@pytest.mark.parametrize(
    "spec",
    ["af_hart", "", "+", "af_heart+", "af_heart(-1)", "af_heart(x)", "af_heart(1", "af_heart,af_sky", "../x"],
)
def test_what_is_no_voice_is_refused(spec: str) -> None:
    with pytest.raises(VoiceError):
        load_voice(spec)


def test_the_nearest_names_are_offered() -> None:
    with pytest.raises(VoiceError, match="af_heart"):
        load_voice("af_hart")


def test_a_blend_of_nothing_or_of_too_much_is_refused() -> None:
    with pytest.raises(VoiceError, match="nothing"):
        load_voice("af_heart(0)+af_sky(0)")
    with pytest.raises(VoiceError, match="too many"):
        load_voice("+".join(["af_heart"] * 9))
    for huge in ("10000", "9" * 400, f"{'9' * 308}.5"):
        with pytest.raises(VoiceError, match="too large"):
            load_voice(f"af_heart({huge})+af_sky")
    assert list(parts_of("af_heart(9999.9)+af_sky")) == [("af_heart", 9999.9), ("af_sky", 1.0)]


@pytest.mark.model
def test_a_blend_is_the_weighted_mean() -> None:
    heart, sky = load_voice("af_heart"), load_voice("af_sky")
    blend = load_voice("af_heart(2)+af_sky(1)")
    assert blend.pack.shape == PACK_SHAPE
    np.testing.assert_allclose(blend.pack, (2 * heart.pack + sky.pack) / 3, atol=1e-6)
    assert blend.level_lufs == pytest.approx((2 * heart.level_lufs + sky.level_lufs) / 3)
    even = load_voice("af_heart+af_sky")
    np.testing.assert_allclose(even.pack, (heart.pack + sky.pack) / 2, atol=1e-6)
    assert even.name == "af_heart+af_sky"


@pytest.mark.model
def test_openai_names_and_capitals_are_understood() -> None:
    assert load_voice("alloy").name == "af_alloy"
    assert load_voice("Alloy").name == "af_alloy"
    assert load_voice("BF_Emma").language == "en-gb"


@pytest.mark.model
def test_a_pack_cannot_be_changed_by_accident() -> None:
    with pytest.raises(ValueError, match="read-only"):
        load_voice("af_heart").pack[0] = 0
