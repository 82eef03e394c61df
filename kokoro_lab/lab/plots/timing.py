"""Where time goes, whether it is enough, and what a run of many minutes was like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kokoro_lab.lab.plots.style import (
    BAD,
    BLUE,
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
    panels,
    styled,
)

if TYPE_CHECKING:
    import pandas as pd


@styled
def stages(seconds: Mapping[str, float], audio_s: float) -> Plot:
    """Where the computing of one utterance went, in milliseconds a second of audio."""
    title = "Computing for each second of speech, by stage"
    if not seconds or not audio_s:
        return Plot(title, "No second of speech was made.")
    figure, (axes,) = panels(size=(WIDEST_INCHES, 1.7))
    shares_ms = {name: 1000 * value / audio_s for name, value in seconds.items()}
    left = 0.0
    for (name, width), colour in zip(shares_ms.items(), SERIES, strict=False):
        axes.barh([0], [width], left=left, color=colour, label=f"{name}, {width:.1f} ms")
        left += width
    axes.set(yticks=[], xlabel="milliseconds of computing for each second of speech", xlim=(0, left or 1))
    figure.legend(loc="outside upper left", ncols=len(seconds))
    bare(axes, "left")
    return Plot(
        title,
        f"One bar of {left:.0f} ms, cut where a stage ends and the next begins.",
        ", ".join(f"{name} {width:.1f} ms" for name, width in shares_ms.items()) + " for each second.",
        figure,
    )


SHOWN_OPERATORS = 5


@styled
def way_to_first_audio(stage_s: Mapping[str, float], operator_share: Mapping[str, float]) -> Plot:
    """What a listener waits for, as one bar cut into stages; beside it what the vocoder is busy with."""
    title = "The way to the first audio, warm"
    if not stage_s:
        return Plot(title, "No stage was timed.")
    figure, (left, right) = panels(1, 2, size=(WIDEST_INCHES, 3.2), width_ratios=(5, 2))
    total_ms = 1000 * sum(stage_s.values())
    at_ms, above = 0.0, False
    for i, (stage, seconds) in enumerate(stage_s.items()):
        width_ms = 1000 * seconds
        colour = SERIES[i % len(SERIES)]
        left.barh([0], [width_ms], left=at_ms, height=0.5, color=colour, edgecolor=GROUND)
        middle_ms = at_ms + width_ms / 2
        text = f"{stage}\n{width_ms:.{0 if width_ms >= 10 else 1}f} ms"
        if width_ms > 0.13 * total_ms:
            left.text(middle_ms, 0, text, ha="center", va="center", color=GROUND, fontsize=9)
        else:  # slivers are named above and below the bar by turns, so that names do not meet
            above = not above
            side = 1 if above else -1
            left.annotate(
                text,
                (middle_ms, 0.25 * side),
                (middle_ms, 0.62 * side),
                ha="center",
                va="bottom" if above else "top",
                color=colour,
                fontsize=9,
                arrowprops={"arrowstyle": "-", "color": colour},
            )
        at_ms += width_ms
    left.set(yticks=[], ylim=(-1.3, 1.3), xlim=(0, total_ms or 1), xlabel="milliseconds from the request")
    left.set_title(f"{total_ms:.0f} ms to the first audio")
    shown = dict(list(operator_share.items())[:SHOWN_OPERATORS])
    shown["all others"] = sum(operator_share.values()) - sum(shown.values())
    bars = right.barh(list(shown), [100 * share for share in shown.values()], color=MUTED)
    right.bar_label(bars, fmt="%.0f %%", padding=3, fontsize=9)
    right.invert_yaxis()
    right.set(xlim=(0, 115), xticks=[], title="operators, % of the vocoder's time")
    bare(left, "left")
    bare(right, "left", "bottom")
    longest = max(stage_s, key=lambda stage: stage_s[stage])
    return Plot(
        title,
        "Left, from the request on, each stage as wide as it is long (medians). Right, what the vocoder's "
        "time "
        "is spent on.",
        f"{total_ms:.0f} ms in {counted(len(stage_s), 'stage')}, the longest {longest}, "
        f"{1000 * stage_s[longest]:.0f} ms.",
        figure,
    )


@styled
def loading(milliseconds: Mapping[str, float]) -> Plot:
    """How long each part of an engine takes to load."""
    title = "What is loaded at the start"
    if not milliseconds:
        return Plot(title, "No part was loaded.")
    figure, (axes,) = panels(size=(WIDEST_INCHES, 0.8 + 0.3 * len(milliseconds)))
    bars = axes.barh(list(milliseconds), list(milliseconds.values()), color=BLUE)
    axes.bar_label(bars, fmt="%.0f ms", padding=3, fontsize=9)
    axes.invert_yaxis()
    axes.set(xlabel="milliseconds", xlim=(0, 1.12 * max(milliseconds.values())))
    longest = max(milliseconds, key=lambda part: milliseconds[part])
    return Plot(
        title,
        "A bar a part, each loaded by itself.",
        f"{counted(len(milliseconds), 'part')}, the longest {longest}, {milliseconds[longest]:.0f} ms.",
        figure,
    )


@styled
def heat_maps(tables: Mapping[str, pd.DataFrame], *, xlabel: str, ylabel: str) -> Plot:
    """Tables side by side, each cell with its value; the stronger the colour, the more."""
    words = (tables, [ylabel], [xlabel])
    what, up, across = (" and ".join(one.partition(",")[0] for one in names) for names in words)
    title = f"{what[:1].upper()}{what[1:]}, by {up} and {across}"
    full = {name: table for name, table in tables.items() if table.size}
    if not full:
        return Plot(title, "Nothing was counted.")
    rows = max(len(table) for table in full.values())
    figure, beside = panels(1, len(full), size=(WIDEST_INCHES, max(2.6, 1.3 + 0.34 * rows)))
    for axes, (name, table) in zip(beside, full.items(), strict=True):
        values = table.to_numpy(float)
        most = float(np.nanmax(values)) or 1.0
        for (row, column), value in np.ndenumerate(values):
            if np.isfinite(value):
                axes.barh(row, 1, 0.94, left=column - 0.5, color=BLUE, alpha=PALE * max(0.0, value) / most)
                axes.text(column, row, f"{value:.0f}", ha="center", va="center")
        axes.set(title=name, xlabel=xlabel, ylabel=ylabel)
        axes.set(xticks=range(len(table.columns)), xticklabels=table.columns)
        axes.set(yticks=range(len(table.index)), yticklabels=table.index)
        axes.set(xlim=(-0.5, len(table.columns) - 0.5), ylim=(-0.5, len(table.index) - 0.5))
        axes.tick_params(length=0)
        if max(len(str(one)) for one in table.columns) > 8:
            axes.tick_params(axis="x", rotation=90)
        bare(axes, "left", "bottom")
    return Plot(
        title,
        "Each cell has its value; the stronger its colour, the more, within its map.",
        "; ".join(
            f"{name}: from {np.nanmin(table.to_numpy(float)):.0f} to {np.nanmax(table.to_numpy(float)):.0f}"
            for name, table in full.items()
        )
        + ".",
        figure,
    )


SHOWN_AHEAD_S = 2.0
"""A stream that is so far ahead of its player is out of danger."""


@styled
def ahead_of_the_player(
    streams: Mapping[str, Sequence[tuple[Sequence[float], Sequence[float]]]],
    pre_buffers: Sequence[int],
) -> Plot:
    """How much audio is there that has not been played yet, had the player begun with the first chunk.

    `streams` has a panel each name, a line each pair of arrivals and lengths. How far a line falls below
    0 is the pre-buffer that it needs; dashed lines are `pre_buffers`, in chunks.
    """
    title = "How far each stream is ahead of its player"
    heard = {name: [pair for pair in pairs if len(pair[0])] for name, pairs in streams.items()}
    heard = {name: pairs for name, pairs in heard.items() if pairs}
    if not heard:
        return Plot(title, "No chunk arrived.")
    figure, beside = panels(1, len(heard), size=(WIDEST_INCHES, 3.2), sharey=True, sharex=True)
    lowest_s, safe_s = 0.0, 0.0
    for axes, (name, pairs) in zip(beside, heard.items(), strict=True):
        for arrivals_s, lengths_s in pairs:
            since_s = np.asarray(arrivals_s) - arrivals_s[0]
            there_s = np.cumsum(lengths_s) - since_s
            # Just before a chunk comes, and just after
            steps_s = np.column_stack([there_s - lengths_s, there_s]).reshape(-1)
            axes.plot(np.repeat(since_s, 2), steps_s, linewidth=0.8, color=BLUE, alpha=0.6)
            lowest_s = min(lowest_s, float(steps_s[2:].min(initial=0)))
            within = since_s[there_s < SHOWN_AHEAD_S]
            safe_s = max(safe_s, float(within.max(initial=0)))
        chunk_s = float(pairs[0][1][0])
        for chunks in pre_buffers:
            axes.axhline(-chunks * chunk_s, color=BAD, linewidth=0.8, linestyle="--")
        axes.axhline(0, color=INK, linewidth=0.8)
        axes.set(title=name, xlabel="seconds after the first chunk")
    longest_s = max(float(pairs[0][1][0]) for pairs in heard.values())
    floor_s = min(1.15 * lowest_s, -1.15 * longest_s * max(pre_buffers, default=1))
    for axes in beside:
        axes.axhspan(floor_s, 0, color=BAD, alpha=0.08, linewidth=0)
    beside[0].set(ylabel="seconds ahead", xlim=(0, 1.1 * max(safe_s, 0.05)), ylim=(floor_s, SHOWN_AHEAD_S))
    return Plot(
        title,
        "A line a stream, up to where it is safely ahead: below 0 a player that began with the first chunk "
        "is silent; "
        f"dashed, as far as a pre-buffer of {', '.join(map(str, pre_buffers))} chunks reaches.",
        f"{counted(sum(map(len, heard.values())), 'stream')}; the furthest behind by {abs(lowest_s):.3f} "
        "s; all "
        f"are {SHOWN_AHEAD_S:g} s ahead, or whole, {safe_s:.2f} s after their first chunk.",
        figure,
    )


Points = tuple[Sequence[float], Sequence[float]]
"""Minutes, and values."""


@styled
def over_a_soak(streams: Mapping[str, Points], windows: Mapping[str, Points], settled_min: float) -> Plot:
    """A panel a figure of `streams`, a dot a stream; `windows`, by the same names, are joined by a line.

    Values are relative to their usual level. Behind the dashed line drift is looked for, which is half of the
    run; what is left of the dotted line are the first minutes.
    """
    title = "Does anything creep? Every stream against the usual of its text"
    there = {name: points for name, points in streams.items() if len(points[0])}
    if not there:
        return Plot(title, "No stream ended, so that none is drawn.")
    figure, below = panels(len(there), size=(WIDEST_INCHES, 1.9 * len(there) + 0.4), sharex=True)
    for axes, (name, (minutes, values)) in zip(below, there.items(), strict=True):
        axes.plot(*windows[name], "o-", color=BLUE, markersize=5)
        axes.axhline(1, color=INK, linewidth=0.6)
        axes.axvline(max(minutes, default=0) / 2, color=INK, linewidth=0.8, linestyle="--")
        axes.axvline(settled_min, color=INK, linewidth=0.8, linestyle=":")
        # One stream that was held up must not flatten what creeps: what is beyond is drawn at the edge
        reach = 1.2 * max(0.1, float(np.percentile(np.abs(np.subtract(values, 1)), 95)) if values else 0)
        axes.plot(minutes, np.clip(values, 1 - reach, 1 + reach), ".", color=MUTED, markersize=4, zorder=1)
        axes.set(ylabel=f"{name} ÷ usual", ylim=(1 - 1.05 * reach, 1 + 1.05 * reach))
    below[-1].set_xlabel("minutes")
    few = "" if any(len(points[0]) for points in windows.values()) else " There are too few for a line."
    return Plot(
        title,
        "A grey dot a stream, a blue dot the median of a window. Right of the dashed line drift is looked "
        "for; left of "
        "the dotted one are the first minutes; 1 is the usual." + few,
        "; ".join(
            f"{name}: {counted(len(values), 'stream')}, from {min(values):.2f} to {max(values):.2f} of the "
            "usual"
            for name, (_, values) in there.items()
        )
        + ".",
        figure,
    )


@styled
def held_over_time(
    minutes: Sequence[float], columns: Mapping[str, Sequence[float]], settled_min: float
) -> Plot:
    """A panel a column: memory, descriptors, threads. The first minutes end at the dotted line."""
    title = "What the server holds"
    if not len(minutes) or not columns:
        return Plot(title, "The server was not looked at, for the run was too short.")
    figure, beside = panels(1, len(columns), size=(WIDEST_INCHES, 2.6), sharex=True)
    for axes, (name, values) in zip(beside, columns.items(), strict=True):
        axes.plot(minutes, values, ".-", color=BLUE, linewidth=1, markersize=3)
        axes.axvline(settled_min, color=INK, linewidth=0.8, linestyle=":")
        axes.grid(axis="y", color=LINE)
        axes.set(title=label_of(name), xlabel="minutes", ylim=(0, 1.15 * max(values) or 1))
    return Plot(
        title,
        "Left of the dotted line are the first minutes. A step is a pool that grows once, a ramp a leak.",
        "; ".join(
            f"{label_of(name)}: {values[0]:.0f} to {values[-1]:.0f}" for name, values in columns.items()
        )
        + ".",
        figure,
    )
