"""A run of many minutes: what its streams were like, and what the server held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kokoro_lab.lab.plots.layout import panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
