"""Recordings: what they look like, how loud they are, and where they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kokoro_lab.datatypes import Clip, Samples
from kokoro_lab.lab.plots.layout import panels
from kokoro_lab.metrics.mel import mel_power

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEL_BANDS, MEL_HOP_SAMPLES = 80, 240
SHOWN_DB = 80.0
"""Below the loudest, nothing is told apart."""
SILENT_POWER = 1e-10


def speech(clip: Clip, *, until_s: float = 8.0) -> Figure:
    """Waveform over mel spectrogram on one time axis, words above, phonemes below, where they are heard."""
    stop = min(len(clip.samples), int(until_s * clip.sample_rate_hz))
    samples, rate = clip.samples[:stop], clip.sample_rate_hz
    figure, (top, bottom) = panels(2, size=(13, 5.5), sharex=True, height_ratios=(1, 2))
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
    return figure


def spectrograms_compared(reference: Samples, candidate: Samples, rate_hz: int) -> Figure:
    """Mel spectrograms of two recordings and their difference, over the length that both have.

    In the difference red is where the candidate has more, blue where it has less, and white where both are
    alike: a stripe is a fault, a part that is striped all over is shifted in time.
    """
    spectra = {"reference": _mel_db(reference, rate_hz), "candidate": _mel_db(candidate, rate_hz)}
    common = min(each.shape[1] for each in spectra.values())
    spectra["difference"] = spectra["candidate"][:, :common] - spectra["reference"][:, :common]
    figure, below = panels(3, size=(13, 7), sharex=True)
    for axes, (name, decibels) in zip(below, spectra.items(), strict=True):
        differs = name == "difference"
        image = axes.imshow(
            decibels,
            origin="lower",
            aspect="auto",
            extent=(0, decibels.shape[1] * MEL_HOP_SAMPLES / rate_hz, 0, MEL_BANDS),
            cmap="RdBu_r" if differs else "magma",
            vmin=-30 if differs else -80,
            vmax=30 if differs else 0,
        )
        axes.set(ylabel="mel band", title=name)
        figure.colorbar(image, ax=axes, label="dB" if differs else "dB below the loudest", pad=0.01)
    below[-1].set_xlabel("seconds")
    return figure


def _mel_db(samples: Samples, rate_hz: int) -> np.ndarray:
    power = mel_power(samples, rate_hz, window_samples=1024, hop_samples=MEL_HOP_SAMPLES, bands=MEL_BANDS).T
    floor = 10 ** (-SHOWN_DB / 10)
    decibels: np.ndarray = 10 * np.log10(np.maximum(power / max(power.max(), SILENT_POWER), floor))
    return decibels


def within_band(
    names: Sequence[str], values: Sequence[float], *, low: float | None, high: float | None, label: str
) -> Figure:
    """One dot a clip against the band that it must lie in; those outside are red and named."""
    figure, (axes,) = panels(size=(11, 3.2))
    _band(axes, low, high)
    good = [(low is None or v >= low) and (high is None or v <= high) for v in values]
    axes.scatter(range(len(values)), values, c=["tab:blue" if g else "tab:red" for g in good], s=18, zorder=3)
    for i, (name, value, inside) in enumerate(zip(names, values, good, strict=True)):
        if not inside:
            axes.annotate(
                name, (i, value), fontsize=7, color="tab:red", xytext=(3, 3), textcoords="offset points"
            )
    axes.set(ylabel=label, xlabel="clip")
    return figure


def levels_by_voice(clips: pd.DataFrame, *, low: float, high: float) -> Figure:
    """A dot a clip over its voice: files left in blue, streams right in orange. Outside the band: red, named.

    `clips` has the columns voice, way (`file` or `stream`), text and integrated_lufs.
    """
    voices = list(dict.fromkeys(clips.voice))
    figure, (axes,) = panels(size=(max(6.0, 0.45 * len(voices) + 2), 4))
    _band(axes, low, high)
    for way, color, aside in (("file", "tab:blue", -0.18), ("stream", "tab:orange", 0.18)):
        rows = clips[clips.way == way]
        places = np.array([voices.index(name) for name in rows.voice]) + aside
        good = rows.integrated_lufs.between(low, high).to_numpy()
        axes.scatter(places[good], rows.integrated_lufs[good], color=color, s=12, alpha=0.6, label=way)
        axes.scatter(places[~good], rows.integrated_lufs[~good], color="tab:red", s=16, zorder=3)
        for x, y, text in zip(places[~good], rows.integrated_lufs[~good], rows.text[~good], strict=True):
            axes.annotate(
                text, (x, y), fontsize=7, color="tab:red", xytext=(4, 0), textcoords="offset points"
            )
    axes.set(ylabel="LUFS", xticks=range(len(voices)), xticklabels=voices, xlim=(-0.6, len(voices) - 0.4))
    axes.tick_params(axis="x", rotation=90, labelsize=8)
    axes.legend(frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
    return figure


def _band(axes: Axes, low: float | None, high: float | None) -> None:
    for limit in (low, high):
        if limit is not None:
            axes.axhline(limit, color="0.4", linewidth=0.8, linestyle="--")
    if low is not None and high is not None:
        axes.axhspan(low, high, color="tab:green", alpha=0.08)


def loudness_over_time(momentary_lufs: Sequence[float], hop_s: float, target_lufs: float) -> Figure:
    """Momentary loudness (400 ms) of one clip against the target of the whole."""
    figure, (axes,) = panels(size=(11, 2.6))
    axes.plot(np.arange(len(momentary_lufs)) * hop_s + 0.4, momentary_lufs, linewidth=1)
    axes.axhline(target_lufs, color="0.4", linewidth=0.8, linestyle="--")
    axes.set(xlabel="seconds", ylabel="LUFS, 400 ms", ylim=(target_lufs - 25, target_lufs + 10))
    return figure


def levels(measured: Mapping[str, float], shipped: Mapping[str, float]) -> Figure:
    """Average loudness a voice, measured now and as it stands in the package."""
    figure, (axes,) = panels(size=(13, 3.4))
    names = list(measured)
    axes.bar(names, [measured[n] for n in names], color="tab:blue", alpha=0.6, label="measured")
    axes.scatter(names, [shipped.get(n, np.nan) for n in names], color="black", s=14, label="in the package")
    axes.set(ylabel="LUFS before gain", ylim=(-30, -14))
    axes.tick_params(axis="x", rotation=90, labelsize=8)
    axes.legend(frameon=False, ncols=2)
    return figure
