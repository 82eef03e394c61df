"""Blocks of the vocoder that run in parallel on one input, with integers or in float: forward and backward.

The mean of their outputs goes on, so that the error of one block can be made up for by another one. Where a
convolution runs on integers, forward computes what the model computes: inputs are rounded to bytes and
weights to levels (see `graphs.quantise`). Backward goes straight through both roundings: it treats them as if
they changed nothing (Bengio, Léonard & Courville 2013), except for inputs that are clipped, which have no
slope.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kokoro_lab.graphs.quantise import WEIGHT_LEVELS, QuantisedLayer
from kokoro_lab.lab.research.residual_steps import Values
from kokoro_lab.lab.research.vocoder_block import Block, Crop

Tape = list[tuple[Values, Values]]
Layers = Mapping[str, QuantisedLayer]
"""Name of a convolution → its integers. A convolution that is not there runs in float."""
HALF = 0.501
"""An input that is further than this many steps from its byte was clipped."""


@dataclass(frozen=True, slots=True, eq=False)
class RoundedBlock(Block):
    """A block of which some convolutions run on integers.

    Parameters
    ----------
    weights : list of numpy.ndarray
        As in `Block`; of a convolution on integers, in units of the inputs' steps: levels times the steps of
        the outputs.
    inputs : tuple of QuantisedLayer or None
        How each convolution rounds its inputs; None for a convolution in float.
    """

    inputs: tuple[QuantisedLayer | None, ...]

    def read(self, k: int, values: Values) -> tuple[Values, Values]:
        """What convolution `k` multiplies, in float or in steps, and the slope by which it follows
        `values`."""
        layer = self.inputs[k]
        if layer is None:
            return Block.read(self, k, values)
        levels, exact = layer.rounded(values), values / layer.step[:, None]
        follows: Values = (np.abs(levels - exact) <= HALF).astype(np.float32) / layer.step[:, None]
        return levels, follows


@dataclass(frozen=True, slots=True, eq=False)
class ParallelBlocks:
    """Blocks whose outputs are averaged. The factors of a `Crop` for them are those of all blocks, float32
    (blocks, convolutions, channels)."""

    blocks: tuple[Block, ...]

    def forward(self, crop: Crop, tapes: list[Tape] | None = None) -> Values:
        """The mean of the blocks' outputs, float32 (channels, columns). What `backward` needs is added to
        `tapes`, one tape for each block."""
        total = np.zeros_like(crop.x)
        for number, block in enumerate(self.blocks):
            tape: Tape | None = None
            if tapes is not None:
                tape = []
                tapes.append(tape)
            total += block.forward(_own(crop, number), tape)
        found: Values = total / np.float32(len(self.blocks))
        return found

    def backward(
        self, crop: Crop, tapes: Sequence[Tape], wrong: Values
    ) -> list[tuple[list[Values], list[Values]]]:
        """The gradients of weights and biases of each block, from `wrong`, the gradient of the output of
        `forward`."""
        share: Values = wrong / np.float32(len(self.blocks))
        return [
            block.backward(_own(crop, number), tapes[number], share)
            for number, block in enumerate(self.blocks)
        ]


def _own(crop: Crop, number: int) -> Crop:
    return replace(crop, scale=crop.scale[number], shift=crop.shift[number])


@dataclass(frozen=True, slots=True, eq=False)
class Integers:
    """The integers of parallel blocks.

    Parameters
    ----------
    teachers : tuple of Block
        The blocks as they ship, in float.
    names : tuple of tuple of str
        The names of each block's convolutions, in the order in which they run.
    layers : mapping of str to QuantisedLayer
        Convolutions that run on integers; the others run in float.
    """

    teachers: tuple[Block, ...]
    names: tuple[tuple[str, ...], ...]
    layers: Layers

    @property
    def latent(self) -> ParallelBlocks:
        """Blocks whose weights are those that the integers stand for, in units of the inputs' steps, before
        any rounding. Training moves these; `rounded` makes integers of them."""
        blocks = []
        for teacher, names in zip(self.teachers, self.names, strict=True):
            weights, biases = list(teacher.weights), list(teacher.biases)
            for k, name in enumerate(names):
                if (layer := self.layers.get(name)) is not None:
                    levels = layer.weights.transpose(2, 0, 1).astype(np.float32)
                    weights[k] = np.ascontiguousarray(levels * layer.scale[:, None])
                    biases[k] = biases[k] if layer.shift is None else biases[k] + layer.shift
            blocks.append(replace(teacher, weights=weights, biases=biases))
        return ParallelBlocks(tuple(blocks))

    def rounded(self, latent: ParallelBlocks) -> ParallelBlocks:
        """The blocks that compute with the integers nearest to `latent`."""
        blocks = []
        for block, names in zip(latent.blocks, self.names, strict=True):
            inputs = tuple(self.layers.get(name) for name in names)
            weights = [
                weight if layer is None else _levels(weight, layer) * layer.scale[:, None]
                for weight, layer in zip(block.weights, inputs, strict=True)
            ]
            blocks.append(RoundedBlock(weights, block.biases, block.dilations, inputs))
        return ParallelBlocks(tuple(blocks))

    def nearest(self, latent: ParallelBlocks) -> Integers:
        """The integers nearest to `latent`, as the model gets them."""
        found = {}
        for teacher, block, names in zip(self.teachers, latent.blocks, self.names, strict=True):
            for k, name in enumerate(names):
                if (layer := self.layers.get(name)) is not None:
                    levels = _levels(block.weights[k], layer).transpose(1, 2, 0).astype(np.int8)
                    shift = block.biases[k] - teacher.biases[k]
                    found[name] = replace(layer, weights=np.ascontiguousarray(levels), shift=shift)
        return replace(self, layers=found)


def _levels(weight: Values, layer: QuantisedLayer) -> Values:
    """The levels nearest to weights (taps, channels out, channels in), as float32."""
    found: Values = np.clip(np.round(weight / layer.scale[:, None]), -WEIGHT_LEVELS, WEIGHT_LEVELS)
    return found
