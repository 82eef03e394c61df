"""The two clips of a pair at one loudness: whatever is louder is heard as better, and as different."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.listening.plan import PassagePair, Samples
from kokoro_lab.metrics.loudness import integrated_lufs, true_peak_dbtp

LISTENING_LUFS = -23.0
"""EBU R 128. Lower than what the engine plays at, so that no limiter is needed, which would work
differently on the two."""
PEAK_DBTP = -1.0


@dataclass(frozen=True, slots=True)
class LevelledPair:
    """A pair at one loudness, and what was done to it.

    Parameters
    ----------
    candidate_gain_db : float
        Taken off or given to the candidate, to be as loud as the reference.
    residual_lu : float
        How much louder the candidate is after that.
    level_lufs : float
        Of both: `LISTENING_LUFS`, or less where a peak would pass −1 dBTP.
    """

    pair: PassagePair
    candidate_gain_db: float
    residual_lu: float
    level_lufs: float


def match_loudness(pair: PassagePair) -> LevelledPair:
    """Both clips at the reference's loudness, then both by one gain at the listening level.

    Raises
    ------
    ParameterError
        A clip is shorter than 0.4 s, or silent: it has no loudness.
    """
    rate = pair.sample_rate_hz
    loudness = {side: integrated_lufs(pair.side(side), rate) for side in ("reference", "candidate")}
    for side, lufs in loudness.items():
        if not np.isfinite(lufs):
            raise ParameterError(f"The {side} of {pair.name!r} is silent.", field=side, value=pair.name)
    candidate_db = loudness["reference"] - loudness["candidate"]
    peak = max(true_peak_dbtp(pair.reference, rate), true_peak_dbtp(pair.candidate, rate) + candidate_db)
    common_db = min(LISTENING_LUFS - loudness["reference"], PEAK_DBTP - peak)
    level = loudness["reference"] + common_db
    levelled = replace(
        pair,
        reference=_gained(pair.reference, common_db),
        candidate=_gained(pair.candidate, common_db + candidate_db),
    )
    residual = integrated_lufs(levelled.candidate, rate) - integrated_lufs(levelled.reference, rate)
    return LevelledPair(levelled, candidate_db, residual, level)


def match_all(pairs: Iterable[PassagePair]) -> list[LevelledPair]:
    """`match_loudness` of each pair."""
    return [match_loudness(pair) for pair in pairs]


def _gained(samples: Samples, gain_db: float) -> Samples:
    return (samples * np.float32(10 ** (gain_db / 20))).astype(np.float32)
