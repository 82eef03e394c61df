"""Configurations beside the default: how much less each takes, how it starts, and at which lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

_FASTER, _SLOWER, _TIE = "tab:green", "tab:red", "0.45"


def against_default(ratios: Mapping[str, pd.DataFrame], margin: float) -> Figure:
    """Ratios to the default with their intervals, a panel each figure; within the grey band is a tie.

    Parameters
    ----------
    ratios : mapping of str to DataFrame
        By title; a row each configuration with ratio, low and high.
    margin : float
        Half the width of the band around 1.
    """
    from matplotlib import pyplot as plt

    rows = max(len(table) for table in ratios.values())
    figure, panels = plt.subplots(
        1, len(ratios), figsize=(13, 1.2 + 0.32 * rows), sharey=True, layout="constrained", squeeze=False
    )
    for axes, (title, table) in zip(panels[0], ratios.items(), strict=True):
        axes.axvspan(1 - margin, 1 + margin, color="0.92")
        axes.axvline(1, color="0.3", linewidth=0.8)
        for y, row in enumerate(table.itertuples()):
            color = _FASTER if row.high < 1 - margin else _SLOWER if row.low > 1 + margin else _TIE
            if np.isfinite(row.high):
                axes.plot([row.low, row.high], [y, y], color=color, linewidth=2)
            axes.plot([row.ratio], [y], "o", color=color, markersize=5)
        axes.set(title=title, xlabel="of the default's", yticks=range(len(table)), yticklabels=table.index)
        axes.set_xscale("log")
        _plain(axes.xaxis)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0][0].set_ylim(rows - 0.5, -0.5)
    plt.close(figure)
    return figure


def cold_starts(starts: pd.DataFrame) -> Figure:
    """From the start of a process to its first sample: imports, loading, and the first text's own way.

    `starts` has process_s, load_s and first_ttfa_s by configuration; rows without are left out.
    """
    from matplotlib import pyplot as plt

    shown = starts.dropna(subset=["process_s"])
    parts = {
        "Python and imports": shown.process_s - shown.load_s,
        "loading the engine": shown.load_s,
        "first text, cold": shown.first_ttfa_s,
    }
    figure, axes = plt.subplots(figsize=(9, 1.2 + 0.32 * len(shown)), layout="constrained")
    left = np.zeros(len(shown))
    for name, seconds in parts.items():
        axes.barh(list(shown.index), seconds, left=left, label=name)
        left += seconds.to_numpy()
    axes.invert_yaxis()
    axes.set(xlabel="seconds from the start of the process to the first sample")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=len(parts), frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    plt.close(figure)
    return figure


def by_length(trials: pd.DataFrame, figures: Mapping[str, str], thresholds: Sequence[int]) -> Figure:
    """What each configuration takes for texts of different lengths; dashed where one might choose anew.

    Parameters
    ----------
    trials : pandas.DataFrame
        A row a prediction: system, characters and the figures.
    figures : mapping of str to str
        Columns, each with the words for its axis; a panel each.
    thresholds : sequence of int
        In characters.
    """
    from matplotlib import pyplot as plt
    from matplotlib.ticker import LogLocator

    colors = plt.get_cmap("tab20")
    figure, panels = plt.subplots(1, len(figures), figsize=(13, 4), layout="constrained", squeeze=False)
    for axes, (column, words) in zip(panels[0], figures.items(), strict=True):
        for number, (name, own) in enumerate(trials.groupby("system", sort=False)):
            of_text = own.groupby("characters")[column].median()
            color = colors(number % colors.N)
            axes.plot(of_text.index, of_text, marker=".", linewidth=1, label=name, color=color)
        for threshold in thresholds:
            axes.axvline(threshold, color="0.6", linewidth=0.8, linestyle="--")
        axes.set(xlabel="characters", ylabel=words, xscale="log", yscale="log")
        _plain(axes.xaxis)
        axes.xaxis.set_minor_locator(LogLocator(subs=(2, 3, 5)))
        _plain(axes.yaxis)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0][-1].legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize=8)
    plt.close(figure)
    return figure


def _plain(axis: Axis) -> None:
    """Numbers on a logarithmic axis as one says them, and not as powers of ten."""
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("{x:g}")
    axis.set_tick_params(which="minor", labelsize=7)
