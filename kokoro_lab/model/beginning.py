"""The first window of a stream, spoken before the rest of its segment has been worked out.

The trunk, like the vocoder, sees no further than a few frames but for what its layers normalise with: mean
and variance of each channel over the segment. Told in advance, they let the first window be spoken when a
third of the trunk has run. Whoever tells them sees less of the segment than the predictor behind the trunk
does, and errs more: so they serve that one window, and it fades into the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kokoro_lab.datatypes import Samples
from kokoro_lab.model.graphs import TRUNK_FRAME_SAMPLES, VOICED_HZ, frames_of
from kokoro_lab.model.predictor import StatisticsPredictor, length_and_pitch
from kokoro_lab.model.prosody import Contours, ProsodyModel, audible_frames
from kokoro_lab.model.static_vocoder import StaticVocoder
from kokoro_lab.model.trunk_passes import TOLD_CHANNELS
from kokoro_lab.model.vocoder import CONTEXT_FRAMES, Vocoder, Windows
from kokoro_lab.one_thread import product

Values = npt.NDArray[np.float32]

FADE_FRAMES = 1
"""Trunk frames over which the first window fades into the second."""
LEAST_FRAMES = 200
"""Of a segment that is begun, in trunk frames: 2.5 s. The trunk of a shorter one takes less time, and the
first window is more of what is heard: begun, int8's had a 5th percentile of PESQ of 4.23, else 4.40."""
LOUD_ENERGY = -3.0
ENERGY_STEPS = (-99, -8, -6, -4, -3, -2, -1, 0, 0.5, 1, 1.5, 2, 3, 99)
PERCENTILES = (5, 25, 50, 75, 95)
BEGINNINGS_FILE = Path(__file__).parent / "beginnings_predictor.npz"


def contour_features(contours: Contours, style: Values) -> Values:
    """What the predictor looks at: one vector that exists before the trunk runs.

    Returns
    -------
    numpy.ndarray
        float32 (2722,): mean, deviation and mean positive part of each of the text's features, and means of
        where it is loud and of where it is voiced; a histogram of the energy; percentiles of F0 and of
        energy, how much each moves, and how long tokens last; the decoder's half of the style; log and
        inverse length; voiced share; mean and deviation of log F0 and of energy.
    """
    aligned, energy, f0_hz = contours.aligned[0], contours.energy.reshape(-1), contours.f0_hz.reshape(-1)
    durations = frames_of(contours.durations)
    loud = 1 / (1 + np.exp(LOUD_ENERGY - energy.reshape(-1, 2).mean(1)))
    voiced = (f0_hz.reshape(-1, 2).mean(1) > VOICED_HZ).astype(np.float32)
    shares = np.stack([loud / loud.sum(), voiced / max(voiced.sum(), 1)], axis=1)
    return np.concatenate(
        [
            aligned.mean(1),
            aligned.std(1),
            np.maximum(aligned, 0).mean(1),
            *product(aligned, shares).T,
            np.histogram(energy, ENERGY_STEPS)[0] / len(energy),
            np.percentile(f0_hz, PERCENTILES),
            np.percentile(energy, PERCENTILES),
            [np.abs(np.diff(curve)).mean() for curve in (energy, f0_hz)],
            [durations.mean(), durations.std()],
            style[0, :128],
            length_and_pitch(f0_hz, energy),
        ]
    ).astype(np.float32)


class Beginning(NamedTuple):
    """How much of a segment is worked out before the rest, in trunk frames.

    Parameters
    ----------
    audible : tuple of int
        Of the segment.
    stop : int
        Where its first window ends.
    """

    audible: tuple[int, int]
    stop: int

    @property
    def behind(self) -> tuple[int, int]:
        """The audible frames that are not its own."""
        return self.stop, self.audible[1]

    @classmethod
    def of(cls, contours: Contours, sizes: Windows) -> Beginning | None:
        """None where the segment is short, or there is but one window."""
        audible = audible_frames(contours.energy.reshape(-1))
        _, stop = next(sizes.spans(*audible))
        if stop == audible[1] or contours.f0_hz.size < LEAST_FRAMES:
            return None
        return cls(audible, stop)


class Beginnings:
    """Speaks them.

    Parameters
    ----------
    predictor : StatisticsPredictor
        From `contour_features` to the statistics of the trunk, and behind them those of the vocoder.
    """

    def __init__(self, predictor: StatisticsPredictor) -> None:
        self._predictor = predictor

    def speak(
        self,
        model: ProsodyModel,
        vocoder: Vocoder | StaticVocoder,
        contours: Contours,
        style: Values,
        beginning: Beginning,
        *,
        undivided: bool = False,
    ) -> Samples:
        """Samples from the first audible frame on, of the first window and what of it fades out behind it.

        `undivided` cuts them from the whole segment, decoded at once with the same statistics.
        """
        mean, variance = self._predictor.told(contour_features(contours, style))
        trunk, rest = slice(TOLD_CHANNELS), slice(TOLD_CHANNELS, None)
        first, stop = beginning.audible[0], beginning.stop + FADE_FRAMES
        last, seen = (
            (beginning.audible[1], contours.f0_hz.size) if undivided else (stop, stop + CONTEXT_FRAMES)
        )
        prosody = model.beginning(contours, style, seen, mean[trunk], variance[trunk])
        scale, shift = vocoder.layers.scale_and_shift(mean[rest], variance[rest], style)
        if isinstance(vocoder, StaticVocoder):
            windows = vocoder.windows(prosody, scale, shift, audible=(first, last), begin=first)
        else:
            audible = (first, last if undivided else prosody.frames)
            at_once = Windows(first=last - first)
            windows = islice(vocoder.windows(prosody, scale, shift, at_once, audible=audible, begin=first), 1)
        return np.concatenate(list(windows))[: (stop - first) * TRUNK_FRAME_SAMPLES]


def fading(out: Samples, blocks: Iterator[Samples]) -> Iterator[Samples]:
    """`blocks`, into whose first one `out` fades: it is the same speech by other statistics."""
    into = next(blocks).copy()
    rise = ((np.arange(len(out)) + 0.5) / len(out)).astype(np.float32)
    into[: len(out)] = out + rise * (into[: len(out)] - out)
    yield into
    yield from blocks
