"""Durations and F0 of two readings: what is counted, and what cannot be compared."""

from __future__ import annotations

import numpy as np
import pytest

from kokoro_lab.errors import ParameterError
from kokoro_lab.metrics.prosody import Likeness, ProsodyReading, likeness, prosody_drift

FRAMES = np.array([2, 3, 1])


def curve(frames: np.ndarray, hz: tuple[float, ...]) -> np.ndarray:
    """Each phoneme at one F0."""
    return np.repeat(np.array(hz, np.float32), 2 * frames)


def test_the_same_reading_does_not_drift() -> None:
    f0_hz = curve(FRAMES, (200, 0, 100))
    found = prosody_drift(FRAMES, f0_hz, FRAMES, f0_hz)
    assert (found.durations_count, found.changed_durations_count) == (3, 0)
    assert (found.duration_s, found.duration_change_s) == pytest.approx((0.15, 0))
    assert (found.phoneme_change_ms, found.f0_change_cents) == (0, 0)


@pytest.mark.parametrize("times", [2 ** (50 / 1200), 2 ** (-50 / 1200)])
def test_a_pitch_moved_is_counted_in_cents_wherever_it_goes(times: float) -> None:
    f0_hz = curve(FRAMES, (200, 0, 100))
    found = prosody_drift(FRAMES, f0_hz, FRAMES, f0_hz * np.float32(times))
    assert found.f0_change_cents == pytest.approx(50, abs=0.1)


def test_a_longer_phoneme_is_compared_with_itself_and_not_with_what_stands_at_its_time() -> None:
    hz = (200, 0, 100)
    longer = np.array([4, 2, 2])
    found = prosody_drift(FRAMES, curve(FRAMES, hz), longer, curve(longer, hz))
    assert found.f0_change_cents == 0
    assert found.changed_durations_count == 3
    assert found.duration_change_s == pytest.approx(0.05)
    assert found.phoneme_change_ms == pytest.approx(25 * 4 / 3)


def test_a_contour_inside_a_phoneme_is_stretched() -> None:
    rise = np.linspace(100, 200, 8)
    found = prosody_drift(np.array([2]), rise[::2], np.array([4]), rise)
    assert found.f0_change_cents < 250  # half a step of the coarser curve
    backwards = prosody_drift(np.array([2]), rise[::2], np.array([4]), rise[::-1])
    assert backwards.f0_change_cents > 300


def test_what_is_voiced_in_one_alone_has_no_pitch_to_compare() -> None:
    found = prosody_drift(FRAMES, curve(FRAMES, (200, 0, 0)), FRAMES, curve(FRAMES, (0, 200, 0)))
    assert np.isnan(found.f0_change_cents)
    gone = np.array([0, 3, 1])
    left = prosody_drift(FRAMES, curve(FRAMES, (200, 150, 100)), gone, curve(gone, (0, 150, 100)))
    assert left.f0_change_cents == 0


@pytest.mark.parametrize(
    ("frames", "f0_hz"),
    [
        (np.array([2, 3]), curve(np.array([2, 3]), (200, 100))),
        (FRAMES, curve(FRAMES, (200, 0, 100))[:-1]),
        (FRAMES, np.full(12, np.nan)),
        (np.array([3, 4, -1]), curve(FRAMES, (200, 0, 100))),
        (np.array([0, 0, 0]), np.zeros(0)),
    ],
)
def test_what_is_no_reading_of_the_same_is_refused(frames: np.ndarray, f0_hz: np.ndarray) -> None:
    with pytest.raises(ParameterError):
        prosody_drift(FRAMES, curve(FRAMES, (200, 0, 100)), frames, f0_hz)


def reading(frames: np.ndarray, cents: tuple[float, ...], energy: tuple[float, ...]) -> ProsodyReading:
    """Each phoneme at one F0, in cents above 100 Hz, and one energy; a phoneme below 0 is unvoiced."""
    f0_hz = np.where(np.array(energy) < 0, 0, 100 * 2 ** (np.array(cents) / 1200))
    curves = (curve(frames, each) for each in (f0_hz, energy))
    return ProsodyReading(frames, *curves)


FIVE = np.array([3, 4, 2, 6, 3])
SPOKEN = reading(FIVE, (0, 300, 0, 0, 600), (2, 4, 3, -9, 1))


def alike(candidate: ProsodyReading) -> Likeness:
    return likeness(SPOKEN, candidate, 0.0)


def test_a_reading_is_like_itself_also_slower_higher_and_louder() -> None:
    assert alike(SPOKEN) == pytest.approx(Likeness(1, 1, 1))
    slower = np.array([4, 5, 3, 6, 4])
    moved = reading(slower, (100, 400, 100, 0, 700), (3, 5, 4, -9, 2))
    assert alike(moved) == pytest.approx(Likeness(1, 1, 1))


def test_a_flatter_curve_is_less_alike_and_a_contrary_one_not_at_all() -> None:
    half = reading(FIVE, (0, 150, 0, 0, 300), (1, 2, 1.5, -9, 0.5))
    assert alike(half).f0_shape == pytest.approx(0.8)  # 2 · ½ ÷ (1 + ¼)
    assert alike(half).energy_shape == pytest.approx(0.8)
    flat = reading(FIVE, (0, 0, 0, 0, 0), (2, 2, 2, -9, 2))
    assert alike(flat) == pytest.approx(Likeness(0, 0, 1))
    contrary = reading(FIVE, (0, -300, 0, 0, -600), (4, 2, 3, -9, 5))
    assert alike(contrary) == pytest.approx(Likeness(-1, -1, 1))


@pytest.mark.parametrize(("frames", "pauses"), [(3, 0.5), (9, 0.5), (6, 1), (12, 0)])
def test_a_pause_may_be_neither_shorter_nor_longer(frames: int, pauses: float) -> None:
    other = np.array([3, 4, 2, frames, 3])
    changed = reading(other, (0, 300, 0, 0, 600), (2, 4, 3, -9, 1))
    assert alike(changed) == pytest.approx(Likeness(1, 1, pauses))


def test_a_pause_may_move_from_a_phoneme_to_the_next_but_not_to_another_place() -> None:
    def paused(at: int) -> ProsodyReading:
        frames, energy = np.array([4, 4, 4, 4, 4]), np.full(40, 3.0)
        energy[at : at + 8] = -9
        return ProsodyReading(frames, np.full(40, 100.0), energy)

    assert likeness(paused(12), paused(10), 0.0).pauses == 1
    assert likeness(paused(8), paused(24), 0.0).pauses == -1


def test_silence_that_is_cut_off_is_no_pause_and_few_pauses_count_little() -> None:
    def edged(silence: float, tail: int) -> ProsodyReading:
        energy = np.concatenate([np.full(8, 3.0), np.full(tail, silence)])
        return ProsodyReading(np.array([4, tail // 2]), np.full(8 + tail, 100.0), energy)

    assert likeness(edged(np.nan, 8), edged(np.nan, 2), 0.0).pauses == 1
    assert likeness(edged(-9, 2), edged(-9, 4), 0.0).pauses == pytest.approx(1 - 0.025 / 0.1)


def test_what_is_voiced_in_one_alone_has_no_shape() -> None:
    silent = reading(FIVE, (0, 0, 0, 0, 0), (-9, -9, -9, -9, -9))
    assert np.isnan([alike(silent).f0_shape, alike(silent).energy_shape]).all()
    with pytest.raises(ParameterError):
        likeness(SPOKEN, reading(FRAMES, (0, 0, 0), (1, 1, 1)), 0.0)
