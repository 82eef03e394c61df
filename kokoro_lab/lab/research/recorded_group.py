"""Parallel blocks as they were recorded: what enters them on integers, what leaves them in float.

`fine_tune` finds better integers for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs.quant_passes import quantise_layers
from kokoro_lab.graphs.quantise import Calibration, QuantisedLayer
from kokoro_lab.lab.research.block_recorder import ParallelRecorder
from kokoro_lab.lab.research.parallel_blocks import Integers, Layers, ParallelBlocks, Tape
from kokoro_lab.lab.research.residual_steps import Values
from kokoro_lab.lab.research.vocoder_block import Crop, error
from kokoro_lab.lab.tuning.block import Layer, with_best_ranges
from kokoro_lab.lab.tuning.comparison import Spoken
from kokoro_lab.lab.tuning.rounding import Moments, MomentSum
from kokoro_lab.native.operators import native_operators

EACH = 6
"""How many crops are taken from each segment."""
MOMENTS_EVERY = 4
"""The moments of a layer's inputs are added up over one crop in so many."""
RANGES_EVERY = 4
"""Ranges of inputs are chosen by one column in so many of these crops."""


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Parallel blocks as they were recorded.

    Parameters
    ----------
    plain : Integers
        The blocks with all convolutions on integers, each weight on its nearest level, as `int8` would ship
        them.
    layers : mapping of str to Layer
        The convolutions, with the ranges of inputs that suit the crops best.
    crops, held_out : list of Crop
        Inputs are those of the vocoder on integers, outputs those of the vocoder in float.
    blocks_db, integers_db : float
        The error of the blocks in NumPy against ONNX Runtime, in float and with the integers `plain`.
    """

    plain: Integers
    layers: dict[str, Layer]
    crops: list[Crop]
    held_out: list[Crop]
    blocks_db: float
    integers_db: float

    def moments(self, crops: Sequence[Crop]) -> dict[str, Moments]:
        """The moments of each layer's inputs in the float blocks."""
        sums = {name: MomentSum(layer.quantised, layer.dilation) for name, layer in self.layers.items()}
        for crop in crops:
            for name, values in _entering(self.plain, crop):
                sums[name].add(values)
        return {name: total.moments() for name, total in sums.items()}

    def with_layers(self, layers: Layers, in_float: Sequence[str] = ()) -> Integers:
        """The blocks with the integers `layers`, and the convolutions `in_float` in float."""
        return replace(self.plain, layers={k: v for k, v in layers.items() if k not in set(in_float)})


def recorded(
    blocks: Sequence[str],
    before: Layers,
    fit: Sequence[Spoken],
    held_out: Sequence[Spoken],
    config: EngineConfig,
) -> Group:
    """Record a group of parallel blocks in the vocoder on integers, in which the layers of earlier groups
    have the integers `before`."""
    native = native_operators(config).library is not None
    recorder = ParallelRecorder(blocks, config, partial(quantise_layers, native=native, adjusted=before))
    names = tuple(tuple(n for step in own for n in (step.first, step.second)) for own in recorder.steps)
    ranges, layers = Calibration.load(), {}
    for own, teacher in zip(names, recorder.teachers, strict=True):
        for name, weight, dilation in zip(own, teacher.weights, teacher.dilations, strict=True):
            as_stored = np.ascontiguousarray(weight.transpose(1, 2, 0))
            quantised = QuantisedLayer.of(as_stored, ranges[name])
            layers[name] = Layer(name, as_stored, dilation, quantised)
    plain = Integers(
        tuple(recorder.teachers), names, {name: layer.quantised for name, layer in layers.items()}
    )
    compared = recorder.compared(held_out, EACH, seed=1)
    in_float, on_integers = ([pair[side] for pair in compared] for side in (0, 1))
    crops = recorder.crops(fit, EACH)
    seen: dict[str, list[Values]] = {name: [] for name in layers}
    for crop in crops[::MOMENTS_EVERY]:
        for name, values in _entering(plain, crop):
            seen[name].append(values[:, ::RANGES_EVERY])
    return Group(
        plain,
        {name: with_best_ranges(layer, ranges[name], seen[name]) for name, layer in layers.items()},
        crops,
        [replace(crop, y=there.y) for there, crop in compared],
        decibels(error(ParallelBlocks(plain.teachers), in_float[:EACH])),
        decibels(error(plain.rounded(plain.latent), on_integers[:EACH])),
    )


def decibels(ratio: float) -> float:
    return float(10 * np.log10(ratio))


def _entering(integers: Integers, crop: Crop) -> Iterator[tuple[str, Values]]:
    """Name and input of each convolution of the blocks in float, float32 (channels in, columns)."""
    tapes: list[Tape] = []
    ParallelBlocks(integers.teachers).forward(crop, tapes)
    for names, tape in zip(integers.names, tapes, strict=True):
        for name, (entered, _) in zip(names, tape, strict=True):
            yield name, entered
