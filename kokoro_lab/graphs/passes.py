"""Rewrites of the cut graphs. Each pass is small, named and idempotent, and keeps the numbers.

A pass takes a model and returns a new one. What a pass promises is tested against the untouched
graph: everything up to rounding, on real utterances.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import onnx
from onnx import NodeProto, helper
from onnx.reference import ReferenceEvaluator

from kokoro_lab.graphs.rewriting import Graph, Model

SCALE, SHIFT = "scale", "shift"
"""Inputs of the rewritten vocoder: what its 44 AdaIN layers multiply by and add, one value a channel."""
INNER = "inner"
"""Input of the rewritten vocoder, int64 (4,): first and last trunk frame, the last ones exclusive, that its
second half works on, and that are asked for."""
ASKED, CROP_START = "asked", "crop_start"
"""Tensors of the rewritten vocoder: the frames that are asked for, and the first one of the second half."""

KNOWN = "known"
"""Input of the rewritten vocoder, bool (): whether scale and shift hold the statistics already; if not, they
are those of a tensor with mean 0 and variance 1, and each layer looks at its own."""

EPSILON = 1e-5
"""Added to each variance, as in the model's InstanceNorm."""


class Adain(NamedTuple):
    """One AdaIN layer: `normalised(x) * (1 + gamma) + beta`; gamma and beta, one behind the other, from the
    style."""

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
"""Input of the prosody stage: what durations are divided by."""


def speed_by_token(model: Model) -> Model:
    """Let there be a speed for each input id beside one for all: durations are divided by it in any case."""
    g = Graph(model)
    (speed,) = (i for i in g.graph.input if i.name == SPEED)
    speed.type.tensor_type.shape.dim[0].dim_param = "speeds"
    return g.model


def fold_constants(model: Model) -> Model:
    """Work out every node that reads only constants: above all the convolutions' weight normalisation."""
    g = Graph(model)
    rest = []
    for node in g.graph.node:
        if node.input and all(i in g.constants or not i for i in node.input):
            feed = {i: g.value(i) for i in node.input if i}
            for name, value in zip(node.output, ReferenceEvaluator(node).run(None, feed), strict=True):
                g.constant(name, value)
        else:
            rest.append(node)
    g.keep(rest)
    return g.model


def adain_layers(model: Model) -> list[Adain]:
    """The AdaIN layers of a graph in its own order."""
    g = Graph(model)
    found = []
    for node in g.graph.node:
        if node.op_type != "Add":
            continue
        for normal_side, beta in (tuple(node.input), tuple(node.input)[::-1]):
            normal = _normalised(g, normal_side)
            if normal is not None and _above(g, beta, "Gemm") is not None:
                break
        else:
            continue
        x, mean = g.maker[normal.input[0]].input
        deviation = g.maker[normal.input[1]]
        variance = next(i for i in g.maker[deviation.input[0]].input if i in g.maker)
        gemm = _above(g, beta, "Gemm")
        assert gemm is not None
        weight = g.value(gemm.input[1]).astype(np.float32)
        if not next((a.i for a in gemm.attribute if a.name == "transB"), 0):
            weight = weight.T
        bias = g.value(gemm.input[2]).astype(np.float32)
        made = gemm.output[0]
        found.append(Adain(node.name, x, mean, variance, made, node.output[0], len(bias) // 2, weight, bias))
    return found


def _normalised(g: Graph, name: str) -> NodeProto | None:
    """The division by a deviation below a product, if `name` is such a product."""
    product = g.maker.get(name)
    if product is None or product.op_type != "Mul":
        return None
    for side in product.input:
        division = g.maker.get(side)
        if (
            division is not None
            and division.op_type == "Div"
            and g.maker[division.input[1]].op_type == "Sqrt"
        ):
            found: NodeProto = division
            return found
    return None


def _above(g: Graph, name: str, op: str) -> NodeProto | None:
    node = g.maker.get(name)
    while node is not None and node.op_type != op:
        node = g.maker.get(node.input[0]) if node.op_type in ("Slice", "Unsqueeze", "Split") else None
    return node


def modulate(model: Model) -> Model:
    """AdaIN becomes `x * scale + shift`: the statistics and the style come in as two vectors.

    Needs no look at the whole utterance any more, and takes one pass over a tensor instead of seven: a
    batch normalisation whose own mean is 0 and variance 1, for ONNX Runtime has no multiply-and-add.
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
        total = sum(a.channels for a in layers)
        g.graph.input.append(helper.make_tensor_value_info(source, onnx.TensorProto.FLOAT, [total]))
    swaps: dict[str, Sequence[NodeProto]] = {}
    for k, layer in enumerate(layers):
        zero = g.constant(f"zeros_{layer.channels}", np.zeros(layer.channels, np.float32))
        one = g.constant(f"ones_{layer.channels}", np.ones(layer.channels, np.float32))
        inputs = [layer.x, f"{SCALE}_{k}", f"{SHIFT}_{k}", zero, one]
        swaps[layer.output] = (
            helper.make_node("BatchNormalization", inputs, [layer.output], name=layer.name, epsilon=0.0),
        )
    g.replace(swaps, head)
    return g.model


def own_statistics_unless_known(model: Model) -> Model:
    """One graph for both: where the statistics are not `known`, each layer takes those of its own input.

    AdaIN is `x * s + b` with `s = scale / deviation` and `b = shift - mean * s`, if scale and shift are
    made from a mean of 0 and a variance of 1.
    """
    g = Graph(model)
    if KNOWN in {i.name for i in g.graph.input}:
        return model
    time = g.constant("own_axes", np.array([0, 2], np.int64))
    epsilon = g.constant("own_epsilon", np.float32(EPSILON))
    flat = g.constant("own_flat", np.array([-1], np.int64))
    swaps: dict[str, Sequence[NodeProto]] = {}
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
            _with_inputs(node, [x, *both, *rest]),
        )
    g.graph.input.append(helper.make_tensor_value_info(KNOWN, onnx.TensorProto.BOOL, []))
    g.replace(swaps)
    return g.model


def _branch(nodes: Sequence[NodeProto], outputs: Sequence[str]) -> onnx.GraphProto:
    values = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs]
    graph: onnx.GraphProto = helper.make_graph(nodes, "branch", [], values)
    return graph


def crop_before_the_second_half(model: Model) -> Model:
    """Behind the second upsampling, decode only the trunk frames `inner` of the window.

    The convolutions before it see up to eight frames around each, those behind it less than two, and
    they are two thirds of the work: context that only the first half needs is dropped between them.
    """
    g = Graph(model)
    up = [n for n in g.graph.node if n.op_type == "ConvTranspose" and "/ups." in n.name]
    source = next((n for n in g.graph.node if n.name.endswith("noise_convs.1/Conv")), None)
    if len(up) != 2 or source is None or INNER in {i.name for i in g.graph.input}:
        return model
    coarse, fine = (stride_of(n) for n in up)
    g.graph.input.append(helper.make_tensor_value_info(INNER, onnx.TensorProto.INT64, [4]))
    parts = g.constant("crop_parts", np.array([1, 1, 2], np.int64))
    time = g.constant("crop_axis", np.array([2], np.int64))
    rate = g.constant("crop_coarse", np.array([coarse], np.int64))
    # The spectrogram is padded by one column more than there is signal
    fine_rate = g.constant("crop_fine", np.array([coarse * fine], np.int64))
    column = g.constant("crop_column", np.array([1], np.int64))
    made = [
        helper.make_node("Split", [INNER, parts], [CROP_START, "crop_stop", ASKED], name="crop/split"),
        helper.make_node("Mul", [CROP_START, rate], ["crop_start_coarse"], name="crop/start"),
        helper.make_node("Mul", ["crop_stop", rate], ["crop_stop_coarse"], name="crop/stop"),
        helper.make_node("Mul", [CROP_START, fine_rate], ["crop_start_fine"], name="crop/start_fine"),
        helper.make_node("Mul", ["crop_stop", fine_rate], ["crop_stop_bare"], name="crop/stop_bare"),
        helper.make_node("Add", ["crop_stop_bare", column], ["crop_stop_fine"], name="crop/stop_fine"),
    ]
    cropped = {
        up[1].output[0]: ("crop/trunk", up[1], "crop_start_coarse", "crop_stop_coarse"),
        source.output[0]: ("crop/source", source, "crop_start_fine", "crop_stop_fine"),
    }
    swaps: dict[str, Sequence[NodeProto]] = {}
    for output, (name, node, start, stop) in cropped.items():
        swaps[output] = (
            helper.make_node("Slice", [node.input[0], start, stop, time], [name], name=name),
            _with_inputs(node, [name, *node.input[1:]]),
        )
    g.replace(swaps, made)
    return g.model


def stride_of(node: NodeProto) -> int:
    return int(next(a.ints[0] for a in node.attribute if a.name == "strides"))


def report_statistics(model: Model) -> Model:
    """Give out the mean and the variance of every AdaIN layer, in their order, beside the output."""
    g = Graph(model)
    there = {o.name for o in g.graph.output}
    for layer in adain_layers(model):
        for name in (layer.mean, layer.variance):
            if name not in there:
                g.graph.output.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    return g.model


def squares_as_products(model: Model) -> Model:
    """`Pow(x, 2)` becomes `x * x`, which ONNX Runtime works out ten times as fast."""
    g = Graph(model)
    swaps: dict[str, Sequence[NodeProto]] = {
        n.output[0]: (helper.make_node("Mul", [n.input[0], n.input[0]], list(n.output), name=n.name),)
        for n in g.graph.node
        if n.op_type == "Pow" and n.input[1] in g.constants and (g.value(n.input[1]) == 2).all()
    }
    g.replace(swaps)
    return g.model


def snake_in_the_modulation(model: Model) -> Model:
    """Snake without its multiplications: `y + sin²(αy)/α` is `(z - cos z + 1) / 2α` with `z = 2αy`.

    The factor 2α goes into scale and shift (see `snake_factors`), 1 / 2α into the weights of the
    convolution behind. Five passes over a tensor are left of seven.
    """
    g = Graph(model)
    swaps: dict[str, Sequence[NodeProto]] = {}
    for snake in snakes(model):
        conv = snake.conv
        weight = g.value(conv.input[1])
        name = g.constant(f"{conv.name}/weight_over_2_alpha", weight / (2 * snake.alpha.reshape(1, -1, 1)))
        p = conv.name
        one = g.constant("snake_one", np.float32(1))
        swaps[conv.output[0]] = (
            helper.make_node("Cos", [snake.y], [f"{p}/cos"], name=f"{p}/cos"),
            helper.make_node("Sub", [snake.y, f"{p}/cos"], [f"{p}/less"], name=f"{p}/less"),
            helper.make_node("Add", [f"{p}/less", one], [f"{p}/snake"], name=f"{p}/snake"),
            _with_inputs(conv, [f"{p}/snake", name, *conv.input[2:]]),
        )
    g.replace(swaps)
    return g.model


class Snake(NamedTuple):
    """One Snake: `y` in, `conv` behind it, `alpha` a channel."""

    y: str
    alpha: npt.NDArray[np.float32]
    conv: NodeProto


def snakes(model: Model) -> list[Snake]:
    """The Snake activations that stand between a modulation and a convolution."""
    g = Graph(model)
    found = []
    for conv in g.graph.node:
        if conv.op_type != "Conv" or conv.input[1] not in g.constants or conv.input[0] not in g.maker:
            continue
        add = g.maker[conv.input[0]]
        if add.op_type != "Add" or any(i not in g.maker for i in add.input):
            continue
        for y, side in (tuple(add.input), tuple(add.input)[::-1]):
            product = g.maker[side]
            if product.op_type != "Mul" or not any(i in g.constants for i in product.input):
                continue
            square = next((g.maker[i] for i in product.input if i in g.maker), None)
            if square is None or square.op_type not in ("Mul", "Pow") or g.maker.get(square.input[0]) is None:
                continue
            sine = g.maker[square.input[0]]
            if sine.op_type != "Sin":
                continue
            turned = g.maker[sine.input[0]]
            alpha = next(g.value(i) for i in turned.input if i in g.constants)
            found.append(Snake(y, alpha.astype(np.float32).reshape(-1), conv))
    return found


def _with_inputs(node: NodeProto, inputs: Sequence[str]) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(node)
    del copy.input[:]
    copy.input.extend(inputs)
    return copy


def plain_overlap_add(model: Model) -> Model:
    """The inverse STFT's overlap-add without its scatter by a computed index.

    The export was traced with a window of one frame, so the scatter divides the first twenty samples
    by a squared window and leaves all others; ten of the twenty are cut away, the others are silence.
    """
    g = Graph(model)
    scatter = next((n for n in g.graph.node if n.op_type == "ScatterND"), None)
    if scatter is None:
        return model
    g.replace(
        {
            scatter.output[0]: (
                helper.make_node("Identity", [scatter.input[0]], list(scatter.output), name="overlap_add"),
            )
        }
    )
    return g.model
