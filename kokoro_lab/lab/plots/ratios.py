"""One engine beside another: ratios with their intervals, how each starts, and at which lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kokoro_lab.lab.plots.layout import bare, panels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from kokoro_lab.metrics.intervals import Estimate

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
    rows = max(len(table) for table in ratios.values())
    figure, columns = panels(1, len(ratios), size=(13, 1.2 + 0.32 * rows), sharey=True)
    for axes, (title, table) in zip(columns, ratios.items(), strict=True):
        axes.axvspan(1 - margin, 1 + margin, color="0.92")
        better, worse = table.high < 1 - margin, table.low > 1 + margin
        colours = np.select([better, worse], [_FASTER, _SLOWER], _TIE)
        _intervals(axes, table, list(colours))
        axes.set(title=title, xlabel="of the default's")
        axes.set_xscale("log")
        _plain(axes.xaxis)
        bare(axes, "top", "right")
    return figure


def cost_ratios(ratios: Mapping[str, Estimate], margins: Mapping[str, float]) -> Figure:
    """A row a cost: candidate ÷ defaults with its interval. Left of the dashed line it is a gain; a bar that
    reaches its red mark does not rule out a loss, and nothing is adopted."""
    import pandas as pd

    rows = [(ratio.value, ratio.low, ratio.high) for ratio in ratios.values()]
    table = pd.DataFrame(rows, list(ratios), ["ratio", "low", "high"])
    limits = [margins[name] for name in ratios]
    figure, (axes,) = panels(size=(9, 1 + 0.45 * max(1, len(ratios))))
    _intervals(axes, table, list(np.where(table.high >= limits, "tab:red", "tab:blue")))
    axes.plot(limits, range(len(limits)), "|", color="tab:red", markersize=18, markeredgewidth=2)
    axes.set(xlabel="chosen ÷ defaults")
    return figure


def against_bands(table: pd.DataFrame, limit: float) -> Figure:
    """A row a figure: median (dot) and 95 % interval (bar), ÷ golden. A bar all over the red line fails."""
    figure, (axes,) = panels(size=(9, 1.2 + 0.4 * len(table)))
    shown = table[["ratio", "low", "high"]].div(table.golden, axis=0)
    _intervals(axes, shown, list(np.where(table.over_at_least > limit, "tab:red", "tab:blue")))
    axes.axvline(limit, color="tab:red", linewidth=0.8)
    axes.set(xlabel="ratio to the reference inference ÷ golden")
    return figure


def ratios_in_turn(table: pd.DataFrame) -> Figure:
    """A panel a figure: every trial's ratio, in the order in which they were taken."""
    names = list(dict.fromkeys(table.figure))
    figure, columns = panels(1, len(names), size=(2.6 * len(names), 2.6))
    for axes, name in zip(columns, names, strict=True):
        rows = table[table.figure == name]
        axes.plot(rows.trial, rows.ratio, "o", color="tab:blue", markersize=4)
        axes.axhline(rows.ratio.median(), color="0.4", linewidth=0.8)
        axes.set(title=name, xlabel="trial", ylim=(0, 1.2 * rows.ratio.max()))
    columns[0].set_ylabel("ours ÷ reference")
    return figure


def tuned_front(table: pd.DataFrame, chosen: Mapping[str, Any] | None = None) -> Figure:
    """A dot a configuration: time to first audio against real-time factor, colour for memory, all as ratios
    to the defaults, which are where the lines cross. Ringed ones are the Pareto front, grey ones sound
    otherwise; the star is the one that was chosen."""
    figure, (axes,) = panels(size=(9, 5.5))
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
    return figure


def cold_starts(starts: pd.DataFrame) -> Figure:
    """From the start of a process to its first sample: imports, loading, and the first text's own way.

    `starts` has process_s, load_s and first_ttfa_s by configuration; rows without are left out.
    """
    shown = starts.dropna(subset=["process_s"])
    parts = {
        "Python and imports": shown.process_s - shown.load_s,
        "loading the engine": shown.load_s,
        "first text, cold": shown.first_ttfa_s,
    }
    figure, (axes,) = panels(size=(9, 1.2 + 0.32 * len(shown)))
    left = np.zeros(len(shown))
    for name, seconds in parts.items():
        axes.barh(list(shown.index), seconds, left=left, label=name)
        left += seconds.to_numpy()
    axes.invert_yaxis()
    axes.set(xlabel="seconds from the start of the process to the first sample")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=len(parts), frameon=False)
    bare(axes, "top", "right")
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
    from matplotlib import colormaps
    from matplotlib.ticker import LogLocator

    colors = colormaps["tab20"]
    figure, columns = panels(1, len(figures), size=(13, 4))
    for axes, (column, words) in zip(columns, figures.items(), strict=True):
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
        bare(axes, "top", "right")
    columns[-1].legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize=8)
    return figure


def _intervals(axes: Axes, table: pd.DataFrame, colours: Sequence[str]) -> None:
    """A row each, from the top: its ratio (dot), and its interval (bar) if it has one; 1 is dashed."""
    at = np.arange(len(table))
    known = np.isfinite(table.high.to_numpy(float))
    bars = [colour for colour, kept in zip(colours, known, strict=True) if kept]
    axes.hlines(at[known], table.low[known], table.high[known], colors=bars, linewidth=5, alpha=0.4)
    axes.scatter(table.ratio, at, c=list(colours), zorder=2)
    axes.axvline(1, color="0.4", linewidth=0.8, linestyle="--")
    axes.set(yticks=at, yticklabels=list(table.index), ylim=(max(1, len(table)) - 0.5, -0.5))


def _plain(axis: Axis) -> None:
    """Numbers on a logarithmic axis as one says them, and not as powers of ten."""
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("{x:g}")
    axis.set_tick_params(which="minor", labelsize=7)
