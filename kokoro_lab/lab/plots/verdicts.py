"""What a measurement says: values against their limits, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from kokoro_lab.lab.plots.layout import bare, panels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def right_answers(table: pd.DataFrame) -> Figure:
    """A dot a listener of an ABX test: how often right, with its 95 % interval.

    Over the dashed line (guessing) with its whole interval: a difference is heard. The end of the thick
    bar, a one-sided limit, left of the red line: the difference is shown to be inaudible.
    """
    from kokoro_lab.metrics.abx import CHANCE, INAUDIBLE_BELOW

    height = 1.1 + 0.35 * len(table)
    figure, (axes,) = panels(size=(9, height))
    rows = range(len(table))
    axes.hlines(rows, 0, table.upper_95_one_sided, color="tab:blue", alpha=0.15, linewidth=9)
    axes.hlines(rows, table.low_95, table.high_95, color="tab:blue", linewidth=1.5)
    axes.plot(table.proportion, rows, "o", color="tab:blue")
    axes.axvline(CHANCE, color="0.3", linewidth=0.8, linestyle="--")
    axes.axvline(INAUDIBLE_BELOW, color="tab:red", linewidth=0.8)
    labels = [f"{row.listener} ({row.right} of {row.trials})" for row in table.itertuples()]
    axes.set(
        xlabel="proportion of right answers",
        xlim=(0, 1),
        yticks=rows,
        yticklabels=labels,
        ylim=(len(table) - 0.4, -0.6),
    )
    return figure


def between_anchors(table: pd.DataFrame, *, column: str, anchors: tuple[str, str], label: str) -> Figure:
    """A row a pair, sorted: the candidate's distance between those of a change that is inaudible (left) and
    of one that everybody hears (right). The axis is logarithmic."""
    rows = table.sort_values(column)
    figure, (axes,) = panels(size=(10, 1.2 + 0.22 * len(rows)))
    at = range(len(rows))
    for anchor, color in zip(anchors, ("tab:green", "tab:red"), strict=True):
        axes.plot(rows[anchor], at, "|", color=color, markersize=9, label=anchor)
    axes.plot(rows[column], at, "o", color="tab:blue", markersize=5, label=column)
    axes.set(xscale="log", xlabel=label, yticks=at, yticklabels=rows.index)
    axes.tick_params(axis="y", labelsize=7)
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return figure


def pareto(table: pd.DataFrame, *, cost: str, quality: str, label: str, ceiling: float) -> Figure:
    """Points by cost and quality, each with its name; those that no other beats in both are joined."""
    figure, (axes,) = panels(size=(10, 6))
    ordered = table.sort_values([cost, quality], ascending=[True, False])
    best = ordered[ordered[quality] > ordered[quality].cummax().shift(fill_value=-np.inf)]
    axes.plot(best[cost], best[quality], color="tab:green", linewidth=1, zorder=1)
    kept = ordered.index.isin(best.index)
    axes.scatter(ordered[cost], ordered[quality], c=np.where(kept, "tab:green", "tab:gray"), zorder=2)
    for _, row in ordered.iterrows():
        place = (row[cost], row[quality])
        axes.annotate(row[label], place, fontsize=8, xytext=(4, 4), textcoords="offset points")
    axes.axhline(ceiling, color="black", linewidth=0.5, linestyle=":")
    axes.set(xlabel=cost, ylabel=quality)
    return figure


def ladder(table: pd.DataFrame, *, rows: str, steps: str, value: str, label: str) -> Figure:
    """For each row of a table's column `rows` the values of its steps on one line, a colour a step."""
    wide = table.pivot(index=rows, columns=steps, values=value)[list(dict.fromkeys(table[steps]))]
    figure, (axes,) = panels(size=(11, 1.5 + 0.35 * len(wide)))
    for number, step in enumerate(wide.columns):
        axes.scatter(wide[step], range(len(wide)), color=f"C{number}", label=step, s=36, zorder=2)
    axes.hlines(range(len(wide)), wide.min(axis=1), wide.max(axis=1), color="0.8", linewidth=1, zorder=1)
    axes.set(xlabel=label, yticks=range(len(wide)), yticklabels=list(wide.index))
    axes.invert_yaxis()
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.25), ncols=len(wide.columns), frameon=False)
    return figure


def error_rates(table: pd.DataFrame) -> Figure:
    """Two bars a voice, the candidate and the reference beside it, with 95 % intervals. Intervals that
    overlap show no difference; that they are wide shows that little was read."""
    figure, (axes,) = panels(size=(max(6, 0.8 * len(table)), 3.6))
    at = np.arange(len(table))
    for offset, side, color in ((-0.2, "candidate", "tab:blue"), (0.2, "reference", "0.6")):
        rate = table[f"{side}_percent"]
        beyond = [rate - table[f"{side}_low"], table[f"{side}_high"] - rate]
        axes.bar(at + offset, rate, 0.4, yerr=beyond, color=color, capsize=2, label=side)
    labels = [f"{voice}\n{language}" for voice, language in table.language.items()]
    axes.set(ylabel="word error rate, %", xticks=at, xticklabels=labels)
    axes.tick_params(axis="x", labelsize=8)
    axes.legend(frameon=False, ncols=2)
    return figure


def against_margins(table: pd.DataFrame) -> Figure:
    """A row a measure: the mean change (dot) and how far down it may truly lie (bar, one-sided 95 % limit),
    against the margin (red). A bar that reaches the red mark is red: no loss of that size is ruled out."""
    figure, (axes,) = panels(size=(10, 1.2 + 0.42 * len(table)))
    at = np.arange(len(table))
    shown = table.lower_percent >= table.margin_percent
    colors = ["tab:blue" if each else "tab:red" for each in shown]
    axes.hlines(at, table.lower_percent, table.mean_percent, colors=colors, linewidth=5, alpha=0.4)
    axes.scatter(table.mean_percent, at, c=colors, zorder=2)
    axes.plot(table.margin_percent, at, "|", color="tab:red", markersize=18, markeredgewidth=2)
    axes.axvline(0, color="0.4", linewidth=0.8, linestyle="--")
    labels = [f"{row.Index} ({row.how}), p = {row.holm_p:.2g}" for row in table.itertuples()]
    axes.set(xlabel="change of the candidate, %", yticks=at, yticklabels=labels)
    axes.invert_yaxis()
    return figure


def verdicts(counts: pd.DataFrame, colours: Mapping[str, str]) -> Figure:
    """Lines of each part (rows) by verdict (columns), one bar a part, with the numbers in it."""
    figure, (axes,) = panels(size=(10, 1 + 0.4 * len(counts)))
    left = np.zeros(len(counts))
    for verdict in counts.columns:
        bars = axes.barh(counts.index, counts[verdict], left=left, color=colours[verdict], label=verdict)
        axes.bar_label(bars, [str(count) if count else "" for count in counts[verdict]], label_type="center")
        left += counts[verdict]
    axes.set(xlabel="lines")
    axes.invert_yaxis()
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.2), ncols=len(counts.columns), frameon=False)
    return figure


def outcomes(table: pd.DataFrame, colours: Mapping[str, str]) -> Figure:
    """A cell for each scenario (rows) and transport (columns), in the colour of how the stream ended; in it
    the longest silence in ms, and behind an arrow the longest time to recover. White was not asked."""
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Patch

    rows, columns = list(dict.fromkeys(table.scenario)), list(dict.fromkeys(table.transport))
    grid = np.ones((len(rows), len(columns), 3))
    size = (2.4 + 1.7 * len(columns), 1.2 + 0.4 * len(rows))
    figure, (axes,) = panels(size=size)
    for row in table.itertuples():
        at = rows.index(row.scenario), columns.index(row.transport)
        grid[at] = to_rgb(colours[row.ended])
        recovered = "" if np.isnan(row.recover_most_s) else f" → {1000 * row.recover_most_s:.0f}"
        said = f"{1000 * row.longest_silence_s:.0f}{recovered}"
        axes.text(at[1], at[0], said, ha="center", va="center", fontsize=9)
    axes.imshow(grid, aspect="auto")
    axes.set(xticks=range(len(columns)), xticklabels=columns, yticks=range(len(rows)), yticklabels=rows)
    axes.xaxis.tick_top()
    patches = [Patch(color=colour, label=name) for name, colour in colours.items()]
    figure.legend(handles=patches, loc="outside lower center", ncols=len(patches), frameon=False)
    return figure


_TAKEN, _REFUSED = "C0", "0.85"


def taken_by(table: pd.DataFrame, providers: dict[str, str]) -> Figure:
    """How much of each graph's arithmetic each provider takes, and in how many partitions.

    Parameters
    ----------
    table : pandas.DataFrame
        As `conversion.provider_partitions.table` gives it.
    providers : dict of str to str
        Providers that are shown, each with the words above its column.
    """
    figure, beside = panels(1, len(providers), size=(4.2 * len(providers), 3.6), sharey=True)
    for axes, (provider, words) in zip(beside, providers.items(), strict=True):
        rows = table.xs(provider, level="provider")
        share = rows["operations taken, %"]
        axes.barh(rows.index, 100, color=_REFUSED)
        axes.barh(rows.index, share, color=_TAKEN)
        for k, (percent, count) in enumerate(zip(share, rows.partitions, strict=True)):
            said = "nothing" if count == 0 else f"{percent:.0f} % in {count} partition{'s' * (count > 1)}"
            dark = percent > 55
            axes.text(
                3 if dark else 97,
                k,
                said,
                ha="left" if dark else "right",
                va="center",
                fontsize=9,
                color="white" if dark else "black",
            )
        axes.set(xlim=(0, 100), xlabel="% of the arithmetic", title=words)
        bare(axes, "top", "right", "left")
    beside[0].invert_yaxis()
    return figure
