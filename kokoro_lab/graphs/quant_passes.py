"""Passes after which layers compute in 8-bit integers; `quantise` has the arithmetic.

A layer is written in one of two forms, which give equal results. With only ONNX Runtime's operators, a
convolution is written as a matrix multiplication, because ONNX Runtime's integer convolutions either run on
one thread or reduce their output to 8 bits. In the other form, one operator of ours replaces a convolution
together with the modulation and Snake before it (`native/quant_conv.cpp`), and another one replaces a matrix
product (`native/quant_product.cpp`). In both forms, a matrix product finds the range of each row of its input
while it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, TensorProto, helper, numpy_helper

from kokoro_lab.graphs.fast_fir import TILE
from kokoro_lab.graphs.native_passes import (
    bias_of,
    dilation_of,
    keeps_length,
    modulation_of,
    native_node,
    reach_of,
)
from kokoro_lab.graphs.quantise import (
    GROUP,
    WEIGHT_LEVELS,
    Calibration,
    QuantisedLayer,
    QuantisedProduct,
    Range,
)
from kokoro_lab.graphs.rewriting import END, Graph, Model, Swaps, in_place_of, sliced

MICROSOFT = "com.microsoft"


def quantisable(model: Model) -> dict[str, str]:
    """Layer → the tensor that it reads, for each layer that can run on integers. The constants of `model`
    must be folded."""
    g = Graph(model)
    return {n.name: n.input[0] for n in g.graph.node if keeps_length(g, n) or _multiplies(g, n)}


def convolutions_of(model: Model) -> dict[str, tuple[npt.NDArray[np.float32], int]]:
    """Weights (channels out, channels in, taps) and dilation of the convolutions that can run on integers."""
    g = Graph(model)
    return {n.name: (g.value(n.input[1]), dilation_of(n)) for n in g.graph.node if keeps_length(g, n)}


def quantise_layers(
    model: Model,
    ranges: Mapping[str, Range] | None = None,
    *,
    native: bool,
    keep: Iterable[str] = (),
    adjusted: Mapping[str, QuantisedLayer] | None = None,
) -> Model:
    """Quantise every layer that can run on integers and is not in `keep`.

    Parameters
    ----------
    ranges : mapping of str to Range, optional
        The range of each layer's inputs, by the layer's name; by default, the ranges that come with the
        package.
    native : bool
        Whether the layers become operators of ours, or operators that ONNX Runtime has on every machine.
    keep : iterable of str
        Layers that stay in float: patterns for their names, as `fnmatch` reads them.
    adjusted : mapping of str to QuantisedLayer, optional
        Convolutions whose integers were found otherwise than by rounding each weight.

    Raises
    ------
    ValueError
        A layer was left out of the calibration, so it has no range; or its range is not finite, or is for
        another number of channels.
    """
    g = Graph(model)
    patterns, found = tuple(keep), adjusted or {}
    known = Calibration.load() if ranges is None else ranges
    free = [n for n in g.graph.node if not any(fnmatchcase(n.name, pattern) for pattern in patterns)]
    convolutions = [n for n in free if keeps_length(g, n)]
    products = [n for n in free if _multiplies(g, n)]
    lacking = sorted({n.name for n in (*convolutions, *products)} - known.keys())
    if lacking:
        raise ValueError(f"no range was calibrated for {', '.join(lacking)}")
    swaps: Swaps = {}
    for node in convolutions:
        layer = found[node.name] if node.name in found else _quantised(g, node, known[node.name])
        swaps[node.output[0]] = (_native_conv if native else _stock_conv)(g, node, layer)
    shared: dict[str, list[Range]] = {}
    for node in products:
        shared.setdefault(node.input[1], []).append(known[node.name])
    matrices = {
        weight: QuantisedProduct.of(g.value(weight), Range.widest(several))
        for weight, several in shared.items()
    }
    for node in products:
        matrix = matrices[node.input[1]]
        swaps[node.output[0]] = (_native_product if native else _stock_product)(g, node, matrix)
    return g.rewritten(swaps)


def _multiplies(g: Graph, node: NodeProto) -> bool:
    lengths = g.lengths(node.input[1]) if node.op_type == "MatMul" else ()
    return len(lengths) == 2 and not lengths[0] % GROUP and not lengths[1] % TILE


def _quantised(g: Graph, conv: NodeProto, inputs: Range) -> QuantisedLayer:
    try:
        return QuantisedLayer.of(g.value(conv.input[1]), inputs)
    except ValueError as error:
        raise ValueError(f"{conv.name}: {error}") from error


def _shifted_bias(g: Graph, conv: NodeProto, quantised: QuantisedLayer) -> npt.NDArray[np.float32]:
    bias = bias_of(g, conv)
    return bias if quantised.shift is None else bias + quantised.shift


def _native_conv(g: Graph, conv: NodeProto, quantised: QuantisedLayer) -> list[NodeProto]:
    out, channels, taps = quantised.weights.shape
    constants: dict[str, npt.NDArray[Any]] = {
        "plan": np.array([out, channels + -channels % GROUP, taps, dilation_of(conv)], np.int64),
        "weights": quantised.packed(),
        "sums": np.stack([quantised.offset, quantised.weights.sum((1, 2), np.int32)]),
        "steps": np.stack([1 / quantised.step, quantised.zero.astype(np.float32)]),
        "outputs": np.stack([quantised.scale, _shifted_bias(g, conv, quantised)]),
    }
    names = [g.constant(f"{conv.name}/{name}", value) for name, value in constants.items()]
    modulation, reach = modulation_of(g, conv), reach_of(g, conv)
    if modulation is None:
        return [native_node("QuantConv", [conv.input[0], *names], conv, reach=reach)]
    inputs = [modulation.input[0], *names, *modulation.input[1:3]]
    return [native_node("QuantSnakeConv", inputs, conv, reach=reach)]


def _stock_conv(g: Graph, conv: NodeProto, quantised: QuantisedLayer) -> list[NodeProto]:
    """Pad and quantise the input, transpose it, take one shifted slice for each tap, join the slices as
    columns, multiply by the weights, and transpose back."""
    name, dilation = conv.name, dilation_of(conv)
    out, channels, taps = quantised.weights.shape
    reach = taps // 2 * dilation

    def constant(suffix: str, value: npt.ArrayLike) -> str:
        return g.constant(f"{name}/{suffix}", value)

    source, nodes = conv.input[0], []
    if reach:
        source = f"{name}/padded"
        nodes.append(helper.make_node("Pad", [conv.input[0], g.integers(0, 0, reach, 0, 0, reach)], [source]))
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
            stop = (tap - taps + 1) * dilation or END
            nodes.append(sliced(g, columns, part, tap * dilation, stop, axis=1))
        columns = f"{name}/columns"
        nodes.append(helper.make_node("Concat", parts, [columns], axis=2))
    # The sum of the zero points is subtracted in the bias
    bias = _shifted_bias(g, conv, quantised) - quantised.scale.astype(np.float64) * quantised.offset
    weights = _unsigned(quantised.weights.transpose(2, 1, 0).reshape(taps * channels, out))
    zero = g.constant("quantise_zero", np.uint8(128))
    multiplied = [
        *(columns, constant("weights", weights), g.constant("quantise_one", np.float32(1))),
        *(constant("scale", quantised.scale), "", zero, constant("bias", bias.astype(np.float32))),
    ]
    return [
        *nodes,
        helper.make_node("MatMulIntegerToFloat", multiplied, [f"{name}/product"], domain=MICROSOFT),
        helper.make_node("Transpose", [f"{name}/product"], [conv.output[0]], name=name, perm=[0, 2, 1]),
    ]


def _unsigned(weights: npt.NDArray[np.int8]) -> npt.NDArray[np.uint8]:
    """Weights whose zero is 128. With signed ones, ONNX Runtime adds two products in 16 bits on a processor
    that has AVX2 or AVX-512 and no VNNI, and the largest sums are cut off."""
    return np.ascontiguousarray(weights).view(np.uint8) ^ np.uint8(128)


def _native_product(g: Graph, node: NodeProto, quantised: QuantisedProduct) -> list[NodeProto]:
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


def _stock_product(g: Graph, node: NodeProto, quantised: QuantisedProduct) -> list[NodeProto]:
    name, weight = node.name, node.input[1]
    most = g.constant("quantise_most", np.float32(WEIGHT_LEVELS))
    least = g.constant("quantise_least", np.float32(np.finfo(np.float32).tiny))
    middle = g.constant("quantise_middle", np.float32(128))
    zero = g.constant("quantise_zero", np.uint8(128))
    matrix = g.constant(f"{weight}/levels", _unsigned(quantised.weights.T))
    factors = g.constant(f"{weight}/scale", quantised.scale)
    profile = g.constant(f"{weight}/profile", 1 / quantised.profile)

    def made(operator: str, inputs: Sequence[str], output: str, **attributes: Any) -> NodeProto:
        found: NodeProto = helper.make_node(operator, inputs, [f"{name}/{output}"], **attributes)
        return found

    return [
        made("Mul", [node.input[0], profile], "even"),
        made("Abs", [f"{name}/even"], "magnitude"),
        made("ReduceMax", [f"{name}/magnitude", g.integers(-1)], "bare_largest", keepdims=1),
        made("Max", [f"{name}/bare_largest", least], "largest"),
        made("Div", [most, f"{name}/largest"], "inverse"),
        made("Mul", [f"{name}/even", f"{name}/inverse"], "scaled"),
        made("Round", [f"{name}/scaled"], "rounded"),
        made("Add", [f"{name}/rounded", middle], "shifted"),
        made("Cast", [f"{name}/shifted"], "bytes", to=TensorProto.UINT8),
        made("MatMulInteger", [f"{name}/bytes", matrix, zero, zero], "integers"),
        made("Cast", [f"{name}/integers"], "sums", to=TensorProto.FLOAT),
        made("Div", [f"{name}/largest", most], "step"),
        made("Mul", [f"{name}/sums", f"{name}/step"], "stepped"),
        in_place_of(node, "Mul", [f"{name}/stepped", factors]),
    ]


LEAST_VALUES = 4096
"""Constants with fewer values stay as they are: they are sizes, biases and steps, and take little space."""


def half_weights(model: Model) -> Model:
    """Store large float constants as float16, each followed by a node that casts it to float32.

    ONNX Runtime computes the casts when it loads the graph, so nothing runs slower. The pass must come last:
    other passes would see the casts and not the constants.

    Raises
    ------
    ValueError
        A weight is too large for float16.
    """
    g = Graph(model)
    casts = []
    for tensor in list(g.graph.initializer):
        if tensor.data_type != TensorProto.FLOAT or np.prod(tensor.dims) < LEAST_VALUES:
            continue
        values = numpy_helper.to_array(tensor)
        if np.abs(values).max() > np.finfo(np.float16).max:
            raise ValueError(f"{tensor.name} has values beyond float16's range")
        name = tensor.name
        tensor.CopyFrom(numpy_helper.from_array(values.astype(np.float16), f"{name}/half"))
        casts.append(
            helper.make_node("Cast", [f"{name}/half"], [name], name=f"{name}/cast", to=TensorProto.FLOAT)
        )
    return _behind(casts, g)


def byte_recurrences(model: Model) -> Model:
    """Store the weights of LSTMs as int8, each row with a step of its own. Added nodes make floats of them,
    so the LSTMs run in float.

    ONNX Runtime's LSTMs cannot run on integers with the accuracy that durations need. But their weights take
    40 MB, a third of the weights of all stages before the vocoder.
    """
    g = Graph(model)
    made = []
    # In both operators, the inputs of a step are the third axis of the weights
    recurrences = [n for n in g.graph.node if n.op_type in ("LSTM", "BiLstm")]
    for name in dict.fromkeys(w for n in recurrences for w in n.input[1:3]):
        tensor = g.constants[name]
        values = numpy_helper.to_array(tensor)
        step = np.maximum(np.abs(values).max(axis=2, keepdims=True), np.finfo(np.float32).tiny) / 127
        tensor.CopyFrom(numpy_helper.from_array(np.round(values / step).astype(np.int8), f"{name}/bytes"))
        g.constant(f"{name}/step", step.astype(np.float32))
        made += [
            helper.make_node("Cast", [f"{name}/bytes"], [f"{name}/levels"], to=TensorProto.FLOAT),
            helper.make_node("Mul", [f"{name}/levels", f"{name}/step"], [name]),
        ]
    return _behind(made, g)


def _behind(head: Sequence[NodeProto], g: Graph) -> Model:
    """The model with `head` in front of all its nodes; the stated types and shapes of its tensors stay."""
    nodes = [*head, *g.graph.node]
    del g.graph.node[:]
    g.graph.node.extend(nodes)
    return g.model
