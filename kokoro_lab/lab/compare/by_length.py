"""Does it help to choose by the length of a text? Thresholds, each with the best on either side.

What is chosen as the best that was measured was partly lucky: its gain is told by other texts than chose it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import SettingsError
from kokoro_lab.lab.compare.comparison import TEXT, Comparison, texts_in
from kokoro_lab.lab.compare.recommendation import FIGURES, gains_and_losses, recommend
from kokoro_lab.metrics.intervals import paired_ratio

THRESHOLDS = (200, 280, 500, 1000)
"""Characters."""
FEWEST_TEXTS = 5
"""To choose from. Of fewer, the interval is so wide that nothing is shown: they are no reason to change."""
FOLDS = 4
"""Each text is judged by what was chosen from the texts of the other folds."""


def by_length(comparison: Comparison, thresholds: Sequence[int] = THRESHOLDS) -> pd.DataFrame:
    """What is recommended below and above each threshold, and what both together gain on one for all.

    Returns
    -------
    pandas.DataFrame
        By threshold in characters: texts_below, texts_above; below, above (names, chosen from all texts);
        TTFA and computing (`Estimate` of both together over the one; for each text, all of them were
        chosen without it); helps.
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
    """Whether any threshold helps, and what to set: the one with which the first audio comes soonest."""
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
    """What to take below and above a threshold."""
    short = comparison.trials.characters < threshold
    return {
        "below": _choice(comparison.only(short), one),
        "above": _choice(comparison.only(~short), one),
    }


def _choice(comparison: Comparison, otherwise: str) -> str:
    """What is recommended; of too few texts, the other one."""
    enough = _count(comparison.trials) >= FEWEST_TEXTS
    return recommend(comparison).configuration.name if enough else otherwise


def _folds(trials: pd.DataFrame) -> pd.Series:
    """A number for each trial, the same for all of a text; each fold has texts of every length."""
    texts = trials.drop_duplicates(list(TEXT)).sort_values("characters", kind="stable")
    places = {tuple(text): place % FOLDS for place, text in enumerate(texts[list(TEXT)].to_numpy())}
    return pd.Series([places[tuple(text)] for text in trials[list(TEXT)].to_numpy()], trials.index)


def _of(trials: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The trials of the configuration that is named for each, in the order of texts and rounds."""
    return trials[trials.system == np.asarray(names)].set_index([*TEXT, "round"]).sort_index()


def _count(trials: pd.DataFrame) -> int:
    return len(trials.drop_duplicates(list(TEXT)))
