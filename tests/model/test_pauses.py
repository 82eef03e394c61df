"""Pauses within a segment: what is put in where a mark is spoken through, and what is taken out."""

from __future__ import annotations

import numpy as np
import pytest

from kokoro_lab.g2p.vocab import encode
from kokoro_lab.graphs.signatures import frames_of
from kokoro_lab.model.pauses import SILENT_ENERGY, paused
from kokoro_lab.model.prosody import Contours


def contours(energies: list[list[float]]) -> Contours:
    """Of one list of energies for each input id, two values a frame; features and pitch count the frames."""
    energy = np.concatenate(energies).astype(np.float32)
    numbers = np.arange(len(energy) // 2, dtype=np.float32)
    return Contours(
        aligned=numbers.reshape(1, 1, -1),
        f0_hz=100 + np.repeat(numbers, 2).reshape(1, -1),
        energy=energy.reshape(1, -1),
        durations=np.array([len(each) / 2 for each in energies], np.float32),
        plain_frames=len(numbers),
    )


LOUD = [5.0, 5.0]
IDS = encode("a, b")


def test_silence_is_put_where_a_comma_is_spoken_through() -> None:
    found = paused(contours([LOUD, LOUD, [5.0, 3.0], [3.0, 5.0], LOUD, LOUD]), IDS, "lengthened")
    assert frames_of(found.durations).tolist() == [1, 2, 2, 1, 2, 1]  # 60 ms are 3 frames of 25 ms
    assert found.aligned.reshape(-1).tolist() == [0, 1, 2, 0, 0, 0, 3, 4, 5]  # where it is softest; the pad's
    made = slice(2 * 3, 2 * 6)
    assert set(found.energy[0, made]) == {SILENT_ENERGY}
    assert set(found.f0_hz[0, made]) == {0.0}
    assert found.energy[0, :6].tolist() == [5, 5, 5, 5, 5, 3]
    assert found.plain_frames == 9
    # What sounded as comma and space is of the words: silence is where the marks are
    assert np.repeat(range(6), frames_of(found.durations))[3:6].tolist() == [2, 2, 3]


def test_what_is_quiet_counts_and_becomes_silent() -> None:
    found = paused(contours([LOUD, LOUD, [5, -1], [-2, -1], [-1, 5], LOUD]), IDS, "lengthened")
    assert frames_of(found.durations).tolist() == [1, 2, 1, 1, 1, 1]  # 50 ms and 25 ms
    assert (found.energy == SILENT_ENERGY).sum() == 6


def test_a_full_stop_is_longer_and_the_strongest_mark_counts() -> None:
    for text in ("a. b", 'a," b', "a,! b"):
        ids = encode(text)
        found = paused(contours([LOUD] * (len(ids) + 2)), ids, "lengthened")
        assert found.aligned.shape[2] - len(ids) - 2 == (3 if text == 'a," b' else 5)


@pytest.mark.parametrize("text", ["a b", ", a b", "a b.", '"a" b', "a (b)"])
def test_at_the_edges_and_without_a_mark_nothing_changes(text: str) -> None:
    plain = contours([LOUD] * (len(text) + 2))
    for pauses in ("lengthened", "ruled"):
        found = paused(plain, encode(text), pauses)  # type: ignore[arg-type]
        for name in ("aligned", "f0_hz", "energy", "durations"):
            np.testing.assert_array_equal(getattr(found, name), getattr(plain, name))


def test_a_long_pause_is_made_shorter_only_where_pauses_are_ruled() -> None:
    plain = contours([LOUD, [5, -1, -1, -1], [-1] * 8, [-1] * 4, [-1, -1, 5, 5], LOUD])
    assert frames_of(paused(plain, IDS, "lengthened").durations).tolist() == [1, 2, 4, 2, 2, 1]
    found = paused(plain, IDS, "ruled")
    silent = (found.energy == SILENT_ENERGY).sum() * 0.0125
    assert 0.060 <= silent <= 0.100
    assert min(frames_of(found.durations)) == 1
    assert frames_of(found.durations).sum() == found.aligned.shape[2]
    assert found.aligned[0, 0, [0, 1, -1]].tolist() == [0, 1, 11]


def test_of_a_sound_something_is_left() -> None:
    """Even of one that is silent: its frames are taken out, but for one."""
    found = paused(contours([LOUD, [-1] * 20, [-1] * 2, [-1] * 2, [-1] * 2, LOUD]), IDS, "ruled")
    assert frames_of(found.durations).tolist() == [1, 1, 1, 1, 1, 1]


def test_the_model_may_be_left_alone() -> None:
    plain = contours([LOUD] * 6)
    assert paused(plain, IDS, "model") is plain
