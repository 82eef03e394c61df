"""Rewrites that let layers run on 8-bit integers; `quantise` has the arithmetic.

Two forms of the same numbers. In operators that ONNX Runtime has on every machine a convolution is
written as a matrix multiplication, for ONNX Runtime's own integer convolutions either run on one thread
or squeeze their output into 8 bits. Where there are operators of our own, it is one of them, with the
modulation and Snake in front (`native/quant_conv.cpp`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, helper

from kokoro_lab.model import passes
from kokoro_lab.model.fast_fir import TILE
from kokoro_lab.model.native_passes import modulation_of, native_node, with_native
from kokoro_lab.model.quantise import GROUP, Quantised, Range

MICROSOFT = "com.microsoft"


class Layer(NamedTuple):
    """A layer that can run on integers.

    `reads` is the tensor that enters it, channels first or last. Layers with the same `weight` share
    their ranges, for the steps of the input are folded into it.
    """

    reads: str
    weight: str
    channels_first: bool


def quantisable(model: passes.Model) -> dict[str, Layer]:
    """The layers of a graph that can run on integers, by name. Its constants must be folded."""
    g = passes.Graph(model)
    found = {}
    for node in g.graph.node:
        if node.op_type == "Conv" and _fits(g, node):
            found[node.name] = Layer(node.input[0], node.input[1], channels_first=True)
        elif node.op_type == "MatMul" and node.input[1] in g.constants:
            found[node.name] = Layer(node.input[0], node.input[1], channels_first=False)
    return found


def _fits(g: passes.Graph, conv: NodeProto) -> bool:
    if conv.input[1] not in g.constants:
        return False
    shape = tuple(g.constants[conv.input[1]].dims)
    if len(shape) != 3 or shape[0] % TILE or not shape[2] % 2:
        return False
    lists = {a.name: tuple(a.ints) for a in conv.attribute if a.ints}
    group = next((a.i for a in conv.attribute if a.name == "group"), 1)
    reach = shape[2] // 2 * _dilation(conv)
    return group == 1 and lists.get("strides", (1,)) == (1,) and lists.get("pads", (0, 0)) == (reach, reach)


def _dilation(conv: NodeProto) -> int:
    return next((int(a.ints[0]) for a in conv.attribute if a.name == "dilations"), 1)


def quantise_layers(
    model: passes.Model, ranges: Mapping[str, Range], *, native: bool, keep: Iterable[str] = ()
) -> passes.Model:
    """Put integers in the place of every layer that can run on them and is not kept.

    Parameters
    ----------
    ranges : mapping of str to Range
        By the layers' names.
    native : bool
        Whether as operators of ours where there are some.
    keep : iterable of str
        Layers that stay in float, as patterns of `fnmatch`.

    Raises
    ------
    ValueError
        A layer has no range, or one that is of no use: it was left out of the calibration.
    """
    g = passes.Graph(model)
    patterns = tuple(keep)
    layers = {
        name: layer
        for name, layer in quantisable(model).items()
        if not any(fnmatchcase(name, pattern) for pattern in patterns)
    }
    lacking = sorted(layers.keys() - ranges.keys())
    if lacking:
        raise ValueError(f"no range was calibrated for {', '.join(lacking)}")
    shared: dict[str, list[Range]] = {}
    for name, layer in layers.items():
        shared.setdefault(layer.weight, []).append(ranges[name])
    made = {weight: _quantised(g, weight, Range.widest(several)) for weight, several in shared.items()}
    swaps: dict[str, Sequence[NodeProto]] = {}
    for node in g.graph.node:
        if node.name not in layers:
            continue
        quantised = made[layers[node.name].weight]
        if node.op_type == "MatMul":
            swaps[node.output[0]] = _product(g, node, quantised)
        elif native:
            swaps[node.output[0]] = (_native_conv(g, node, quantised),)
        else:
            swaps[node.output[0]] = _stock_conv(g, node, quantised)
    if swaps and MICROSOFT not in {opset.domain for opset in g.model.opset_import}:
        g.model.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
    if native:
        return with_native(g, swaps)
    g.replace(swaps)
    return g.model


def _quantised(g: passes.Graph, weight: str, inputs: Range) -> Quantised:
    values = g.value(weight)
    try:
        return Quantised.of(values if values.ndim == 3 else values.T[:, :, None], inputs)
    except ValueError as error:
        raise ValueError(f"{weight}: {error}") from error


def _bias(g: passes.Graph, conv: NodeProto, quantised: Quantised) -> npt.NDArray[np.float32]:
    if len(conv.input) > 2:
        return g.value(conv.input[2])
    return np.zeros(len(quantised.scale), np.float32)


def _native_conv(g: passes.Graph, conv: NodeProto, quantised: Quantised) -> NodeProto:
    out, channels, taps = quantised.weights.shape
    constants: dict[str, npt.NDArray[Any]] = {
        "plan": np.array([out, channels + -channels % GROUP, taps, _dilation(conv)], np.int64),
        "weights": quantised.packed(),
        "sums": np.stack([quantised.offset, quantised.weights.sum((1, 2), np.int32)]),
        "steps": np.stack([1 / quantised.step, quantised.zero.astype(np.float32)]),
        "outputs": np.stack([quantised.scale, _bias(g, conv, quantised)]),
    }
    names = [g.constant(f"{conv.name}/{name}", value) for name, value in constants.items()]
    modulation = modulation_of(g, conv)
    if modulation is None:
        return native_node("QuantConv", [conv.input[0], *names], conv)
    return native_node("QuantSnakeConv", [modulation.input[0], *names, *modulation.input[1:3]], conv)


def _stock_conv(g: passes.Graph, conv: NodeProto, quantised: Quantised) -> list[NodeProto]:
    """Pad, quantise, slice out the taps, join them as columns, multiply the matrices, turn back."""
    name, taps, dilation = conv.name, quantised.weights.shape[2], _dilation(conv)
    reach = taps // 2 * dilation

    def integers(*values: int) -> str:
        return g.constant("quantise_" + "_".join(map(str, values)), np.array(values, np.int64))

    source, nodes = conv.input[0], []
    if reach:
        source = f"{name}/padded"
        nodes.append(helper.make_node("Pad", [conv.input[0], integers(0, 0, reach, 0, 0, reach)], [source]))
    nodes += [
        _to_bytes(g, conv, source, quantised, axis=1),
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
    return [
        *nodes,
        _multiplied(g, conv, columns, quantised, f"{name}/product", _bias(g, conv, quantised)),
        helper.make_node("Transpose", [f"{name}/product"], [conv.output[0]], name=name, perm=[0, 2, 1]),
    ]


def _product(g: passes.Graph, node: NodeProto, quantised: Quantised) -> list[NodeProto]:
    return [
        _to_bytes(g, node, node.input[0], quantised, axis=2),
        _multiplied(g, node, f"{node.name}/bytes", quantised, node.output[0], _bias(g, node, quantised)),
    ]


def _to_bytes(
    g: passes.Graph, layer: NodeProto, source: str, quantised: Quantised, *, axis: int
) -> NodeProto:
    weight = layer.input[1]  # constants are named after it, so that layers which share it share them
    inputs = [
        source,
        g.constant(f"{weight}/step", quantised.step),
        g.constant(f"{weight}/zero", quantised.zero),
    ]
    node: NodeProto = helper.make_node("QuantizeLinear", inputs, [f"{layer.name}/bytes"], axis=axis)
    return node


def _multiplied(
    g: passes.Graph,
    layer: NodeProto,
    columns: str,
    quantised: Quantised,
    output: str,
    bias: npt.NDArray[np.float32],
) -> NodeProto:
    """Bytes times weights, as floats: what the zero points add up to is taken off in the bias."""
    weight = layer.input[1]
    out, channels, taps = quantised.weights.shape
    levels = quantised.weights.transpose(2, 1, 0).reshape(taps * channels, out)
    less = quantised.scale.astype(np.float64) * quantised.offset
    inputs = [
        *(columns, g.constant(f"{weight}/levels", levels), g.constant("quantise_one", np.float32(1))),
        *(g.constant(f"{weight}/scale", quantised.scale), "", ""),
        g.constant(f"{weight}/bias", (bias - less).astype(np.float32)),
    ]
    node: NodeProto = helper.make_node("MatMulIntegerToFloat", inputs, [output], domain=MICROSOFT)
    return node
