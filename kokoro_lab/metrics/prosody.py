"""How far two readings of the same phonemes differ in durations and pitch.

Both are the models' own predictions, not measured from the sound: a pitch tracker makes octave errors now and
then, and its error of 150 cents would hide smaller differences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kokoro_lab.errors import ParameterError

FRAME_S = 0.025
"""Unit of durations: a frame in seconds."""
F0_A_FRAME = 2
VOICED_HZ = 10.0
"""The model's own threshold between voiced and unvoiced (its `SineGen`)."""
CENTS_AN_OCTAVE = 1200.0


@dataclass(frozen=True, slots=True)
class ReadingDifference:
    """The differences between two readings.

    Parameters
    ----------
    durations_count, changed_durations_count : int
        Phonemes, pads included, and how many of them last another number of frames.
    duration_s, duration_change_s : float
        Length of the whole reference, and how much longer the candidate is.
    phoneme_change_ms : float
        Mean absolute change in duration of a phoneme.
    f0_change_cents : float
        Median distance in pitch over frames that are voiced in both readings; NaN if there are no such
        frames.
    """

    durations_count: int
    changed_durations_count: int
    duration_s: float
    duration_change_s: float
    phoneme_change_ms: float
    f0_change_cents: float


def prosody_drift(
    reference_frames: npt.NDArray[np.int64],
    reference_f0_hz: npt.NDArray[np.floating[Any]],
    candidate_frames: npt.NDArray[np.int64],
    candidate_f0_hz: npt.NDArray[np.floating[Any]],
) -> ReadingDifference:
    """Differences of durations and F0, phoneme by phoneme.

    Parameters
    ----------
    reference_frames, candidate_frames : numpy.ndarray
        Frames of 25 ms that each phoneme lasts, (n,), 0 or more.
    reference_f0_hz, candidate_f0_hz : numpy.ndarray
        Two values for each of these frames; a value under 10 Hz is unvoiced.

    Raises
    ------
    ParameterError
        The numbers of phonemes differ, or F0 does not have two values for each frame, or is not finite.

    Notes
    -----
    Where a phoneme's duration differs, the candidate's F0 in it is stretched to the reference's, value by
    value and without interpolation, so that no voiced value is mixed with an unvoiced one.
    """
    if reference_frames.ndim != 1 or reference_frames.shape != candidate_frames.shape:
        raise ParameterError(
            "Reference and candidate do not read the same phonemes.",
            field="candidate_frames",
            value=f"{candidate_frames.shape} against {reference_frames.shape}",
        )
    first = _curve("reference", reference_frames, reference_f0_hz)
    stretched = _curve("candidate", candidate_frames, candidate_f0_hz)[
        _stretch(reference_frames, candidate_frames)
    ]
    of_phoneme = np.repeat(candidate_frames > 0, F0_A_FRAME * reference_frames)
    voiced = of_phoneme & (first > VOICED_HZ) & (stretched > VOICED_HZ)
    cents = CENTS_AN_OCTAVE * np.abs(np.log2(stretched[voiced] / first[voiced]))
    longer = candidate_frames - reference_frames
    return ReadingDifference(
        durations_count=len(longer),
        changed_durations_count=int(np.count_nonzero(longer)),
        duration_s=float(reference_frames.sum()) * FRAME_S,
        duration_change_s=float(longer.sum()) * FRAME_S,
        phoneme_change_ms=float(np.abs(longer).mean()) * FRAME_S * 1000,
        f0_change_cents=float(np.median(cents)) if len(cents) else float("nan"),
    )


def _curve(
    side: str, frames: npt.NDArray[np.int64], f0_hz: npt.NDArray[np.floating[Any]]
) -> npt.NDArray[np.float64]:
    curve = np.asarray(f0_hz, np.float64).reshape(-1)
    if not len(frames) or frames.min() < 0 or len(curve) != F0_A_FRAME * frames.sum() or not len(curve):
        raise ParameterError(
            f"The {side} does not have two values of F0 for each frame.",
            field=f"{side}_f0_hz",
            value=len(curve),
            allowed=f"{F0_A_FRAME * frames.sum()}, over 0",
        )
    if not np.isfinite(curve).all():
        raise ParameterError(f"The {side} has F0 that is not finite.", field=f"{side}_f0_hz")
    return curve


def _stretch(frames: npt.NDArray[np.int64], from_frames: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """For each F0 value of one reading, the number of the other reading's value at the same place in the
    phoneme."""
    counts, others = F0_A_FRAME * frames, F0_A_FRAME * from_frames
    begins = np.cumsum(others) - others
    inside = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    ratio = np.repeat(others / np.maximum(counts, 1), counts)
    places: npt.NDArray[np.int64] = np.repeat(begins, counts) + ((inside + 0.5) * ratio).astype(np.int64)
    return np.minimum(places, max(others.sum() - 1, 0))
