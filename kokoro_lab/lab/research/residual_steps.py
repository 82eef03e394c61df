"""The residual steps of trunk and vocoder, and how a graph is rewritten so that a step computes less.

A step is two convolutions over time, each behind a normalisation and an activation; a bypass adds the step's
input to the output of the second one. The channels between the two convolutions belong to this step only, so
they can be removed without a change elsewhere. A `Cut` says what is left of a step.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, helper

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ParameterError
from kokoro_lab.graphs import passes, trunk_passes
from kokoro_lab.graphs.native_passes import bias_of
from kokoro_lab.graphs.quantise import Calibration, Range
from kokoro_lab.graphs.recipes import Recipes, recipes, unbound
from kokoro_lab.graphs.rewriting import Graph, Model, Pass, Swaps, attributes_of, copied
from kokoro_lab.lab.tuning.reporter import convolution_weights

Values = npt.NDArray[np.float32]
Channels = npt.NDArray[np.int64]

_SECOND = re.compile(r"(/decoder/.*/)(convs2\.(\d)|conv2)/Conv")
POSITIONS_PER_S = {
    **{f"generator/noise_res.{k}/": 800 if k < 1 else 4800 for k in range(2)},
    **{f"generator/resblocks.{k}/": 800 if k < 3 else 4800 for k in range(6)},
    "decode.3": 80,
    "": 40,
}
"""A part of a step's name → the columns that its convolutions compute for a second of speech. The first part
that is found in a name counts."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A residual step as it ships: the names of its convolutions, their weights (channels out, channels in,
    taps), and the dilation of the first."""

    name: str
    first: str
    second: str
    first_weight: Values
    second_weight: Values
    dilation: int

    @property
    def positions_per_s(self) -> int:
        """Columns for a second of speech."""
        return next(count for part, count in POSITIONS_PER_S.items() if part in self.name)

    @property
    def products(self) -> float:
        """Multiplications for a second of speech."""
        return float(self.first_weight.size + self.second_weight.size) * self.positions_per_s


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """What is left of a step.

    Parameters
    ----------
    second : numpy.ndarray or None
        Weights of the last convolution, float32 (channels out, channels in, taps). None if no convolution is
        left and the step adds a constant.
    shift : numpy.ndarray
        float32 (channels out,): is added to the bias of the second convolution.
    kept : numpy.ndarray or None
        int64, the channels that are left between the convolutions. None if at most one convolution is left.
    first : tuple of numpy.ndarray or None
        Weights and bias that the first convolution gets for the kept channels. None keeps those that ship.
    """

    second: Values | None
    shift: Values
    kept: Channels | None = None
    first: tuple[Values, Values] | None = None

    def products(self, step: Step) -> float:
        """Multiplications for a second of speech."""
        size = 0 if self.second is None else self.second.size
        if self.kept is not None:
            first = step.first_weight[self.kept] if self.first is None else self.first[0]
            size += first.size
        return float(size) * step.positions_per_s


Cuts = Mapping[str, tuple[Step, Cut]]
"""Name of a step → the step, and what is left of it."""


def steps_of(patterns: str, config: EngineConfig) -> dict[str, Step]:
    """The residual steps of trunk and vocoder whose names match one of `patterns`, which are separated by
    commas.

    Raises
    ------
    ParameterError
        No step's name matches.
    """
    known = convolution_weights(config)
    found = {}
    for second, (weight, _) in known.items():
        named = _SECOND.fullmatch(second)
        if named is None:
            continue
        name = named[1] + (named[3] or "0")
        first = second.replace("convs2.", "convs1.").replace("/conv2/", "/conv1/")
        if first in known and any(fnmatchcase(name, pattern) for pattern in patterns.split(",")):
            found[name] = Step(name, first, second, known[first][0], weight, known[first][1])
    if not found:
        raise ParameterError(
            f"No residual step is called {patterns!r}.",
            field="steps",
            value=patterns,
            allowed="patterns such as */resblocks.5/*, with commas",
        )
    return found


def whole(step: Step) -> Cut:
    """The cut that removes nothing of `step`."""
    outputs, channels, _ = step.second_weight.shape
    return Cut(step.second_weight, np.zeros(outputs, np.float32), np.arange(channels))


# ------------------------------------------------------------------------------------------ in a graph


def narrowed(model: Model, cuts: Cuts) -> Model:
    """Rewrite a graph so that each step for which `cuts` has a cut computes only what the cut leaves.

    The vocoder must have passed `passes.modulate` and `passes.snake_in_the_modulation`, the trunk
    `trunk_passes.told_statistics`.
    """
    g = Graph(model)
    by_name = {node.name: node for node in g.graph.node}
    layers = {layer.x: layer for layer in passes.adain_layers(model)}
    swaps: Swaps = {}
    for step, cut in cuts.values():
        if step.second not in by_name:
            continue
        first, second = by_name[step.first], by_name[step.second]
        bias = bias_of(g, second) + cut.shift
        if cut.second is None:
            g.constant(second.output[0], bias[None, :, None])
            swaps[second.output[0]] = ()
            continue
        if cut.kept is None:
            filters = _conv(g, first.name, first.input[0], second.output[0], cut.second, bias, step.dilation)
            swaps[second.output[0]] = (filters,)
            continue
        weight, own_bias = cut.first or (step.first_weight[cut.kept], bias_of(g, first)[cut.kept])
        filters = _conv(g, first.name, first.input[0], first.output[0], weight, own_bias, step.dilation)
        swaps[first.output[0]] = (filters,)
        last = _conv(g, second.name, second.input[0], second.output[0], cut.second, bias, 1)
        swaps[second.output[0]] = (last,)
        if first.output[0] in layers:
            _narrow_own_norm(g, layers[first.output[0]], cut.kept, swaps)
        else:
            _narrow_given_norm(g, first.output[0], cut.kept, swaps)
    return g.rewritten(swaps)


def _conv(
    g: Graph, name: str, source: str, output: str, weight: Values, bias: Values, dilation: int
) -> NodeProto:
    taps = weight.shape[2]
    inputs = [
        source,
        g.constant(f"{name}/cut/weight", weight.astype(np.float32)),
        g.constant(f"{name}/cut/bias", bias.astype(np.float32)),
    ]
    reach = taps // 2 * dilation
    about: dict[str, Any] = {"kernel_shape": [taps], "dilations": [dilation], "strides": [1]}
    return helper.make_node("Conv", inputs, [output], name=name, pads=[reach, reach], group=1, **about)


def _narrow_given_norm(g: Graph, x: str, kept: Channels, swaps: Swaps) -> None:
    """Narrow a normalisation of the vocoder to the kept channels. It gets its scale and shift as inputs."""
    (norm,) = (node for node in g.readers[x] if node.op_type == "BatchNormalization")
    _, scale, shift, *_ = norm.input
    index = g.constant(f"{norm.name}/kept", kept)
    zero = g.constant(f"zeros_{len(kept)}", np.zeros(len(kept), np.float32))
    one = g.constant(f"ones_{len(kept)}", np.ones(len(kept), np.float32))
    swaps[norm.output[0]] = (
        *(helper.make_node("Gather", [name, index], [f"{name}/kept"], axis=0) for name in (scale, shift)),
        copied(norm, [x, f"{scale}/kept", f"{shift}/kept", zero, one]),
    )


def _narrow_own_norm(g: Graph, layer: passes.Adain, kept: Channels, swaps: Swaps) -> None:
    """Narrow a normalisation of the trunk to the kept channels. It computes its statistics unless they are
    given."""
    index = g.constant(f"{layer.name}/kept", kept)
    for statistic in (layer.mean, layer.variance):
        told = g.maker[f"{statistic}/told"]
        swaps[told.output[0]] = (
            copied(told, output=f"{statistic}/told/all"),
            helper.make_node("Gather", [f"{statistic}/told/all", index], [told.output[0]], axis=1),
        )
    gemm = g.maker[layer.from_style]
    rows = np.concatenate([kept, kept + layer.channels])
    axis = 0 if attributes_of(gemm).get("transB", 0) else 1
    weight = g.constant(f"{layer.name}/cut/weight", np.take(g.value(gemm.input[1]), rows, axis))
    bias = g.constant(f"{layer.name}/cut/bias", g.value(gemm.input[2])[rows])
    swaps[gemm.output[0]] = (copied(gemm, [gemm.input[0], weight, bias]),)
    (unsqueezed,) = g.readers[gemm.output[0]]
    for part in g.readers[unsqueezed.output[0]]:
        _, start, _, axes = part.input
        at = 0 if int(g.value(start).item()) == 0 else len(kept)
        bounds = [g.integers(at), g.integers(at + len(kept)), axes]
        swaps[part.output[0]] = (copied(part, [unsqueezed.output[0], *bounds]),)


def narrowed_recipes(variant: str, cuts: Cuts, *, native: bool) -> Recipes:
    """The recipes of a variant's graphs with `cuts` in trunk and vocoder."""
    made = dict(recipes(variant, native, ranges=narrowed_ranges(cuts)))
    made.pop("vocoder_exact", None)
    narrow: Pass = partial(narrowed, cuts=cuts)
    for name, after in (("vocoder", passes.snake_in_the_modulation), ("trunk", trunk_passes.told_statistics)):
        stage, recipe = made[name]
        at = [unbound(each) for each in recipe].index(after) + 1
        made[name] = (stage, (*recipe[:at], narrow, *recipe[at:]))
    return made


def narrowed_ranges(cuts: Cuts) -> Calibration:
    """The shipped ranges of inputs, for the channels that `cuts` keep."""
    ranges = Calibration.load()
    for step, cut in cuts.values():
        if cut.kept is not None:
            low, high = ranges[step.second]
            ranges[step.second] = Range(low[cut.kept], high[cut.kept])
    return ranges
