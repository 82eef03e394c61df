"""Plots that compare configurations: ratios with intervals, cold starts, times by length of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kokoro_lab.lab.plots.palette import BAD, BLUE, GREEN, INK, MUTED, PALE, SERIES
from kokoro_lab.lab.plots.style import Drawing, counted, listed, named, panels, plain, plotted
from kokoro_lab.lab.results.units import words_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from kokoro_lab.metrics.intervals import Estimate

_FASTER, _SLOWER, _TIE = GREEN, BAD, MUTED
_DASHES = ("-", "--", ":", "-.")


@plotted()
def against_default(
    ratios: Mapping[str, pd.DataFrame],
    margin: float,
    *,
    label: str = "÷ the default's",
    title: str = "",
) -> Drawing:
    """Each configuration against the default.

    The dot is the ratio that the axis names, the bar its interval. A bar left of the grey band is better
    (green), a bar right of it is worse (orange), and a bar that touches the band is a tie (grey).

    Parameters
    ----------
    ratios : mapping of str to DataFrame
        A table for each panel, by the panel's title, with a row for each configuration with ratio, low and
        high.
    margin : float
        Half the width of the band around 1.
    label, title : str
        What is divided by what, and the title, if the rows are no configurations or are not compared with the
        default.
    """
    rows = max((len(table) for table in ratios.values()), default=0)
    if not rows:
        return Drawing(None, "Nothing was measured that can be compared.", title=title)
    figure, columns = panels(1, len(ratios), height=1.2 + 0.32 * rows, sharey=True)
    said = []
    for axes, (name, table) in zip(columns, ratios.items(), strict=True):
        axes.axvspan(1 - margin, 1 + margin, color=MUTED, alpha=0.15, linewidth=0)
        faster, slower = table.high < 1 - margin, table.low > 1 + margin
        _intervals(axes, table, list(np.select([faster, slower], [_FASTER, _SLOWER], _TIE)))
        axes.set(title=name, xlabel=label)
        axes.set_xscale("log")
        plain(axes.xaxis)
        axes.tick_params(axis="x", which="both", rotation=45)
        said.append(f"{name}: {faster.sum()} of {len(table)} better, {slower.sum()} worse")
    return Drawing(figure, listed(said), title=title)


@plotted("Nothing was chosen, or no comparison was asked for, so nothing is compared.")
def cost_ratios(ratios: Mapping[str, Estimate], margins: Mapping[str, float]) -> Drawing:
    """The chosen settings against the defaults.

    The dot is the ratio to the defaults, the bar its interval. Left of the dashed line, the chosen settings
    are better. The upright mark is the limit: if a bar reaches its mark, a loss is not ruled out, and the
    settings are not adopted.
    """
    import pandas as pd

    rows = [(ratio.value, ratio.low, ratio.high) for ratio in ratios.values()]
    table = pd.DataFrame(rows, list(ratios), ["ratio", "low", "high"])
    limits = [margins[name] for name in ratios]
    figure, (axes,) = panels(height=1 + 0.45 * len(ratios))
    _intervals(axes, table, list(np.where(table.high >= limits, BAD, BLUE)))
    axes.plot(limits, range(len(limits)), "|", color=BAD, markersize=18, markeredgewidth=2)
    axes.set(xlabel="chosen ÷ defaults")
    return Drawing(
        figure, listed([f"{row.Index}: {row.low:.3f} to {row.high:.3f}" for row in table.itertuples()])
    )


@plotted("No time decides in this run, so nothing is held against the band.")
def against_bands(table: pd.DataFrame, limit: float) -> Drawing:
    """Each figure against its golden band.

    The dot is the figure's median ratio divided by the approved ratio, its golden band; the bar is the 95 %
    interval. A figure fails if its whole bar is right of the orange line.
    """
    figure, (axes,) = panels(height=1.2 + 0.4 * len(table))
    shown = table[["ratio", "low", "high"]].div(table.golden, axis=0)
    fails = table.over_at_least > limit
    _intervals(axes, shown, list(np.where(fails, BAD, BLUE)))
    axes.axvline(limit, color=BAD, linewidth=1)
    axes.set(xlabel="ratio to the reference inference ÷ golden ratio")
    return Drawing(
        figure,
        f"{counted(len(table), 'figure')}, {int(fails.sum()) or 'none'} over the band; the highest is "
        f"{shown.ratio.idxmax()}, {shown.ratio.max():.2f} of golden.",
    )


@plotted("No trial was measured.")
def ratios_in_turn(table: pd.DataFrame, *, label: str = "ours ÷ reference", title: str = "") -> Drawing:
    """Every trial's ratio to the reference, in turn.

    A dot for each trial; the line is the median of all trials.

    Parameters
    ----------
    table : pandas.DataFrame
        A row for each trial: figure, trial and ratio.
    label, title : str
        What is divided by what, and the title, if the ratios are not to the reference.
    """
    from matplotlib.ticker import MaxNLocator

    medians = table.groupby("figure", sort=False).ratio.median()
    across = min(4, len(medians))
    down = -(-len(medians) // across)
    figure, columns = panels(down, across, height=2.2 * down)
    for axes, (name, median) in zip(columns, medians.items(), strict=False):
        rows = table[table.figure == name]
        axes.plot(rows.trial, rows.ratio, "o", color=BLUE, markersize=4)
        axes.axhline(median, color=INK, linewidth=0.8)
        axes.set(title=words_of(str(name)), xlabel="trial")
        axes.set(xlim=(rows.trial.min() - 0.5, rows.trial.max() + 0.5), ylim=(0, 1.2 * rows.ratio.max()))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    for axes in columns[len(medians) :]:
        axes.remove()
    for axes in columns[::across]:
        axes.set_ylabel(label)
    said = listed([f"{name} {value:.2f}" for name, value in medians.items()])
    return Drawing(figure, f"Medians: {said}", title=title)


@plotted()
def tuned_front(table: pd.DataFrame, chosen: Mapping[str, Any] | None = None) -> Drawing:
    """Configurations that were tried, as ratios to the defaults.

    The dashed lines cross at the defaults. A configuration further left is heard sooner, one further down
    computes less, and a darker dot needs less memory. A thick ring is a configuration that no other one beats
    in all three (the Pareto front), with the number of its trial.
    """
    able = table[table.state == "feasible"]
    others = table[table.state == "sounds otherwise"]
    if able.empty and others.empty:
        return Drawing(None, "No configuration could be measured.")
    figure, (axes,) = panels(height=5, width=9)
    if len(others):
        axes.scatter(others.ttfa_ratio, others.rtf_ratio, c=MUTED, marker="x", label="sounds otherwise")
    reach = max(0.01, float(np.abs(able.memory_ratio - 1).max())) if len(able) else 0.01
    dots = axes.scatter(
        able.ttfa_ratio,
        able.rtf_ratio,
        c=able.memory_ratio,
        cmap="cividis",
        vmin=1 - reach,
        vmax=1 + reach,
        edgecolors=INK,
        linewidths=[2.2 if front else 0.5 for front in able.front],
        s=70,
        zorder=2,
        label="sounds alike",
    )
    figure.colorbar(dots, ax=axes, label="memory ÷ the defaults'")
    for number, row in able[able.front].iterrows():
        place = (row.ttfa_ratio, row.rtf_ratio)
        axes.annotate(str(number), place, fontsize=8, xytext=(6, 6), textcoords="offset points")
    if chosen is not None:
        same = able[(able[list(chosen)] == list(chosen.values())).all(axis=1)]
        axes.plot(same.ttfa_ratio, same.rtf_ratio, "*", color=INK, markersize=20, zorder=1, label="chosen")
    for line in (axes.axhline, axes.axvline):
        line(1, color=MUTED, linewidth=0.8, linestyle="--", zorder=0)
    axes.set(xlabel="time to first audio ÷ the defaults'", ylabel="real-time factor ÷ the defaults'")
    axes.margins(0.15)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
    return Drawing(
        figure,
        f"{counted(len(able), 'configuration')} that sound alike, {len(others)} that do not; on the Pareto "
        f"front: {', '.join(map(str, able.index[able.front])) or 'none'}.",
    )


@plotted()
def cold_starts(starts: pd.DataFrame) -> Drawing:
    """From the start of the process to the first sample.

    A bar for each configuration, divided into the parts of its start.

    Parameters
    ----------
    starts : DataFrame
        With process_s, load_s and first_ttfa_s by configuration; rows without process_s are left out.
    """
    shown = starts.dropna(subset=["process_s"])
    if shown.empty:
        return Drawing(None, "No configuration could be started on this machine.")
    parts = {
        "Python and imports": shown.process_s - shown.load_s,
        "loading the engine": shown.load_s,
        "first text, cold": shown.first_ttfa_s,
    }
    figure, (axes,) = panels(height=1.4 + 0.32 * len(shown))
    left = np.zeros(len(shown))
    for (name, seconds), colour in zip(parts.items(), SERIES, strict=False):
        axes.barh(range(len(shown)), seconds, 0.7, left=left, color=colour, label=name)
        left += seconds.to_numpy()
    named(axes, list(shown.index))
    axes.set(xlabel="seconds")
    figure.legend(loc="outside upper left", ncols=len(parts))
    omitted = len(starts) - len(shown)
    return Drawing(
        figure,
        f"{counted(len(shown), 'configuration')}, from {left.min():.1f} to {left.max():.1f} s.",
        f"{counted(omitted, 'configuration')} could not be started here." if omitted else "",
    )


@plotted()
def by_length(trials: pd.DataFrame, figures: Mapping[str, str], thresholds: Sequence[int]) -> Drawing:
    """What each configuration takes, by the length of the text.

    A line for each configuration, through the median of each length. A dashed line is a length at
    which one might change to another configuration.

    Parameters
    ----------
    trials : pandas.DataFrame
        A row for each prediction: system, characters and the figures.
    figures : mapping of str to str
        Columns, each with the words for its axis; a panel each.
    thresholds : sequence of int
        Lengths in characters at which dashed lines are drawn.
    """
    lengths = np.unique(trials.characters) if len(trials) else np.array([])
    # A text is about as long as asked for: one length is a cluster, and no curve
    if not len(lengths) or lengths[-1] < 1.5 * lengths[0]:
        return Drawing(None, "Texts of one length were spoken, so there is nothing to choose by length.")
    figure, columns = panels(1, len(figures), height=4)
    for axes, (column, words) in zip(columns, figures.items(), strict=True):
        for number, (name, own) in enumerate(trials.groupby("system", sort=False)):
            of_text = own.groupby("characters")[column].median()
            look: Any = {
                "color": SERIES[number % len(SERIES)],
                "linestyle": _DASHES[number // len(SERIES) % 4],
            }
            axes.plot(of_text.index, of_text, marker=".", linewidth=1, label=name, **look)
        for threshold in thresholds:
            if lengths[0] < threshold < lengths[-1]:
                axes.axvline(threshold, color=MUTED, linewidth=0.8, linestyle="--")
        axes.set(xlabel="characters", ylabel=words, xscale="log", yscale="log")
        plain(axes.xaxis)
        plain(axes.yaxis)
    handles, labels = columns[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=2, fontsize=8)
    configurations = counted(len(labels), "configuration")
    return Drawing(figure, f"{configurations} over texts of {lengths[0]} to {lengths[-1]} characters.")


def _intervals(axes: Axes, table: pd.DataFrame, colours: Sequence[str]) -> None:
    """Draw a line for each row of the table, from the top: its ratio (dot), and its interval (bar) if there
    is one. 1 is dashed."""
    at = np.arange(len(table))
    known = np.isfinite(table.high.to_numpy(float))
    bars = [colour for colour, kept in zip(colours, known, strict=True) if kept]
    axes.hlines(at[known], table.low[known], table.high[known], colors=bars, linewidth=5, alpha=PALE)
    axes.scatter(table.ratio, at, c=list(colours), zorder=2)
    axes.axvline(1, color=INK, linewidth=0.8, linestyle="--")
    named(axes, list(table.index))
