"""The first windows of a stream, spoken before the rest of its segment has been worked out.

The trunk, like the vocoder, sees no further than a few frames but for what its layers normalise with: mean
and variance of each channel over the segment. Told in advance, they let the first windows be spoken when a
third of the trunk has run. Whoever tells them sees less of the segment than the predictor behind the trunk
does, and errs more: so they serve two small windows, and the second one fades into the next.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kokoro_lab.datatypes import Samples
from kokoro_lab.graphs.signatures import TRUNK_FRAME_SAMPLES, VOICED_HZ, frames_of
from kokoro_lab.graphs.trunk_passes import TOLD_CHANNELS
from kokoro_lab.model.predictor import StatisticsPredictor, length_and_pitch
from kokoro_lab.model.prosody import Contours, ProsodyModel, audible_frames
from kokoro_lab.model.static_vocoder import StaticVocoder
from kokoro_lab.model.vocoder import CONTEXT_FRAMES, Vocoder, Windows
from kokoro_lab.scheduling.one_thread import product

Values = npt.NDArray[np.float32]

FADE_FRAMES = 1
"""Trunk frames over which the last one fades into what follows."""
LEAST_FRAMES = 180
"""Of a segment that is begun, in trunk frames: 2.25 s. The trunk of a shorter one takes less time, and the
first windows are more of what is heard: begun, PESQ falls by 0.02 from 2.25 s on (114 utterances by four
voices), by 0.04 from 2 s on (46) and by 0.10 from 1.75 s on (29)."""
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


class EarlyWindows(NamedTuple):
    """How much of a segment is worked out before the rest, in trunk frames.

    Parameters
    ----------
    audible : tuple of int
        Of the segment.
    spans : tuple
        The windows that are: those that are as small as they can be.
    """

    audible: tuple[int, int]
    spans: tuple[tuple[int, int], ...]

    @property
    def stop(self) -> int:
        """Where its last window ends."""
        return self.spans[-1][1]

    @property
    def behind(self) -> tuple[int, int]:
        """The audible frames that are not its own."""
        return self.stop, self.audible[1]

    @classmethod
    def of(cls, contours: Contours, sizes: Windows) -> EarlyWindows | None:
        """None where the segment is short, or they are all of it."""
        audible = audible_frames(contours.energy.reshape(-1))
        spans = tuple(islice(sizes.spans(*audible), len(sizes.opening(audible[0]))))
        whole = spans[-1][1] == audible[1]
        return None if whole or contours.f0_hz.size < LEAST_FRAMES else cls(audible, spans)


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
        beginning: EarlyWindows,
        begin: int = 0,
    ) -> Generator[Samples, None, Samples]:
        """The windows from the one on that begins at frame `begin`, each decoded when it is asked for.

        Returns
        -------
        numpy.ndarray
            Last of all: what fades out behind the last one, with which it is decoded. It may be all that is
            wanted, by a `begin` where that one ends.
        """
        mean, variance = self._predictor.told(contour_features(contours, style))
        trunk, rest = slice(TOLD_CHANNELS), slice(TOLD_CHANNELS, None)
        faded = min(beginning.stop + FADE_FRAMES, beginning.audible[1])
        prosody = model.beginning(contours, style, faded + CONTEXT_FRAMES, mean[trunk], variance[trunk])
        scale, shift = vocoder.layers.scale_and_shift(mean[rest], variance[rest], style)

        def window(start: int, stop: int) -> Samples:
            if isinstance(vocoder, StaticVocoder):
                windows = vocoder.windows(prosody, scale, shift, audible=(start, stop), begin=start)
                return np.concatenate(list(windows))[: (stop - start) * TRUNK_FRAME_SAMPLES]
            audible = (beginning.audible[0], prosody.frames)
            return vocoder.window(prosody, scale, shift, (start, stop), audible)

        *before, last = beginning.spans
        for span in before:
            if span[0] >= begin:
                yield window(*span)
        samples, length = window(last[0], faded), (last[1] - last[0]) * TRUNK_FRAME_SAMPLES
        if last[0] >= begin:
            yield samples[:length]
        return samples[length:]


def fading(out: Samples, blocks: Iterator[Samples]) -> Iterator[Samples]:
    """`blocks`, into whose first one `out` fades: it is the same speech by other statistics."""
    into = next(blocks).copy()
    rise = ((np.arange(len(out)) + 0.5) / len(out)).astype(np.float32)
    into[: len(out)] = out + rise * (into[: len(out)] - out)
    yield into
    yield from blocks
