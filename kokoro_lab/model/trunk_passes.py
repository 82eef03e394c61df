"""Rewrites of the trunk: what stands between its convolutions, in fewer steps.

Like those of `passes`: each takes a model, returns a new one, and keeps the numbers up to rounding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from onnx import NodeProto, helper

from kokoro_lab.model import rewriting
from kokoro_lab.model.native_passes import NATIVE_DOMAIN, PANEL, in_panels, native_node, with_native
from kokoro_lab.model.passes import EPSILON, adain_layers


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
    readers = Counter(name for node in g.graph.node for name in node.input)
    rectified = dict(_rectified(model, g, readers))
    swaps: dict[str, Sequence[NodeProto]] = {}
    for conv in g.graph.node:
        if conv.op_type == "FastConv" and conv.input[0] in rectified and readers[conv.input[0]] == 1:
            x, style, rest = rectified[conv.input[0]]
            swaps[conv.output[0]] = (native_node("NormConv", [x, *conv.input[1:], style, rest], conv),)
    g.replace(swaps)
    return g.model


def norms(model: rewriting.Model) -> rewriting.Model:
    """AdaIN and the leaky rectifier behind it as one operator of ours: one pass over a tensor, not ten, and
    the same sums on every processor."""
    g = rewriting.Graph(model)
    readers = Counter(name for node in g.graph.node for name in node.input)
    swaps: dict[str, Sequence[NodeProto]] = {
        output: (native_node("Norm", inputs, g.maker[output]),)
        for output, inputs in _rectified(model, g, readers)
    }
    return with_native(g, swaps)


def _rectified(
    model: rewriting.Model, g: rewriting.Graph, readers: Mapping[str, int]
) -> Iterator[tuple[str, list[str]]]:
    """What leaky rectifiers make of AdaIN layers that nothing else reads, each with what a norm of ours takes
    to make it: x, style, rest."""
    layers = {layer.output: layer for layer in adain_layers(model)}
    for node in g.graph.node:
        if node.op_type == "LeakyRelu" and node.input[0] in layers and readers[node.input[0]] == 1:
            layer = layers[node.input[0]]
            slope = next((a.f for a in node.attribute if a.name == "alpha"), 0.01)
            rest = g.constant(f"{layer.name}/rest", np.array([EPSILON, slope], np.float32))
            yield node.output[0], [layer.x, layer.from_style, rest]


def styles_as_products(model: rewriting.Model) -> rewriting.Model:
    """What `norms` read of the style as products of ours, which are the same on every processor.

    There are zeros behind it, up to a whole panel: a norm reads as many values as it has channels.
    """
    g = rewriting.Graph(model)
    read = {node.input[1] for node in g.graph.node if node.op_type == "Norm"}
    everyone = {name for node in g.graph.node if node.op_type != "Norm" for name in node.input}
    axis = g.constant("style_axis", np.array([1], np.int64))
    swaps: dict[str, Sequence[NodeProto]] = {}
    for gemm in g.graph.node:
        if gemm.op_type != "Gemm" or gemm.output[0] not in read - everyone:
            continue
        style, name, bias = gemm.input
        weight = g.value(name)
        if next((a.i for a in gemm.attribute if a.name == "transB"), 0):
            weight = weight.T
        behind = -weight.shape[1] % PANEL
        panels = g.constant(f"{name}/panels", in_panels(np.pad(weight, ((0, 0), (0, behind)))))
        all_biases = g.constant(f"{bias}/padded", np.pad(g.value(bias), (0, behind)))
        row, product = f"{gemm.name}/row", f"{gemm.name}/product"
        swaps[gemm.output[0]] = (
            helper.make_node("Unsqueeze", [style, axis], [row]),
            helper.make_node("Product", [row, panels], [product], name=gemm.name, domain=NATIVE_DOMAIN),
            helper.make_node("Add", [product, all_biases], list(gemm.output)),
        )
    return with_native(g, swaps)


def taps_apart(model: rewriting.Model) -> rewriting.Model:
    """Convolutions of one channel tap by tap: products and sums of whole tensors, which no processor rounds
    otherwise."""
    g = rewriting.Graph(model)
    swaps: dict[str, Sequence[NodeProto]] = {}
    for conv in g.graph.node:
        if conv.op_type != "Conv" or g.value(conv.input[1]).shape[:2] != (1, 1) or len(conv.input) != 3:
            continue
        said = {a.name: helper.get_attribute_value(a) for a in conv.attribute}
        weight, name = g.value(conv.input[1]), conv.name
        before, behind = said.get("pads", [0, 0])
        if said.get("dilations", [1]) != [1]:
            continue

        def lengths(*values: int) -> str:
            return g.constant("taps_" + "_".join(map(str, values)), np.array(values, np.int64))

        padding = lengths(0, 0, before, 0, 0, behind)
        nodes = [helper.make_node("Pad", [conv.input[0], padding], [f"{name}/padded"])]
        total = conv.input[2]
        for tap, value in enumerate(weight.reshape(-1)):
            # To the end, less what the later taps read
            stop = tap - weight.size + 1 or np.iinfo(np.int64).max
            slicing = (lengths(tap), lengths(stop), lengths(2), lengths(*said.get("strides", [1])))
            factor = g.constant(f"{name}/tap{tap}/factor", value)
            read, part, so_far = (f"{name}/tap{tap}/{what}" for what in ("read", "part", "so_far"))
            nodes += [
                helper.make_node("Slice", [f"{name}/padded", *slicing], [read]),
                helper.make_node("Mul", [read, factor], [part]),
                helper.make_node("Add", [part, total], [so_far]),
            ]
            total = so_far
        nodes[-1].output[0] = conv.output[0]
        swaps[conv.output[0]] = nodes
    g.replace(swaps)
    return g.model
