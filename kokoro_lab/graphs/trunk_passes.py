"""Rewrites of the trunk that compute the steps between its convolutions with fewer operators.

Like those of `passes`, each takes a model, returns a new one, and keeps the numbers up to rounding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import onnx
from onnx import NodeProto, helper

from kokoro_lab.graphs.alike_passes import rectified_norms
from kokoro_lab.graphs.native_passes import native_node
from kokoro_lab.graphs.passes import adain_layers
from kokoro_lab.graphs.rewriting import Graph, Model, Swaps, copied, node_by_node
from kokoro_lab.graphs.signatures import STOP, TOLD, TOLD_MEAN, TOLD_VARIANCE


def told_statistics(model: Model) -> Model:
    """Allow computing only the first frames of a segment, with given statistics. If all frames are computed
    and no statistics are given, the samples stay the same to the last bit."""
    layers = adain_layers(model)
    g = Graph(model)
    if not layers or g.has_input(STOP):
        return model
    joined = {layer.x: g.maker[layer.x] for layer in layers if g.maker[layer.x].op_type == "Concat"}
    outer = _outer_inputs(list(joined.values()))
    head, swaps = _known_beforehand(g, outer)
    parts_of = {
        layer.mean: list(joined[layer.x].input) if layer.x in joined else [layer.x] for layer in layers
    }
    for concat in joined.values():
        concat.input[:] = [f"{name}/begun" if name in outer else name for name in concat.input]
    widths = [
        layer.channels - sum(_channels(g, name) for name in parts_of[layer.mean] if name in outer)
        for layer in layers
    ]
    sizes = g.integers(*(width for width in widths if width))
    for source, statistic in ((TOLD_MEAN, "mean"), (TOLD_VARIANCE, "variance")):
        parts = [f"{source}_{k}" for k, width in enumerate(widths) if width]
        head.append(helper.make_node("Split", [source, sizes], parts, name=f"split_{source}", axis=0))
        for k, layer in enumerate(layers):
            own = layer.mean if source == TOLD_MEAN else layer.variance
            nodes = []
            if widths[k]:
                shaped = [f"{source}_{k}", g.integers(1, -1, 1)]
                nodes.append(helper.make_node("Reshape", shaped, [f"{source}_{k}/column"]))
            told = [
                f"{name}/{statistic}" if name in outer else f"{source}_{k}/column"
                for name in parts_of[layer.mean]
            ]
            nodes += [
                helper.make_node("Concat", told, [f"{own}/told"], axis=1),
                copied(g.maker[own], output=f"{own}/own"),
                helper.make_node("Where", [TOLD, f"{own}/told", f"{own}/own"], [own]),
            ]
            swaps[own] = nodes
    for name, kind, shape in (
        (TOLD_MEAN, onnx.TensorProto.FLOAT, [sum(widths)]),
        (TOLD_VARIANCE, onnx.TensorProto.FLOAT, [sum(widths)]),
        (TOLD, onnx.TensorProto.BOOL, []),
        (STOP, onnx.TensorProto.INT64, [1]),
    ):
        g.add_input(name, kind, shape)
    return g.rewritten(swaps, head)


def told_channels(model: Model) -> npt.NDArray[np.int64]:
    """The indices of the channels for which statistics can be set from outside, among the channels of all
    AdaIN layers of a trunk."""
    g = Graph(model)
    layers = adain_layers(model)
    made = {layer.x: g.maker[layer.x] for layer in layers}
    outer = _outer_inputs([node for node in made.values() if node.op_type == "Concat"])
    found, at = [], 0
    for layer in layers:
        joined = made[layer.x].op_type == "Concat"
        known = [name for name in made[layer.x].input if name in outer] if joined else []
        # Channels that a residual block makes come first
        width = layer.channels - sum(_channels(g, name) for name in known)
        found.append(at + np.arange(width))
        at += layer.channels
    return np.concatenate(found)


def _outer_inputs(concats: Sequence[NodeProto]) -> list[str]:
    """The inputs of `concats` that no residual block makes: all inputs of the first block, and those that
    several blocks read."""
    readers = Counter(name for concat in concats for name in concat.input)
    return [name for name in readers if readers[name] > 1 or name in concats[0].input]


def _known_beforehand(g: Graph, outer: Sequence[str]) -> tuple[list[NodeProto], Swaps]:
    """Nodes for the tensors `outer`, which exist for a whole segment: their frames before `STOP`, and their
    mean and variance over the segment."""
    head: list[NodeProto] = []
    swaps: Swaps = {}
    time, start = g.integers(2), g.integers(0)
    for name in outer:
        nodes = [
            helper.make_node("Slice", [name, start, STOP, time], [f"{name}/begun"]),
            helper.make_node("ReduceMean", [name, time], [f"{name}/mean"], keepdims=1),
            helper.make_node("Sub", [name, f"{name}/mean"], [f"{name}/centred"]),
            helper.make_node("Mul", [f"{name}/centred", f"{name}/centred"], [f"{name}/squares"]),
            helper.make_node("ReduceMean", [f"{name}/squares", time], [f"{name}/variance"], keepdims=1),
        ]
        if name in g.maker:
            swaps[name] = (g.maker[name], *nodes)
        else:
            head += nodes
    return head, swaps


def _channels(g: Graph, name: str) -> int:
    """The channels of a tensor that a convolution makes, or that is an input of the graph."""
    if name in g.maker:
        return int(g.constants[g.maker[name].input[1]].dims[0])
    (given,) = (i for i in g.graph.input if i.name == name)
    return int(given.type.tensor_type.shape.dim[1].dim_value)


@node_by_node
def divided_beforehand(g: Graph, node: NodeProto) -> Sequence[NodeProto] | None:
    """If the sum of two convolutions is divided by a constant, divide their weights instead."""
    if node.op_type != "Div" or node.input[1] not in g.constants:
        return None
    total = g.made_by(node.input[0], "Add")
    if total is None or len(g.readers[total.output[0]]) != 1:
        return None
    summands = [g.made_by(name, "Conv") for name in total.input if len(g.readers[name]) == 1]
    convolutions = [conv for conv in summands if conv is not None]
    if len(convolutions) != 2:
        return None
    divisor = g.value(node.input[1])
    for conv in convolutions:
        for place, name in list(enumerate(conv.input))[1:]:
            conv.input[place] = g.constant(f"{conv.name}/divided/{place}", g.value(name) / divisor)
    return [helper.make_node("Add", list(total.input), list(node.output), name=total.name)]


def norms_in_convolutions(model: Model) -> Model:
    """Make each AdaIN layer, and the leaky rectifier after it, a part of our convolution that reads the
    rectifier's output."""
    g = Graph(model)
    swaps: Swaps = {}
    for output, (x, *rest) in rectified_norms(model, g):
        conv = g.only_reader(output, "FastConv")
        if conv is not None:
            swaps[conv.output[0]] = (native_node("NormConv", [x, *conv.input[1:], *rest], conv),)
    return g.rewritten(swaps)
