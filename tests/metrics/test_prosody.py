"""Durations and F0 of two readings: what is counted, and what cannot be compared."""

from __future__ import annotations

import numpy as np
import pytest

from kokoro_lab.errors import ParameterError
from kokoro_lab.metrics.prosody import prosody_drift

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
