"""Makes the pauses at the marks within a segment as long as `KOKORO_PAUSES` promises.

The model makes no pause at most commas. If a mark gets more frames, the model lengthens a sound instead of
making silence: 47 marks by 16 voices had less than 20 ms of silence, and with 100 ms of frames added, nine in
ten of them still had less than 45 ms. So frames of silence are inserted where the sound before the mark has
died away, and removed from a pause that is too long. Text, pitch and energy of all other frames stay as they
are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from kokoro_lab.config import Pauses
from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.g2p.vocab import encode
from kokoro_lab.graphs.signatures import DURATION_FRAME_SAMPLES, frames_of

if TYPE_CHECKING:
    from kokoro_lab.model.prosody import Contours

STOP_S, COMMA_S = (0.120, 0.180), (0.060, 0.100)
"""The promised range of pauses at a full stop and at a comma."""
_RANGES_S = {
    **dict.fromkeys(encode(".!?…:"), STOP_S),
    **dict.fromkeys(encode(",;—"), COMMA_S),
    **dict.fromkeys(encode(' "“”()'), (0.0, 0.0)),
}
FRAME_S = DURATION_FRAME_SAMPLES / SAMPLE_RATE_HZ
QUIET_ENERGY = 0.0
"""Frames whose energy is below this are silent: their sound is below -50 dBFS. For 168 marks by 16 voices,
the audible silence was from 5 ms shorter to 30 ms longer than those frames (5th and 95th percentile)."""
SOFTER_S = 0.015
"""By how many seconds the audible silence is longer than the frames with an energy below `QUIET_ENERGY`, on
average over long pauses."""
SILENT_ENERGY = -10.0
"""Energy of inserted frames. The neighbouring sounds reach into them: 75 ms of frames between two sounds are
heard as 52 to 94 ms of silence at -8, the model's own energy in silence, and as 71 to 102 ms at -12. A lower
energy makes the predicted statistics worse: PESQ of streams against files falls by 0.07 at -9 and by 0.10 at
-14."""
FALL = 1.5
"""By how much energy must fall further, as a sum of two values, for a later place to be chosen for silence.
Where the model makes no pause at a mark, the frames of the mark are of the next sound: in `hail, snow`, of an
s that is a little softer than the l before it. The softest place is the end of the s; there, `hails, no` was
heard."""
MADE = -1


def paused(contours: Contours, token_ids: Sequence[int], pauses: Pauses) -> Contours:
    """The contours of a segment with its inner pauses adjusted; marks at its edges are left alone.

    Parameters
    ----------
    token_ids : sequence of int
        Token ids of the segment, without pads.
    pauses : {"lengthened", "ruled", "model"}
        `lengthened` makes pauses that are too short longer; `ruled` also makes pauses that are too long
        shorter; `model` changes nothing.
    """
    if pauses == "model":
        return contours
    durations = frames_of(contours.durations)
    ends, energy = np.cumsum(durations), contours.energy.reshape(-1)
    loud = np.flatnonzero(energy >= QUIET_ENERGY)
    silent = np.zeros(len(energy), bool)
    borders: list[int] = []
    left_out: list[int] = []
    for first, stop, (least_s, most_s) in _within(token_ids):
        # Input ids have a pad in front: token i begins where input i ends
        border = _border_of(energy, ends[first], ends[stop], back=durations[first] > 1)
        behind = int(np.searchsorted(loud, 2 * border))
        quiet_from = loud[behind - 1] + 1 if behind else 0
        quiet_to = loud[behind] if behind < len(loud) else len(energy)
        quiet = sorted(range(quiet_from, quiet_to), key=lambda frame: abs(frame + 0.5 - 2 * border))
        if pauses == "ruled":
            over = _whole_frames(len(quiet) * FRAME_S / 2 + SOFTER_S - most_s)
            for frame in dict.fromkeys(each // 2 for each in quiet):
                spoken = int(np.searchsorted(ends, frame, "right"))
                if over and durations[spoken] > 1 and {2 * frame, 2 * frame + 1} <= set(quiet):
                    left_out.append(frame)
                    durations[spoken] -= 1
                    over -= 1
            quiet = [frame for frame in quiet if frame // 2 not in left_out]
        lacking = _whole_frames(least_s - len(quiet) * FRAME_S / 2)
        if lacking or pauses == "ruled":
            silent[quiet] = True
        borders += [border] * lacking
        durations[first + 1] += lacking
        starts = min(max(ends[first], -(-quiet_from // 2)), border)
        stops = max(min(ends[stop], quiet_to // 2), border)
        spare = stops - starts + lacking - (stop - first)
        if lacking and spare >= 0:  # the sound on either side of the silence belongs to the words
            durations[first] += starts - ends[first]
            durations[first + 1 : stop + 1] = 1
            durations[first + 1] += spare
            durations[stop + 1] += ends[stop] - stops
    frames = np.insert(np.arange(ends[-1]), borders, MADE)
    frames = frames[~np.isin(frames, left_out)]
    f0_hz, energy = (
        np.where(silent, held, curve.reshape(-1)).astype(np.float32).reshape(-1, 2)[frames]
        for curve, held in ((contours.f0_hz, 0.0), (energy, SILENT_ENERGY))
    )
    made = frames == MADE
    f0_hz[made], energy[made] = 0.0, SILENT_ENERGY
    plain = contours.plain_frames
    return contours._replace(
        aligned=contours.aligned[:, :, np.where(made, 0, frames)],  # the first frame is of the pad
        f0_hz=f0_hz.reshape(1, -1),
        energy=energy.reshape(1, -1),
        durations=durations.astype(contours.durations.dtype).reshape(contours.durations.shape),
        plain_frames=None if plain is None else round(plain * len(frames) / ends[-1]),
    )


def _border_of(energy: Samples, begins: int, ends: int, *, back: bool) -> int:
    """The border between two duration frames at which silence is inserted: where the sound before a mark has
    died away, and the sound after it has not begun.

    Parameters
    ----------
    energy : numpy.ndarray
        float32, shape (2 frames,).
    begins, ends : int
        The duration frame in which the mark begins, and the one after its last.
    back : bool
        Whether the border may lie one frame before the mark.
    """

    def fall(before: int, after: int) -> float:
        return float(
            energy[2 * before - 1 : 2 * before + 1].sum() - energy[2 * after - 1 : 2 * after + 1].sum()
        )

    if back and fall(begins, begins - 1) >= FALL:
        return begins - 1
    while begins < ends and fall(begins, begins + 1) >= FALL:
        begins += 1
    return begins


def _whole_frames(seconds: float) -> int:
    """The least number of duration frames (25 ms) that last `seconds`; 0 for a negative time."""
    return max(0, int(np.ceil(round(seconds / FRAME_S, 6))))


def _within(token_ids: Sequence[int]) -> Iterator[tuple[int, int, tuple[float, float]]]:
    """For each run of marks between two sounds: the index of its first mark, the index after its last mark,
    and the promised range in seconds of the longest pause among its marks."""
    at = 0
    for silent, ids in groupby(token_ids, _RANGES_S.__contains__):
        first, at = at, at + len(tuple(ids))
        range_s = max(_RANGES_S[each] for each in token_ids[first:at]) if silent else (0.0, 0.0)
        if range_s[0] and first and at < len(token_ids):
            yield first, at, range_s
