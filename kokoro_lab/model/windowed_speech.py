"""Speaks a segment window by window, the early windows before the trunk of the whole segment has run.

The trunk, like the vocoder, sees no further than a few frames but for the statistics that its layers
normalise with: mean and variance of each channel over the segment. A predictor that looks at the contours
alone gives these statistics before the trunk runs, so that the early windows are spoken when a third of the
trunk has run. This early predictor sees less of the segment than the predictor behind the trunk, and errs
more: so it serves two small windows, and the second one fades into the next.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kokoro_lab.datatypes import Samples
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs.signatures import TOLD_CHANNELS, TRUNK_FRAME_SAMPLES, VOICED_HZ, frames_of
from kokoro_lab.model.predictor import StatisticsPredictor, length_and_pitch
from kokoro_lab.model.prosody import Contours, Prosody, ProsodyModel
from kokoro_lab.model.vocoder import WindowVocoder
from kokoro_lab.model.windows import CONTEXT_FRAMES, WindowPlan, silent_frames, undivided, window_plan
from kokoro_lab.scheduling.one_thread import product

Values = npt.NDArray[np.float32]

FADE_FRAMES = 1
"""Trunk frames over which the last one fades into what follows."""
LOUD_ENERGY = -3.0
ENERGY_STEPS = (-99, -8, -6, -4, -3, -2, -1, 0, 0.5, 1, 1.5, 2, 3, 99)
PERCENTILES = (5, 25, 50, 75, 95)
EARLY_PREDICTOR_FILE = Path(__file__).parent / "beginnings_predictor.npz"


def contour_features(contours: Contours, style: Values) -> Values:
    """The features of a segment that the early predictor uses, all known before the trunk runs.

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


def speak_early(
    predictor: StatisticsPredictor,
    model: ProsodyModel,
    vocoder: WindowVocoder,
    contours: Contours,
    style: Values,
    plan: WindowPlan,
    begin: int = 0,
) -> Generator[Samples, None, Samples]:
    """The early windows from the one on that begins at frame `begin`, each decoded when it is asked for.

    Parameters
    ----------
    predictor : StatisticsPredictor
        Predicts from `contour_features` the statistics of the trunk, followed by those of the vocoder.
    begin : int
        May be the end of the last early window: then only the returned samples are computed.

    Returns
    -------
    numpy.ndarray
        Samples behind the last early window, decoded with it, to be faded out over the next window.
    """
    mean, variance = predictor.told(contour_features(contours, style))
    trunk, rest = slice(TOLD_CHANNELS), slice(TOLD_CHANNELS, None)
    first, last = plan.audible
    faded = min(plan.early_stop + FADE_FRAMES, last)
    prosody = model.beginning(contours, style, faded + CONTEXT_FRAMES, mean[trunk], variance[trunk])
    scale, shift = vocoder.layers.scale_and_shift(mean[rest], variance[rest], style)
    decoded = vocoder.decoding(prosody, scale, shift, (first, prosody.frames))
    *before, (start, stop) = plan.spans[: plan.early]
    for span in before:
        if span[0] >= begin:
            yield decoded(span)
    samples, length = decoded((start, faded)), (stop - start) * TRUNK_FRAME_SAMPLES
    if start >= begin:
        yield samples[:length]
    return samples[length:]


def fading(out: Samples, blocks: Iterator[Samples]) -> Iterator[Samples]:
    """`blocks`, with a cross-fade from `out` to the first one: the same speech, decoded with other
    statistics."""
    into = next(blocks).copy()
    rise = ((np.arange(len(out)) + 0.5) / len(out)).astype(np.float32)
    into[: len(out)] = out + rise * (into[: len(out)] - out)
    yield into
    yield from blocks


@dataclass(frozen=True, slots=True, eq=False)
class WindowedSpeech:
    """Speaks a segment window by window, with predicted statistics.

    Parameters
    ----------
    config : EngineConfig
        Says how large windows are.
    vocoder : WindowVocoder
        Decodes them.
    predictor, early : StatisticsPredictor
        The predictor of a segment's statistics, and the one that works before the segment's trunk has run.
    """

    config: EngineConfig
    vocoder: WindowVocoder
    predictor: StatisticsPredictor
    early: StatisticsPredictor

    def plan(self, energy: Values, *, urgent: bool) -> WindowPlan:
        """The windows of a segment, by its energy curve; see `window_plan`."""
        return window_plan(self.config, energy, urgent=urgent, fixed=self.vocoder.fixed_spans)

    def blocks(
        self, model: ProsodyModel, contours: Contours, style: Values, plan: WindowPlan
    ) -> Callable[[int], tuple[int, Iterator[Samples]]]:
        """For a sample's number: where the last window at or before it begins, and the samples from there
        on."""
        if not plan.early:
            rest = self._rest(model.behind(contours, style), plan)

        def later(sample: int) -> tuple[int, Iterator[Samples]]:
            begin = plan.begin(sample // TRUNK_FRAME_SAMPLES)
            found = self._early_first(model, contours, style, plan, begin) if plan.early else rest(begin)
            return begin * TRUNK_FRAME_SAMPLES, found

        return later

    def _early_first(
        self, model: ProsodyModel, contours: Contours, style: Values, plan: WindowPlan, begin: int
    ) -> Iterator[Samples]:
        fades = None
        if begin <= plan.early_stop:
            if begin == 0 and plan.audible[0]:
                yield silent_frames(plan.audible[0])
            fades = yield from speak_early(self.early, model, self.vocoder, contours, style, plan, begin)
        rest = self._rest(model.behind(contours, style), plan)(max(begin, plan.early_stop))
        yield from rest if fades is None else fading(fades, rest)

    def _rest(self, prosody: Prosody, plan: WindowPlan) -> Callable[[int], Iterator[Samples]]:
        """The samples from the window that begins at a frame."""
        mean, variance = self.predictor.predict(prosody)
        scale, shift = self.vocoder.layers.scale_and_shift(mean, variance, prosody.style)
        return partial(self.vocoder.windows, prosody, scale, shift, plan)

    def undivided(self, model: ProsodyModel, contours: Contours, style: Values, plan: WindowPlan) -> Samples:
        """The segment decoded at once with the same statistics: the reference for what cutting changes."""
        whole = undivided(contours.energy)
        samples = np.concatenate(list(self.blocks(model, contours, style, whole)(0)[1]))
        if not plan.early:
            return samples
        spoken = next(speak_early(self.early, model, self.vocoder, contours, style, replace(whole, early=1)))
        start, stop, faded = (
            frame * TRUNK_FRAME_SAMPLES
            for frame in (plan.audible[0], plan.early_stop, plan.early_stop + FADE_FRAMES)
        )
        early, fades = spoken[: stop - start], spoken[stop - start : faded - start]
        return np.concatenate([samples[:start], early, *fading(fades, iter((samples[stop:],)))])
