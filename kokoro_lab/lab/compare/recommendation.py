"""Recommends a configuration: one replaces the default only if it is shown to be better.

Three ratios are judged: of TTFA, of computing and of memory. A configuration is better if the whole interval
of one ratio is below 1 by more than its margin (see `MARGINS`), no interval reaches beyond 1 by the margin,
and the sound is the same. Ties go to the one that is listed first, the default, so that a repeated comparison
recommends the same.

Thresholds of text length are tried as well, each with the best configuration on either side. The best of
several configurations is partly the best by chance. So its gain is estimated on texts that were not used to
choose it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import SettingsError
from kokoro_lab.lab.compare.comparison import (
    TEXT,
    Comparison,
    pooled,
    ratio,
    ratio_table,
    texts_in,
    warm_table,
)
from kokoro_lab.lab.compare.configurations import Configuration
from kokoro_lab.lab.compare.difference import ROUNDING_DB, noise_at_the_end
from kokoro_lab.lab.results import Check, NegativeControl
from kokoro_lab.metrics.intervals import Estimate, paired_ratio

MARGIN = 0.05
"""A gain below this is not worth another configuration, and a loss below it does not count."""
MARGINS = {"TTFA": MARGIN, "computing": MARGIN, "memory": 0.2}
"""The margin of each figure. That of memory is larger, since peaks of resident memory differ by a tenth from
one process to the next. One process speaks all texts of a repetition, so the interval over texts does not
contain this difference."""
SAME_PESQ = 4.5
"""PESQ above which nobody hears a difference. The text in which int8 differs most from fp32 has 4.56."""
CONFIDENCE = 0.95
"""Confidence of all comparisons together (Bonferroni's correction)."""
FIGURES = {"TTFA": "ttfa_s", "computing": "wall_s", "memory": "rss_peak_mb"}
"""What is compared, by its name in a `Trial`: seconds to the first sample of speech, and to the last; peak of
resident memory while a text is spoken."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one configuration, compared with the best of those that stand before it in the list.

    Parameters
    ----------
    name, against : str
    better : bool
        Whether this configuration replaces the other one.
    reason : str
        What decided between the two configurations.
    ratios : mapping of str to Estimate
        Name of each of `FIGURES` → the figure of this configuration, divided by that of the other one; below
        1, this configuration takes less.
    """

    name: str
    against: str
    better: bool
    reason: str
    ratios: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The configuration to take. `verdicts` has all others that were measured, in order."""

    configuration: Configuration
    reason: str
    verdicts: tuple[Verdict, ...]

    @property
    def table(self) -> pd.DataFrame:
        """The verdicts, a row for each configuration."""
        rows = {
            v.name: {
                "against": v.against,
                **{title: str(ratio) for title, ratio in v.ratios.items()},
                "better": v.better,
                "reason": v.reason,
            }
            for v in self.verdicts
        }
        return pd.DataFrame(rows).T


def recommend(comparison: Comparison) -> Recommendation:
    """The configuration to take.

    The configurations are judged one after another: each is compared with the best of those before it, and
    takes its place if it is better.
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


def _verdict(comparison: Comparison, name: str, against: str, confidence: float) -> Verdict:
    ratios = {
        title: ratio(comparison.trials, name, figure, against, confidence=confidence)
        for title, figure in FIGURES.items()
    }
    gains, losses = gains_and_losses(ratios)
    better = bool(gains and not losses)
    reason = f"gains {', '.join(gains)}"
    if not gains:
        shown = np.isfinite(ratios["TTFA"].high)
        reason = "nothing is gained" if shown else f"{ratios['TTFA'].units} texts show nothing"
    elif losses:
        reason += f"; may lose {', '.join(losses)}"
    if better and (sound := sound_of(comparison, name)):
        better, reason = False, f"{reason}, but {sound}"
    return Verdict(name, against, better, reason, ratios)


def gains_and_losses(ratios: Mapping[str, Estimate]) -> tuple[list[str], list[str]]:
    """The gains that are shown (the whole interval of a ratio is below 1 by more than its margin), and the
    losses that cannot be excluded (the interval reaches beyond 1 by the margin)."""
    gains = [f"{name} {r}" for name, r in ratios.items() if r.high < 1 - MARGINS[name]]
    losses = [f"{name} {r}" for name, r in ratios.items() if not r.high < 1 + MARGINS[name]]
    return gains, losses


def sound_of(comparison: Comparison, name: str) -> str:
    """How the sound of configuration `name` differs from that of the first one; empty if it does not."""
    own = comparison.of(name)
    if not own.same_again.astype(bool).all():
        return "it does not speak a text twice alike"
    if (own.longer_s != 0).any():
        return "it speaks at another pace: 31_perceptual_gate judges that"
    heard = own[own.snr_db < ROUNDING_DB].pesq.dropna()
    if (heard < SAME_PESQ).any():
        return f"it sounds different: PESQ {heard.min():.2f}"
    return ""


def judge(comparisons: Sequence[Comparison]) -> list[Check]:
    """The checks: enough was measured, no configuration with another sound is recommended, repetitions
    agree."""
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


def figures_of(comparison: Comparison) -> dict[str, float]:
    """Medians and ratios of each configuration, for a result. If the default has no sessions of their own for
    the next segment (`next_threads`), and other configurations have them: also the computing time with such
    sessions divided by that of the default. This figure is the upper end of the ratio's 95 % interval; if
    several configurations have such sessions, it is the least of these ends."""
    found: dict[str, float] = {}
    for name, row in warm_table(comparison).iterrows():
        found |= {f"{name} {figure}": float(value) for figure, value in row.items()}
    for title, figure in FIGURES.items():
        for name, row in ratio_table(comparison, figure).iterrows():
            found |= {f"{name} {title} {end}": float(row[end]) for end in ("ratio", "low", "high")}
    default, *others = comparison.configurations
    dual = [c.name for c in others if c.config.next_threads]
    if dual and not default.config.next_threads:
        # The least of them: such sessions stay off as long as no gain is shown, and a few texts can show none
        upper = min(found[f"{name} computing high"] for name in dual)
        found["next_sessions_computing_upper_95_ratio"] = upper
    return found


def details_of(comparisons: Sequence[Comparison]) -> dict[str, object]:
    """The recommendation in words, that of each repetition, and the configurations that are not available."""
    whole = pooled(comparisons)
    found = recommend(whole)
    return {
        "recommendation": {"configuration": found.configuration.name, "reason": found.reason},
        "recommended_by_each_repetition": [recommend(each).configuration.name for each in comparisons],
        "verdicts": found.table.T.to_dict(),
        "unavailable": dict(whole.unavailable),
        "configurations": dict(whole.facts),
    }


def ran_with(comparison: Comparison) -> dict[str, object]:
    """The facts of the default's engine, as `results.Run.finish` takes them."""
    return dict(comparison.facts[comparison.default])


def controls(comparison: Comparison) -> list[NegativeControl]:
    """Negative controls: copies of the first configuration with changed figures, of which it is known whether
    they may be recommended."""
    first = comparison.configurations[0]
    own = comparison.trials[comparison.trials.system == first.name]

    def wins(**changes: object) -> bool:
        """Whether a copy of the first configuration with changed figures would be recommended."""
        both = pd.concat([own, own.assign(system="twin", **changes)], ignore_index=True)
        made = Comparison((first, Configuration("twin", first.config)), comparison.starts, both)
        return recommend(made).configuration.name == "twin"

    one = (own.text_number == own.text_number.min()) & (own.repetition == own.repetition.min())
    half, uneven = (
        {figure: own[figure] * times for figure in ("ttfa_s", "wall_s")}
        for times in (0.5, np.where(one, 0.5, 1.06))
    )
    again, heavy = wins(**half, same_again=False), wins(**half, rss_peak_mb=2 * own.rss_peak_mb)
    return [
        NegativeControl("half the time and the same sound is recommended", wins(**half)),
        NegativeControl("the default under another name is not", not wins()),
        NegativeControl("half the time and more noise is not", not wins(**half, snr_db=5.0, pesq=3.0)),
        NegativeControl("half the time and noise at the end is not", not wins(**half, **noise_at_the_end())),
        NegativeControl("half the time and another pace is not", not wins(**half, longer_s=0.025)),
        NegativeControl("half the time and another second prediction is not", not again),
        NegativeControl("half the time and twice the memory is not", not heavy),
        NegativeControl("half the time for one text and 6 % more for the others is not", not wins(**uneven)),
    ]


# ---------------------------------------------------------------------------------------- by length


THRESHOLDS = (200, 280, 500, 1000)
"""Lengths of texts in characters that are tried as thresholds."""
FEWEST_TEXTS = 5
"""The fewest texts to choose by. With fewer, the interval is too wide to show anything."""
FOLDS = 4
"""Number of parts into which the texts are divided. Each text is judged by the configuration that was chosen
on the other parts."""


def by_length(comparison: Comparison, thresholds: Sequence[int] = THRESHOLDS) -> pd.DataFrame:
    """The configurations recommended below and above each threshold, and what such a pair gains over one
    configuration for all lengths.

    Returns
    -------
    pandas.DataFrame
        Index: threshold in characters. Columns: texts_below and texts_above, numbers of texts; below and
        above, names of the configurations chosen from all texts; TTFA and computing, each an `Estimate`: the
        figure with the pair, divided by the figure with one configuration for all lengths, where the
        configurations for a text are chosen without that text; helps, whether the pair is better.
    """
    trials = comparison.trials
    one = _choice(comparison, comparison.default)
    fold = _folds(trials)
    rests = [comparison.only(fold != number) for number in range(FOLDS)]
    ones = [_choice(rest, comparison.default) for rest in rests]
    alone = _of(trials, [ones[number] for number in fold])
    rows = {}
    for threshold in thresholds:
        side = np.where(trials.characters < threshold, "below", "above")
        chosen = [_sides(rest, threshold, other) for rest, other in zip(rests, ones, strict=True)]
        together = _of(trials, [chosen[number][at] for number, at in zip(fold, side, strict=True)])
        ratios = {
            title: paired_ratio(alone[FIGURES[title]], together[FIGURES[title]], texts_in(alone))
            for title in ("TTFA", "computing")
        }
        gains, losses = gains_and_losses(ratios)
        rows[threshold] = {
            "texts_below": _count(trials[side == "below"]),
            "texts_above": _count(trials[side == "above"]),
            **_sides(comparison, threshold, one),
            **ratios,
            "helps": bool(gains and not losses),
        }
    return pd.DataFrame(rows).T.rename_axis("characters")


def advice(table: pd.DataFrame) -> str:
    """A sentence that says whether any threshold helps. If several thresholds help, the sentence names the
    one with the least TTFA, and the setting for it."""
    helping = table[table.helps.astype(bool)]
    if helping.empty:
        return (
            f"No threshold of {', '.join(map(str, table.index))} characters helps: "
            "one configuration does for texts of every length."
        )
    best = helping.loc[min(helping.index, key=lambda at: helping.TTFA[at].value)]
    setting = f"{best.below} < {best.name}; {best.above}"
    try:
        EngineConfig(by_length=setting)
        how = f'Set KOKORO_BY_LENGTH="{setting}".'
    except SettingsError as error:
        how = f"One engine cannot do that: {error.message}"
    return (
        f"Below {best.name} characters take {best.below}, from there on {best.above}: TTFA {best.TTFA}, "
        f"computing {best.computing} of what one configuration takes for all. {how}"
    )


def _sides(comparison: Comparison, threshold: int, one: str) -> dict[str, str]:
    """The configurations to take below and above a threshold."""
    short = comparison.trials.characters < threshold
    return {
        "below": _choice(comparison.only(short), one),
        "above": _choice(comparison.only(~short), one),
    }


def _choice(comparison: Comparison, otherwise: str) -> str:
    """The recommended configuration; with too few texts, `otherwise`."""
    enough = _count(comparison.trials) >= FEWEST_TEXTS
    return recommend(comparison).configuration.name if enough else otherwise


def _folds(trials: pd.DataFrame) -> pd.Series:
    """The number of each trial's fold. All trials of a text have the same one, and each fold has texts of
    every length."""
    texts = trials.drop_duplicates(list(TEXT)).sort_values("characters", kind="stable")
    places = {tuple(text): place % FOLDS for place, text in enumerate(texts[list(TEXT)].to_numpy())}
    return pd.Series([places[tuple(text)] for text in trials[list(TEXT)].to_numpy()], trials.index)


def _of(trials: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """For each text, the trials of the configuration chosen for it, in the order of texts and rounds."""
    return trials[trials.system == np.asarray(names)].set_index([*TEXT, "round"]).sort_index()


def _count(trials: pd.DataFrame) -> int:
    return len(trials.drop_duplicates(list(TEXT)))
