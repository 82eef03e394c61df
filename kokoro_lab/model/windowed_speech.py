"""Speaks a segment window by window, the early windows before the trunk of the whole segment has run.

Trunk and vocoder see only a few frames around each frame, except for the statistics with which their layers
normalise: mean and variance of each channel over the segment. A predictor that needs only the contours
(durations, pitch and energy) gives these statistics before the trunk runs, so that the early windows are
spoken when a third of the trunk has run. This early predictor knows less of the segment than the predictor
that works after the trunk, and its errors are larger. So it is used for two small windows only, and the
second one fades into the next.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from kokoro_lab.datatypes import Samples
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs.signatures import TOLD_CHANNELS, TRUNK_FRAME_SAMPLES, VOICED_HZ, frames_of
from kokoro_lab.model.predictor import StatisticsPredictor, length_and_pitch
from kokoro_lab.model.prosody import Contours, Prosody, ProsodyModel, Values
from kokoro_lab.model.vocoder import WindowVocoder
from kokoro_lab.model.windows import CONTEXT_FRAMES, WindowPlan, amid_silence, undivided, window_plan
from kokoro_lab.scheduling.one_thread import product

FADE_FRAMES = 1
"""Trunk frames over which the last early window fades into the next window."""
LOUD_ENERGY = -3.0
ENERGY_STEPS = (-99, -8, -6, -4, -3, -2, -1, 0, 0.5, 1, 1.5, 2, 3, 99)
PERCENTILES = (5, 25, 50, 75, 95)
EARLY_PREDICTOR_FILE = Path(__file__).parent / "beginnings_predictor.npz"


def contour_features(contours: Contours, style: Values) -> Values:
    """The features of a segment that the early predictor uses, all known before the trunk runs.

    Returns
    -------
    numpy.ndarray
        float32 (2722,): for each of the 512 text features its mean, standard deviation, mean of the positive
        part, mean weighted by loudness, and mean over voiced frames; a histogram of the energy (13 bins);
        five percentiles each of F0 and energy; the mean change from value to value of energy and F0; mean and
        standard deviation of the durations; the first 128 numbers of the style; and the features of
        `length_and_pitch`.
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
    """The early windows, from the window that begins at frame `begin`; each is decoded when it is asked for.
    The silence before the first window comes with it.

    Parameters
    ----------
    predictor : StatisticsPredictor
        Predicts from `contour_features` the statistics of the trunk, followed by those of the vocoder.
    begin : int
        Beginning of an early window. If `begin` is the end of the last early window, only the returned
        samples are computed.

    Returns
    -------
    numpy.ndarray
        Samples after the last early window, decoded with it, to be faded out over the next window.
    """
    mean, variance = predictor.told(contour_features(contours, style))
    trunk, rest = slice(TOLD_CHANNELS), slice(TOLD_CHANNELS, None)
    first, last = plan.audible
    faded = min(plan.early_stop + FADE_FRAMES, last)
    prosody = model.beginning(contours, style, faded + CONTEXT_FRAMES, mean[trunk], variance[trunk])
    scale, shift = vocoder.layers.scale_and_shift(mean[rest], variance[rest], style)
    decoded = vocoder.decoding(prosody, scale, shift, (first, prosody.frames))
    *before, (start, stop) = plan.spans[: plan.early]
    silent = 0 if begin else first
    for span in before:
        if span[0] >= begin:
            yield amid_silence(decoded(span), silent)
            silent = 0
    samples, length = decoded((start, faded)), (stop - start) * TRUNK_FRAME_SAMPLES
    if start >= begin:
        yield amid_silence(samples[:length], silent)
    return samples[length:]


def fading(out: Samples, blocks: Iterator[Samples]) -> Iterator[Samples]:
    """`blocks`, of which the first begins with a cross-fade from `out`. `out` is the beginning of the same
    speech, decoded with other statistics."""
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
        Configuration with the sizes of windows.
    vocoder : WindowVocoder
        Decodes the windows.
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
        """Returns a function. This function takes the number of a sample, and returns the sample at which the
        last window at or before it begins, and the samples from there on."""
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
            fades = yield from speak_early(self.early, model, self.vocoder, contours, style, plan, begin)
        rest = self._rest(model.behind(contours, style), plan)(max(begin, plan.early_stop))
        yield from rest if fades is None else fading(fades, rest)

    def _rest(self, prosody: Prosody, plan: WindowPlan) -> Callable[[int], Iterator[Samples]]:
        """A function that takes the frame at which a window begins, and returns the samples from there on."""
        mean, variance = self.predictor.predict(prosody)
        scale, shift = self.vocoder.layers.scale_and_shift(mean, variance, prosody.style)
        return partial(self.vocoder.windows, prosody, scale, shift, plan)

    def undivided(self, model: ProsodyModel, contours: Contours, style: Values, plan: WindowPlan) -> Samples:
        """The segment as one window, decoded with the statistics with which its windows are decoded.

        It shows what dividing a segment into windows changes. A segment with early windows is two windows
        that fade into each other.
        """
        whole = undivided(contours.energy)
        samples = np.concatenate(list(self.blocks(model, contours, style, whole)(0)[1]))
        if not plan.early:
            return samples
        spoken = next(speak_early(self.early, model, self.vocoder, contours, style, replace(whole, early=1)))
        stop, faded = (
            frame * TRUNK_FRAME_SAMPLES for frame in (plan.early_stop, plan.early_stop + FADE_FRAMES)
        )
        return np.concatenate([spoken[:stop], *fading(spoken[stop:faded], iter((samples[stop:],)))])
