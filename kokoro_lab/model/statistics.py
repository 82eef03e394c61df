"""The statistics that the vocoder normalises with: what they are, and how to know them in advance.

The vocoder's AdaIN layers subtract the mean and divide by the deviation of each channel over the
whole utterance. That alone ties a window of it to the rest: with the statistics known, any window
can be decoded by itself, exactly. They can be predicted from what there is before the vocoder runs,
by a ridge regression of low rank, fitted on the model's own decodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx

from kokoro_lab.model import passes
from kokoro_lab.model.graphs import STFT_SIZE_SAMPLES, VOICED_HZ
from kokoro_lab.model.prosody import Prosody
from kokoro_lab.one_thread import product

Values = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class AdainLayers:
    """All AdaIN layers of the vocoder, stacked in the order of the rewritten graph's inputs.

    Parameters
    ----------
    weight, bias : numpy.ndarray
        float32 (2·C, 128) and (2·C,): style to gamma (first C rows) and beta, C = 9,216 channels.
    source : numpy.ndarray
        int64 (C,): which of the distinct statistics each channel uses; layers that read the same
        tensor share theirs.
    factor : numpy.ndarray
        float32 (C,): the 2α of the Snake behind each channel, which the graph expects in scale and shift.
    names : tuple of str
        Tensor names of the distinct means, then of the distinct variances, as `report_statistics` gives.
    """

    weight: Values
    bias: Values
    source: npt.NDArray[np.int64]
    factor: Values
    names: tuple[str, ...]

    @classmethod
    def of(cls, vocoder: onnx.ModelProto) -> AdainLayers:
        """Read off a vocoder whose constants are folded."""
        layers = passes.adain_layers(vocoder)
        modulated = passes.modulate(vocoder)
        alpha = {snake.y: snake.alpha for snake in passes.snakes(modulated)}
        first: dict[str, int] = {}
        at = 0
        source = []
        for layer in layers:
            if layer.mean not in first:
                first[layer.mean] = at
                at += layer.channels
            source.append(first[layer.mean] + np.arange(layer.channels))
        gamma = [layer.weight[: layer.channels] for layer in layers]
        beta = [layer.weight[layer.channels :] for layer in layers]
        variances = {layer.mean: layer.variance for layer in layers}
        return cls(
            weight=np.concatenate([*gamma, *beta]),
            bias=np.concatenate(
                [layer.bias[: layer.channels] for layer in layers]
                + [layer.bias[layer.channels :] for layer in layers]
            ),
            source=np.concatenate(source),
            factor=np.concatenate([2 * alpha[layer.output] for layer in layers]),
            names=(*first, *(variances[mean] for mean in first)),
        )

    @classmethod
    def load(cls, path: Path) -> AdainLayers:
        with np.load(path) as stored:
            return cls(
                stored["weight"].astype(np.float32),
                stored["bias"],
                stored["source"],
                stored["factor"],
                tuple(str(n) for n in stored["names"]),
            )

    def save(self, path: Path, *, compact: bool = False) -> None:
        """Write `path`; `compact` keeps the weights in half precision."""
        np.savez(
            path,
            weight=self.weight.astype(np.float16 if compact else np.float32),
            bias=self.bias,
            source=self.source,
            factor=self.factor,
            names=np.array(self.names),
        )

    def scale_and_shift(self, mean: Values, variance: Values, style: Values) -> tuple[Values, Values]:
        """What the rewritten vocoder multiplies by and adds.

        Parameters
        ----------
        mean, variance : numpy.ndarray
            float32, one value for each distinct channel (8,448).
        style : numpy.ndarray
            float32 (1, 256) or (1, 128): only the decoder's half is used.

        Returns
        -------
        tuple of numpy.ndarray
            scale and shift, float32 (9216,), with Snake's 2α in both.

        Notes
        -----
        AdaIN is `(x - mean) / sqrt(variance + ε) * (1 + gamma) + beta` (Huang & Belongie 2017, eq. 8).
        """
        modulation = product(style[0, :128], self.weight.T) + self.bias
        channels = len(self.source)
        scale = (1 + modulation[:channels]) / np.sqrt(variance[self.source] + passes.EPSILON)
        shift = modulation[channels:] - mean[self.source] * scale
        return (
            (scale * self.factor).astype(np.float32),
            (shift * self.factor).astype(np.float32),
        )

    def found(self, style: Values, scale: Values, shift: Values) -> tuple[Values, Values]:
        """The statistics behind a scale and shift: what `scale_and_shift` was given, float32 (8448,) each.

        Of channels that share theirs, the one with the largest factor tells.
        """
        factor, offset = self.style_alone(style)
        order = np.lexsort((np.abs(factor), self.source))
        tells = order[np.append(np.diff(self.source[order]) != 0, True)]
        deviation = factor[tells] / scale[tells]
        mean = (offset[tells] - shift[tells]) / scale[tells]
        return mean, deviation**2 - np.float32(passes.EPSILON)

    def style_alone(self, style: Values) -> tuple[Values, Values]:
        """Scale and shift of statistics that are not known yet: those of a mean of 0 and a variance of 1."""
        channels = len(self.source)
        none = np.zeros(channels, np.float32)
        return self.scale_and_shift(none, none + np.float32(1 - passes.EPSILON), style)


def features(prosody: Prosody) -> Values:
    """What the predictor looks at: one vector that exists before the vocoder runs.

    Returns
    -------
    numpy.ndarray
        float32: mean, deviation and mean positive part of each trunk channel; mean and deviation of the
        excitation's spectrum, and their logarithms; the decoder's half of the style; log and inverse
        length; voiced share; mean and deviation of log F0 and of energy.
    """
    parts = _parts(prosody.trunk[0])
    spectrum = _spectrum(prosody.excitation[0])
    source = np.concatenate([spectrum.mean(0), spectrum.std(0)])
    voiced = prosody.f0_hz[prosody.f0_hz > VOICED_HZ]
    pitch = np.log(voiced) if len(voiced) else np.zeros(1, np.float32)
    return np.concatenate(
        [
            *(part.mean(1) for part in parts),
            *(part.std(1) for part in parts),
            *(np.maximum(part, 0).mean(1) for part in parts),
            source,
            np.log(source + 1e-5),
            prosody.style[0, :128],
            [
                np.log(prosody.frames),
                10 / prosody.frames,
                len(voiced) / len(prosody.f0_hz),
                pitch.mean(),
                pitch.std(),
                prosody.energy.mean(),
                prosody.energy.std(),
            ],
        ]
    ).astype(np.float32)


def _spectrum(excitation: Values) -> Values:
    """Magnitudes of every fourth frame of the vocoder's own STFT, (n, 11): enough for their averages."""
    size = STFT_SIZE_SAMPLES
    frames = excitation[: len(excitation) // size * size].reshape(-1, size)
    return np.concatenate([np.abs(np.fft.rfft(part * HANN)).astype(np.float32) for part in _parts(frames)])


def _parts(rows: Values) -> list[Values]:
    """A few rows at a time: for a larger array the system finds, and clears, new memory each time."""
    return np.array_split(rows, 16)


HANN = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(STFT_SIZE_SAMPLES) / STFT_SIZE_SAMPLES)).astype(np.float32)
WHISPERS = frozenset({"af_nicole"})
"""Voices without voice. Alone they are predicted like any other; how a blend sounds between whisper and
speech is not linear in its parts, and predicted blends came out at PESQ 2.9 to 3.3."""
CREAKS = frozenset({"bm_lewis"})
"""Voices whose irregular creak the predictor does not see: PESQ 4.1, where the others reach 4.5."""


@dataclass(frozen=True, slots=True, eq=False)
class StatisticsPredictor:
    """Ridge regression of low rank from `features` to means and log variances.

    Parameters
    ----------
    voices : frozenset of str
        Voices it was fitted on. Of others it knows nothing: their statistics are far off.
    feature_mean, feature_deviation : numpy.ndarray
        float32 (F,): features are standardised with them.
    inner, outer : numpy.ndarray
        float32 (F, R) and (R, 2·8448).
    target_mean, unit : numpy.ndarray
        float32 (2·8448,): the average, and how large an error in each target counts as one.
    """

    voices: frozenset[str]
    feature_mean: Values
    feature_deviation: Values
    inner: Values
    outer: Values
    target_mean: Values
    unit: Values

    def predict(self, prosody: Prosody) -> tuple[Values, Values]:
        """Mean and variance of each distinct channel, float32 (8448,) each."""
        standard = (features(prosody) - self.feature_mean) / self.feature_deviation
        target: Values = self.target_mean + product(product(standard, self.inner), self.outer)
        half = len(target) // 2
        return target[:half], np.exp(target[half:])

    def doubts(self, parts: Sequence[str]) -> str | None:
        """Why a voice mixed from `parts` is better decoded exactly; None if there is no reason."""
        unknown = sorted(set(parts) - self.voices)
        if unknown:
            return f"the statistics predictor was not fitted on {', '.join(unknown)}"
        creaks = sorted(CREAKS.intersection(parts))
        if creaks:
            return f"{', '.join(creaks)} creaks, and that is not predicted well"
        whispers = sorted(WHISPERS.intersection(parts))
        if whispers and len(parts) > 1:
            return f"{', '.join(whispers)} whispers, and blends with a whisper are not predicted well"
        return None

    def of_variant(self, variant: str) -> StatisticsPredictor:
        """As the vocoder of that variant finds them: integers move what it computes a little, always alike.

        The shifts are measured by `scripts/statistics_shifts.py`; a variant without one is not shifted.
        """
        with np.load(SHIFTS_FILE) as stored:
            if variant not in stored:
                return self
            return replace(self, target_mean=self.target_mean + stored[variant] * self.unit)

    @classmethod
    def fit(
        cls,
        inputs: Values,
        targets: Values,
        voices: Iterable[str],
        *,
        rank: int,
        ridge: tuple[float, float],
        unit: Values | None = None,
    ) -> StatisticsPredictor:
        """Fit on rows of features and of (means, log variances).

        Parameters
        ----------
        rank : int
            Kept directions of the prediction: reduced-rank regression (Izenman 1975).
        ridge : tuple of float
            Penalties on the standardised features for the means and for the log variances, times the
            number of rows over 1,000. Variances are the noisier.
        unit : numpy.ndarray, optional
            How large an error in each target counts as one. None counts what it does to the normalised
            activations: of a mean, the channel's deviation; of a log variance, two.
        """
        mean, deviation = inputs.mean(0), inputs.std(0) + 1e-6
        x = ((inputs - mean) / deviation).astype(np.float64)
        target_mean = targets.mean(0)
        half = targets.shape[1] // 2
        if unit is None:
            deviations = np.exp(0.5 * np.median(targets[:, half:], axis=0))
            unit = np.concatenate([deviations, np.full(half, 2, np.float32)])
        y = ((targets - target_mean) / unit).astype(np.float64)
        gram, toward = x.T @ x, x.T @ y
        solved = [
            np.linalg.solve(gram + penalty * len(x) / 1000 * np.eye(len(gram)), part)
            for penalty, part in zip(ridge, (toward[:, :half], toward[:, half:]), strict=True)
        ]
        full = np.concatenate(solved, axis=1)
        # R of x = QR has no more rows than features, however many utterances; R full turns as x full does
        basis = _principal(np.linalg.qr(x, mode="r") @ full, rank)
        return cls(
            frozenset(voices),
            mean.astype(np.float32),
            deviation.astype(np.float32),
            (full @ basis).astype(np.float32),
            (basis.T * unit).astype(np.float32),
            target_mean.astype(np.float32),
            unit.astype(np.float32),
        )

    def save(self, path: Path) -> None:
        """Write the predictor small: `inner` in half precision, `outer` in 8 bits, in units of each target.

        The rounding is a hundredth of the prediction's own error.
        """
        outer = self.outer / self.unit
        step = np.abs(outer).max(1, keepdims=True) / 127
        np.savez_compressed(
            path,
            voices=np.array(sorted(self.voices)),
            inner=(self.inner * step.T).astype(np.float16),  # so that `outer` is what is stored
            outer=np.rint(outer / step).astype(np.int8),
            feature_mean=self.feature_mean,
            feature_deviation=self.feature_deviation,
            target_mean=self.target_mean,
            unit=self.unit,
        )

    @classmethod
    def load(cls, path: Path | None = None) -> StatisticsPredictor:
        """The predictor in `path`, or the one that the package ships."""
        with np.load(path or PREDICTOR_FILE) as stored:
            arrays = {name: stored[name].astype(np.float32) for name in stored.files if name != "voices"}
            voices = frozenset(str(v) for v in stored["voices"])
        return cls(voices, **arrays | {"outer": arrays["outer"] * arrays["unit"]})


PREDICTOR_FILE = Path(__file__).parent / "statistics_predictor.npz"
SHIFTS_FILE = Path(__file__).parent / "statistics_shifts.npz"
"""Variant → float16 (2·8448,): how far its statistics are from fp32's on average, in units of each target."""


def _principal(rows: npt.NDArray[np.float64], rank: int) -> npt.NDArray[np.float64]:
    """The `rank` right singular vectors of `rows` with the largest values, by columns."""
    # From the smaller of the two products of rows with themselves
    values, left = np.linalg.eigh(rows @ rows.T)
    left, values = left[:, -rank:], values[-rank:]
    basis: npt.NDArray[np.float64] = rows.T @ left / np.sqrt(np.maximum(values, 1e-30))
    return basis
