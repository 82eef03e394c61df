"""Plots of recordings: waveform and spectrogram, loudness, and where two recordings differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kokoro_lab.datatypes import Clip, Samples
from kokoro_lab.lab.plots.palette import BAD, BLUE, GOOD, GREEN, INK, MUTED, ORANGE
from kokoro_lab.lab.plots.style import Drawing, counted, named, panels, plotted
from kokoro_lab.metrics.mel import mel_filters, mel_power

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.image import AxesImage

MEL_BANDS, MEL_HOP_SAMPLES, MEL_WINDOW_SAMPLES = 80, 240, 1024
SHOWN_DB = 80.0
"""Points that are more than this many dB below the loudest point have one colour."""
STEP_DB = 2.0
"""Decibels are drawn in steps of this size. The steps are invisible, and make the file of a picture half as
large."""
SILENT_POWER = 1e-10
SHOWN_HZ = (200, 500, 1000, 2000, 4000, 8000)
LINE_S, SHOWN_LINES = 8.0, 4
"""A long clip is broken into lines of this length, like a text; at most this many lines are drawn."""
NAMED = 25
"""How many rows of a plot have names."""
SHOWN_POINTS = 1200
"""Points of a waveform: one for each pixel."""


@plotted()
def speech(clip: Clip) -> Drawing:
    """What is heard, and when.

    Words stand above the waveform, and their phonemes above the spectrogram; a line shows where each word
    begins.
    """
    rate, duration_s = clip.sample_rate_hz, clip.duration_s
    if not len(clip.samples):
        return Drawing(None, "The clip is empty.")
    lines = min(SHOWN_LINES, int(np.ceil(duration_s / LINE_S)))
    width_s = min(duration_s, LINE_S)
    figure, below = panels(2 * lines, height=3.6 * lines, height_ratios=(1, 2) * lines)
    decibels = _mel_db(clip.samples, rate)
    for line in range(lines):
        top, bottom = below[2 * line : 2 * line + 2]
        start_s = line * LINE_S
        _wave(top, clip.samples, rate, start_s, start_s + width_s)
        image = _spectrum(bottom, decibels, duration_s, rate)
        for axes in (top, bottom):
            axes.set_xlim(start_s, start_s + width_s)
        for timing in clip.timings:
            middle_s = (timing.start_s + timing.end_s) / 2
            if start_s <= middle_s < start_s + width_s:
                top.axvline(timing.start_s, color=MUTED, linewidth=0.5)
                bottom.axvline(timing.start_s, color="0.95", alpha=0.6, linewidth=0.5)
                for axes, text in ((top, timing.text), (bottom, timing.phonemes)):
                    above = axes.get_xaxis_transform()
                    axes.text(middle_s, 1.02, text, ha="center", va="bottom", fontsize=8, transform=above)
    below[-1].set_xlabel("seconds")
    figure.colorbar(image, ax=below[1::2], label="dB below the loudest", pad=0.01, aspect=20 * lines)
    shown_s = min(duration_s, lines * LINE_S)
    note = "" if shown_s == duration_s else f"The first {shown_s:.0f} of {duration_s:.0f} s are drawn."
    words = " ".join(timing.text for timing in clip.timings) or "no words"
    return Drawing(figure, f"Waveform and spectrogram of {duration_s:.1f} s of speech: {words}", note)


def _wave(axes: Axes, samples: Samples, rate_hz: int, start_s: float, stop_s: float) -> None:
    """Draw the lowest and the highest sample of each pixel: a line through all samples would be as large as
    the sound."""
    part = samples[int(start_s * rate_hz) : int(stop_s * rate_hz)]
    edges = np.linspace(0, len(part), min(len(part), SHOWN_POINTS), endpoint=False).astype(int)
    low, high = np.minimum.reduceat(part, edges), np.maximum.reduceat(part, edges)
    axes.fill_between(start_s + edges / rate_hz, low, high, color=BLUE, linewidth=0.5)
    axes.set(ylabel="amplitude", ylim=(-1, 1), xticks=[])


def _spectrum(
    axes: Axes, decibels: np.ndarray, duration_s: float, rate_hz: int, *, difference: bool = False
) -> AxesImage:
    """Draw mel bands over time, with frequencies in Hz beside them."""
    image = axes.imshow(
        STEP_DB * np.round(decibels / STEP_DB),
        origin="lower",
        aspect="auto",
        interpolation="none",
        extent=(0, duration_s, 0, MEL_BANDS),
        cmap=_less_and_more() if difference else "magma",
        vmin=-30 if difference else -SHOWN_DB,
        vmax=30 if difference else 0,
    )
    filters = mel_filters(rate_hz, MEL_WINDOW_SAMPLES, MEL_BANDS)
    frequencies_hz = np.fft.rfftfreq(MEL_WINDOW_SAMPLES, 1 / rate_hz)
    centres_hz = frequencies_hz @ filters / np.maximum(filters.sum(axis=0), SILENT_POWER)
    shown_hz = [hz for hz in SHOWN_HZ if hz < rate_hz / 2]
    places = np.interp(shown_hz, centres_hz, np.arange(MEL_BANDS) + 0.5)
    axes.set(ylabel="Hz", yticks=places, yticklabels=shown_hz)
    return image


def _less_and_more() -> Colormap:
    """A colour map for differences: blue for less, orange for more, the plot's background for none."""
    from matplotlib.colors import LinearSegmentedColormap

    stops = ((0, "#0072b2ff"), (0.5, "#0072b200"), (0.5, "#d55e0000"), (1, "#d55e00ff"))
    return LinearSegmentedColormap.from_list("less-and-more", stops)


@plotted()
def spectrograms_compared(reference: Samples, candidate: Samples, rate_hz: int) -> Drawing:
    """Reference, candidate, and their difference.

    The difference covers the length that both sounds have. Orange is where the candidate has more power than
    the reference, blue where it has less. A single stripe is a fault. If a part is striped all over, the two
    sounds are shifted in time against each other there.
    """
    if not min(len(reference), len(candidate)):
        return Drawing(None, "One of the recordings is empty.")
    spectra = {"reference": _mel_db(reference, rate_hz), "candidate": _mel_db(candidate, rate_hz)}
    common = min(each.shape[1] for each in spectra.values())
    difference = spectra["candidate"][:, :common] - spectra["reference"][:, :common]
    figure, below = panels(3, height=6.5, sharex=True)
    for axes, (name, decibels) in zip(below, (*spectra.items(), ("difference", difference)), strict=True):
        differs = name == "difference"
        length_s = decibels.shape[1] * MEL_HOP_SAMPLES / rate_hz
        image = _spectrum(axes, decibels, length_s, rate_hz, difference=differs)
        axes.set(title=name)
        figure.colorbar(image, ax=axes, label="dB" if differs else "dB below the loudest", pad=0.01)
    below[-1].set_xlabel("seconds")
    apart = np.abs(difference)
    return Drawing(
        figure,
        f"Three spectrograms of {common * MEL_HOP_SAMPLES / rate_hz:.1f} s. The two differ by "
        f"{apart.mean():.1f} dB on average, by {apart.max():.0f} dB at most.",
    )


def _mel_db(samples: Samples, rate_hz: int) -> np.ndarray:
    sizes = {"window_samples": MEL_WINDOW_SAMPLES, "hop_samples": MEL_HOP_SAMPLES, "bands": MEL_BANDS}
    power = mel_power(samples, rate_hz, **sizes).T
    floor = 10 ** (-SHOWN_DB / 10)
    decibels: np.ndarray = 10 * np.log10(np.maximum(power / max(power.max(), SILENT_POWER), floor))
    return decibels


@plotted()
def within_band(
    names: Sequence[str],
    values: Sequence[float],
    *,
    low: float | None,
    high: float | None,
    label: str,
    noun: str = "clip",
) -> Drawing:
    """Each clip against its limits.

    A dashed line is a limit. A dot is within the limits, a cross beyond them. What is furthest beyond a limit
    is first or, if nothing is, what is nearest to a limit. `noun` says what has a name and a value.
    """
    at = np.asarray(values, float)
    room = np.minimum(at - (-np.inf if low is None else low), (np.inf if high is None else high) - at)
    order = [i for i in np.argsort(room, kind="stable") if np.isfinite(at[i])]
    title = f"{label[:1].upper()}{label.partition(',')[0][1:]}, {noun} by {noun}"
    if not order:
        return Drawing(None, f"No {noun} has a value.", title=title)
    first, others = order[:NAMED], order[NAMED:]
    rows = [*(names[i] for i in first), *([counted(len(others), "other")] if others else [])]
    figure, (axes,) = panels(height=1 + 0.24 * len(rows))
    _band(axes.axvline, axes.axvspan, low, high)
    for inside, colour, mark in ((True, GOOD, "o"), (False, BAD, "X")):
        chosen = [row for row, i in enumerate(first) if (room[i] >= 0) == inside]
        axes.scatter([at[first[row]] for row in chosen], chosen, c=colour, marker=mark, zorder=3)
    axes.scatter(at[others], [len(first)] * len(others), c=GOOD, alpha=0.4, s=14)
    named(axes, rows)
    axes.tick_params(axis="y", labelsize=8)
    axes.grid(axis="y", color=MUTED, alpha=0.2)
    axes.set_xlabel(label)
    left_out = len(at) - len(order)
    return Drawing(
        figure,
        f"{counted(len(order), noun)}, {int((room[order] < 0).sum()) or 'none'} beyond a limit. First is "
        f"{names[first[0]]} with {at[first[0]]:.3g}; the median is {np.median(at[order]):.3g}.",
        f"{counted(left_out, noun)} without a value not drawn." if left_out else "",
        title,
    )


@plotted("No clip is long enough to be judged.")
def levels_by_voice(clips: pd.DataFrame, *, low: float, high: float) -> Drawing:
    """Loudness of every clip, by voice.

    A dot for each clip: left of each voice's place its files, right of it its streams. The dashed lines are
    the limits. A clip beyond them is a cross with the name of its text.

    Parameters
    ----------
    clips : DataFrame
        With the columns voice, way (`file` or `stream`), text and integrated_lufs.
    low, high : float
        The band, in LUFS.
    """
    voices = list(dict.fromkeys(clips.voice))
    figure, (axes,) = panels(height=4.2, width=min(10.0, max(6.0, 0.45 * len(voices) + 2)))
    _band(axes.axhline, axes.axhspan, low, high)
    inside = clips.integrated_lufs.between(low, high)
    for way, colour, aside in (("file", BLUE, -0.18), ("stream", GREEN, 0.18)):
        places = clips.voice.map(voices.index) + aside
        for rows, look in ((inside, {"c": colour, "s": 14, "alpha": 0.7, "label": way}), (~inside, _OUTSIDE)):
            chosen = rows & (clips.way == way)
            axes.scatter(places[chosen], clips.integrated_lufs[chosen], **look)
        for row in clips.assign(place=places)[~inside & (clips.way == way)].itertuples():
            at = (row.place, row.integrated_lufs)
            axes.annotate(row.text, at, fontsize=8, color=BAD, xytext=(5, 0), textcoords="offset points")
    axes.set(ylabel="integrated loudness, LUFS")
    _voices(axes, voices)
    lowest, highest = clips.integrated_lufs.min(), clips.integrated_lufs.max()
    return Drawing(
        figure,
        f"{counted(len(clips), 'clip')} of {counted(len(voices), 'voice')}, {int((~inside).sum()) or 'none'} "
        f"outside the band, from {lowest:.1f} to {highest:.1f} LUFS.",
        f"The band is {low:g} to {high:g} LUFS.",
    )


_OUTSIDE: Any = {"c": BAD, "marker": "X", "s": 36, "zorder": 3}


def _voices(axes: Axes, voices: Sequence[str]) -> None:
    axes.set(xticks=range(len(voices)), xticklabels=voices, xlim=(-0.6, len(voices) - 0.4))
    axes.tick_params(axis="x", rotation=90 if len(voices) > 6 else 0, labelsize=8)
    axes.legend(ncols=2, loc="lower left", bbox_to_anchor=(0, 1))


def _band(
    line: Callable[..., object], span: Callable[..., object], low: float | None, high: float | None
) -> None:
    for limit in (low, high):
        if limit is not None:
            line(limit, color=INK, linewidth=0.8, linestyle="--")
    if low is not None and high is not None:
        span(low, high, color=BLUE, alpha=0.08, linewidth=0)


@plotted("The clip is shorter than the 400 ms over which loudness is measured.")
def loudness_over_time(momentary_lufs: Sequence[float], hop_s: float, target_lufs: float) -> Drawing:
    """Loudness over time.

    Each point is the loudness of the 400 ms before it. The dashed line is the target for the whole clip.
    """
    figure, (axes,) = panels(height=2.6)
    axes.plot(np.arange(len(momentary_lufs)) * hop_s + 0.4, momentary_lufs, color=BLUE, linewidth=1)
    axes.axhline(target_lufs, color=INK, linewidth=0.8, linestyle="--")
    axes.set(xlabel="seconds", ylabel="momentary loudness, LUFS", ylim=(target_lufs - 25, target_lufs + 10))
    length_s = len(momentary_lufs) * hop_s
    return Drawing(figure, f"A line over {length_s:.1f} s, at most {max(momentary_lufs):.1f} LUFS.")


@plotted("No voice was measured.")
def levels(measured: Mapping[str, float], shipped: Mapping[str, float]) -> Drawing:
    """Loudness of each voice before gain.

    A bar ends at the loudness that was measured in this run. The dash is the loudness that the package
    contains for the voice.
    """
    figure, (axes,) = panels(height=3.4, width=10 if len(measured) > 12 else 6)
    at, lufs = range(len(measured)), list(measured.values())
    there = [shipped.get(name, np.nan) for name in measured]
    axes.vlines(at, -35, lufs, color=BLUE, linewidth=6, alpha=0.5)
    axes.scatter(at, lufs, c=BLUE, s=30, label="measured now")
    axes.scatter(at, there, c=ORANGE, marker="_", s=140, linewidth=2, label="in the package")
    axes.set(ylabel="loudness before gain, LUFS", ylim=(-30, -14))
    _voices(axes, list(measured))
    furthest = np.nanmax(np.abs(np.subtract(lufs, there)))
    return Drawing(
        figure,
        f"{counted(len(lufs), 'voice')}, from {min(lufs):.1f} to {max(lufs):.1f} LUFS; the furthest from "
        f"the package by {furthest:.1f} LU.",
    )
