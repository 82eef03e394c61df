"""Measures a candidate beside the defaults: its costs, the difference of its sound, and their margins.

Times also depend on the machine's other work. The ratio of two trials of one text, one right after the other,
depends only on the two configurations. So costs are compared as ratios to the defaults, which speak every
text right before or after the candidate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd

from kokoro_lab.errors import TuningError
from kokoro_lab.lab.compare.comparison import ratio, take_turns, trials_of
from kokoro_lab.lab.compare.engine_process import EngineFailed, EngineProcess

MARGINS = {"ttfa": 1.02, "rtf": 1.02, "memory": 1.05}
"""Margin of each cost as a ratio to the defaults: time to first audio, real-time factor, peak resident
memory. A cost below its margin is not worse. That of memory is larger, since two equal processes differ by a
few percent."""
OBJECTIVES = tuple(MARGINS)
COSTS = {"ttfa": "ttfa_s", "rtf": "rtf", "memory": "rss_peak_mb"}
"""Objective → the name of its figure in a `Trial`."""
MARGINS_SAID = ", ".join(f"{name} {margin:g}" for name, margin in MARGINS.items())
SNR_LOW_DB = 40.0
PESQ_LOW = 4.5
"""Limits of PESQ and SNR (dB). The audio of a candidate counts as equal to that of the defaults if one of the
two figures, with the defaults as the reference, reaches its limit. The highest PESQ is 4.64."""
SNR_MOST_DB = 200.0
"""The SNR that equal samples count as."""
ANOTHER_LENGTH_DB = -100.0
"""The SNR that audio of another length counts as."""
DEFAULTS, CANDIDATE = "defaults", "candidate"
"""Names of the two systems in trials."""


@dataclass(frozen=True, slots=True)
class CandidateFigures:
    """The figures of a candidate that was measured beside the defaults.

    Parameters
    ----------
    ttfa_ratio, rtf_ratio, memory_ratio : float
        Candidate ÷ defaults; under 1 is better. Ratios of times are geometric means over texts; the ratio of
        memory is that of the peaks.
    ttfa_ms, rtf, memory_mb : float
        The candidate's median time to first audio, median real-time factor, and memory peak.
    snr_db, pesq : float
        Figures of the text whose audio differs most from the defaults'. PESQ is not a number if every text
        reaches the limit of the SNR.
    """

    ttfa_ratio: float
    rtf_ratio: float
    memory_ratio: float
    ttfa_ms: float
    rtf: float
    memory_mb: float
    snr_db: float
    pesq: float

    @property
    def ratios(self) -> tuple[float, float, float]:
        """The three ratios, in the order of `OBJECTIVES`."""
        return self.ttfa_ratio, self.rtf_ratio, self.memory_ratio

    @property
    def excess_db(self) -> float:
        """`excess_db_of` the text whose audio differs most. At or below 0, the candidate may be chosen."""
        return excess_db_of(self.snr_db, self.pesq)


def excess_db_of(snr_db: float, pesq: float) -> float:
    """By how many dB the SNR misses its limit; 0 if PESQ reaches the limit of PESQ."""
    return 0.0 if pesq >= PESQ_LOW else SNR_LOW_DB - snr_db


class CandidateFailed(TuningError):
    """A candidate did not speak; the defaults still do."""

    code = "candidate_failed"


def measured(
    default: EngineProcess, start: Callable[[], EngineProcess], texts: Sequence[str]
) -> CandidateFigures:
    """Measure a candidate in a process of its own, beside the defaults.

    Raises
    ------
    CandidateFailed
        The candidate did not load or speak, or its process died.
    EngineFailed
        The defaults did not speak.
    """
    try:
        with start() as candidate:
            candidate.warm()
            trials, failed = take_turns({DEFAULTS: default, CANDIDATE: candidate}, texts)
    except EngineFailed as error:
        if default.alive:
            raise CandidateFailed(str(error)) from error
        raise
    if failed:
        raise CandidateFailed(failed[CANDIDATE])
    return figures_of(trials)


def figures_of(trials: pd.DataFrame) -> CandidateFigures:
    """The figures of candidate and defaults, from the `trials` of `take_turns`."""
    own, default = trials_of(trials, CANDIDATE), trials_of(trials, DEFAULTS)
    ttfa, rtf = (ratio(trials, CANDIDATE, COSTS[name], DEFAULTS).value for name in ("ttfa", "rtf"))
    snr_db = float(own.snr_db.fillna(ANOTHER_LENGTH_DB).clip(upper=SNR_MOST_DB).min())
    return CandidateFigures(
        ttfa_ratio=ttfa,
        rtf_ratio=rtf,
        memory_ratio=float(own.rss_peak_mb.max() / default.rss_peak_mb.max()),
        ttfa_ms=1000 * float(own.ttfa_s.median()),
        rtf=float(own.rtf.median()),
        memory_mb=float(own.rss_peak_mb.max()),
        snr_db=snr_db,
        pesq=float(own.pesq.min()) if ANOTHER_LENGTH_DB < snr_db < SNR_LOW_DB else math.nan,
    )
