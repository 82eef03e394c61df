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


def inserted_at(first: list[float], mark: list[float], space: list[float], then: list[float]) -> int:
    """The frame before which silence is inserted, counted from the beginning of the mark."""
    found = paused(contours([LOUD, first, mark, space, then, LOUD]), encode("a. b"), "lengthened")
    inserted = np.flatnonzero(found.aligned[0, 0, 1:] == 0)  # with the features of the pad
    return int(inserted[0]) - len(first) // 2


# Energies as the model has them, where it makes no pause at a mark and the next sound has begun in its frames
SPOKEN_THROUGH = {
    "hail, snow": ([7.2, 6.5, 5.6, 5.2], [5.2, 5.0], [5.0, 4.9, 4.8, 4.8, 4.7, 4.2], [3.7, 5.2], 0),
    "people, forgot": ([7.1, 6.5, 5.6, 4.6], [4.1, 3.8], [3.7, 3.7, 3.7, 4.5], [6.7, 7.6], 0),
    "then, at": ([7.5, 7.0, 6.0, 5.0], [5.6, 6.7], [7.5, 7.5, 7.0, 5.7], [3.3, 0.9, 0.0, 3.4], 0),
    "bread, still": ([0.7, -0.5, -0.8, 0.7], [3.6, 5.3, 6.1, 6.4], [6.6, 6.5, 6.4, 5.8], [3.6, 1.7], -1),
    "come, hurry": ([7.7, 7.2], [6.4, 5.4], [4.7, 4.4, 4.5, 5.8], [6.7, 7.2], 1),
    "snow: all": ([3.8, 1.9], [0.1, -1.9, -3.4, -4.7], [-4.4, 1.9, 5.5, 7.1], [7.8, 8.1], 2),
    "a short sound": ([-4.0, 3.0], [3.6, 5.3], [6.6, 6.5], [6.6, 6.5], 0),
}


@pytest.mark.parametrize("words", SPOKEN_THROUGH)
def test_silence_is_put_before_the_sound_that_follows_and_not_into_it(words: str) -> None:
    *energies, border = SPOKEN_THROUGH[words]
    assert inserted_at(*energies) == border


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
