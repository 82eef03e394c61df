"""Rewrites that let layers run on 8-bit integers; `quantise` has the arithmetic.

Two forms of the same numbers. In operators that ONNX Runtime has on every machine a convolution is
written as a matrix multiplication, for ONNX Runtime's own integer convolutions either run on one thread
or squeeze their output into 8 bits. Where there are operators of our own, it is one of them, with the
modulation and Snake in front (`native/quant_conv.cpp`). A product of matrices finds the range of each row
while it runs (`native/quant_product.cpp`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, TensorProto, helper

from kokoro_lab.graphs import rewriting
from kokoro_lab.graphs.fast_fir import TILE
from kokoro_lab.graphs.native_passes import dilation_of, modulation_of, native_node, reach_of, with_native
from kokoro_lab.graphs.quantise import GROUP, WEIGHT_LEVELS, QuantisedLayer, QuantisedProduct, Range

MICROSOFT = "com.microsoft"


def quantisable(model: rewriting.Model) -> dict[str, str]:
    """The layers that can run on integers, and the tensors that they read. Constants must be folded."""
    g = rewriting.Graph(model)
    return {n.name: n.input[0] for n in g.graph.node if _convolves(g, n) or _multiplies(g, n)}


def convolutions_of(model: rewriting.Model) -> dict[str, tuple[npt.NDArray[np.float32], int]]:
    """Weights (channels out, channels in, taps) and dilation of the convolutions that can run on integers."""
    g = rewriting.Graph(model)
    return {n.name: (g.value(n.input[1]), dilation_of(n)) for n in g.graph.node if _convolves(g, n)}


def _convolves(g: rewriting.Graph, conv: NodeProto) -> bool:
    if conv.op_type != "Conv" or conv.input[1] not in g.constants:
        return False
    shape = tuple(g.constants[conv.input[1]].dims)
    if len(shape) != 3 or shape[0] % TILE or not shape[2] % 2:
        return False
    lists = {a.name: tuple(a.ints) for a in conv.attribute if a.ints}
    group = next((a.i for a in conv.attribute if a.name == "group"), 1)
    reach = reach_of(g, conv)
    return group == 1 and lists.get("strides", (1,)) == (1,) and lists.get("pads", (0, 0)) == (reach, reach)


def quantise_layers(
    model: rewriting.Model,
    ranges: Mapping[str, Range],
    *,
    native: bool,
    keep: Iterable[str] = (),
    adjusted: Mapping[str, QuantisedLayer] | None = None,
) -> rewriting.Model:
    """Put integers in the place of every layer that can run on them and is not kept.

    Parameters
    ----------
    ranges : mapping of str to Range
        By the layers' names.
    native : bool
        Whether as operators of ours, or in those that ONNX Runtime has on every machine.
    keep : iterable of str
        Layers that stay in float, as patterns of `fnmatch`.
    adjusted : mapping of str to QuantisedLayer, optional
        Convolutions whose integers were found otherwise than by rounding each weight.

    Raises
    ------
    ValueError
        A layer has no range, or one that is of no use: it was left out of the calibration.
    """
    g = rewriting.Graph(model)
    patterns = tuple(keep)

    def kept(node: NodeProto) -> bool:
        return any(fnmatchcase(node.name, pattern) for pattern in patterns)

    convolutions = [n for n in g.graph.node if _convolves(g, n) and not kept(n)]
    products = [n for n in g.graph.node if _multiplies(g, n) and not kept(n)]
    lacking = sorted({n.name for n in (*convolutions, *products)} - ranges.keys())
    if lacking:
        raise ValueError(f"no range was calibrated for {', '.join(lacking)}")
    swaps: dict[str, Sequence[NodeProto]] = {}
    found = adjusted or {}
    for node in convolutions:
        quantised = found[node.name] if node.name in found else _quantised(g, node, ranges[node.name])
        form = _native_conv if native else _stock_conv
        swaps[node.output[0]] = form(g, node, quantised)
    shared: dict[str, list[Range]] = {}
    for node in products:
        shared.setdefault(node.input[1], []).append(ranges[node.name])
    made = {
        weight: QuantisedProduct.of(g.value(weight), Range.widest(several))
        for weight, several in shared.items()
    }
    for node in products:
        product = _native_product if native else _stock_product
        swaps[node.output[0]] = product(g, node, made[node.input[1]])
    if native:
        return with_native(g, swaps)
    if convolutions:
        g.model.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
    g.replace(swaps)
    return g.model


def _multiplies(g: rewriting.Graph, node: NodeProto) -> bool:
    if node.op_type != "MatMul" or node.input[1] not in g.constants:
        return False
    shape = tuple(g.constants[node.input[1]].dims)
    return len(shape) == 2 and not shape[0] % GROUP and not shape[1] % TILE


def _quantised(g: rewriting.Graph, conv: NodeProto, inputs: Range) -> QuantisedLayer:
    try:
        return QuantisedLayer.of(g.value(conv.input[1]), inputs)
    except ValueError as error:
        raise ValueError(f"{conv.name}: {error}") from error


def _bias(g: rewriting.Graph, conv: NodeProto, quantised: QuantisedLayer) -> npt.NDArray[np.float32]:
    bias = g.value(conv.input[2]) if len(conv.input) > 2 else np.zeros(len(quantised.scale), np.float32)
    return bias if quantised.shift is None else bias + quantised.shift


def _native_conv(g: rewriting.Graph, conv: NodeProto, quantised: QuantisedLayer) -> list[NodeProto]:
    out, channels, taps = quantised.weights.shape
    constants: dict[str, npt.NDArray[Any]] = {
        "plan": np.array([out, channels + -channels % GROUP, taps, dilation_of(conv)], np.int64),
        "weights": quantised.packed(),
        "sums": np.stack([quantised.offset, quantised.weights.sum((1, 2), np.int32)]),
        "steps": np.stack([1 / quantised.step, quantised.zero.astype(np.float32)]),
        "outputs": np.stack([quantised.scale, _bias(g, conv, quantised)]),
    }
    names = [g.constant(f"{conv.name}/{name}", value) for name, value in constants.items()]
    modulation, reach = modulation_of(g, conv), reach_of(g, conv)
    if modulation is None:
        return [native_node("QuantConv", [conv.input[0], *names], conv, reach=reach)]
    inputs = [modulation.input[0], *names, *modulation.input[1:3]]
    return [native_node("QuantSnakeConv", inputs, conv, reach=reach)]


def _stock_conv(g: rewriting.Graph, conv: NodeProto, quantised: QuantisedLayer) -> list[NodeProto]:
    """Pad, quantise, slice out the taps, join them as columns, multiply the matrices, turn back."""
    name, dilation = conv.name, dilation_of(conv)
    out, channels, taps = quantised.weights.shape
    reach = taps // 2 * dilation

    def constant(suffix: str, value: npt.ArrayLike) -> str:
        return g.constant(f"{name}/{suffix}", value)

    def integers(*values: int) -> str:
        return g.constant("quantise_" + "_".join(map(str, values)), np.array(values, np.int64))

    source, nodes = conv.input[0], []
    if reach:
        source = f"{name}/padded"
        nodes.append(helper.make_node("Pad", [conv.input[0], integers(0, 0, reach, 0, 0, reach)], [source]))
    to_bytes = [source, constant("step", quantised.step), constant("zero", quantised.zero)]
    nodes += [
        helper.make_node("QuantizeLinear", to_bytes, [f"{name}/bytes"], axis=1),
        helper.make_node("Transpose", [f"{name}/bytes"], [f"{name}/rows"], perm=[0, 2, 1]),
    ]
    columns = f"{name}/rows"
    if taps > 1:
        parts = [f"{name}/tap{tap}" for tap in range(taps)]
        for tap, part in enumerate(parts):
            # To the end of the sequence, less what the later taps read
            stop = (tap - taps + 1) * dilation or np.iinfo(np.int64).max
            slicing = [columns, integers(tap * dilation), integers(stop), integers(1)]
            nodes.append(helper.make_node("Slice", slicing, [part]))
        columns = f"{name}/columns"
        nodes.append(helper.make_node("Concat", parts, [columns], axis=2))
    # What the zero points add up to is taken off in the bias
    bias = _bias(g, conv, quantised) - quantised.scale.astype(np.float64) * quantised.offset
    weights = quantised.weights.transpose(2, 1, 0).reshape(taps * channels, out)
    multiplied = [
        *(columns, constant("weights", weights), g.constant("quantise_one", np.float32(1))),
        *(constant("scale", quantised.scale), "", "", constant("bias", bias.astype(np.float32))),
    ]
    return [
        *nodes,
        helper.make_node("MatMulIntegerToFloat", multiplied, [f"{name}/product"], domain=MICROSOFT),
        helper.make_node("Transpose", [f"{name}/product"], [conv.output[0]], name=name, perm=[0, 2, 1]),
    ]


def _native_product(g: rewriting.Graph, node: NodeProto, quantised: QuantisedProduct) -> list[NodeProto]:
    weight = node.input[1]  # constants are named after it: layers that share it share them
    out, inputs = quantised.weights.shape
    tiles = quantised.weights.reshape(out // TILE, TILE, inputs // GROUP, GROUP).transpose(0, 2, 1, 3)
    constants: dict[str, npt.NDArray[Any]] = {
        "tiles": np.ascontiguousarray(tiles),
        "sums": quantised.weights.sum(1, np.int32),
        "scale": quantised.scale,
        "profile": 1 / quantised.profile,
    }
    names = [g.constant(f"{weight}/{name}", value) for name, value in constants.items()]
    return [native_node("QuantProduct", [node.input[0], *names], node)]


def _stock_product(g: rewriting.Graph, node: NodeProto, quantised: QuantisedProduct) -> list[NodeProto]:
    name, weight = node.name, node.input[1]
    most = g.constant("quantise_most", np.float32(WEIGHT_LEVELS))
    least = g.constant("quantise_least", np.float32(np.finfo(np.float32).tiny))
    middle = g.constant("quantise_middle", np.float32(128))
    zero = g.constant("quantise_zero", np.uint8(128))
    last = g.constant("quantise_last", np.array([-1], np.int64))
    matrix = g.constant(f"{weight}/levels", np.ascontiguousarray(quantised.weights.T))
    factors = g.constant(f"{weight}/scale", quantised.scale)
    profile = g.constant(f"{weight}/profile", 1 / quantised.profile)

    def made(operator: str, inputs: Sequence[str], output: str, **attributes: Any) -> NodeProto:
        found: NodeProto = helper.make_node(operator, inputs, [f"{name}/{output}"], **attributes)
        return found

    return [
        made("Mul", [node.input[0], profile], "even"),
        made("Abs", [f"{name}/even"], "magnitude"),
        made("ReduceMax", [f"{name}/magnitude", last], "bare_largest", keepdims=1),
        made("Max", [f"{name}/bare_largest", least], "largest"),
        made("Div", [most, f"{name}/largest"], "inverse"),
        made("Mul", [f"{name}/even", f"{name}/inverse"], "scaled"),
        made("Round", [f"{name}/scaled"], "rounded"),
        made("Add", [f"{name}/rounded", middle], "shifted"),
        made("Cast", [f"{name}/shifted"], "bytes", to=TensorProto.UINT8),
        made("MatMulInteger", [f"{name}/bytes", matrix, zero], "integers"),
        made("Cast", [f"{name}/integers"], "sums", to=TensorProto.FLOAT),
        made("Div", [f"{name}/largest", most], "step"),
        made("Mul", [f"{name}/sums", f"{name}/step"], "stepped"),
        helper.make_node("Mul", [f"{name}/stepped", factors], list(node.output), name=name),
    ]
