"""Which configuration to take, and why: only what is shown to be better takes the place of the default.

A configuration is better if its time to first audio, its computing or its memory is smaller by `MARGIN` or
more, interval and all, while none of the other two is larger and the sound is the same. Ties go to the one
that is listed first, the default: so a comparison that is made again comes to the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from kokoro_lab.lab.bench.ab import ROUNDING_DB, AbComparison, pooled, ratio, ratio_table, warm_table
from kokoro_lab.lab.bench.configurations import Configuration
from kokoro_lab.lab.results import Check, NegativeControl
from kokoro_lab.metrics.paired_ratio import PairedRatio

MARGIN = 0.05
"""A gain below this is not worth another configuration; a loss below it is none."""
MEMORY_MARGIN = 0.2
"""Peaks of resident memory differ by a tenth from one process to the next, and one process speaks all texts
of a repetition: the interval over texts does not know of that."""
SAME_PESQ = 4.5
"""From here on nobody hears a difference: int8 against float is at 4.56 at worst."""
CONFIDENCE = 0.95
"""For all comparisons together: each is made at Bonferroni's share of the rest."""
TTFA, COMPUTING = "ttfa_s", "wall_s"
"""Seconds to the first sample of speech, and to the last: `trial.Trial`."""
MEMORY = "rss_peak_mb"
"""Peak of resident memory while a text is spoken."""
FIGURES = {"TTFA": TTFA, "computing": COMPUTING, "memory": MEMORY}


@dataclass(frozen=True, slots=True)
class Verdict:
    """One configuration against the one that was ahead of it.

    Parameters
    ----------
    name, against : str
    better : bool
        Whether it takes the other's place.
    reason : str
        What decided.
    ttfa, computing : PairedRatio
        Over the other's; below 1 it takes less.
    memory : PairedRatio
        Peak of resident memory while a text is spoken, over the other's.
    """

    name: str
    against: str
    better: bool
    reason: str
    ttfa: PairedRatio
    computing: PairedRatio
    memory: PairedRatio


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The configuration to take. `verdicts` has all others that were measured, in order."""

    configuration: Configuration
    reason: str
    verdicts: tuple[Verdict, ...]

    @property
    def table(self) -> pd.DataFrame:
        """The verdicts, a row each configuration."""
        rows = {
            v.name: {
                "against": v.against,
                "TTFA": str(v.ttfa),
                "computing": str(v.computing),
                "memory": str(v.memory),
                "better": v.better,
                "reason": v.reason,
            }
            for v in self.verdicts
        }
        return pd.DataFrame(rows).T


def recommend(comparison: AbComparison) -> Recommendation:
    """The configuration to take.

    Each in turn is held against the one that is ahead, and takes its place if it is better.
    """
    ahead, *others = comparison.configurations
    confidence = 1 - (1 - CONFIDENCE) / max(1, 2 * len(others))
    verdicts: list[Verdict] = []
    for candidate in others:
        verdict = _verdict(comparison, candidate.name, ahead.name, confidence)
        verdicts.append(verdict)
        if verdict.better:
            ahead = candidate
    won = [v for v in verdicts if v.better]
    if won:
        reason = f"{won[-1].name}: {won[-1].reason}."
    else:
        reason = f"{ahead.name}: none of {len(others)} others is better by {MARGIN:.0%}, interval and all."
    return Recommendation(ahead, reason, tuple(verdicts))


def _verdict(comparison: AbComparison, name: str, against: str, confidence: float) -> Verdict:
    ttfa = ratio(comparison, name, TTFA, against, confidence)
    computing = ratio(comparison, name, COMPUTING, against, confidence)
    memory = ratio(comparison, name, MEMORY, against, confidence)
    better, reason = _weighed(ttfa, computing, memory)
    sound = sound_of(comparison, name)
    if better and sound:
        better, reason = False, f"{reason}, but {sound}"
    return Verdict(name, against, better, reason, ttfa, computing, memory)


def _weighed(ttfa: PairedRatio, computing: PairedRatio, memory: PairedRatio) -> tuple[bool, str]:
    """Whether something is gained and nothing lost, and what."""
    figures = {"TTFA": ttfa, "computing": computing}
    gains = [f"{name} {r}" for name, r in figures.items() if r.high < 1 - MARGIN]
    losses = [f"{name} {r}" for name, r in figures.items() if not r.high < 1 + MARGIN]
    if memory.high < 1 - MEMORY_MARGIN:
        gains.append(f"memory {memory}")
    if not memory.high < 1 + MEMORY_MARGIN:
        losses.append(f"memory {memory}")
    if not gains:
        few = min(ttfa.units, computing.units)
        return False, "nothing is gained" if np.isfinite(ttfa.high) else f"{few} texts show nothing"
    if losses:
        return False, f"gains {', '.join(gains)}; may lose {', '.join(losses)}"
    return True, f"gains {', '.join(gains)}"


def sound_of(comparison: AbComparison, name: str) -> str:
    """What is wrong with its sound beside the first configuration's; empty if nothing is."""
    own = comparison.of(name)
    if not own.same_again.astype(bool).all():
        return "it does not speak a text twice alike"
    if (own.longer_s != 0).any():
        return "it speaks at another pace: 31_perceptual_gate judges that"
    heard = own[own.snr_db < ROUNDING_DB].pesq.dropna()
    if (heard < SAME_PESQ).any():
        return f"it sounds different: PESQ {heard.min():.2f}"
    return ""


def judge(comparisons: Sequence[AbComparison]) -> list[Check]:
    """What must hold: enough was measured, nobody is recommended for other sound, repeating agrees."""
    whole = pooled(comparisons)
    chosen = recommend(whole).configuration.name
    again = [recommend(each).configuration.name for each in comparisons]
    predictions = whole.trials.groupby(["repetition", "system", "text_number"]).size()
    return [
        Check("configurations_count", len(whole.configurations), low=2),
        Check("predictions_of_a_text_count", int(predictions.min()), low=2),
        Check("recommended_sounds_different_count", float(bool(sound_of(whole, chosen))), high=0),
        Check("repetitions_that_recommend_another_count", sum(name != chosen for name in again), high=0),
    ]


def figures_of(comparison: AbComparison) -> dict[str, float]:
    """Medians and ratios of each configuration, for a result; and of sessions for the next segment, where the
    default has none."""
    found: dict[str, float] = {}
    for name, row in warm_table(comparison).iterrows():
        found |= {f"{name} {figure}": float(value) for figure, value in row.items()}
    for title, figure in FIGURES.items():
        for name, row in ratio_table(comparison, figure).iterrows():
            found |= {f"{name} {title} {end}": float(row[end]) for end in ("ratio", "low", "high")}
    default, *others = comparison.configurations
    dual = [c.name for c in others if c.config.next_threads]
    if dual and not default.config.next_threads:
        # The best: while it is not shown to gain anything, they are rightly off. Of a few texts nothing is
        upper = ratio_table(comparison, COMPUTING).high
        found["next_sessions_computing_upper_95_ratio"] = min(float(upper[name]) for name in dual)
    return found


def details_of(comparisons: Sequence[AbComparison]) -> dict[str, object]:
    """What a result keeps in words: the recommendation, that of each repetition, and who is not there."""
    whole = pooled(comparisons)
    found = recommend(whole)
    return {
        "recommendation": {"configuration": found.configuration.name, "reason": found.reason},
        "recommended_by_each_repetition": [recommend(each).configuration.name for each in comparisons],
        "verdicts": found.table.T.to_dict(),
        "unavailable": dict(whole.unavailable),
        "configurations": dict(whole.facts),
    }


def ran_with(comparison: AbComparison) -> dict[str, object]:
    """What the default ran with, as `results.Run.conclude` takes it."""
    return dict(comparison.facts[comparison.default])


def controls(comparison: AbComparison) -> list[NegativeControl]:
    """Configurations that are not there: which of them may be recommended is known."""

    def wins(**changes: object) -> bool:
        return recommend(_with_twin(comparison, **changes)).configuration.name == "twin"

    half = {TTFA: 0.5, COMPUTING: 0.5}
    uneven = {TTFA: "uneven", COMPUTING: "uneven"}
    return [
        NegativeControl("half the time and the same sound is recommended", wins(**half)),
        NegativeControl("the default under another name is not", not wins()),
        NegativeControl("half the time and more noise is not", not wins(**half, snr_db=5.0, pesq=3.0)),
        NegativeControl("half the time and another pace is not", not wins(**half, longer_s=0.025)),
        NegativeControl(
            "half the time and another second prediction is not", not wins(**half, same_again=False)
        ),
        NegativeControl("half the time and twice the memory is not", not wins(**half, rss_peak_mb=2.0)),
        NegativeControl("half the time for one text and 6 % more for the others is not", not wins(**uneven)),
    ]


def _with_twin(comparison: AbComparison, **changes: object) -> AbComparison:
    """The first configuration and its twin; times and memory are multiplied, the rest is set."""
    first = comparison.configurations[0]
    own = comparison.trials[comparison.trials.system == first.name]
    twin = own.assign(system="twin")
    for name, change in changes.items():
        if change == "uneven":
            one = (own.text_number == own.text_number.min()) & (own.repetition == own.repetition.min())
            twin[name] = own[name] * np.where(one, 0.5, 1.06)
        elif name in FIGURES.values():
            twin[name] = own[name] * change
        else:
            twin[name] = change
    return AbComparison(
        (first, Configuration("twin", first.config)),
        comparison.starts,
        pd.concat([own, twin], ignore_index=True),
    )
