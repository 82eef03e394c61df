"""The vocoder's AdaIN layers: from statistics and style to the scale and shift of each channel.

AdaIN layers subtract the mean and divide by the deviation of each channel over the whole utterance. Only this
ties a window to the rest: with known statistics, any window can be decoded by itself, exactly.
`model.predictor` predicts them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kokoro_lab.graphs.signatures import EPSILON
from kokoro_lab.scheduling.one_thread import product

if TYPE_CHECKING:
    import onnx

    from kokoro_lab.graphs import passes

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
        float32 (C,): the factor 2α of the Snake activation after each channel. The graph expects scale and
        shift multiplied by it.
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
        """Read the layers from a vocoder with folded constants."""
        from kokoro_lab.graphs import passes

        layers = passes.adain_layers(vocoder)
        alpha = {snake.y: snake.alpha for snake in passes.snakes(passes.modulate(vocoder))}
        first: dict[str, int] = {}
        at = 0
        source = []
        for layer in layers:
            if layer.mean not in first:
                first[layer.mean] = at
                at += layer.channels
            source.append(first[layer.mean] + np.arange(layer.channels))

        def stacked(of: Callable[[passes.Adain], Values]) -> Values:
            gammas = [of(layer)[: layer.channels] for layer in layers]
            return np.concatenate([*gammas, *(of(layer)[layer.channels :] for layer in layers)])

        variances = {layer.mean: layer.variance for layer in layers}
        return cls(
            weight=stacked(lambda layer: layer.weight),
            bias=stacked(lambda layer: layer.bias),
            source=np.concatenate(source),
            factor=np.concatenate([2 * alpha[layer.output] for layer in layers]),
            names=(*first, *(variances[mean] for mean in first)),
        )

    @classmethod
    def load(cls, path: Path) -> AdainLayers:
        with np.load(path) as stored:
            found = dict(stored)
        weight, names = found.pop("weight").astype(np.float32), tuple(map(str, found.pop("names")))
        return cls(weight=weight, names=names, **found)

    def save(self, path: Path, *, compact: bool = False) -> None:
        """Write all arrays to `path`, a NumPy archive that `load` reads. `compact` stores the weights in 16
        bits, which halves the file and rounds them."""
        values = {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}
        np.savez(path, **values | {"weight": self.weight.astype(np.float16 if compact else np.float32)})

    def scale_and_shift(self, mean: Values, variance: Values, style: Values) -> tuple[Values, Values]:
        """The factors and summands of the rewritten vocoder, from statistics and style.

        Parameters
        ----------
        mean, variance : numpy.ndarray
            float32, one value for each distinct channel (8,448).
        style : numpy.ndarray
            float32 (1, 256) or (1, 128): only the first 128 numbers are used.

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
        scale = (1 + modulation[:channels]) / np.sqrt(variance[self.source] + EPSILON)
        shift = modulation[channels:] - mean[self.source] * scale
        return (
            (scale * self.factor).astype(np.float32),
            (shift * self.factor).astype(np.float32),
        )

    def found(self, style: Values, scale: Values, shift: Values) -> tuple[Values, Values]:
        """The statistics behind a scale and shift: what `scale_and_shift` was given, float32 (8448,) each.

        Channels that share statistics would give the same ones, but for rounding; they are computed from the
        channel with the largest factor, in which rounding matters least.
        """
        factor, offset = self.style_alone(style)
        order = np.lexsort((np.abs(factor), self.source))
        tells = order[np.append(np.diff(self.source[order]) != 0, True)]
        deviation = factor[tells] / scale[tells]
        mean = (offset[tells] - shift[tells]) / scale[tells]
        return mean, deviation**2 - np.float32(EPSILON)

    def style_alone(self, style: Values) -> tuple[Values, Values]:
        """Scale and shift for unknown statistics, as with a mean of 0 and a variance of 1."""
        channels = len(self.source)
        none = np.zeros(channels, np.float32)
        return self.scale_and_shift(none, none + np.float32(1 - EPSILON), style)
