"""Measures whether the places where audio was joined stand out from other places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kokoro_lab.errors import ParameterError
from kokoro_lab.extras import imported
from kokoro_lab.metrics.recordings import require_recording

ndimage = imported("scipy.ndimage", extra="lab")

Samples = npt.NDArray[np.float32]

NEAR_S, AROUND_S = 0.001, 0.010
SILENCE = 1e-6
USUAL_SHARE = 0.999
"""The share of a clip's places that stay below the limit for its seams."""
NATURAL_ROOM = 1.1
"""How much more bent a seam may be than the same place in speech that was not divided."""


def seam_scores(samples: Samples, sample_rate_hz: int, places: Sequence[int]) -> npt.NDArray[np.float64]:
    """How much each place stands out: the largest second difference within 1 ms, divided by its RMS within 10
    ms.

    A click, a gap or a jump in the waveform has a large second difference that speech around it has not.

    Returns
    -------
    numpy.ndarray
        float64, one ratio for each of `places` (sample numbers), at least 0.
    """
    bend = np.abs(np.diff(samples.astype(np.float64), n=2, prepend=samples[:1], append=samples[-1:]))
    near, around = (round(reach * sample_rate_hz) for reach in (NEAR_S, AROUND_S))
    scores = []
    for place in places:
        if not 0 <= place < len(samples):
            raise ParameterError("A place is outside of the recording.", field="places", value=place)
        peak = bend[max(0, place - near) : place + near].max()
        background = bend[max(0, place - around) : place + around]
        scores.append(peak / (np.sqrt((background**2).mean()) + SILENCE))
    return np.array(scores)


def seam_rank(
    samples: Samples, sample_rate_hz: int, seams: Sequence[int], *, others: int = 200, seed: int = 0
) -> npt.NDArray[np.float64]:
    """The rank of each seam's score among places drawn at random, from 0 to 1.

    Seams that cannot be told from other places rank 0.5 on average (the area under the curve of a
    detector that looks for them); clicks rank near 1.
    """
    places = np.random.default_rng(seed).integers(0, len(samples), others)
    among = seam_scores(samples, sample_rate_hz, [int(p) for p in places])
    scores = seam_scores(samples, sample_rate_hz, seams)
    ranks: npt.NDArray[np.float64] = (scores[:, None] > among).mean(1) + 0.5 * (
        scores[:, None] == among
    ).mean(1)
    return ranks


def seam_excess(
    samples: Samples,
    sample_rate_hz: int,
    seams: Sequence[int],
    natural: npt.NDArray[np.float64] | None = None,
) -> npt.NDArray[np.float64]:
    """Each seam's score divided by the score below which 99.9 % of this clip's own samples stay.

    Under 1, a seam is no more bent than speech is by itself somewhere in nearly every clip of its length.
    Some seams fall on a place that is sharp by itself, such as the onset of a plosive. If the same speech is
    known undivided, pass its score at that place as `natural`: a seam that is sharper by less than a tenth
    then also stays under 1.

    Parameters
    ----------
    samples : numpy.ndarray
        float32 (n,).
    sample_rate_hz : int
    seams : sequence of int
        Sample numbers.
    natural : numpy.ndarray, optional
        float64, the score at each of `seams` in the same speech, undivided; 0 if it is not known.

    Returns
    -------
    numpy.ndarray
        float64, one ratio for each of `seams` (sample numbers), at least 0.

    Raises
    ------
    ParameterError
        A seam is outside of the clip, or the clip holds samples that are not finite.
    """
    require_recording(samples)
    usual = np.quantile(_scores_everywhere(samples, sample_rate_hz), USUAL_SHARE)
    allowed = np.full(len(seams), max(float(usual), SILENCE))
    if natural is not None:
        allowed = np.maximum(allowed, NATURAL_ROOM * natural)
    excess: npt.NDArray[np.float64] = seam_scores(samples, sample_rate_hz, seams) / allowed
    return excess


def _scores_everywhere(samples: Samples, sample_rate_hz: int) -> npt.NDArray[np.float64]:
    """`seam_scores` of every sample at once."""
    near, around = (round(reach * sample_rate_hz) for reach in (NEAR_S, AROUND_S))
    bend = np.abs(np.diff(samples.astype(np.float64), n=2, prepend=samples[:1], append=samples[-1:]))
    peak = ndimage.maximum_filter1d(bend, 2 * near, mode="constant")
    power = ndimage.uniform_filter1d(bend**2, 2 * around, mode="constant")
    scores: npt.NDArray[np.float64] = peak / (np.sqrt(np.maximum(power, 0)) + SILENCE)
    return scores
