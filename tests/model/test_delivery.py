"""What is asked of words becomes speeds, a pitch curve and gains of token ids."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kokoro_lab.datatypes import PLAIN, Segment, SpeakingStyle, Word
from kokoro_lab.graphs.signatures import frames_of
from kokoro_lab.model.delivery import RAMP_FRAMES, ProsodyChanges, moved_semitones

FAST = SpeakingStyle(rate=1.5)
HIGH = SpeakingStyle(pitch_scale=1.25)
LOUD = SpeakingStyle(gain_db=4.0)


def segment(*styles: SpeakingStyle) -> Segment:
    """Words of two token ids each, with a space between."""
    count = len(styles)
    words = tuple(Word("ab", 3 * i, 3 * i + 2, "ab", "en-us", "misaki") for i in range(count))
    ids = tuple([1, 2, 16] * count)[:-1]
    places = tuple((3 * i, 3 * i + 2) for i in range(count))
    return Segment(0, 0, 3 * count, words, "", ids, places, 0.1, "en-us", styles)


def delivery(*styles: SpeakingStyle) -> ProsodyChanges:
    found = ProsodyChanges.of(segment(*styles))
    assert found is not None
    return found


def test_a_plain_segment_has_none() -> None:
    assert ProsodyChanges.of(replace(segment(PLAIN), styles=())) is None


def durations(found: ProsodyChanges, frames: float = 6.0, speed: float = 1.0) -> list[int]:
    return found.durations(np.full((1, len(found.styles)), frames, np.float32), speed).tolist()


def test_a_rate_is_of_its_words_alone() -> None:
    assert durations(delivery(PLAIN, FAST, PLAIN)) == [6, 6, 6, 6, 4, 4, 6, 6, 6, 6]
    assert durations(delivery(PLAIN, FAST, PLAIN), speed=2.0) == [3, 3, 3, 3, 2, 2, 3, 3, 3, 3]


def test_the_space_between_two_words_of_a_kind_is_of_that_kind() -> None:
    assert durations(delivery(FAST, FAST)) == [6, 4, 4, 4, 4, 4, 6]


@pytest.mark.parametrize("rate", [0.5, 0.7, 1.1, 1.5, 2.0])
@pytest.mark.parametrize("frames", [2.0, 2.4, 3.0])
def test_short_sounds_keep_the_rate_on_the_whole(rate: float, frames: float) -> None:
    found = delivery(*[SpeakingStyle(rate=rate)] * 6)
    (*_, last) = spoken = durations(found, frames)
    asked = 17 * round(frames) / rate
    assert sum(spoken[1:-1]) == pytest.approx(asked, abs=0.51)
    assert (spoken[0], last) == (round(frames), round(frames))


def test_nothing_is_shorter_than_a_frame() -> None:
    assert durations(delivery(SpeakingStyle(rate=2.0)), 1.0) == [1, 1, 1, 1]


def test_without_rates_durations_are_those_of_the_model() -> None:
    unrounded = np.linspace(0.1, 7, 10, dtype=np.float32).reshape(1, -1)
    found = delivery(HIGH, PLAIN, LOUD)
    np.testing.assert_array_equal(found.durations(unrounded, 1.3), frames_of(unrounded / np.float32(1.3)))


def test_a_speed_stays_where_the_model_speaks_and_that_is_said() -> None:
    fast = delivery(PLAIN, FAST)
    assert durations(fast, 24.0, 4.0) == [6, 6, 6, 6, 6, 6, 6]
    (said,) = fast.fallbacks(4.0, np.zeros((1, 4), np.float32))
    assert "6.00" in said.reason
    assert list(fast.fallbacks(1.0, np.zeros((1, 4), np.float32))) == []


def curve(found: ProsodyChanges, hz: float = 200.0, frames: int = 10) -> np.ndarray:
    """The pitch of a level voice, with every fourth value unvoiced."""
    durations = np.full(len(found.styles), frames)
    f0 = np.full((1, 2 * int(durations.sum())), hz, np.float32)
    f0[0, ::4] = 0.5
    moved = found.pitched(f0, durations)
    np.testing.assert_array_equal(moved[0, ::4], f0[0, ::4])
    assert moved.dtype == np.float32
    assert moved.shape == f0.shape
    return moved[0].reshape(-1, 4)[:, 1:].mean(1).repeat(4)[: f0.size]


def test_a_pitch_is_of_its_words_alone() -> None:
    moved = curve(delivery(PLAIN, HIGH, PLAIN))
    inside = slice(2 * 10 * 4 + RAMP_FRAMES, 2 * 10 * 6 - RAMP_FRAMES)
    assert moved[inside] == pytest.approx(250)
    assert moved[: 2 * 10 * 4 - RAMP_FRAMES] == pytest.approx(200)
    assert moved[2 * 10 * 6 + RAMP_FRAMES :] == pytest.approx(200)


def test_a_pitch_passes_into_the_next_one() -> None:
    found = delivery(PLAIN, HIGH)
    durations = np.full(len(found.styles), 10)
    moved = found.pitched(np.full((1, 20 * len(durations)), 200, np.float32), durations)[0]
    assert np.abs(np.diff(moved)).max() < 25
    assert (np.diff(moved[:100]) >= 0).all()


@pytest.mark.parametrize(
    ("style", "hz"),
    [
        (SpeakingStyle(pitch_offset_hz=20), 220),
        (SpeakingStyle(pitch_offset_hz=-20, pitch_scale=1.2), 220),
        (SpeakingStyle(pitch_base_hz=150), 150),
        (SpeakingStyle(pitch_base_hz=150, pitch_scale=1.2), 180),
        (SpeakingStyle(pitch_base_hz=500), 300),
        (SpeakingStyle(pitch_offset_hz=-180), 100),
    ],
)
def test_hertz_depend_on_the_voice_and_stay_in_range(style: SpeakingStyle, hz: float) -> None:
    moved = curve(delivery(style, style))
    assert moved[60:80] == pytest.approx(hz, rel=1e-4)


def test_a_pitch_that_had_to_be_kept_in_range_is_said() -> None:
    f0 = np.full((1, 40), 200, np.float32)
    (said,) = delivery(SpeakingStyle(pitch_base_hz=500)).fallbacks(1.0, f0)
    assert "200 Hz" in said.reason
    assert list(delivery(SpeakingStyle(pitch_base_hz=250)).fallbacks(1.0, f0)) == []


def test_gains_are_given_to_each_id() -> None:
    assert delivery(PLAIN, LOUD).gains_db == (0, 0, 0, 0, 4, 4, 0)


def test_one_rate_is_told_from_several() -> None:
    assert delivery(FAST, FAST).one_rate == 1.5
    assert delivery(FAST, PLAIN).one_rate is None
    assert delivery(FAST, HIGH).changes_pitch
    assert not delivery(FAST, LOUD).changes_pitch


def test_how_far_a_pitch_is_moved_is_the_average_over_what_is_voiced() -> None:
    before = np.array([[200, 200, 1, 100]], np.float32)
    after = np.array([[400, 200, 1, 100]], np.float32)
    assert moved_semitones(before, after) == pytest.approx(4)
    assert moved_semitones(np.zeros((1, 4), np.float32), np.zeros((1, 4), np.float32)) == 0
