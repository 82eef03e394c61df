"""What a search found, and what the comparison said of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from kokoro_lab.metrics.intervals import Estimate


def tuned_front(table: pd.DataFrame, chosen: Mapping[str, Any] | None = None) -> Figure:
    """A dot a configuration: time to first audio against real-time factor, colour for memory, all as ratios
    to the defaults, which are where the lines cross. Ringed ones are the Pareto front, grey ones sound
    otherwise; the star is the one that was chosen."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 5.5), layout="constrained")
    able = table[table.state == "feasible"]
    others = table[table.state == "sounds otherwise"]
    axes.scatter(others.ttfa_ratio, others.rtf_ratio, color="0.8", marker="x", label="sounds otherwise")
    reach = max(0.01, float(np.abs(able.memory_ratio - 1).max())) if len(able) else 0.01
    dots = axes.scatter(
        able.ttfa_ratio,
        able.rtf_ratio,
        c=able.memory_ratio,
        cmap="RdYlGn_r",
        vmin=1 - reach,
        vmax=1 + reach,
        edgecolors=["black" if front else "none" for front in able.front],
        s=60,
        zorder=2,
    )
    figure.colorbar(dots, ax=axes, label="memory ÷ the defaults'")
    for number, row in able[able.front].iterrows():
        place = (row.ttfa_ratio, row.rtf_ratio)
        axes.annotate(str(number), place, fontsize=8, xytext=(5, 5), textcoords="offset points")
    if chosen is not None:
        same = (able[list(chosen)] == list(chosen.values())).all(axis=1)
        axes.plot(able.ttfa_ratio[same], able.rtf_ratio[same], "*", color="black", markersize=16, zorder=1)
    for line in (axes.axhline, axes.axvline):
        line(1, color="0.4", linewidth=0.8, linestyle="--", zorder=0)
    axes.set(xlabel="time to first audio ÷ the defaults'", ylabel="real-time factor ÷ the defaults'")
    plt.close(figure)
    return figure


def cost_ratios(ratios: Mapping[str, Estimate], margins: Mapping[str, float]) -> Figure:
    """A row a cost: candidate ÷ defaults with its interval. Left of the dashed line it is a gain; a bar that
    reaches its red mark does not rule out a loss, and nothing is adopted."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 1 + 0.45 * max(1, len(ratios))), layout="constrained")
    for at, (name, ratio) in enumerate(ratios.items()):
        color = "tab:red" if ratio.high >= margins[name] else "tab:blue"
        axes.plot(margins[name], at, "|", color="tab:red", markersize=18, markeredgewidth=2)
        axes.hlines(at, ratio.low, ratio.high, color=color, linewidth=4, alpha=0.4)
        axes.plot(ratio.value, at, "o", color=color)
    axes.axvline(1, color="0.4", linewidth=0.8, linestyle="--")
    axes.set(xlabel="chosen ÷ defaults", yticks=range(len(ratios)), yticklabels=list(ratios))
    axes.set_ylim(max(1, len(ratios)) - 0.5, -0.5)
    plt.close(figure)
    return figure
