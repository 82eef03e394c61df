"""Ratios against their golden bands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def against_bands(table: pd.DataFrame, limit: float) -> Figure:
    """A row a figure: median (dot) and 95 % interval (bar), ÷ golden. A bar all over the red line fails."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 1.2 + 0.4 * len(table)), layout="constrained")
    at = np.arange(len(table))
    failed = table.over_at_least > limit
    colors = ["tab:red" if each else "tab:blue" for each in failed]
    axes.hlines(
        at, table.low / table.golden, table.high / table.golden, colors=colors, linewidth=5, alpha=0.4
    )
    axes.scatter(table.over, at, c=colors, zorder=2)
    axes.axvline(1, color="0.4", linewidth=0.8, linestyle="--")
    axes.axvline(limit, color="tab:red", linewidth=0.8)
    axes.set(xlabel="ratio to the reference inference ÷ golden", yticks=at, yticklabels=list(table.index))
    axes.invert_yaxis()
    plt.close(figure)
    return figure


def ratios_in_turn(table: pd.DataFrame) -> Figure:
    """A panel a figure: every trial's ratio, in the order in which they were taken."""
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(table.figure))
    figure, panels = plt.subplots(
        1, len(names), figsize=(2.6 * len(names), 2.6), layout="constrained", squeeze=False
    )
    for axes, name in zip(panels[0], names, strict=True):
        rows = table[table.figure == name]
        axes.plot(rows.trial, rows.ratio, "o", color="tab:blue", markersize=4)
        axes.axhline(rows.ratio.median(), color="0.4", linewidth=0.8)
        axes.set(title=name, xlabel="trial", ylim=(0, 1.2 * rows.ratio.max()))
    panels[0][0].set_ylabel("ours ÷ reference")
    plt.close(figure)
    return figure
