"""What a measurement says: values against their limits, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from kokoro_lab.lab.plots.style import (
    BAD,
    BLUE,
    GREEN,
    GROUND,
    INK,
    LINE,
    MUTED,
    PALE,
    SERIES,
    WIDEST_INCHES,
    Plot,
    bare,
    counted,
    label_of,
    named,
    panels,
    plain,
    styled,
)
from kokoro_lab.lab.results.units import words_of

if TYPE_CHECKING:
    import pandas as pd


@styled
def right_answers(table: pd.DataFrame) -> Plot:
    """A dot a listener of an ABX test: how often right, with its 95 % interval.

    Over the dashed line (guessing) with its whole interval: a difference is heard. The end of the thick
    bar, a one-sided limit, left of the other line: the difference is shown to be inaudible.
    """
    from kokoro_lab.metrics.abx import CHANCE, INAUDIBLE_BELOW

    title = "How often each listener was right"
    if table.empty:
        return Plot(title, "Nobody has finished the test.")
    rows = range(len(table))
    figure, (axes,) = panels(size=(9, 1.2 + 0.35 * len(table)))
    axes.hlines(rows, 0, table.upper_95_one_sided, color=BLUE, alpha=0.2, linewidth=9)
    axes.hlines(rows, table.low_95, table.high_95, color=BLUE, linewidth=1.5)
    axes.plot(table.proportion, rows, "o", color=BLUE)
    axes.axvline(CHANCE, color=INK, linewidth=0.8, linestyle="--")
    axes.axvline(INAUDIBLE_BELOW, color=BAD, linewidth=1)
    named(axes, [f"{row.listener} ({row.right} of {row.trials})" for row in table.itertuples()])
    axes.set(xlabel="proportion of right answers", xlim=(0, 1))
    return Plot(
        title,
        f"Dot and thin bar: proportion and its 95 % interval; dashed is guessing, {CHANCE:g}. A difference "
        "is heard if "
        "the whole bar is right of it, and shown to be inaudible if the pale bar ends left of the line at "
        f"{INAUDIBLE_BELOW:g}.",
        "; ".join(
            f"{row.listener}: {row.right} of {row.trials} right, 95 % interval {row.low_95:.2f} to "
            f"{row.high_95:.2f}"
            for row in table.itertuples()
        )
        + ".",
        figure,
    )


@styled
def between_anchors(table: pd.DataFrame, *, column: str, anchors: tuple[str, str], label: str) -> Plot:
    """A row a pair, sorted: the candidate's distance between those of a change that is inaudible (left) and
    of one that everybody hears (right). The axis is logarithmic."""
    title = f"Each pair between {anchors[0]} and {anchors[1]}"
    rows = table.dropna(subset=[column]).sort_values(column, ascending=False)
    if rows.empty:
        return Plot(title, "Durations differ, so distances would measure timing: none is drawn.")
    figure, (axes,) = panels(size=(WIDEST_INCHES, 1.4 + 0.22 * len(rows)))
    at = range(len(rows))
    for anchor, colour in zip(anchors, (GREEN, BAD), strict=True):
        axes.plot(rows[anchor], at, "|", color=colour, markersize=9, markeredgewidth=2, label=anchor)
    axes.plot(rows[column], at, "o", color=BLUE, markersize=5, label=column)
    named(axes, list(rows.index))
    axes.set(xscale="log", xlabel=label)
    axes.tick_params(axis="y", labelsize=8)
    plain(axes.xaxis)
    figure.legend(loc="outside upper left", ncols=3)
    return Plot(
        title,
        f"A row a pair, the one furthest apart first. Left mark: {anchors[0]}, which nobody hears; right "
        "mark: "
        f"{anchors[1]}, which everybody does. The axis is logarithmic.",
        f"{counted(len(rows), 'pair')}; furthest apart is {rows.index[0]} with {rows[column].iloc[0]:.2g}, "
        "between "
        f"{rows[anchors[0]].iloc[0]:.2g} and {rows[anchors[1]].iloc[0]:.2g}.",
        figure,
    )


@styled
def pareto(table: pd.DataFrame, *, cost: str, quality: str, label: str, ceiling: float) -> Plot:
    """Points by cost and quality, each with its name; those that no other beats in both are joined."""
    title = f"{label_of(quality)} against {label_of(cost)}"
    if table.empty:
        return Plot(title, "No point was measured.")
    figure, (axes,) = panels(size=(WIDEST_INCHES, 5))
    ordered = table.sort_values([cost, quality], ascending=[True, False])
    best = ordered[ordered[quality] > ordered[quality].cummax().shift(fill_value=-np.inf)]
    others = ordered[~ordered.index.isin(best.index)]
    axes.plot(best[cost], best[quality], "o-", color=BLUE, linewidth=1, label="not beaten in both")
    if len(others):
        axes.plot(others[cost], others[quality], "s", color=MUTED, label="beaten by another in both")
    for _, row in ordered.iterrows():
        place = (row[cost], row[quality])
        axes.annotate(row[label], place, fontsize=8, xytext=(5, 5), textcoords="offset points")
    axes.axhline(
        ceiling, color=INK, linewidth=0.8, linestyle=":", label=f"the most there can be, {ceiling:g}"
    )
    axes.set(xlabel=label_of(cost), ylabel=label_of(quality))
    axes.margins(0.12)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
    return Plot(
        title,
        f"A point a {label}. Better is higher, cheaper is further left.",
        f"{counted(len(table), 'point')}; not beaten in both: {', '.join(map(str, best[label]))}.",
        figure,
    )


@styled
def ladder(table: pd.DataFrame, *, rows: str, steps: str, value: str, label: str) -> Plot:
    """For each row of a table's column `rows` the values of its steps on one line, a mark a step."""
    title = f"{label.partition(',')[0].capitalize()}, by {rows} and {steps}"
    if table.empty:
        return Plot(title, f"No {rows} was measured.")
    wide = table.pivot(index=rows, columns=steps, values=value)[list(dict.fromkeys(table[steps]))]
    figure, (axes,) = panels(size=(WIDEST_INCHES, 1.5 + 0.35 * len(wide)))
    for number, step in enumerate(wide.columns):
        mark, colour = "osD^vX"[number % 6], SERIES[number % len(SERIES)]
        axes.scatter(wide[step], range(len(wide)), c=colour, marker=mark, label=step, s=36, zorder=2)
    axes.hlines(range(len(wide)), wide.min(axis=1), wide.max(axis=1), color=MUTED, linewidth=0.8, zorder=1)
    named(axes, list(wide.index))
    axes.set(xlabel=label)
    figure.legend(loc="outside upper left", ncols=min(6, len(wide.columns)))
    means = wide.mean()
    return Plot(
        title,
        f"A row a {rows}, a mark a {steps}.",
        "Means: " + ", ".join(f"{step} {mean:.1f}" for step, mean in means.items()) + ".",
        figure,
    )


@styled
def error_rates(table: pd.DataFrame) -> Plot:
    """Two bars a voice, the candidate and the reference beside it, with 95 % intervals. Intervals that
    overlap show no difference; that they are wide shows that little was read."""
    title = "Words that were not understood, by voice"
    if table.empty:
        return Plot(title, "No voice was read.")
    figure, (axes,) = panels(size=(min(WIDEST_INCHES, max(6, 0.8 * len(table))), 3.8))
    at = np.arange(len(table))
    for offset, side, colour in ((-0.2, "candidate", BLUE), (0.2, "reference", MUTED)):
        rate = table[f"{side}_percent"]
        beyond = [rate - table[f"{side}_low"], table[f"{side}_high"] - rate]
        axes.bar(at + offset, rate, 0.4, yerr=beyond, color=colour, ecolor=INK, capsize=2, label=side)
    labels = [f"{voice}\n{language}" for voice, language in table.language.items()]
    axes.set(ylabel="word error rate, %", xticks=at, xticklabels=labels)
    axes.tick_params(axis="x", labelsize=8, length=0, rotation=90 if len(table) > 12 else 0)
    axes.legend(ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
    worst = table.candidate_percent.idxmax()
    return Plot(
        title,
        "Candidate and reference with 95 % intervals. Intervals that overlap show no difference; wide "
        "ones, that "
        "little was read.",
        f"{counted(len(table), 'voice')}; the candidate's highest rate is "
        f"{table.candidate_percent.max():.1f} % "
        f"({worst}), where the reference has {table.reference_percent[worst]:.1f} %.",
        figure,
    )


@styled
def against_margins(table: pd.DataFrame) -> Plot:
    """A row a measure: the mean change (dot) and how far down it may truly lie (bar, one-sided 95 % limit),
    against the margin (mark). A bar that reaches the mark: no loss of that size is ruled out."""
    title = "Change of the candidate by each measure"
    if table.empty:
        return Plot(title, "No measure was taken.")
    figure, (axes,) = panels(size=(WIDEST_INCHES, 1.2 + 0.42 * len(table)))
    at = np.arange(len(table))
    shown = table.lower_percent >= table.margin_percent
    colours = [BLUE if each else BAD for each in shown]
    axes.hlines(at, table.lower_percent, table.mean_percent, colors=colours, linewidth=5, alpha=PALE)
    axes.scatter(table.mean_percent, at, c=colours, zorder=2)
    axes.plot(table.margin_percent, at, "|", color=BAD, markersize=18, markeredgewidth=2)
    axes.axvline(0, color=INK, linewidth=0.8, linestyle="--")
    named(axes, [f"{words_of(row.Index)} ({row.how}), p = {row.holm_p:.2g}" for row in table.itertuples()])
    axes.set(xlabel="change of the candidate, %")
    return Plot(
        title,
        "The dot is the mean change, the bar reaches down to what the true one is above with 95 % "
        "confidence, the "
        "upright mark is the margin. A bar that passes its mark, in orange, does not rule out such a loss.",
        "; ".join(
            f"{words_of(row.Index)}: {row.mean_percent:+.2f} %, at least {row.lower_percent:+.2f} %"
            for row in table.itertuples()
        )
        + ".",
        figure,
    )


@styled
def verdicts(counts: pd.DataFrame, colours: Mapping[str, str]) -> Plot:
    """Lines of each part (rows) by verdict (columns), one bar a part, with the numbers in it."""
    title = "Lines of the checklist by part and verdict"
    if counts.empty:
        return Plot(title, "No part was asked for.")
    figure, (axes,) = panels(size=(WIDEST_INCHES, 1.2 + 0.36 * len(counts)))
    left = np.zeros(len(counts))
    for verdict in counts.columns:
        bars = axes.barh(
            range(len(counts)), counts[verdict], 0.75, left=left, color=colours[verdict], label=verdict
        )
        said = [str(count) if count else "" for count in counts[verdict]]
        axes.bar_label(bars, said, label_type="center", color=GROUND)
        left += counts[verdict].to_numpy()
    named(axes, list(counts.index))
    axes.set(xlabel="lines")
    figure.legend(loc="outside upper left", ncols=len(counts.columns))
    return Plot(
        title,
        "A bar a part, each number a count of lines.",
        "In all: " + ", ".join(f"{verdict} {count}" for verdict, count in counts.sum().items()) + ".",
        figure,
    )


_ENDED = "✓≈!✗"
"""Before what is said of a stream, so that no colour is needed to tell them apart."""


@styled
def outcomes(table: pd.DataFrame, colours: Mapping[str, str]) -> Plot:
    """A cell for each scenario (rows) and transport (columns), in the colour of how the stream ended; in it
    the longest silence in ms, and behind an arrow the longest time to recover. Empty was not asked."""
    from matplotlib.patches import Patch

    title = "How each stream ended, by scenario and transport"
    if table.empty:
        return Plot(title, "No stream was asked for.")
    rows, columns = list(dict.fromkeys(table.scenario)), list(dict.fromkeys(table.transport))
    marks = dict(zip(colours, _ENDED, strict=True))
    figure, (axes,) = panels(size=(min(WIDEST_INCHES, 3 + 1.8 * len(columns)), 1.6 + 0.34 * len(rows)))
    for row in table.itertuples():
        at = rows.index(row.scenario), columns.index(row.transport)
        recovered = "" if np.isnan(row.recover_most_s) else f" → {1000 * row.recover_most_s:.0f}"
        said = f"{marks[row.ended]}  {1000 * row.longest_silence_s:.0f}{recovered}"
        axes.barh(at[0], 1, 0.94, left=at[1] - 0.49, color=colours[row.ended], alpha=PALE)
        axes.text(at[1], at[0], said, ha="center", va="center", fontsize=9)
    named(axes, rows)
    axes.set(xticks=range(len(columns)), xticklabels=columns, xlim=(-0.5, len(columns) - 0.5))
    axes.tick_params(length=0)
    axes.xaxis.tick_top()
    bare(axes, "left", "bottom")
    patches = [
        Patch(color=colour, alpha=PALE, label=f"{marks[name]} {name}") for name, colour in colours.items()
    ]
    figure.legend(handles=patches, loc="outside lower left", ncols=len(patches))
    ended = table.ended.value_counts()
    return Plot(
        title,
        "In each cell the longest silence in ms, behind the arrow the time to recover in ms. Empty: that "
        "transport "
        "cannot meet the fault.",
        f"{counted(len(table), 'stream')}: "
        + ", ".join(f"{how} {count}" for how, count in ended.items())
        + ".",
        figure,
    )


@styled
def taken_by(table: pd.DataFrame, providers: dict[str, str]) -> Plot:
    """How much of each graph's arithmetic each provider takes, and in how many partitions.

    Parameters
    ----------
    table : pandas.DataFrame
        As `conversion.provider_partitions.table` gives it.
    providers : dict of str to str
        Providers that are shown, each with the words above its column.
    """
    title = "Arithmetic that the provider takes, by graph"
    if table.empty:
        return Plot(title, "No graph was looked at.")
    figure, beside = panels(1, len(providers), size=(WIDEST_INCHES, 3.4), sharey=True)
    taken = []
    for axes, (provider, words) in zip(beside, providers.items(), strict=True):
        rows = table.xs(provider, level="provider")
        share = rows["operations taken, %"]
        axes.barh(rows.index, 100, color=LINE)
        axes.barh(rows.index, share, color=BLUE)
        for k, (percent, count) in enumerate(zip(share, rows.partitions, strict=True)):
            said = "nothing" if count == 0 else f"{percent:.0f} % in {counted(int(count), 'partition')}"
            within = percent > 55
            axes.text(
                3 if within else 97,
                k,
                said,
                ha="left" if within else "right",
                va="center",
                fontsize=9,
                color=GROUND if within else INK,
            )
            taken.append(f"{rows.index[k]}, {words}: {said}")
        axes.set(xlim=(0, 100), xlabel="% of the arithmetic", title=words)
        bare(axes, "left")
    beside[0].invert_yaxis()
    return Plot(
        title,
        "A column each way to ask for the provider. Each partition costs a copy there and back.",
        "; ".join(taken) + ".",
        figure,
    )
