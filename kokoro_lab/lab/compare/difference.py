"""How a text sounds beside the reference: SNR, and PESQ of its worst part."""

from __future__ import annotations

from functools import cache

import numpy as np

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.metrics.perceptual import PESQ_CEILING, SHORTEST_S, pesq_wb, signal_to_difference_db

ROUNDING_DB = 60.0
"""Above this SNR two recordings differ only by rounding, and PESQ gives its highest value, 4.64."""
PESQ_S, PESQ_LAST_S = 12.0, 4.0
"""Seconds of each part of a text that PESQ compares. A last part shorter than `PESQ_LAST_S` belongs to the
part before it. Over a longer stretch, PESQ would average a fault away."""


def difference_of(reference: Samples, candidate: Samples, *, with_pesq: bool = True) -> dict[str, float]:
    """How a text sounds beside the reference.

    Returns
    -------
    dict
        longer_s, how many seconds longer the candidate is; snr_db, of the whole text, NaN if the lengths
        differ; pesq, the least of the text's parts (`PESQ_S`), NaN if the lengths differ, from `ROUNDING_DB`
        on, and for texts shorter than PESQ can compare.
    """
    longer_s = (len(candidate) - len(reference)) / SAMPLE_RATE_HZ
    snr_db = pesq = float("nan")
    if not longer_s:
        snr_db = signal_to_difference_db(reference, candidate)
        if with_pesq and snr_db < ROUNDING_DB and len(reference) >= SHORTEST_S * SAMPLE_RATE_HZ:
            pesq = min(_pesq(reference[part], candidate[part]) for part in _parts(len(reference)))
    return {"snr_db": snr_db, "pesq": pesq, "longer_s": longer_s}


@cache
def noise_at_the_end() -> dict[str, float]:
    """`difference_of` a made-up sound that has loud noise from 13 s on, for negative controls."""
    time_s, draw = np.arange(20 * SAMPLE_RATE_HZ) / SAMPLE_RATE_HZ, np.random.default_rng(0)
    tones = sum(np.sin(2 * np.pi * 150 * number * time_s) / number for number in range(1, 20))
    reference = 0.1 * tones * np.sin(2 * np.pi * 2 * time_s) ** 2  # four syllables a second
    noise = np.where(time_s < 13, 0, 0.1 * draw.standard_normal(len(time_s)))
    return difference_of(reference.astype(np.float32), (reference + noise).astype(np.float32))


def _parts(count: int) -> list[slice]:
    """The parts of a text of `count` samples that PESQ compares."""
    length, least = (round(seconds * SAMPLE_RATE_HZ) for seconds in (PESQ_S, PESQ_LAST_S))
    starts = [start for start in range(0, count, length) if not start or count - start >= least]
    return [slice(start, end) for start, end in zip(starts, [*starts[1:], count], strict=True)]


def _pesq(reference: Samples, candidate: Samples) -> float:
    """PESQ of one part; its highest value if the part differs by rounding alone."""
    if signal_to_difference_db(reference, candidate) >= ROUNDING_DB:
        return PESQ_CEILING
    return pesq_wb(reference, candidate, SAMPLE_RATE_HZ)
