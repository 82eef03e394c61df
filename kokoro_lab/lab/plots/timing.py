"""Plots of times: stages, streams against their player, crowds of listeners, long runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kokoro_lab.lab.plots.palette import BAD, BLUE, GREEN, GROUND, INK, LINE, MUTED, PALE, SERIES
from kokoro_lab.lab.plots.style import Drawing, bare, counted, listed, panels, plotted
from kokoro_lab.lab.results.units import label_of

if TYPE_CHECKING:
    import pandas as pd


@plotted()
def stages(seconds: Mapping[str, float], audio_s: float) -> Drawing:
    """Computing for each second of speech, by stage.

    One bar, divided into stages: the length of each part is the computing time of one stage.
    """
    if not seconds or not audio_s:
        return Drawing(None, "No second of speech was made.")
    figure, (axes,) = panels(height=1.7)
    said, left = [], 0.0
    for (name, value), colour in zip(seconds.items(), SERIES, strict=False):
        width_ms = 1000 * value / audio_s
        said.append(f"{name}, {width_ms:.1f} ms")
        axes.barh([0], [width_ms], left=left, color=colour, label=said[-1])
        left += width_ms
    axes.set(yticks=[], xlabel="milliseconds of computing for each second of speech", xlim=(0, left or 1))
    figure.legend(loc="outside upper left", ncols=len(seconds))
    bare(axes, "left")
    return Drawing(figure, listed(said))


SHOWN_OPERATORS = 5


@plotted("No stage was timed.")
def way_to_first_audio(stage_s: Mapping[str, float], operator_share: Mapping[str, float]) -> Drawing:
    """The way to the first audio, warm.

    Left, the stages in turn, from the request on; the width of each is its median time. Right, the operators
    on which the vocoder spends its time.
    """
    figure, (left, right) = panels(1, 2, height=3.2, width_ratios=(5, 2))
    total_ms = 1000 * sum(stage_s.values())
    at_ms, side, said = 0.0, -1, []
    for i, (stage, seconds) in enumerate(stage_s.items()):
        width_ms = 1000 * seconds
        colour = SERIES[i % len(SERIES)]
        left.barh([0], [width_ms], left=at_ms, height=0.5, color=colour, edgecolor=GROUND)
        middle_ms = at_ms + width_ms / 2
        said.append(f"{stage}\n{width_ms:.{0 if width_ms >= 10 else 1}f} ms")
        if width_ms > 0.13 * total_ms:
            left.text(middle_ms, 0, said[-1], ha="center", va="center", color=GROUND, fontsize=9)
        else:  # narrow parts are named above and below the bar in turn, so that names do not meet
            side = -side
            line = {"arrowstyle": "-", "color": colour}
            place: Any = {
                "ha": "center",
                "va": "bottom" if side > 0 else "top",
                "fontsize": 9,
                "color": colour,
            }
            left.annotate(
                said[-1], (middle_ms, 0.25 * side), (middle_ms, 0.62 * side), arrowprops=line, **place
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
    return Drawing(figure, f"{total_ms:.0f} ms: {listed(said)}".replace("\n", " "))


@plotted("No part was loaded.")
def loading(milliseconds: Mapping[str, float]) -> Drawing:
    """What is loaded at the start.

    A bar for each part: the time that it takes to load that part alone.
    """
    figure, (axes,) = panels(height=0.8 + 0.3 * len(milliseconds))
    bars = axes.barh(list(milliseconds), list(milliseconds.values()), color=BLUE)
    axes.bar_label(bars, fmt="%.0f ms", padding=3, fontsize=9)
    axes.invert_yaxis()
    axes.set(xlabel="milliseconds", xlim=(0, 1.12 * max(milliseconds.values())))
    return Drawing(figure, listed([f"{part} {value:.0f} ms" for part, value in milliseconds.items()]))


@plotted()
def heat_maps(tables: Mapping[str, pd.DataFrame], *, xlabel: str, ylabel: str) -> Drawing:
    """Tables side by side.

    Each cell shows its value. The stronger its colour, the larger the value, compared within its table.
    """
    what, up, across = (
        " and ".join(one.partition(",")[0] for one in names) for names in (tables, [ylabel], [xlabel])
    )
    title = f"{what[:1].upper()}{what[1:]}, by {up} and {across}"
    full = {name: table for name, table in tables.items() if table.size}
    if not full:
        return Drawing(None, "Nothing was counted.", title=title)
    rows = max(len(table) for table in full.values())
    figure, beside = panels(1, len(full), height=max(2.6, 1.3 + 0.34 * rows))
    said = []
    for axes, (name, table) in zip(beside, full.items(), strict=True):
        values = table.to_numpy(float)
        least, most = np.nanmin(values), np.nanmax(values)
        said.append(f"{name}: from {least:.0f} to {most:.0f}")
        for (row, column), value in np.ndenumerate(values):
            if np.isfinite(value):
                alpha = PALE * max(0.0, value) / (most or 1)
                axes.barh(row, 1, 0.94, left=column - 0.5, color=BLUE, alpha=alpha)
                axes.text(column, row, f"{value:.0f}", ha="center", va="center")
        axes.set(title=name, xlabel=xlabel, ylabel=ylabel)
        axes.set(
            xticks=range(len(table.columns)), xticklabels=table.columns, xlim=(-0.5, len(table.columns) - 0.5)
        )
        axes.set(yticks=range(len(table.index)), yticklabels=table.index, ylim=(-0.5, len(table.index) - 0.5))
        axes.tick_params(length=0)
        if sum(len(str(one)) for one in table.columns) > 80 / len(full):
            axes.tick_params(axis="x", rotation=90)
        bare(axes, "left", "bottom")
    return Drawing(figure, listed(said), title=title)


SHOWN_AHEAD_S = 2.0
"""A stream that is this far ahead of its player will not fall behind; the plot ends there."""


@plotted()
def ahead_of_the_player(
    streams: Mapping[str, Sequence[tuple[Sequence[float], Sequence[float]]]],
    pre_buffers: Sequence[int],
) -> Drawing:
    """How far each stream is ahead of its player.

    A line for each stream, which ends when the stream is safely ahead. Where a line is below 0, a player that
    began with the first chunk has nothing to play. A dashed line shows how far below 0 a stream may fall if
    the player first waits for a pre-buffer.

    Parameters
    ----------
    streams : mapping of str to sequence of (arrivals, lengths)
        When chunks arrived, and how long they are, in seconds; a panel for each name.
    pre_buffers : sequence of int
        The pre-buffers to draw, in chunks.
    """
    heard = {name: [pair for pair in pairs if len(pair[0])] for name, pairs in streams.items()}
    heard = {name: pairs for name, pairs in heard.items() if pairs}
    if not heard:
        return Drawing(None, "No chunk arrived.")
    figure, beside = panels(1, len(heard), height=3.2, sharey=True, sharex=True)
    lowest_s, safe_s = 0.0, 0.0
    longest_s = max(float(pairs[0][1][0]) for pairs in heard.values())
    for axes, (name, pairs) in zip(beside, heard.items(), strict=True):
        for arrivals_s, lengths_s in pairs:
            since_s = np.asarray(arrivals_s) - arrivals_s[0]
            there_s = np.cumsum(lengths_s) - since_s
            # Just before a chunk comes, and just after
            steps_s = np.column_stack([there_s - lengths_s, there_s]).reshape(-1)
            axes.plot(np.repeat(since_s, 2), steps_s, linewidth=0.8, color=BLUE, alpha=0.6)
            lowest_s = min(lowest_s, float(steps_s[2:].min(initial=0)))
            safe_s = max(safe_s, float(since_s[there_s < SHOWN_AHEAD_S].max(initial=0)))
        for chunks in pre_buffers:
            axes.axhline(-chunks * pairs[0][1][0], color=BAD, linewidth=0.8, linestyle="--")
        axes.axhline(0, color=INK, linewidth=0.8)
        axes.set(title=name, xlabel="seconds after the first chunk")
    floor_s = 1.15 * min(lowest_s, -longest_s * max(pre_buffers, default=1))
    for axes in beside:
        axes.axhspan(floor_s, 0, color=BAD, alpha=0.08, linewidth=0)
    beside[0].set(ylabel="seconds ahead", xlim=(0, 1.1 * max(safe_s, 0.05)), ylim=(floor_s, SHOWN_AHEAD_S))
    return Drawing(
        figure,
        f"{counted(sum(map(len, heard.values())), 'stream')}; the furthest behind by {abs(lowest_s):.3f} s; "
        f"all are {SHOWN_AHEAD_S:g} s ahead, or whole, {safe_s:.2f} s after their first chunk.",
    )


Points = tuple[Sequence[float], Sequence[float]]
"""Points of a curve: times (minutes or seconds) and values."""


@plotted("No answer was spoken.")
def written_and_heard(answers: Mapping[str, tuple[Points, Points, Sequence[tuple[float, float]]]]) -> Drawing:
    """Text as it is written, and as it is heard.

    The blue line is what was written, the green one what was heard. Where the plot is shaded, the listener
    had heard all that could be spoken, and waited for the writer.

    Parameters
    ----------
    answers : mapping of str to (written, heard, starved)
        Curves of seconds and characters for what was written and for what was heard, and the spans (begin and
        end, in seconds) in which the listener was starved. A panel for each name.
    """
    figure, beside = panels(1, len(answers), height=3.2, sharey=True)
    said = []
    for axes, (name, (written, heard, starved)) in zip(beside, answers.items(), strict=True):
        axes.plot(*written, color=BLUE, drawstyle="steps-post", label="written")
        axes.plot(*heard, color=GREEN, label="heard")
        for start_s, end_s in starved:
            axes.axvspan(start_s, end_s, color=BAD, alpha=0.3, linewidth=0)
        axes.set(title=name, xlabel="seconds after the first letters", xlim=(0, heard[0][-1]))
        spent_s = written[0][-1], heard[0][-1], sum(end_s - start_s for start_s, end_s in starved)
        said.append("{}: written in {:.1f} s, heard in {:.1f} s, starved for {:.1f} s".format(name, *spent_s))
    beside[0].set(ylabel="characters", ylim=(0, None))
    beside[0].legend(loc="lower right")
    return Drawing(figure, listed(said))


@plotted("Nobody listened.")
def capacity(table: pd.DataFrame, borne: int, knee: int) -> Drawing:
    """How soon listeners are served, and how often they hear a gap, by the number of listeners.

    The line shows crowds of a fixed size, whose listeners hear one text after another. The star shows
    listeners who come by chance, at their mean number. Left of the dashed line are the crowds within the
    machine's capacity. Right of the dotted line, the knee, somebody was not served in time. The horizontal
    line is the highest number of underruns that is allowed.

    Parameters
    ----------
    table : pandas.DataFrame
        A row for each crowd, as `load_verdict.curve` gives it.
    borne, knee : int
        The machine's capacity and the knee, in listeners.
    """
    chance = table.index.str.endswith("by chance")
    figure, (times, gaps) = panels(1, 2, height=3.2, sharex=True)
    drawn = (times, "ttfa_p50_s", BLUE, "p50"), (times, "ttfa_p95_s", GREEN, "p95"), (
        gaps, "underruns_in_10_minutes_count", BAD, None,
    )  # fmt: skip
    for axes, column, colour, label in drawn:
        axes.plot(table.listeners[~chance], table[column][~chance], "o-", color=colour, label=label)
        axes.plot(table.listeners[chance], table[column][chance], "*", color=colour, markersize=10)
    gaps.axhline(1, color=MUTED, linewidth=0.8)
    for axes, ylabel in ((times, "TTFA, s"), (gaps, "underruns in 10 minutes of speech")):
        axes.axvline(borne, color=INK, linewidth=0.8, linestyle="--")
        axes.axvline(knee, color=INK, linewidth=0.8, linestyle=":")
        axes.set(xlabel="listeners", ylabel=ylabel, ylim=(0, None), xlim=(0, None))
        axes.locator_params(axis="x", integer=True)
    times.legend(loc="upper left")
    rows = table[["ttfa_p50_s", "ttfa_p95_s", "underruns_in_10_minutes_count"]].itertuples()
    said = ["{}: TTFA {:.3f} s, p95 {:.3f} s, {:.1f} underruns in 10 minutes".format(*row) for row in rows]
    return Drawing(figure, f"The capacity is {borne} listeners, the knee is at {knee}. {listed(said)}")


@plotted()
def over_a_soak(streams: Mapping[str, Points], windows: Mapping[str, Points], settled_min: float) -> Drawing:
    """Do times drift? Every stream against the median of its text.

    A grey dot is a stream's value divided by the median of its text, so 1 is usual. A blue dot is the median
    of the streams in one time window, if there are enough. Left of the dotted line are the first minutes.
    Drift is looked for right of the dashed line, in the second half.
    """
    there = {name: points for name, points in streams.items() if len(points[0])}
    if not there:
        return Drawing(None, "No stream ended, so that none is drawn.")
    figure, below = panels(len(there), height=1.9 * len(there) + 0.4, sharex=True)
    said = []
    for axes, (name, (minutes, values)) in zip(below, there.items(), strict=True):
        axes.plot(*windows[name], "o-", color=BLUE, markersize=5)
        axes.axhline(1, color=INK, linewidth=0.6)
        axes.axvline(max(minutes) / 2, color=INK, linewidth=0.8, linestyle="--")
        axes.axvline(settled_min, color=INK, linewidth=0.8, linestyle=":")
        # One stream that was held up must not flatten what creeps: what is beyond is drawn at the edge
        reach = 1.2 * max(0.1, float(np.percentile(np.abs(np.subtract(values, 1)), 95)))
        axes.plot(minutes, np.clip(values, 1 - reach, 1 + reach), ".", color=MUTED, markersize=4, zorder=1)
        axes.set(ylabel=f"{name} ÷ usual", ylim=(1 - 1.05 * reach, 1 + 1.05 * reach))
        said.append(f"{name}: {counted(len(values), 'stream')}, from {min(values):.2f} to {max(values):.2f}")
    below[-1].set_xlabel("minutes")
    return Drawing(figure, listed(said))


@plotted()
def held_over_time(
    minutes: Sequence[float], columns: Mapping[str, Sequence[float]], settled_min: float
) -> Drawing:
    """What the server holds over time: memory, descriptors and threads.

    Left of the dotted line are the first minutes. A single step is a pool that grew once. A line that keeps
    rising is a leak.
    """
    if not len(minutes) or not columns:
        return Drawing(None, "The run was too short to look at what the server holds.")
    figure, beside = panels(1, len(columns), height=2.6, sharex=True)
    for axes, (name, values) in zip(beside, columns.items(), strict=True):
        axes.plot(minutes, values, ".-", color=BLUE, linewidth=1, markersize=3)
        axes.axvline(settled_min, color=INK, linewidth=0.8, linestyle=":")
        axes.grid(axis="y", color=LINE)
        axes.set(title=label_of(name), xlabel="minutes", ylim=(0, 1.15 * max(values) or 1))
    said = [f"{label_of(name)}: {values[0]:.0f} to {values[-1]:.0f}" for name, values in columns.items()]
    return Drawing(figure, listed(said))
