"""Decides whether the chosen settings are adopted: comparison with the defaults, rule, and controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from kokoro_lab.lab.compare.comparison import Comparison, Start, compare, pooled, ratio
from kokoro_lab.lab.compare.configurations import Configuration
from kokoro_lab.lab.compare.difference import noise_at_the_end
from kokoro_lab.lab.compare.engine_process import EngineFailed
from kokoro_lab.lab.results import NegativeControl
from kokoro_lab.lab.tuning import candidate
from kokoro_lab.lab.tuning.candidate import (
    CANDIDATE,
    COSTS,
    DEFAULTS,
    MARGINS,
    OBJECTIVES,
    excess_db_of,
    figures_of,
)
from kokoro_lab.metrics.intervals import FEWEST_UNITS, Estimate
from kokoro_lab.typed import require_range

CONFIDENCE = 1 - 0.05 / len(OBJECTIVES)
"""Confidence of each interval, so that all three hold with 95 % (Bonferroni)."""
RULE = (
    "Adopted if every cost, as a ratio to the defaults', has its whole interval below its margin "
    f"({candidate.MARGINS_SAID}), one of them below 1, and every text sounds as theirs: "
    f"{candidate.SNR_LOW_DB:g} dB SNR or more, or PESQ {candidate.PESQ_LOW:g} or more."
)


@dataclass(frozen=True, slots=True)
class DefaultsComparison:
    """How the candidate compares with the defaults on the same texts.

    Parameters
    ----------
    ratios : mapping of str to Estimate
        Objective → candidate ÷ defaults.
    excess_db : float
        `CandidateFigures.excess_db`: at or below 0, the audio counts as equal to the defaults'.
    """

    ratios: Mapping[str, Estimate]
    excess_db: float

    @property
    def worst(self) -> float:
        """For each cost, the upper end of its interval is divided by its margin; this is the largest of these
        quotients. Below 1, no cost is worse."""
        return max(cost.high / MARGINS[name] for name, cost in self.ratios.items())

    @property
    def adopted(self) -> bool:
        """Whether `RULE` holds."""
        better = any(cost.high < 1 for cost in self.ratios.values())
        return self.worst < 1 and better and self.excess_db <= 0

    @property
    def gains(self) -> dict[str, float]:
        """By how many percent each cost is lower, as an estimate and as a lower bound, for results."""
        found = {}
        for name, cost in self.ratios.items():
            found[f"{name}_gain_percent"] = 100 * (1 - cost.value)
            found[f"{name}_gain_least_percent"] = 100 * (1 - cost.high)
        return found


def compared_with_defaults(
    both: Sequence[Configuration], texts: Sequence[str], rounds: int, start: Start
) -> DefaultsComparison:
    """Compare the defaults and the candidate, in fresh processes in each round, interleaved text by text.

    Parameters
    ----------
    both : sequence of Configuration
        `DEFAULTS` and `CANDIDATE`.
    texts : sequence of str
        Three or more texts that were not used for choosing.
    rounds : int
        Three or more: a process has one memory peak, so the interval of memory is over rounds.

    Raises
    ------
    EngineFailed
        One of the two engines did not speak.
    ParameterError
        There are fewer than three texts or rounds.
    """
    found: list[Comparison] = []
    for number in range(rounds):
        found.append(compare(both, texts, start, repetition=number))
        if failed := found[-1].unavailable:
            raise EngineFailed(failed[CANDIDATE])
    trials = pooled(found).trials
    return DefaultsComparison(ratios_of(trials), figures_of(trials).excess_db)


def ratios_of(trials: pd.DataFrame) -> dict[str, Estimate]:
    """Objective → candidate ÷ defaults. Intervals of times are over texts. The interval of memory is over
    rounds, since a process has one peak.

    Raises
    ------
    ParameterError
        There were fewer than three texts or rounds.
    """
    for name, column in (("texts", "text_number"), ("rounds", "repetition")):
        message = "So few say nothing about another one."
        require_range(name, trials[column].nunique(), FEWEST_UNITS, message=message)
    peaks = trials.groupby(["system", "repetition"]).rss_peak_mb.transform("max")
    trials = trials.assign(rss_peak_mb=peaks)
    units = {"ttfa": ["text_number"], "rtf": ["text_number"], "memory": ["repetition"]}
    return {
        name: ratio(trials, CANDIDATE, cost, DEFAULTS, confidence=CONFIDENCE, units=units[name])
        for name, cost in COSTS.items()
    }


def made_up_controls() -> list[NegativeControl]:
    """Candidates that are worse on purpose, on figures that scatter by 2 %; none may be adopted."""
    places = [(name, r, t) for name in (DEFAULTS, CANDIDATE) for r in range(6) for t in range(12)]
    ones = pd.DataFrame(places, columns=["system", "repetition", "text_number"]).assign(round=0)
    scatter = np.random.default_rng(0).standard_normal((len(ones), len(COSTS)))
    ones[list(COSTS.values())] = 1 + 0.02 * scatter

    def judged(factors: Mapping[str, float], excess_db: float = 0.0) -> bool:
        changed = ones.copy()
        for cost, factor in factors.items():
            changed.loc[changed.system == CANDIDATE, cost] *= factor
        return DefaultsComparison(ratios_of(changed), excess_db).adopted

    better = dict.fromkeys(COSTS.values(), 0.9)
    noisy_end = noise_at_the_end()
    noisy_end_db = excess_db_of(noisy_end["snr_db"], noisy_end["pesq"])
    faults = {
        "the defaults against themselves": judged({}),
        "a tenth sooner, with a tenth more memory": judged(better | {"rss_peak_mb": 1.1}),
        "a tenth less computing, heard a tenth later": judged(better | {"ttfa_s": 1.1}),
        "a tenth better in everything, and it sounds otherwise": judged(better, excess_db=6.0),
        "a tenth better in everything, and noise at the end": judged(better, excess_db=noisy_end_db),
    }
    # A rule that never adopts would catch them all, so one must be adopted
    blind = NegativeControl("a tenth better in everything is adopted", caught=judged(better))
    return [
        *(NegativeControl(f"not adopted: {name}", caught=not adopted) for name, adopted in faults.items()),
        blind,
    ]
