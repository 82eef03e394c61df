"""Passes that rewrite the stages of the model, and change results only by rounding.

A pass takes a model and returns a new one. A second application of the same pass changes nothing. Tests
compare each rewritten graph with the original on real utterances.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import onnx
from onnx import NodeProto, helper
from onnx.reference import ReferenceEvaluator

from kokoro_lab.graphs.rewriting import (
    Graph,
    Model,
    Pass,
    Swaps,
    attributes_of,
    copied,
    either_way,
    in_place_of,
    node_by_node,
)
from kokoro_lab.graphs.signatures import EPSILON, INNER, KNOWN, SCALE, SHIFT

ASKED, CROP_START = "asked", "crop_start"
"""Names of two tensors of the rewritten vocoder: the range of trunk frames whose samples are wanted, and the
first trunk frame that is decoded after the second upsampling."""


class Adain(NamedTuple):
    """One AdaIN layer: `normalised(x) * (1 + gamma) + beta`. `weight` and `bias` compute gamma and beta from
    the style, both in one tensor, `from_style`. The other strings are names of tensors, too, except for the
    layer's own `name`."""

    name: str
    x: str
    mean: str
    variance: str
    from_style: str
    output: str
    channels: int
    weight: npt.NDArray[np.float32]
    bias: npt.NDArray[np.float32]


SPEED = "speed"
"""Name of the prosody stage's input by which durations are divided."""


def speed_by_token(model: Model) -> Model:
    """Let the input `SPEED` have a value for each input id, or one value for all. Durations are divided by
    it."""
    g = Graph(model)
    (speed,) = (i for i in g.graph.input if i.name == SPEED)
    speed.type.tensor_type.shape.dim[0].dim_param = "speeds"
    return g.model


def fold_constants(model: Model) -> Model:
    """Replace every node that reads only constants by its result. Most of these nodes compute the weight
    normalisation of convolutions."""
    g = Graph(model)
    rest = []
    for node in g.graph.node:
        if node.input and all(i in g.constants or not i for i in node.input):
            feed = {i: g.value(i) for i in node.input if i}
            for name, value in zip(node.output, ReferenceEvaluator(node).run(None, feed), strict=True):
                g.constant(name, value)
        else:
            rest.append(node)
    return g.keep(rest)


def adain_layers(model: Model) -> list[Adain]:
    """The AdaIN layers of a graph, in the order of its nodes."""
    g = Graph(model)
    found = []
    for node in g.graph.node:
        for scaled, beta in either_way(node, "Add"):
            division, gemm = _normalised(g, scaled), _style_above(g, beta)
            if division is None or gemm is None:
                continue
            x, mean = g.maker[division.input[0]].input
            deviation = g.maker[division.input[1]]
            variance = next(i for i in g.maker[deviation.input[0]].input if i in g.maker)
            weight = g.value(gemm.input[1]).astype(np.float32)
            if not attributes_of(gemm).get("transB", 0):
                weight = weight.T
            bias = g.value(gemm.input[2]).astype(np.float32)
            tensors = (x, mean, variance, gemm.output[0], node.output[0])
            found.append(Adain(node.name, *tensors, len(bias) // 2, weight, bias))
            break
    return found


def _normalised(g: Graph, name: str) -> NodeProto | None:
    """If the tensor `name` is a product, and one of its factors is the quotient of a division by a deviation:
    that division; else None."""
    for side, _ in either_way(g.maker.get(name), "Mul"):
        division = g.made_by(side, "Div")
        if division is not None and g.made_by(division.input[1], "Sqrt") is not None:
            return division
    return None


def _style_above(g: Graph, name: str) -> NodeProto | None:
    """The node that computes all gammas and betas of a layer from the style; `name` is a part of its output.
    None if there is no such node."""
    node = g.maker.get(name)
    while node is not None and node.op_type in ("Slice", "Unsqueeze", "Split"):
        node = g.maker.get(node.input[0])
    return node if node is not None and node.op_type == "Gemm" else None


def modulate(model: Model) -> Model:
    """Replace AdaIN by `x * scale + shift`, with two input vectors that are made of the statistics and the
    style.

    The layer then needs no samples of the rest of the utterance, and goes over its tensor once instead of
    seven times. The product and the sum are written as one batch normalisation with a mean of 0 and a
    variance of 1, since ONNX Runtime has no operator that multiplies and adds.
    """
    layers = adain_layers(model)
    if not layers:
        return model
    g = Graph(model)
    sizes = g.constant("adain_sizes", np.array([a.channels for a in layers], np.int64))
    head = []
    for source in (SCALE, SHIFT):
        outputs = [f"{source}_{k}" for k in range(len(layers))]
        head.append(helper.make_node("Split", [source, sizes], outputs, name=f"split_{source}", axis=0))
        g.add_input(source, onnx.TensorProto.FLOAT, [sum(a.channels for a in layers)])
    swaps: Swaps = {}
    for k, layer in enumerate(layers):
        zero = g.constant(f"zeros_{layer.channels}", np.zeros(layer.channels, np.float32))
        one = g.constant(f"ones_{layer.channels}", np.ones(layer.channels, np.float32))
        inputs = [layer.x, f"{SCALE}_{k}", f"{SHIFT}_{k}", zero, one]
        replaced = g.maker[layer.output]
        swaps[layer.output] = (in_place_of(replaced, "BatchNormalization", inputs, epsilon=0.0),)
    return g.rewritten(swaps, head)


def own_statistics_unless_known(model: Model) -> Model:
    """Let one graph decode windows with given statistics and whole segments with their own: if the statistics
    are not `known`, each layer computes those of its own input.

    The caller then gives scale and shift for a mean of 0 and a variance of 1 (`AdainLayers.style_alone`), and
    the layer computes `x * s + b` with `s = scale / deviation` and `b = shift - mean * s`.
    """
    g = Graph(model)
    if g.has_input(KNOWN):
        return model
    time, flat = g.integers(0, 2), g.integers(-1)
    epsilon = g.constant("own_epsilon", np.float32(EPSILON))
    swaps: Swaps = {}
    for node in g.graph.node:
        if node.op_type != "BatchNormalization" or not node.input[1].startswith(f"{SCALE}_"):
            continue
        x, scale, shift, *rest = node.input
        p = node.name
        given = [
            helper.make_node("Identity", [scale], [f"{p}/given_scale"]),
            helper.make_node("Identity", [shift], [f"{p}/given_shift"]),
        ]
        own = [
            helper.make_node("ReduceMean", [x, time], [f"{p}/mean"], keepdims=1),
            helper.make_node("Sub", [x, f"{p}/mean"], [f"{p}/centred"]),
            helper.make_node("Mul", [f"{p}/centred", f"{p}/centred"], [f"{p}/squares"]),
            helper.make_node("ReduceMean", [f"{p}/squares", time], [f"{p}/variance"], keepdims=0),
            helper.make_node("Add", [f"{p}/variance", epsilon], [f"{p}/stable"]),
            helper.make_node("Sqrt", [f"{p}/stable"], [f"{p}/deviation"]),
            helper.make_node("Div", [scale, f"{p}/deviation"], [f"{p}/own_scale"]),
            helper.make_node("Reshape", [f"{p}/mean", flat], [f"{p}/flat_mean"]),
            helper.make_node("Mul", [f"{p}/flat_mean", f"{p}/own_scale"], [f"{p}/centre"]),
            helper.make_node("Sub", [shift, f"{p}/centre"], [f"{p}/own_shift"]),
        ]
        branches = {
            "then_branch": _branch(given, [f"{p}/given_scale", f"{p}/given_shift"]),
            "else_branch": _branch(own, [f"{p}/own_scale", f"{p}/own_shift"]),
        }
        both = [f"{p}/scale", f"{p}/shift"]
        swaps[node.output[0]] = (
            helper.make_node("If", [KNOWN], both, name=f"{p}/statistics", **branches),
            copied(node, [x, *both, *rest]),
        )
    g.add_input(KNOWN, onnx.TensorProto.BOOL, [])
    return g.rewritten(swaps)


def _branch(nodes: Sequence[NodeProto], outputs: Sequence[str]) -> onnx.GraphProto:
    values = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs]
    graph: onnx.GraphProto = helper.make_graph(nodes, "branch", [], values)
    return graph


def crop_before_the_second_half(model: Model) -> Model:
    """After the second upsampling, decode only the trunk frames `inner` of the window.

    The convolutions before the second upsampling see up to eight frames on either side of each frame, those
    after it less than two. The latter are two thirds of the work. So context that only the convolutions
    before it need is dropped there.
    """
    g = Graph(model)
    up = [n for n in g.graph.node if n.op_type == "ConvTranspose" and "/ups." in n.name]
    source = next((n for n in g.graph.node if n.name.endswith("noise_convs.1/Conv")), None)
    if len(up) != 2 or source is None or g.has_input(INNER):
        return model
    coarse, fine = (stride_of(n) for n in up)
    g.add_input(INNER, onnx.TensorProto.INT64, [4])
    parts, rate, fine_rate = g.integers(1, 1, 2), g.integers(coarse), g.integers(coarse * fine)
    column = g.integers(1)  # the spectrogram is padded by one column more than there is signal
    head = [
        helper.make_node("Split", [INNER, parts], [CROP_START, "crop_stop", ASKED], name="crop/split"),
        helper.make_node("Mul", [CROP_START, rate], ["crop_start_coarse"], name="crop/start"),
        helper.make_node("Mul", ["crop_stop", rate], ["crop_stop_coarse"], name="crop/stop"),
        helper.make_node("Mul", [CROP_START, fine_rate], ["crop_start_fine"], name="crop/start_fine"),
        helper.make_node("Mul", ["crop_stop", fine_rate], ["crop_stop_bare"], name="crop/stop_bare"),
        helper.make_node("Add", ["crop_stop_bare", column], ["crop_stop_fine"], name="crop/stop_fine"),
    ]
    swaps: Swaps = {}
    for what, node, rate in (("trunk", up[1], "coarse"), ("source", source, "fine")):
        name = f"crop/{what}"
        bounds = (f"crop_start_{rate}", f"crop_stop_{rate}", g.integers(2))
        swaps[node.output[0]] = (
            helper.make_node("Slice", [node.input[0], *bounds], [name], name=name),
            copied(node, [name, *node.input[1:]]),
        )
    return g.rewritten(swaps, head)


def stride_of(node: NodeProto) -> int:
    return int(attributes_of(node)["strides"][0])


def report_statistics(model: Model) -> Model:
    """Add the mean and the variance of every AdaIN layer, in order, as outputs."""
    g = Graph(model)
    there = {o.name for o in g.graph.output}
    for layer in adain_layers(model):
        for name in (layer.mean, layer.variance):
            if name not in there:
                g.graph.output.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    return g.model


@node_by_node
def squares_as_products(g: Graph, node: NodeProto) -> Sequence[NodeProto] | None:
    """Replace `Pow(x, 2)` by `x * x`, which ONNX Runtime computes ten times as fast."""
    if node.op_type != "Pow" or node.input[1] not in g.constants or (g.value(node.input[1]) != 2).any():
        return None
    return [in_place_of(node, "Mul", [node.input[0], node.input[0]])]


def snake_in_the_modulation(model: Model) -> Model:
    """Compute Snake without its multiplications: `y + sin²(αy)/α` is `(z - cos z + 1) / 2α` with `z = 2αy`.

    The factor 2α goes into scale and shift (see `adain.AdainLayers`), 1 / 2α into the weights of the
    convolution after it. The rewritten graph goes over a tensor five times instead of seven.
    """
    g = Graph(model)
    one = g.constant("snake_one", np.float32(1))
    swaps: Swaps = {}
    for y, alpha, conv in snakes(model):
        p = conv.name
        weight = g.value(conv.input[1]) / (2 * alpha.reshape(1, -1, 1))
        name = g.constant(f"{p}/weight_over_2_alpha", weight)
        swaps[conv.output[0]] = (
            helper.make_node("Cos", [y], [f"{p}/cos"], name=f"{p}/cos"),
            helper.make_node("Sub", [y, f"{p}/cos"], [f"{p}/less"], name=f"{p}/less"),
            helper.make_node("Add", [f"{p}/less", one], [f"{p}/snake"], name=f"{p}/snake"),
            copied(conv, [f"{p}/snake", name, *conv.input[2:]]),
        )
    return g.rewritten(swaps)


class Snake(NamedTuple):
    """One Snake activation: its input `y`, the convolution `conv` that reads it, and `alpha` of each
    channel."""

    y: str
    alpha: npt.NDArray[np.float32]
    conv: NodeProto


def snakes(model: Model) -> list[Snake]:
    """The Snake activations that stand between a modulation and a convolution."""
    g = Graph(model)
    found = []
    for conv in g.graph.node:
        if conv.op_type != "Conv" or conv.input[1] not in g.constants:
            continue
        for y, side in either_way(g.maker.get(conv.input[0]), "Add"):
            product = g.made_by(side, "Mul")
            inner = [g.maker[i] for i in product.input if i in g.maker] if product is not None else []
            if len(inner) != 1 or inner[0].op_type not in ("Mul", "Pow"):
                continue
            sine = g.made_by(inner[0].input[0], "Sin")
            if sine is not None and y in g.maker:
                turned = g.maker[sine.input[0]]
                alpha = next(g.value(i) for i in turned.input if i in g.constants)
                found.append(Snake(y, alpha.astype(np.float32).reshape(-1), conv))
    return found


@node_by_node
def plain_overlap_add(g: Graph, node: NodeProto) -> Sequence[NodeProto] | None:
    """Remove the ScatterND node from the overlap-add of the inverse STFT.

    The export was traced with a window of one frame. So this node divides only the first twenty samples by
    the squared window, and changes no other sample. A later node cuts off ten of the twenty, and the others
    are silence.
    """
    if node.op_type != "ScatterND":
        return None
    return [helper.make_node("Identity", [node.input[0]], list(node.output), name="overlap_add")]


GIVEN_STATISTICS: tuple[Pass, ...] = (
    fold_constants,
    modulate,
    snake_in_the_modulation,
    squares_as_products,
    plain_overlap_add,
    crop_before_the_second_half,
)
"""Passes after which the vocoder decodes windows with the statistics that it is given."""
