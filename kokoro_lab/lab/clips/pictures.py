"""Draws a sound: its waveform as an SVG path, and its spectrogram as a small PNG."""

from __future__ import annotations

import io
from base64 import b64encode
from functools import cache

import numpy as np
import numpy.typing as npt
from PIL import Image

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.metrics.mel import frame_power

COLUMNS_MOST = 600
"""The most columns of a picture, which bounds the size of a report."""
ROWS = 96
WINDOW_SAMPLES, HOP_SAMPLES = 1024, 240
LEVELS, SHOWN_DB = 16, 70.0
"""Number of colours, and how many dB below the loudest point the darkest colour is."""
TICKS_HZ = (250, 500, 1000, 2000, 4000, 8000)
_COLOURS = np.array([(0, 0, 4), (81, 18, 124), (183, 55, 121), (252, 137, 97), (252, 253, 191)])
"""Colours of the map "magma" (van der Walt & Smith). The colours differ in lightness, so colour-blind people
can tell them apart, too."""


def waveform_path(samples: Samples) -> str:
    """The data of an SVG path: a line from the highest to the lowest sample of each column, in hundredths of
    full scale. In SVG, y grows downwards, so the sign of the samples is changed."""
    starts = _starts(len(samples))
    low, high = (np.round(-100 * of.reduceat(samples, starts)).astype(int) for of in (np.minimum, np.maximum))
    return "".join(f"M{x} {top}V{bottom + 1}" for x, (top, bottom) in enumerate(zip(high, low, strict=True)))


def spectrogram_png(samples: Samples) -> str:
    """A spectrogram as the `data:` address of a PNG, with 0 Hz at its bottom and 12 kHz at its top, evenly
    spaced in mel.

    A column shows the maximum over the time that it covers, so that a click of one sample stays visible.
    """
    framed = np.pad(samples, WINDOW_SAMPLES // 2)
    power = frame_power(framed, np.hanning(WINDOW_SAMPLES + 1)[:-1], HOP_SAMPLES) @ _bands()
    power = np.maximum.reduceat(power, _starts(len(power)))
    decibels = 10 * np.log10(np.maximum(power / max(power.max(), 1e-10), 10 ** (-SHOWN_DB / 10)))
    steps = np.round((decibels / SHOWN_DB + 1) * (LEVELS - 1)).astype(np.uint8)
    drawn = np.ascontiguousarray(steps.T[::-1])
    picture = Image.frombytes("P", drawn.shape[::-1], drawn.tobytes())
    corners = np.linspace(0, len(_COLOURS) - 1, LEVELS)
    palette = [np.interp(corners, range(len(_COLOURS)), channel) for channel in _COLOURS.T]
    picture.putpalette(np.round(palette).astype(np.uint8).T.tobytes())
    written = io.BytesIO()
    picture.save(written, "PNG", bits=4)
    return "data:image/png;base64," + b64encode(written.getvalue()).decode()


def height_of(frequency_hz: float) -> float:
    """Where a frequency is in the picture: 0 at its bottom, 1 at its top."""
    return float(_mel(frequency_hz) / _mel(SAMPLE_RATE_HZ / 2))


def _starts(count: int) -> npt.NDArray[np.intp]:
    """The index of the first item in each column of a picture."""
    return np.linspace(0, count, min(count, COLUMNS_MOST), endpoint=False).astype(np.intp)


def _mel(frequency_hz: float) -> float:
    """A frequency in mel, by the formula of O'Shaughnessy (1987)."""
    return float(2595 * np.log10(1 + frequency_hz / 700))


@cache
def _bands() -> npt.NDArray[np.float64]:
    """The weight of each frequency in each row of the picture, shape (513, 96): the share of the row that it
    covers."""
    edges = 700 * (10 ** (np.linspace(0, _mel(SAMPLE_RATE_HZ / 2), ROWS + 1) / 2595) - 1)
    step = SAMPLE_RATE_HZ / WINDOW_SAMPLES
    low = (np.arange(WINDOW_SAMPLES // 2 + 1)[:, None] - 0.5) * step
    shared = np.minimum(low + step, edges[1:]) - np.maximum(low, edges[:-1])
    share: npt.NDArray[np.float64] = np.clip(shared, 0, None) / np.diff(edges)
    return share
