"""How far two readings of the same phonemes differ in durations and pitch, and how alike their shapes are.

Both are the models' own predictions, not measured from the sound: a pitch tracker makes octave errors now and
then, and its error of 150 cents would hide smaller differences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kokoro_lab.errors import ParameterError

FRAME_S = 0.025
"""Unit of durations: a frame in seconds."""
F0_A_FRAME = 2
VOICED_HZ = 10.0
"""The model's own threshold between voiced and unvoiced (its `SineGen`)."""
CENTS_AN_OCTAVE = 1200.0
LEAST_PAUSE_S = 0.1
"""Where a reading has fewer seconds of pauses than this, changes are compared with this."""


class ProsodyReading(NamedTuple):
    """A model's prosody of a text: duration frames of each input id, and the curves of F0 and of energy with
    two values a frame. Energy is NaN around a segment, where silence is cut off."""

    frames: npt.NDArray[np.int64]
    f0_hz: npt.NDArray[np.float32]
    energy: npt.NDArray[np.float32]


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


class Likeness(NamedTuple):
    """How alike two readings are.

    Parameters
    ----------
    f0_shape : float
        Agreement of log F0 with its mean taken away, over frames that are voiced in both: 1 if every rise and
        fall is the same, 0 for a monotone, below 0 if what rose falls. NaN if no frame is voiced in both.
    energy_shape : float
        The same for the energy, over frames in which both speak.
    pauses : float
        1 less the share of the pauses' time by which they are longer or shorter: 0.5 if all are half as long.
    """

    f0_shape: float
    energy_shape: float
    pauses: float


def likeness(reference: ProsodyReading, candidate: ProsodyReading, quiet_energy: float) -> Likeness:
    """How alike F0, energy and pauses are, phoneme by phoneme.

    Parameters
    ----------
    quiet_energy : float
        Where the energy is below this, a reading is silent.

    Raises
    ------
    ParameterError
        As `prosody_drift`.

    Notes
    -----
    The agreement is Lin's concordance (Biometrics 45, 1989) without its term for the means, which other
    measures judge. Unlike a correlation it falls if a curve is flatter, and unlike a median distance
    (`ReadingDifference.f0_change_cents`) if a third of a sentence is spoken in monotone.
    """
    _require_same_phonemes(reference.frames, candidate.frames)
    place = _stretch(reference.frames, candidate.frames)
    there = np.repeat(candidate.frames > 0, F0_A_FRAME * reference.frames)
    first_hz = _curve("reference", reference.frames, reference.f0_hz)
    second_hz = _curve("candidate", candidate.frames, candidate.f0_hz)[place]
    first, second = reference.energy, candidate.energy[place]
    voiced = there & (first_hz > VOICED_HZ) & (second_hz > VOICED_HZ)
    spoken = there & (first >= quiet_energy) & (second >= quiet_energy)
    return Likeness(
        f0_shape=_agreement(np.log2(first_hz[voiced]), np.log2(second_hz[voiced])),
        energy_shape=_agreement(first[spoken], second[spoken]),
        pauses=_pauses_alike(reference, candidate, quiet_energy),
    )


def _agreement(first: npt.NDArray[np.floating[Any]], second: npt.NDArray[np.floating[Any]]) -> float:
    if not len(first):
        return float("nan")
    first, second = first - first.mean(), second - second.mean()
    moved = float(first @ first + second @ second)
    return float(2 * (first @ second)) / moved if moved else 1.0


def _pauses_alike(reference: ProsodyReading, candidate: ProsodyReading, quiet_energy: float) -> float:
    silent = []
    for reading in (reference, candidate):
        ends = F0_A_FRAME * np.cumsum(reading.frames)
        before = np.concatenate([[0], np.cumsum(reading.energy < quiet_energy)])
        silent.append(before[ends] - before[ends - F0_A_FRAME * reading.frames])
    # A pause is heard in several phonemes, and its time may move from one to the next
    within = np.concatenate([[False], np.any(silent, axis=0)])
    edges = np.union1d([0], np.flatnonzero(np.diff(within)))
    first_s, second_s = np.add.reduceat(silent, edges, axis=1) * (FRAME_S / F0_A_FRAME)
    return float(1 - np.abs(second_s - first_s).sum() / max(first_s.sum(), LEAST_PAUSE_S))


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
    _require_same_phonemes(reference_frames, candidate_frames)
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


def _require_same_phonemes(
    reference_frames: npt.NDArray[np.int64], candidate_frames: npt.NDArray[np.int64]
) -> None:
    if reference_frames.ndim != 1 or reference_frames.shape != candidate_frames.shape:
        raise ParameterError(
            "Reference and candidate do not read the same phonemes.",
            field="candidate_frames",
            value=f"{candidate_frames.shape} against {reference_frames.shape}",
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
