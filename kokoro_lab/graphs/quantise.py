"""The arithmetic by which layers with float inputs and outputs compute in 8-bit integers.

A *step* is the difference between two neighbouring integers, as a float. Each input channel has a step of its
own, which follows from the channel's range in the calibration (`Range`). Each output channel has a step for
its weights (`scale`). The steps of the inputs are multiplied into the weights:

    y[o, n] = bias[o] + scale[o] · Σ weights[o, c, k] · (q[c, n + k] - zero[c])
    q[c, n] = clamp(round(x[c, n] / step[c]) + zero[c], 0, 255)

So the integers are summed exactly, and the output is float again: no layer's output is reduced to 8 bits.
`quant_passes` puts this arithmetic into graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kokoro_lab.extras import shipped_arrays
from kokoro_lab.graphs.fast_fir import TILE

Values = npt.NDArray[np.float32]

LEVELS = 255
"""Steps between the lowest and the highest value of a byte."""
WEIGHT_LEVELS = 127
GROUP = 4
"""Input channels that a processor's dot product takes at once."""
LEAST_RANGE = 1e-6
STRENGTH = 0.5
"""The exponent by which the profile of a `QuantisedProduct` follows from the sizes of its inputs. With 0,
inputs stay as different as they are. With 1, they become equally large, and the weights, which are rounded as
well, become as different as the inputs were."""
LEAST_PROFILE = 1e-3
"""The least value of a profile. An input that was near 0 in the whole calibration would otherwise be divided
by nearly 0. It would then be the largest of its row, and decide the row's step."""


class Range(NamedTuple):
    """Lowest and highest value of each input channel, float32 (channels in,) each."""

    low: Values
    high: Values

    @classmethod
    def widest(cls, several: Sequence[Range]) -> Range:
        """The range that holds all of `several`."""
        lows, highs = zip(*several, strict=True)
        return cls(np.min(lows, axis=0), np.max(highs, axis=0))


@dataclass(frozen=True, slots=True, eq=False)
class QuantisedLayer:
    """A layer's integers, and the factors that turn its sums into floats.

    Parameters
    ----------
    weights : numpy.ndarray
        int8 (channels out, channels in, taps).
    step, zero : numpy.ndarray
        float32 and uint8 (channels in,): the step of each input channel, and the byte that stands for 0.
    scale : numpy.ndarray
        float32 (channels out,): the step of each output channel's weights.
    shift : numpy.ndarray, optional
        float32 (channels out,): what is added to the layer's bias, because rounding the weights changes the
        mean of the outputs.
    """

    weights: npt.NDArray[np.int8]
    step: Values
    zero: npt.NDArray[np.uint8]
    scale: Values
    shift: Values | None = None

    @classmethod
    def of(cls, weight: Values, inputs: Range) -> QuantisedLayer:
        """Quantise a layer whose input channels lie in `inputs`. Values outside of these ranges are clipped.

        Parameters
        ----------
        weight : numpy.ndarray
            float32 (channels out, channels in, taps).

        Raises
        ------
        ValueError
            A range or a weight is not finite, or the range is for another number of channels.
        """
        low, high = (np.asarray(side, np.float64) for side in inputs)
        if low.shape != (weight.shape[1],) or high.shape != low.shape:
            raise ValueError(f"{weight.shape[1]} input channels, but ranges for {low.shape} and {high.shape}")
        if not (np.isfinite(low).all() and np.isfinite(high).all() and np.isfinite(weight).all()):
            raise ValueError("ranges and weights must be finite")
        # Zero must be a level: the padding is made of it
        low, high = np.minimum(low, 0), np.maximum(high, 0)
        step = np.maximum(high - low, LEAST_RANGE) / LEVELS
        zero = np.clip(np.round(-low / step), 0, LEVELS)
        levels, scale = quantised_weights(weight * step[None, :, None])
        return cls(levels, step.astype(np.float32), zero.astype(np.uint8), scale)

    def rounded(self, values: Values) -> Values:
        """Inputs (channels in, positions) as the layer reads them: rounded to bytes, less the byte that
        stands for 0, float32."""
        levels = np.round(values / self.step[:, None]) + self.zero[:, None]
        found: Values = np.clip(levels, 0, LEVELS).astype(np.float32) - self.zero[:, None]
        return found

    @property
    def offset(self) -> npt.NDArray[np.int32]:
        """What the zero points add to the sum of each output channel, int32 (channels out,)."""
        sums: npt.NDArray[np.int64] = self.weights.sum(2, np.int64) @ self.zero.astype(np.int64)
        return sums.astype(np.int32)

    def packed(self) -> npt.NDArray[np.int8]:
        """Weights as `native/quant_conv.cpp` reads them: (channels out / 8, channels in / 4, taps, 8, 4).

        If the last group has fewer than four channels, it is filled up with channels whose weights are 0.
        """
        out, channels, taps = self.weights.shape
        filled = np.pad(self.weights, ((0, 0), (0, -channels % GROUP), (0, 0)))
        tiles = filled.reshape(out // TILE, TILE, -1, GROUP, taps)
        return np.ascontiguousarray(tiles.transpose(0, 2, 4, 1, 3))


@dataclass(frozen=True, slots=True, eq=False)
class QuantisedProduct:
    """A matrix of weights as integers. Each row of the inputs gets a step of its own while the graph runs.

    y[n, o] = scale[o] · step[n] · Σ weights[o, k] · round(x[n, k] / profile[k] / step[n])

    Parameters
    ----------
    weights : numpy.ndarray
        int8 (outputs, inputs).
    scale : numpy.ndarray
        float32 (outputs,).
    profile : numpy.ndarray
        float32 (inputs,): the square root of each input's largest value in the calibration, divided by that
        of the largest input. Inputs are divided by the profile and weights multiplied by it (as in
        SmoothQuant, Xiao et al. 2023, eq. 4). Otherwise one large input would decide the step of its row, and
        small inputs would be rounded to 0.
    """

    weights: npt.NDArray[np.int8]
    scale: Values
    profile: Values

    @classmethod
    def of(cls, weight: Values, inputs: Range) -> QuantisedProduct:
        """Quantise a matrix (inputs, outputs) as a product's second factor."""
        reach = np.maximum(np.abs(inputs.low), np.abs(inputs.high))
        share = reach / max(float(reach.max()), LEAST_RANGE)
        profile = np.maximum(share**STRENGTH, LEAST_PROFILE)
        folded = (weight * profile[:, None]).T
        levels, scale = quantised_weights(folded[:, :, None])
        return cls(levels[:, :, 0], scale, profile.astype(np.float32))


def quantised_weights(weight: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int8], Values]:
    """Weights (channels out, channels in, taps) as int8, and the step of each output, float32."""
    scale = np.maximum(np.abs(weight).max(axis=(1, 2)), np.finfo(np.float32).tiny) / WEIGHT_LEVELS
    return np.round(weight / scale[:, None, None]).astype(np.int8), scale.astype(np.float32)


class Calibration(dict[str, Range]):
    """Name of a layer → the range of its inputs."""

    @classmethod
    def load(cls, path: Path | None = None) -> Calibration:
        """The ranges that come with the package, or those in the file `path`."""
        stored = shipped_arrays(path or Path(__file__).with_name("ranges.npz"))
        return cls({name: Range(*sides.astype(np.float32)) for name, sides in stored.items()})

    def save(self, path: Path) -> None:
        """Write the ranges to the file `path`, in float16, since a range need not be exact."""
        limits: dict[str, Any] = {name: np.stack(sides).astype(np.float16) for name, sides in self.items()}
        np.savez_compressed(path, **limits)
