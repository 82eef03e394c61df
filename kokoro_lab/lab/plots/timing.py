"""Where time goes, whether it is enough, and what a run of many minutes was like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kokoro_lab.lab.plots.layout import bare, panels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def stages(seconds: Mapping[str, float], audio_s: float) -> Figure:
    """Where the computing of one utterance went, in milliseconds a second of audio."""
    figure, (axes,) = panels(size=(9, 1.6))
    left = 0.0
    for name, value in seconds.items():
        width = 1000 * value / audio_s
        axes.barh([0], [width], left=left, label=f"{name} {width:.0f} ms")
        left += width
    axes.set(yticks=[], xlabel="milliseconds of computing per second of audio")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.5), ncols=len(seconds), frameon=False)
    return figure


SHOWN_OPERATORS = 5


def way_to_first_audio(stage_s: Mapping[str, float], operator_share: Mapping[str, float]) -> Figure:
    """What a listener waits for, as one bar cut into stages; beside it what the vocoder is busy with."""
    figure, (left, right) = panels(1, 2, size=(13, 3.4), width_ratios=(5, 2))
    total_ms = 1000 * sum(stage_s.values())
    at_ms, above = 0.0, False
    for i, (stage, seconds) in enumerate(stage_s.items()):
        width_ms = 1000 * seconds
        left.barh([0], [width_ms], left=at_ms, height=0.5, color=f"C{i}", edgecolor="white")
        middle_ms = at_ms + width_ms / 2
        text = f"{stage}\n{width_ms:.{0 if width_ms >= 10 else 1}f} ms"
        if width_ms > 0.09 * total_ms:
            left.text(middle_ms, 0, text, ha="center", va="center", color="white", fontsize=9)
        else:  # slivers are named above and below the bar by turns, so that names do not meet
            above = not above
            y = 0.62 if above else -0.62
            left.annotate(
                text,
                (middle_ms, 0.25 if above else -0.25),
                (middle_ms, y),
                ha="center",
                va="bottom" if above else "top",
                color=f"C{i}",
                fontsize=9,
                arrowprops={"arrowstyle": "-", "color": f"C{i}"},
            )
        at_ms += width_ms
    left.set(
        yticks=[],
        ylim=(-1.3, 1.3),
        xlim=(0, total_ms),
        xlabel="milliseconds from the request",
        title=f"{total_ms:.0f} ms to the first audio, warm",
    )
    shown = dict(list(operator_share.items())[:SHOWN_OPERATORS])
    shown["all others"] = sum(operator_share.values()) - sum(shown.values())
    bars = right.barh(list(shown), [100 * share for share in shown.values()], color="0.5")
    right.bar_label(bars, fmt="%.0f %%", padding=3, fontsize=9)
    right.invert_yaxis()
    right.set(xlim=(0, 115), xticks=[], title="operators, share of the vocoder's time")
    bare(left, "top", "right", "left")
    bare(right, "top", "right", "left", "bottom")
    return figure


def loading(milliseconds: Mapping[str, float]) -> Figure:
    """How long each part of an engine takes to load."""
    figure, (axes,) = panels(size=(9, 3))
    bars = axes.barh(list(milliseconds), list(milliseconds.values()), color="tab:blue")
    axes.bar_label(bars, fmt="%.0f ms", padding=3, fontsize=9)
    axes.invert_yaxis()
    axes.set(xlabel="milliseconds", xlim=(0, 1.12 * max(milliseconds.values())))
    bare(axes, "top", "right")
    return figure


def heat_maps(tables: Mapping[str, pd.DataFrame], *, xlabel: str, ylabel: str) -> Figure:
    """Tables side by side, each cell with its value; the darker, the more, and white is 0."""
    figure, beside = panels(1, len(tables), size=(4.4 * len(tables), 3.6))
    for axes, (title, table) in zip(beside, tables.items(), strict=True):
        values = table.to_numpy(float)
        most = float(values.max()) or 1.0
        axes.imshow(values, cmap="Reds", vmin=0, vmax=most, aspect="auto")
        for (row, column), value in np.ndenumerate(values):
            color = "white" if value > 0.6 * most else "black"
            axes.text(column, row, f"{value:.0f}", ha="center", va="center", color=color)
        axes.set(
            title=title,
            xlabel=xlabel,
            ylabel=ylabel,
            xticks=range(len(table.columns)),
            xticklabels=table.columns,
            yticks=range(len(table.index)),
            yticklabels=table.index,
        )
    return figure


def ahead_of_the_player(
    streams: Mapping[str, Sequence[tuple[Sequence[float], Sequence[float]]]],
    pre_buffers: Sequence[int],
) -> Figure:
    """How much audio is there that has not been played yet, had the player begun with the first chunk.

    `streams` has a panel each name, a line each pair of arrivals and lengths. How far a line falls below
    0 is the pre-buffer that it needs; dashed lines are `pre_buffers`, in chunks.
    """
    figure, beside = panels(1, len(streams), size=(13, 3.4), sharey=True, sharex=True)
    for axes, (name, pairs) in zip(beside, streams.items(), strict=True):
        for arrivals_s, lengths_s in pairs:
            since_s = np.asarray(arrivals_s) - arrivals_s[0]
            there_s = np.cumsum(lengths_s) - since_s
            # Just before a chunk comes, and just after
            steps_s = np.column_stack([there_s - lengths_s, there_s]).reshape(-1)
            axes.plot(np.repeat(since_s, 2), steps_s, linewidth=0.8, color="tab:blue", alpha=0.6)
        axes.axhspan(-100, 0, color="tab:red", alpha=0.06)
        axes.axhline(0, color="0.3", linewidth=0.8)
        for chunks in pre_buffers:
            axes.axhline(-chunks * pairs[0][1][0], color="tab:red", linewidth=0.6, linestyle="--")
        axes.set(title=name, xlabel="seconds after the first chunk", xlim=(0, 3), ylim=(-1, 2))
    beside[0].set_ylabel("seconds ahead of the player")
    return figure


Points = tuple[Sequence[float], Sequence[float]]
"""Minutes, and values."""


def over_a_soak(streams: Mapping[str, Points], windows: Mapping[str, Points], settled_min: float) -> Figure:
    """A panel a figure of `streams`, a dot a stream; `windows`, by the same names, are joined by a line.

    Values are relative to their usual level. Behind the dashed line drift is looked for, which is half of the
    run; what is left of the dotted line are the first minutes.
    """
    figure, below = panels(len(streams), size=(12, 2.2 * len(streams)), sharex=True)
    for axes, (name, (minutes, values)) in zip(below, streams.items(), strict=True):
        axes.plot(*windows[name], "o-", color="tab:blue", markersize=5)
        axes.axhline(1, color="0.3", linewidth=0.6)
        axes.axvline(max(minutes, default=0) / 2, color="0.3", linewidth=0.8, linestyle="--")
        axes.axvline(settled_min, color="0.3", linewidth=0.8, linestyle=":")
        # One stream that was held up must not flatten what creeps: what is beyond is drawn at the edge
        reach = 1.2 * max(0.1, float(np.percentile(np.abs(np.subtract(values, 1)), 95)) if values else 0)
        axes.plot(minutes, np.clip(values, 1 - reach, 1 + reach), ".", color="0.6", markersize=4, zorder=1)
        axes.set(ylabel=f"{name} ÷ usual", ylim=(1 - 1.05 * reach, 1 + 1.05 * reach))
    below[-1].set_xlabel("minutes")
    return figure


def held_over_time(
    minutes: Sequence[float], columns: Mapping[str, Sequence[float]], settled_min: float
) -> Figure:
    """A panel a column: memory, descriptors, threads. The first minutes end at the dotted line."""
    figure, beside = panels(1, len(columns), size=(13, 2.8), sharex=True)
    for axes, (name, values) in zip(beside, columns.items(), strict=True):
        axes.plot(minutes, values, color="tab:blue", linewidth=1)
        axes.axvline(settled_min, color="0.3", linewidth=0.8, linestyle=":")
        axes.set(title=name, xlabel="minutes", ylim=(0, 1.15 * max(values)))
    return figure
