"""Plots of verdicts: values against their limits, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from kokoro_lab.lab.plots.palette import BAD, BLUE, GREEN, GROUND, INK, LINE, MUTED, PALE, SERIES
from kokoro_lab.lab.plots.style import Drawing, bare, counted, listed, named, panels, plain, plotted
from kokoro_lab.lab.results.units import label_of, words_of

if TYPE_CHECKING:
    import pandas as pd


@plotted()
def between_anchors(table: pd.DataFrame, *, column: str, anchors: tuple[str, str], label: str) -> Drawing:
    """Each pair between an inaudible change and one that everybody hears.

    A row for each pair of clips, the largest distance first. The dot is the candidate's distance from the
    reference. The left mark is the distance of an inaudible change, the right mark that of a change that
    everybody hears. The axis is logarithmic.
    """
    rows = table.dropna(subset=[column]).sort_values(column, ascending=False)
    if rows.empty:
        return Drawing(None, "Durations differ, so distances would measure timing: none is drawn.")
    figure, (axes,) = panels(height=1.4 + 0.22 * len(rows))
    at = range(len(rows))
    for anchor, colour in zip(anchors, (GREEN, BAD), strict=True):
        axes.plot(rows[anchor], at, "|", color=colour, markersize=9, markeredgewidth=2, label=anchor)
    axes.plot(rows[column], at, "o", color=BLUE, markersize=5, label=column)
    named(axes, list(rows.index))
    axes.set(xscale="log", xlabel=label)
    axes.tick_params(axis="y", labelsize=8)
    plain(axes.xaxis)
    figure.legend(loc="outside upper left", ncols=3)
    first = rows.iloc[0]
    return Drawing(
        figure,
        f"{counted(len(rows), 'pair')}; furthest apart is {rows.index[0]} with {first[column]:.2g}, between "
        f"{first[anchors[0]]:.2g} and {first[anchors[1]]:.2g}.",
    )


@plotted()
def pareto(table: pd.DataFrame, *, cost: str, quality: str, label: str, ceiling: float) -> Drawing:
    """Quality against cost.

    A higher point is better, a point further left is cheaper. The line joins the points that no other point
    beats in both quality and cost.
    """
    title = f"{words_of(quality)} against {words_of(cost)}, a point a {label}"
    if table.empty:
        return Drawing(None, "No point was measured.", title=title)
    figure, (axes,) = panels(height=5)
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
    unbeaten = ", ".join(map(str, best[label]))
    return Drawing(figure, f"{counted(len(table), 'point')}; not beaten in both: {unbeaten}.", title=title)


@plotted()
def ladder(table: pd.DataFrame, *, rows: str, steps: str, value: str, label: str) -> Drawing:
    """How far each step goes.

    A row for each thing that was measured, with a mark for each step; the legend names the steps. A grey line
    joins the lowest and the highest mark of a row.
    """
    title = f"{label.partition(',')[0].capitalize()}, by {rows} and {steps}"
    if table.empty:
        return Drawing(None, f"No {rows} was measured.", title=title)
    wide = table.pivot(index=rows, columns=steps, values=value)[list(dict.fromkeys(table[steps]))]
    figure, (axes,) = panels(height=1.5 + 0.35 * len(wide))
    for number, step in enumerate(wide.columns):
        look: Any = {"c": SERIES[number % len(SERIES)], "marker": "osD^vXP*"[number % 8]}
        axes.scatter(wide[step], range(len(wide)), label=step, s=36, zorder=2, **look)
    axes.hlines(range(len(wide)), wide.min(axis=1), wide.max(axis=1), color=MUTED, linewidth=0.8, zorder=1)
    named(axes, list(wide.index))
    axes.set(xlabel=label)
    figure.legend(loc="outside upper left", ncols=min(6, len(wide.columns)))
    means = listed([f"{step} {mean:.1f}" for step, mean in wide.mean().items()])
    return Drawing(figure, f"Means: {means}", title=title)


@plotted("No voice was read.")
def error_rates(table: pd.DataFrame) -> Drawing:
    """Words that were not understood, by voice.

    The dot is the candidate's word error rate, the square the reference's, the bar its 95 % interval. If the
    two bars of a voice overlap, they show no difference. A wide bar means that the voice read few words.
    """
    figure, (axes,) = panels(height=3.8, width=min(10, max(6, 0.8 * len(table))))
    at = np.arange(len(table))
    for offset, side, colour, mark in ((-0.12, "candidate", BLUE, "o"), (0.12, "reference", MUTED, "s")):
        rate = table[f"{side}_percent"]
        beyond = [rate - table[f"{side}_low"], table[f"{side}_high"] - rate]
        axes.errorbar(at + offset, rate, yerr=beyond, fmt=mark, color=colour, capsize=3, label=side)
    labels = [f"{voice}\n{language}" for voice, language in table.language.items()]
    axes.set(ylabel="word error rate, %", xticks=at, xticklabels=labels)
    axes.set(xlim=(-0.6, len(table) - 0.4), ylim=(0, None))
    axes.tick_params(axis="x", labelsize=8, length=0, rotation=90 if len(table) > 12 else 0)
    axes.legend(ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
    worst = table.candidate_percent.idxmax()
    return Drawing(
        figure,
        f"{counted(len(table), 'voice')}; the candidate's highest rate is "
        f"{table.candidate_percent[worst]:.1f} % ({worst}), where the reference has "
        f"{table.reference_percent[worst]:.1f} %.",
    )


@plotted("No measure was taken.")
def against_margins(table: pd.DataFrame) -> Drawing:
    """Change of the candidate by each measure.

    The dot is the mean change. The bar reaches from the dot to the change's lower limit with 95 % confidence.
    The upright mark is the margin: the largest loss that is allowed. An orange bar passes its mark, so it
    does not rule out a larger loss.
    """
    figure, (axes,) = panels(height=1.2 + 0.42 * len(table))
    at = np.arange(len(table))
    colours = [BLUE if each else BAD for each in table.lower_percent >= table.margin_percent]
    axes.hlines(at, table.lower_percent, table.mean_percent, colors=colours, linewidth=5, alpha=PALE)
    axes.scatter(table.mean_percent, at, c=colours, zorder=2)
    axes.plot(table.margin_percent, at, "|", color=BAD, markersize=18, markeredgewidth=2)
    axes.axvline(0, color=INK, linewidth=0.8, linestyle="--")
    rows = [(words_of(str(row.Index)), row) for row in table.itertuples()]
    named(axes, [f"{name} ({row.how}), p = {row.holm_p:.2g}" for name, row in rows])
    axes.set(xlabel="change of the candidate, %")
    return Drawing(figure, listed([f"{name}: at least {row.lower_percent:+.2f} %" for name, row in rows]))


@plotted("No part was asked for.")
def verdicts(counts: pd.DataFrame, colours: Mapping[str, str]) -> Drawing:
    """Lines of the checklist by part and verdict.

    A bar for each part of the checklist, divided by verdict. A number says how many lines have that verdict.
    """
    from matplotlib.ticker import MaxNLocator

    figure, (axes,) = panels(height=1.2 + 0.36 * len(counts))
    at, left = range(len(counts)), np.zeros(len(counts))
    for verdict, numbers in counts.items():
        bars = axes.barh(at, numbers, 0.75, left=left, color=colours[str(verdict)], label=verdict)
        said = [str(count) if count else "" for count in numbers]
        axes.bar_label(bars, said, label_type="center", color=GROUND)
        left += numbers.to_numpy()
    named(axes, list(counts.index))
    axes.set(xlabel="lines")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    figure.legend(loc="outside upper left", ncols=len(counts.columns))
    return Drawing(
        figure, f"In all: {listed([f'{verdict} {count}' for verdict, count in counts.sum().items()])}"
    )


_ENDED = "✓≈!✗"
"""Signs before the outcomes of streams, so that colour is not needed to tell outcomes apart."""


@plotted("No stream was asked for.")
def outcomes(table: pd.DataFrame, colours: Mapping[str, str]) -> Drawing:
    """How each stream ended, by scenario and transport.

    Each cell shows the longest silence in ms and, after the arrow, the longest time to recover in ms. A cell
    is empty if the fault cannot occur on that transport.
    """
    from matplotlib.patches import Patch

    rows, columns = list(dict.fromkeys(table.scenario)), list(dict.fromkeys(table.transport))
    marks = dict(zip(colours, _ENDED, strict=True))
    figure, (axes,) = panels(height=1.6 + 0.34 * len(rows), width=min(10, max(7, 3 + 1.8 * len(columns))))
    for row in table.itertuples():
        y, x = rows.index(row.scenario), columns.index(row.transport)
        recovered = "" if np.isnan(row.recover_most_s) else f" → {1000 * row.recover_most_s:.0f}"
        said = f"{marks[row.ended]}  {1000 * row.longest_silence_s:.0f}{recovered}"
        axes.barh(y, 1, 0.94, left=x - 0.49, color=colours[row.ended], alpha=PALE)
        axes.text(x, y, said, ha="center", va="center", fontsize=9)
    named(axes, rows)
    axes.set(xticks=range(len(columns)), xticklabels=columns, xlim=(-0.5, len(columns) - 0.5))
    axes.tick_params(length=0)
    axes.xaxis.tick_top()
    bare(axes, "left", "bottom")
    patches = [
        Patch(color=colour, alpha=PALE, label=f"{marks[name]} {name}") for name, colour in colours.items()
    ]
    figure.legend(handles=patches, loc="outside lower left", ncols=len(patches))
    ended = listed([f"{how} {count}" for how, count in table.ended.value_counts().items()])
    return Drawing(figure, f"{counted(len(table), 'stream')}: {ended}")


@plotted("No graph was looked at.")
def taken_by(table: pd.DataFrame, providers: dict[str, str]) -> Drawing:
    """Share of the arithmetic that the provider takes, by graph.

    A panel for each way to ask for the provider. The nodes that the provider takes form partitions; for each
    partition, tensors are copied to the provider and back.

    Parameters
    ----------
    table : pandas.DataFrame
        The table that `conversion.provider_partitions.table` returns.
    providers : dict of str to str
        Providers that are shown, each with the words above its column.
    """
    figure, beside = panels(1, len(providers), height=3.4, sharey=True)
    taken = []
    for axes, (provider, words) in zip(beside, providers.items(), strict=True):
        rows = table.xs(provider, level="provider")
        share = rows["operations taken, %"]
        axes.barh(rows.index, 100, color=LINE)
        axes.barh(rows.index, share, color=BLUE)
        for k, (percent, count) in enumerate(zip(share, rows.partitions, strict=True)):
            said = "nothing" if count == 0 else f"{percent:.0f} % in {counted(int(count), 'partition')}"
            within = percent > 55
            x, side, colour = (3, "left", GROUND) if within else (97, "right", INK)
            axes.text(x, k, said, ha=side, va="center", fontsize=9, color=colour)
            taken.append(f"{rows.index[k]}, {words}: {said}")
        axes.set(xlim=(0, 100), xlabel="% of the arithmetic", title=words)
        bare(axes, "left")
    beside[0].invert_yaxis()
    return Drawing(figure, listed(taken))


@plotted()
def growth(histories: Mapping[str, pd.DataFrame], lines: pd.DataFrame) -> Drawing:
    """How the error falls with training.

    A dot is an error that was measured, on texts that had no part in the training. A line continues the trend
    of the dots. The band is where the error is expected with 95 % confidence, if the trend lasts.

    Parameters
    ----------
    histories : mapping of str to DataFrame
        Name of each training → its table, with compute_s and error_db.
    lines : pandas.DataFrame
        Columns name, compute_s, error_db, low_db, high_db.
    """
    measured = {name: table[table.compute_s > 0] for name, table in histories.items()}
    if not any(len(table) for table in measured.values()):
        return Drawing(None, "Nothing was trained.")
    figure, (axes,) = panels(height=4.5)
    for number, (name, table) in enumerate(measured.items()):
        colour = SERIES[number % len(SERIES)]
        axes.plot(table.compute_s, table.error_db, "o", color=colour, markersize=4, label=name)
        own = lines[lines.name == name].sort_values("compute_s")
        axes.plot(own.compute_s, own.error_db, color=colour, linewidth=1)
        axes.fill_between(own.compute_s, own.low_db, own.high_db, color=colour, alpha=0.15, linewidth=0)
    axes.set(xlabel="training, s of one core", ylabel="error, dB", xscale="log")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    ends = [f"{name} {table.error_db.iloc[-1]:.1f} dB" for name, table in measured.items()]
    return Drawing(figure, f"At the end: {listed(ends)}.")
