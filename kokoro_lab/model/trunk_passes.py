"""Rewrites of the trunk: what stands between its convolutions, in fewer steps.

Like those of `passes`: each takes a model, returns a new one, and keeps the numbers up to rounding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from onnx import NodeProto, helper

from kokoro_lab.model import rewriting
from kokoro_lab.model.alike_passes import rectified_norms
from kokoro_lab.model.native_passes import native_node


def divided_beforehand(model: rewriting.Model) -> rewriting.Model:
    """Two convolutions whose sum is divided by a constant: their weights are, instead of what they make."""
    g = rewriting.Graph(model)
    readers = Counter(name for node in g.graph.node for name in node.input)
    swaps: dict[str, Sequence[NodeProto]] = {}
    for node in g.graph.node:
        if node.op_type != "Div" or node.input[1] not in g.constants:
            continue
        total = g.maker.get(node.input[0])
        if total is None or total.op_type != "Add" or readers[total.output[0]] != 1:
            continue
        summands = [g.maker.get(name) for name in total.input if readers[name] == 1]
        convolutions = [n for n in summands if n is not None and n.op_type == "Conv"]
        if len(convolutions) != 2:
            continue
        divisor = g.value(node.input[1])
        for conv in convolutions:
            for place, name in list(enumerate(conv.input))[1:]:
                conv.input[place] = g.constant(f"{conv.name}/divided/{place}", g.value(name) / divisor)
        both = helper.make_node("Add", list(total.input), list(node.output), name=total.name)
        swaps |= {total.output[0]: (), node.output[0]: (both,)}
    g.replace(swaps)
    return g.model


def norms_in_convolutions(model: rewriting.Model) -> rewriting.Model:
    """AdaIN and the leaky rectifier behind it as part of the convolution of ours that they feed."""
    g = rewriting.Graph(model)
    rectified = dict(rectified_norms(model, g))
    readers = Counter(name for node in g.graph.node for name in node.input)
    swaps: dict[str, Sequence[NodeProto]] = {}
    for conv in g.graph.node:
        if conv.op_type == "FastConv" and conv.input[0] in rectified and readers[conv.input[0]] == 1:
            x, style, rest = rectified[conv.input[0]]
            swaps[conv.output[0]] = (native_node("NormConv", [x, *conv.input[1:], style, rest], conv),)
    g.replace(swaps)
    return g.model
