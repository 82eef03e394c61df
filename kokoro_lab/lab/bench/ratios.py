"""Two systems on the same texts: ratios text by text, their middle and their spread.

Times describe a machine and what else it was doing; a ratio of two measurements of one text, taken one
after the other, describes the systems.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bench.trial import Trial

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
