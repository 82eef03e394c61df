"""The configuration that was chosen, compared with the defaults once more, and adopted only if it holds.

A search picks what measured best, which is partly luck; so other texts are spoken, in fresh processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bench.engine_process import EngineProcess
from kokoro_lab.lab.results import NegativeControl
from kokoro_lab.lab.tuning.candidates import (
    MARGINS,
    MARGINS_SAID,
    OBJECTIVES,
    PESQ_LOW,
    SNR_LOW_DB,
    CandidatePair,
    figures_of,
    peak_mb,
)
from kokoro_lab.metrics.paired_ratio import FEWEST_UNITS, PairedRatio, paired_ratio

CONFIDENCE = 1 - 0.05 / len(OBJECTIVES)
"""Of each interval, so that all three are right 95 times of 100 (Bonferroni)."""
COSTS = ("ttfa_s", "rtf", "rss_peak_mb")
"""What is compared, by its name in a `Trial`, in the order of the objectives."""
RULE = (
    "Adopted if every cost, as a ratio to the defaults', has its whole interval below its margin "
    f"({MARGINS_SAID}), one of them below 1, and every text sounds as theirs: {SNR_LOW_DB:g} dB SNR or more, "
    f"or PESQ {PESQ_LOW:g} or more."
)

Start = Callable[[], EngineProcess]


@dataclass(frozen=True, slots=True)
class DefaultsComparison:
    """Candidate and defaults on the same texts.

    Parameters
    ----------
    table : pandas.DataFrame
        A row a round and text: ttfa_s, rtf and rss_peak_mb of `default` and `candidate`, in columns such as
        `default_ttfa_s`; of the latter the peak of all the round.
    ratios : mapping
        Objective → candidate ÷ defaults, with its interval.
    excess_db : float
        How far beyond the limit the audio is; at or below 0 it is within.
    """

    table: pd.DataFrame
    ratios: Mapping[str, PairedRatio]
    excess_db: float

    @property
    def worst(self) -> float:
        """The upper end of an interval over its margin, of the cost where that is most; below 1, no cost is
        worse."""
        return max(ratio.high / MARGINS[name] for name, ratio in self.ratios.items())

    @property
    def adopted(self) -> bool:
        """Whether `RULE` holds."""
        better = any(ratio.high < 1 for ratio in self.ratios.values())
        return self.worst < 1 and better and self.excess_db <= 0

    @property
    def gains(self) -> dict[str, float]:
        """By how much each cost is lower, in per cent, and by how much at least, for results."""
        found = {}
        for name, ratio in self.ratios.items():
            found[f"{name}_gain_percent"] = 100 * (1 - ratio.ratio)
            found[f"{name}_gain_least_percent"] = 100 * (1 - ratio.high)
        return found

    def __str__(self) -> str:
        said = ", ".join(f"{name} × {ratio}" for name, ratio in self.ratios.items())
        return f"{'adopted' if self.adopted else 'not adopted'}: {said}"


def compare(
    default: Start,
    candidate: Start,
    texts: Sequence[str],
    rounds: int,
    turns: Callable[[EngineProcess, EngineProcess, Sequence[str]], Iterator[CandidatePair]],
    *,
    done: Callable[[], None] = lambda: None,
) -> DefaultsComparison:
    """Both in fresh processes each round, the texts in turn.

    Parameters
    ----------
    default, candidate : callable
        Each makes a process that has not been started.
    texts : sequence of str
        Three or more, on which nothing was chosen.
    rounds : int
        Three or more: a process has one peak of memory, so rounds are what its interval stands on.
    turns : callable
        `candidates.in_turns`.
    done : callable
        Told after each text.

    Raises
    ------
    EngineFailed
        One of them did not speak.
    ParameterError
        Too few texts or rounds.
    """
    rows: list[dict[str, float]] = []
    excess_db = 0.0
    for number in range(rounds):
        with default() as one, candidate() as other:
            pairs = []
            for pair in turns(one, other, texts):
                pairs.append(pair)
                done()
        excess_db = max(excess_db, figures_of(pairs).excess_db)
        rows += _rows(number, pairs)
    table = pd.DataFrame(rows)
    return DefaultsComparison(table, ratios_of(table), excess_db)


def _rows(number: int, pairs: Sequence[CandidatePair]) -> Iterator[dict[str, float]]:
    peaks_mb = {
        "default": peak_mb([pair.default.trial for pair in pairs]),
        "candidate": peak_mb([pair.candidate.trial for pair in pairs]),
    }
    for text, pair in enumerate(pairs):
        row: dict[str, float] = {"round": number, "text": text}
        for who, trial in (("default", pair.default.trial), ("candidate", pair.candidate.trial)):
            row |= {f"{who}_ttfa_s": trial.ttfa_s, f"{who}_rtf": trial.rtf}
            row |= {f"{who}_rss_peak_mb": peaks_mb[who]}
        yield row


def ratios_of(table: pd.DataFrame) -> dict[str, PairedRatio]:
    """Ratios of a comparison: times drawn by text, memory by round.

    Raises
    ------
    ParameterError
        Fewer than three texts or rounds.
    """
    for name in ("text", "round"):
        if table[name].nunique() < FEWEST_UNITS:
            raise ParameterError(
                "So few say nothing about another one.",
                field=f"{name}s",
                value=table[name].nunique(),
                allowed=f"{FEWEST_UNITS} or more",
            )
    of = partial(paired_ratio, confidence=CONFIDENCE)
    units = {"rss_peak_mb": list(table["round"])}
    return {
        name: of(table[f"default_{cost}"], table[f"candidate_{cost}"], units.get(cost, list(table["text"])))
        for name, cost in zip(OBJECTIVES, COSTS, strict=True)
    }


def controls(texts: int = 12, rounds: int = 6, spread: float = 0.02, seed: int = 0) -> list[NegativeControl]:
    """Candidates that are worse on purpose, on figures that scatter by `spread`; none may be adopted."""
    draw = np.random.default_rng(seed)
    ones = pd.DataFrame([{"round": r, "text": t} for r in range(rounds) for t in range(texts)])
    for cost in COSTS:
        ones[f"default_{cost}"], ones[f"candidate_{cost}"] = 1 + spread * draw.standard_normal((2, len(ones)))

    def judged(factors: Mapping[str, float], excess_db: float = 0.0) -> bool:
        changed = ones.assign(**{f"candidate_{c}": ones[f"candidate_{c}"] * f for c, f in factors.items()})
        return DefaultsComparison(changed, ratios_of(changed), excess_db).adopted

    better = dict.fromkeys(COSTS, 0.9)
    faults = {
        "the defaults against themselves": judged({}),
        "a tenth sooner, with a tenth more memory": judged(better | {"rss_peak_mb": 1.1}),
        "a tenth less computing, heard a tenth later": judged(better | {"ttfa_s": 1.1}),
        "a tenth better in everything, and it sounds otherwise": judged(better, excess_db=6.0),
    }
    # A rule that adopts nothing would catch them all
    blind = NegativeControl("a tenth better in everything is adopted", caught=judged(better))
    return [
        *(NegativeControl(f"not adopted: {name}", caught=not adopted) for name, adopted in faults.items()),
        blind,
    ]
