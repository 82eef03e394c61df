"""Two systems on the same texts: ratios text by text, their middle and their spread.

Times describe a machine and what else it was doing; a ratio of two measurements of one text, taken one
after the other, describes the systems.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import bootstrap

from kokoro_lab.bench.trial import Trial
from kokoro_lab.errors import ParameterError
from kokoro_lab.metrics.noninferiority import FEWEST_TEXTS

FIRST_AUDIO = "TTFA, peer / ours"
"""How many times sooner we are heard: higher is better for us."""
REAL_TIME = "RTF, ours / peer"
"""Lower is better for us. A peer that cuts silence away has less audio to divide by, and looks slower."""
COMPUTING = "computing, ours / peer"
"""Seconds for the whole text; lower is better for us. What is cut away cannot change it."""


def ratios(trials: Sequence[Trial], ours: str) -> pd.DataFrame:
    """Ratios of every other system to `ours`.

    Parameters
    ----------
    trials : sequence of Trial
        From one run; every system must have spoken every text once.
    ours : str
        Name of the system that the others are compared with.

    Returns
    -------
    pandas.DataFrame
        A row for each peer and each of the three ratios; columns p5, p50, p95, min, max and texts.

    Raises
    ------
    ParameterError
        A text lacks a partner: a ratio over what happens to be there compares different texts.
    """
    spoken = {(t.system, t.text_number): t for t in trials}
    numbers = sorted({t.text_number for t in trials})
    peers = [name for name in dict.fromkeys(t.system for t in trials) if name != ours]
    rows = {}
    for peer in peers:
        alone = [n for n in numbers if (ours, n) not in spoken or (peer, n) not in spoken]
        if alone:
            raise ParameterError(f"Texts {alone} were not spoken by both {ours} and {peer}.", field="trials")
        pairs = [(spoken[ours, n], spoken[peer, n]) for n in numbers]
        rows[peer, FIRST_AUDIO] = spread([b.ttfa_s / a.ttfa_s for a, b in pairs])
        rows[peer, REAL_TIME] = spread([a.rtf / b.rtf for a, b in pairs])
        rows[peer, COMPUTING] = spread([a.wall_s / b.wall_s for a, b in pairs])
    return pd.DataFrame(rows).T.astype({"texts": int})


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, both ends, and the 5th and 95th percentile, which under 20 values are nearly the ends."""
    of = pd.Series(values, dtype=float)
    return {
        "p5": of.quantile(0.05),
        "p50": of.median(),
        "p95": of.quantile(0.95),
        "min": of.min(),
        "max": of.max(),
        "texts": len(values),
    }


@dataclass(frozen=True, slots=True)
class PairedRatio:
    """A figure of the candidate over the reference's, text by text.

    Parameters
    ----------
    ratio : float
        Geometric mean over texts; below 1 the candidate's is smaller.
    low, high : float
        Confidence interval; 0 and infinity where there are too few texts for one.
    texts : int
        How many it stands on.
    """

    ratio: float
    low: float
    high: float
    texts: int

    def __str__(self) -> str:
        return f"{self.ratio:.3f} ({self.low:.3f} to {self.high:.3f})"


def paired_ratio(
    reference: Sequence[float],
    candidate: Sequence[float],
    texts: Sequence[Hashable],
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> PairedRatio:
    """How large a figure is beside the reference's, with its two-sided interval.

    Parameters
    ----------
    reference, candidate : sequence of float
        Positive figures, in pairs: of the same text, measured one after the other.
    texts : sequence
        What text each pair is of. A text counts once, by the median of its pairs; texts are drawn.
    confidence : float
        Of the interval.

    Raises
    ------
    ParameterError
        Figures that are not positive or differ in number.

    Notes
    -----
    The mean of the logarithms, by Efron's BCa bootstrap (1987) as `scipy.stats.bootstrap` has it.
    """
    before, after = np.asarray(reference, float), np.asarray(candidate, float)
    if not len(before) == len(after) == len(texts) > 0 or not (np.r_[before, after] > 0).all():
        raise ParameterError("Only positive figures can be compared, in pairs.", field="candidate")
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    of_text = [numbers[text] for text in texts]
    logs = pd.Series(np.log(after / before)).groupby(of_text).median().to_numpy()
    mean = float(logs.mean())
    low, high = -np.inf, np.inf
    if len(logs) >= FEWEST_TEXTS:
        low = high = mean
        if np.ptp(logs) > 1e-12:
            drawn = bootstrap((logs,), np.mean, confidence_level=confidence, rng=np.random.default_rng(seed))
            low, high = drawn.confidence_interval
            if not np.isfinite([low, high]).all():  # nearly all texts alike: BCa has nothing to go by
                low, high = float(logs.min()), float(logs.max())
    return PairedRatio(float(np.exp(mean)), float(np.exp(low)), float(np.exp(high)), len(logs))
