"""The vocoder's AdaIN layers: from statistics and style to the scale and shift of each channel.

An AdaIN layer subtracts the mean of each channel over the whole segment, and divides by its deviation. No
other step of the vocoder needs the whole segment. So once these statistics are known, a window of a few
frames can be decoded by itself, with the same samples. `model.predictor` estimates the statistics before the
whole segment is known.
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
    """The parameters of all AdaIN layers of the vocoder, one layer after another, in the order in which the
    rewritten graph takes its inputs `scale` and `shift`.

    Parameters
    ----------
    weight, bias : numpy.ndarray
        float32 (2·C, 128) and (2·C,), where C = 9,216 is the number of channels of all layers together. They
        turn the style into gamma (first C rows) and beta (last C rows) of each channel.
    source : numpy.ndarray
        int64 (C,): for each channel, the index of its mean and variance among the distinct ones. Layers that
        read the same tensor have the same statistics.
    factor : numpy.ndarray
        float32 (C,): 2α for each channel, where α is the parameter of the Snake activation after the layer.
        The graph expects that scale and shift are already multiplied by 2α.
    names : tuple of str
        Names of the tensors that hold the distinct means, then of those that hold the distinct variances.
        `passes.report_statistics` makes these tensors outputs of the graph.
    """

    weight: Values
    bias: Values
    source: npt.NDArray[np.int64]
    factor: Values
    names: tuple[str, ...]

    @classmethod
    def of(cls, vocoder: onnx.ModelProto) -> AdainLayers:
        """Read the layers from a vocoder graph whose constants are folded (`passes.fold_constants`)."""
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
        """What the rewritten vocoder multiplies each channel by (scale), and what it then adds (shift).

        Parameters
        ----------
        mean, variance : numpy.ndarray
            float32 (8448,): one value for each channel of the tensors that the layers read. Two layers that
            read the same tensor share its values.
        style : numpy.ndarray
            float32 (1, 256) or (1, 128): only the first 128 numbers are used.

        Returns
        -------
        tuple of numpy.ndarray
            Scale and shift, float32 (9216,), both already multiplied by Snake's 2α.

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
        """The mean and the variance from which `scale_and_shift` made `scale` and `shift`, float32 (8448,)
        each.

        If several channels share their statistics, each of them gives the same result, but for rounding. The
        channel with the largest factor is used, because rounding matters least there.
        """
        factor, offset = self.style_alone(style)
        order = np.lexsort((np.abs(factor), self.source))
        tells = order[np.append(np.diff(self.source[order]) != 0, True)]
        deviation = factor[tells] / scale[tells]
        mean = (offset[tells] - shift[tells]) / scale[tells]
        return mean, deviation**2 - np.float32(EPSILON)

    def style_alone(self, style: Values) -> tuple[Values, Values]:
        """Scale and shift for a mean of 0 and a variance of 1. The graph takes these if the statistics are
        not known, and computes the statistics itself."""
        channels = len(self.source)
        none = np.zeros(channels, np.float32)
        return self.scale_and_shift(none, none + np.float32(1 - EPSILON), style)
