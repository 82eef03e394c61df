"""Two decodes of the same prosody, compared as they are heard."""

from __future__ import annotations

import numpy as np
import pandas as pd

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.dsp import EdgeTrimmer
from kokoro_lab.metrics.perceptual import log_spectral_distance_db, pesq_wb, stoi

RESAMPLES = 2_000


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
    """95 % interval of a mean, by a bootstrap over texts: utterances of one text are not independent."""
    by_text = table.groupby("text")[column].agg(["sum", "count"]).to_numpy()
    draws = np.random.default_rng(0).integers(0, len(by_text), (RESAMPLES, len(by_text)))
    sums, counts = by_text[draws].sum(1).T
    low, high = np.quantile(sums / counts, (0.025, 0.975))
    return float(low), float(high)
