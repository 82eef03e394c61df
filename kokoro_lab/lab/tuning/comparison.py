"""Two decodes of the same prosody, compared as they are heard."""

from __future__ import annotations

import numpy as np
import pandas as pd

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.dsp import EdgeTrimmer
from kokoro_lab.metrics.intervals import rate_of
from kokoro_lab.metrics.perceptual import log_spectral_distance_db, pesq_wb, stoi


def distances(reference: Samples, candidate: Samples) -> dict[str, float]:
    """pesq, stoi, lsd_db of two decodes of the same length."""
    return {
        "pesq": pesq_wb(reference, candidate, SAMPLE_RATE_HZ),
        "stoi": stoi(reference, candidate, SAMPLE_RATE_HZ),
        "lsd_db": log_spectral_distance_db(reference, candidate, SAMPLE_RATE_HZ),
    }


def heard_part(whole: Samples) -> slice:
    """What is left when the silence at both ends is trimmed, as it is before anyone hears it.

    Untrimmed, PESQ weighs how silent the silence is: it reads 3.56 for a word that it gives 4.48 trimmed.
    """
    trimmer = EdgeTrimmer(SAMPLE_RATE_HZ)
    trimmer.push(whole)
    trimmer.flush()
    return slice(trimmer.lead_samples, len(whole) - trimmer.tail_samples)


def mean_interval(table: pd.DataFrame, column: str) -> tuple[float, float]:
    """95 % interval of a mean, texts drawn whole: utterances of one text are not independent.

    It is that of a rate (`rate_of`), the sum of the figure over the number of utterances.
    """
    found = rate_of(table[column], np.ones(len(table)), list(table["text"]))
    return found.low, found.high
