"""Does it help to choose by the length of a text? Thresholds, each with the best on either side."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from kokoro_lab.bench.ab import Comparison
from kokoro_lab.bench.recommendation import COMPUTING, MARGIN, TTFA, recommend
from kokoro_lab.metrics.paired_ratio import PairedRatio, paired_ratio

THRESHOLDS = (200, 280, 500, 1000)
"""Characters."""
FEWEST_TEXTS = 5
"""On one side of a threshold. Of fewer, the interval is so wide that nothing is shown."""


def by_length(comparison: Comparison, thresholds: Sequence[int] = THRESHOLDS) -> pd.DataFrame:
    """What is recommended below and above each threshold, and what both together gain on one for all.

    Returns
    -------
    pandas.DataFrame
        By threshold in characters: texts_below, texts_above, below, above (names), TTFA and computing
        (`PairedRatio` of both together over the one), helps.
    """
    one = recommend(comparison).configuration.name
    rows = {}
    for threshold in thresholds:
        short = comparison.trials.characters < threshold
        chosen = {}
        for side, which in (("below", short), ("above", ~short)):
            part = comparison.only(which)
            enough = _texts(part.trials) >= FEWEST_TEXTS  # fewer are no reason to change
            chosen[side] = recommend(part).configuration.name if enough else one
        ttfa, computing = (_together(comparison, chosen, one, threshold, f) for f in (TTFA, COMPUTING))
        gains = any(r.high < 1 - MARGIN for r in (ttfa, computing))
        loses = any(not r.high < 1 + MARGIN for r in (ttfa, computing))
        rows[threshold] = {
            "texts_below": _texts(comparison.trials[short]),
            "texts_above": _texts(comparison.trials[~short]),
            **chosen,
            "TTFA": ttfa,
            "computing": computing,
            "helps": gains and not loses,
        }
    return pd.DataFrame(rows).T.rename_axis("characters")


def advice(table: pd.DataFrame) -> str:
    """One sentence on whether any threshold helps."""
    helping = table[table.helps.astype(bool)]
    if helping.empty:
        return (
            f"No threshold of {', '.join(map(str, table.index))} characters helps: "
            "one configuration does for texts of every length."
        )
    best = helping.loc[min(helping.index, key=lambda at: helping.computing[at].ratio)]
    return (
        f"Below {best.name} characters take {best.below}, from there on {best.above}: computing "
        f"{best.computing}, TTFA {best.TTFA} of what one configuration takes for all."
    )


def _together(
    comparison: Comparison, chosen: dict[str, str], one: str, threshold: int, figure: str
) -> PairedRatio:
    """A figure of both together, each on its own side, over that of the one for all."""
    trials = comparison.trials
    side = trials.characters.map(lambda n: chosen["below"] if n < threshold else chosen["above"])
    keys = ["repetition", "text_number", "round"]
    together = trials[trials.system == side].set_index(keys).sort_index()
    alone = comparison.of(one)
    texts = [(repetition, number) for repetition, number, _ in alone.index]
    return paired_ratio(list(alone[figure]), list(together.loc[alone.index, figure]), texts)


def _texts(trials: pd.DataFrame) -> int:
    return len(trials[["repetition", "text_number"]].drop_duplicates())
