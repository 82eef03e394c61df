"""Figures for notebooks. Each function takes data and returns a figure; none of them measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kokoro_lab.datatypes import Clip, Samples

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEL_BANDS, MEL_HOP_SAMPLES = 80, 240


def speech(clip: Clip, *, until_s: float = 8.0) -> Figure:
    """Waveform over mel spectrogram on one time axis, words above, phonemes below, where they are heard."""
    from matplotlib import pyplot as plt

    stop = min(len(clip.samples), int(until_s * clip.sample_rate_hz))
    samples, rate = clip.samples[:stop], clip.sample_rate_hz
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(13, 5.5), sharex=True, height_ratios=(1, 2), layout="constrained"
    )
    top.plot(np.arange(stop) / rate, samples, linewidth=0.4)
    top.set(ylabel="amplitude", ylim=(-1, 1))
    image = bottom.imshow(
        _mel_db(samples, rate),
        origin="lower",
        aspect="auto",
        extent=(0, stop / rate, 0, MEL_BANDS),
        cmap="magma",
    )
    bottom.set(xlabel="seconds", ylabel="mel band")
    figure.colorbar(image, ax=bottom, label="dB below the loudest", pad=0.01)
    for timing in clip.timings:
        if timing.end_s > stop / rate:
            break
        middle = (timing.start_s + timing.end_s) / 2
        for axes in (top, bottom):
            axes.axvline(timing.start_s, color="0.6", linewidth=0.5)
        top.text(middle, 0.86, timing.text, ha="center", va="center", fontsize=8)
        bottom.text(middle, 3, timing.phonemes, ha="center", fontsize=8, color="white")
    plt.close(figure)
    return figure


def _mel_db(samples: Samples, rate_hz: int) -> np.ndarray:
    import librosa

    mel = librosa.feature.melspectrogram(
        y=samples, sr=rate_hz, n_fft=1024, hop_length=MEL_HOP_SAMPLES, n_mels=MEL_BANDS
    )
    decibels: np.ndarray = librosa.power_to_db(mel, ref=np.max, top_db=80)
    return decibels


def stages(seconds: Mapping[str, float], audio_s: float) -> Figure:
    """Where the computing of one utterance went, in milliseconds a second of audio."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 1.6), layout="constrained")
    left = 0.0
    for name, value in seconds.items():
        width = 1000 * value / audio_s
        axes.barh([0], [width], left=left, label=f"{name} {width:.0f} ms")
        left += width
    axes.set(yticks=[], xlabel="milliseconds of computing per second of audio")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.5), ncols=len(seconds), frameon=False)
    plt.close(figure)
    return figure


def within_band(
    names: Sequence[str], values: Sequence[float], *, low: float | None, high: float | None, label: str
) -> Figure:
    """One dot a clip against the band that it must lie in; those outside are red and named."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(11, 3.2), layout="constrained")
    _band(axes, low, high)
    good = [_inside(v, low, high) for v in values]
    axes.scatter(range(len(values)), values, c=["tab:blue" if g else "tab:red" for g in good], s=18, zorder=3)
    for i, (name, value, inside) in enumerate(zip(names, values, good, strict=True)):
        if not inside:
            axes.annotate(
                name, (i, value), fontsize=7, color="tab:red", xytext=(3, 3), textcoords="offset points"
            )
    axes.set(ylabel=label, xlabel="clip")
    plt.close(figure)
    return figure


def _inside(value: float, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def _band(axes: Axes, low: float | None, high: float | None) -> None:
    for limit in (low, high):
        if limit is not None:
            axes.axhline(limit, color="0.4", linewidth=0.8, linestyle="--")
    if low is not None and high is not None:
        axes.axhspan(low, high, color="tab:green", alpha=0.08)


def loudness_over_time(momentary_lufs: Sequence[float], hop_s: float, target_lufs: float) -> Figure:
    """Momentary loudness (400 ms) of one clip against the target of the whole."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(11, 2.6), layout="constrained")
    axes.plot(np.arange(len(momentary_lufs)) * hop_s + 0.4, momentary_lufs, linewidth=1)
    axes.axhline(target_lufs, color="0.4", linewidth=0.8, linestyle="--")
    axes.set(xlabel="seconds", ylabel="LUFS, 400 ms", ylim=(target_lufs - 25, target_lufs + 10))
    plt.close(figure)
    return figure


def levels(measured: Mapping[str, float], shipped: Mapping[str, float]) -> Figure:
    """Average loudness a voice, measured now and as it stands in the package."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(13, 3.4), layout="constrained")
    names = list(measured)
    axes.bar(names, [measured[n] for n in names], color="tab:blue", alpha=0.6, label="measured")
    axes.scatter(names, [shipped.get(n, np.nan) for n in names], color="black", s=14, label="in the package")
    axes.set(ylabel="LUFS before gain", ylim=(-30, -14))
    axes.tick_params(axis="x", rotation=90, labelsize=8)
    axes.legend(frameon=False, ncols=2)
    plt.close(figure)
    return figure


def way_to_first_audio(stage_s: Mapping[str, float], operator_share: Mapping[str, float]) -> Figure:
    """What a listener waits for, as one bar cut into stages; beside it what the vocoder is busy with."""
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 3.4), width_ratios=(5, 2), layout="constrained")
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
    for axes in (left, right):
        axes.spines[["top", "right", "left"]].set_visible(False)
    right.spines["bottom"].set_visible(False)
    plt.close(figure)
    return figure


SHOWN_OPERATORS = 5


def loading(milliseconds: Mapping[str, float]) -> Figure:
    """How long each part of an engine takes to load."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 3), layout="constrained")
    bars = axes.barh(list(milliseconds), list(milliseconds.values()), color="tab:blue")
    axes.bar_label(bars, fmt="%.0f ms", padding=3, fontsize=9)
    axes.invert_yaxis()
    axes.set(xlabel="milliseconds", xlim=(0, 1.12 * max(milliseconds.values())))
    axes.spines[["top", "right"]].set_visible(False)
    plt.close(figure)
    return figure


def heat_maps(tables: Mapping[str, pd.DataFrame], *, xlabel: str, ylabel: str, fmt: str = ".0f") -> Figure:
    """Tables side by side, each cell with its value; the darker, the more, and white is 0."""
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(
        1, len(tables), figsize=(4.4 * len(tables), 3.6), layout="constrained", squeeze=False
    )
    for axes, (title, table) in zip(panels[0], tables.items(), strict=True):
        values = table.to_numpy(float)
        most = float(values.max()) or 1.0
        axes.imshow(values, cmap="Reds", vmin=0, vmax=most, aspect="auto")
        for (row, column), value in np.ndenumerate(values):
            color = "white" if value > 0.6 * most else "black"
            axes.text(column, row, format(value, fmt), ha="center", va="center", color=color)
        axes.set(
            title=title,
            xlabel=xlabel,
            ylabel=ylabel,
            xticks=range(len(table.columns)),
            xticklabels=table.columns,
            yticks=range(len(table.index)),
            yticklabels=table.index,
        )
    plt.close(figure)
    return figure


def ahead_of_the_player(
    streams: Mapping[str, Sequence[tuple[Sequence[float], Sequence[float]]]],
    pre_buffers: Sequence[int],
    *,
    until_s: float = 3.0,
) -> Figure:
    """How much audio is there that has not been played yet, had the player begun with the first chunk.

    `streams` has a panel each name, a line each pair of arrivals and lengths. How far a line falls below
    0 is the pre-buffer that it needs; dashed lines are `pre_buffers`, in chunks.
    """
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(
        1, len(streams), figsize=(13, 3.4), sharey=True, sharex=True, layout="constrained", squeeze=False
    )
    for axes, (name, pairs) in zip(panels[0], streams.items(), strict=True):
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
        axes.set(title=name, xlabel="seconds after the first chunk", xlim=(0, until_s), ylim=(-1, 2))
    panels[0][0].set_ylabel("seconds ahead of the player")
    plt.close(figure)
    return figure


def right_answers(table: pd.DataFrame) -> Figure:
    """A dot a listener of an ABX test: how often right, with its 95 % interval.

    Over the dashed line (guessing) with its whole interval: a difference is heard. The end of the thick
    bar, a one-sided limit, left of the red line: the difference is shown to be inaudible.
    """
    from matplotlib import pyplot as plt

    from kokoro_lab.metrics.abx import CHANCE, INAUDIBLE_BELOW

    height = 1.1 + 0.35 * len(table)
    figure, axes = plt.subplots(figsize=(9, height), layout="constrained")
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
    plt.close(figure)
    return figure


def between_anchors(table: pd.DataFrame, *, column: str, anchors: tuple[str, str], label: str) -> Figure:
    """A row a pair, sorted: the candidate's distance between those of a change that is inaudible (left) and
    of one that everybody hears (right). The axis is logarithmic."""
    from matplotlib import pyplot as plt

    rows = table.sort_values(column)
    figure, axes = plt.subplots(figsize=(10, 1.2 + 0.22 * len(rows)), layout="constrained")
    at = range(len(rows))
    for anchor, color in zip(anchors, ("tab:green", "tab:red"), strict=True):
        axes.plot(rows[anchor], at, "|", color=color, markersize=9, label=anchor)
    axes.plot(rows[column], at, "o", color="tab:blue", markersize=5, label=column)
    axes.set(xscale="log", xlabel=label, yticks=at, yticklabels=rows.index)
    axes.tick_params(axis="y", labelsize=7)
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    plt.close(figure)
    return figure


def pareto(table: pd.DataFrame, *, cost: str, quality: str, label: str, ceiling: float) -> Figure:
    """Points by cost and quality, each with its name; those that no other beats in both are joined."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(10, 6), layout="constrained")
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
    from matplotlib import pyplot as plt

    wide = table.pivot(index=rows, columns=steps, values=value)[list(dict.fromkeys(table[steps]))]
    figure, axes = plt.subplots(figsize=(11, 1.5 + 0.35 * len(wide)), layout="constrained")
    for number, step in enumerate(wide.columns):
        axes.scatter(wide[step], range(len(wide)), color=f"C{number}", label=step, s=36, zorder=2)
    axes.hlines(range(len(wide)), wide.min(axis=1), wide.max(axis=1), color="0.8", linewidth=1, zorder=1)
    axes.set(xlabel=label, yticks=range(len(wide)), yticklabels=list(wide.index))
    axes.invert_yaxis()
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.25), ncols=len(wide.columns), frameon=False)
    plt.close(figure)
    return figure


def against_margins(table: pd.DataFrame) -> Figure:
    """A row a measure: the mean change (dot) and how far down it may truly lie (bar, one-sided 95 % limit),
    against the margin (red). A bar that reaches the red mark is red: no loss of that size is ruled out."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(10, 1.2 + 0.42 * len(table)), layout="constrained")
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
    plt.close(figure)
    return figure
