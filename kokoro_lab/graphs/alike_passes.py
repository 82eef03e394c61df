"""Rewrites after which every processor computes the same, to the last bit.

In front of integers a last bit counts: now and then it becomes another byte, that byte others behind it, and
two machines end as far apart as integers are from floats. Most operators of ONNX Runtime agree on x86-64 and
ARM64. These do not, for their sums follow the width of the vectors, or a step of theirs is rounded once here
and twice there: means, norms, softmax, GELU, arctangents, products of one row, convolutions of one channel.

Like the rewrites of `passes`: each takes a model, returns a new one, and keeps the numbers up to rounding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, helper

from kokoro_lab.graphs import rewriting
from kokoro_lab.graphs.native_passes import NATIVE_DOMAIN, PANEL, in_panels, native_node, with_native
from kokoro_lab.graphs.passes import EPSILON, Adain, adain_layers

Swaps = dict[str, Sequence[NodeProto]]


def alike(model: rewriting.Model) -> rewriting.Model:
    """All of them: for what integers are in, or in front of."""
    return rewriting.apply(
        model,
        (norms, layer_norms, softmaxes, gelus, arctangents, rows_as_products, single_outputs, row_sums, taps),
    )


def norms(model: rewriting.Model) -> rewriting.Model:
    """AdaIN and the leaky rectifier behind it as one operator of ours: one pass over a tensor, not ten."""
    g = rewriting.Graph(model)
    swaps: Swaps = {
        output: (native_node("Norm", inputs, g.maker[output]),)
        for output, inputs in rectified_norms(model, g)
    }
    return with_native(g, swaps)


def rectified_norms(model: rewriting.Model, g: rewriting.Graph) -> Iterator[tuple[str, list[str]]]:
    """What leaky rectifiers make of AdaIN layers that nothing else reads, each with what a norm of ours takes
    to make it: x, style, rest, and statistics where they can be told. Constants go to `g`, a graph of the
    model."""
    readers = Counter(name for node in g.graph.node for name in node.input)
    layers = {layer.output: layer for layer in adain_layers(model)}
    for node in g.graph.node:
        if node.op_type == "LeakyRelu" and node.input[0] in layers and readers[node.input[0]] == 1:
            layer = layers[node.input[0]]
            slope = next((a.f for a in node.attribute if a.name == "alpha"), 0.01)
            rest = g.constant(f"{layer.name}/rest", np.array([EPSILON, slope], np.float32))
            yield node.output[0], [layer.x, layer.from_style, rest, *_told(g, layer)]


def _told(g: rewriting.Graph, layer: Adain) -> list[str]:
    """Where the statistics of a layer can be told: whether they are, means, variances."""
    choices = [g.maker[name] for name in (layer.mean, layer.variance)]
    if any(choice.op_type != "Where" for choice in choices):
        return []
    return [choices[0].input[0], *(choice.input[1] for choice in choices)]


def layer_norms(model: rewriting.Model) -> rewriting.Model:
    """Layer normalisations over the last axis, with a factor and an offset."""
    g = rewriting.Graph(model)
    swaps: Swaps = {}
    for node in g.graph.node:
        said = rewriting.said(node)
        if node.op_type == "LayerNormalization" and said.get("axis", -1) == -1 and len(node.input) == 3:
            epsilon = np.array([said.get("epsilon", 1e-5)], np.float32)
            inputs = [*node.input, g.constant(f"{node.name}/epsilon", epsilon)]
            swaps[node.output[0]] = (native_node("LayerNorm", inputs, node),)
    return with_native(g, swaps)


def softmaxes(model: rewriting.Model) -> rewriting.Model:
    """Softmax over the last axis."""
    return _row_by_row(model, "Softmax", "Softmax")


def arctangents(model: rewriting.Model) -> rewriting.Model:
    """Arctangents."""
    return _row_by_row(model, "Atan", "Arctangent")


def _row_by_row(model: rewriting.Model, theirs: str, ours: str) -> rewriting.Model:
    g = rewriting.Graph(model)
    swaps: Swaps = {
        node.output[0]: (native_node(ours, list(node.input), node),)
        for node in g.graph.node
        if node.op_type == theirs and not node.domain and rewriting.said(node).get("axis", -1) == -1
    }
    return with_native(g, swaps)


def gelus(model: rewriting.Model) -> rewriting.Model:
    """GELU in its form with tanh: `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))`."""
    g = rewriting.Graph(model)
    swaps: Swaps = {}
    for node in g.graph.node:
        x = _gelu_of(g, node)
        if x is not None:
            swaps[node.output[0]] = (native_node("Gelu", [x], node),)
    return with_native(g, swaps)


def _gelu_of(g: rewriting.Graph, product: NodeProto) -> str | None:
    """What a node is the GELU of, if it is one's last product."""
    for half, other in (
        (tuple(product.input[:2]), tuple(product.input[1::-1])) if product.op_type == "Mul" else ()
    ):
        x = _with(g, half, "Mul", 0.5)
        tanh = _made_by(g, _with(g, other, "Add", 1.0), "Tanh")
        inner = _made_by(g, _with(g, tanh[0], "Mul", np.sqrt(2 / np.pi)) if tanh else None, "Add")
        for plain, cubic in (tuple(inner), tuple(inner[::-1])) if inner else ():
            if plain == x and _with(g, _with(g, cubic, "Mul", 0.044715), "Pow", 3.0) == x:
                return x
    return None


def _made_by(g: rewriting.Graph, name: str | None, operator: str) -> Sequence[str]:
    """What the node reads that makes `name`, if it is an `operator`."""
    node = g.maker.get(name) if name else None
    return tuple(node.input) if node is not None and node.op_type == operator else ()


def _with(g: rewriting.Graph, name: str | None, operator: str, value: float) -> str | None:
    """The other input of an `operator` that makes `name` from it and a constant of this value."""
    inputs = _made_by(g, name, operator)
    for constant, other in (inputs, inputs[::-1]) if len(inputs) == 2 else ():
        if constant in g.constants and g.value(constant).size == 1:
            return other if np.isclose(g.value(constant).item(), value, rtol=1e-5) else None
    return None


def rows_as_products(model: rewriting.Model) -> rewriting.Model:
    """What layers make of the style, a single row, by the product of ours. A norm may be given more than its
    channels need, so zeros that fill a panel are left on for it."""
    g = rewriting.Graph(model)
    exact = {name for node in g.graph.node if node.op_type != "Norm" for name in node.input}
    swaps: Swaps = {}
    for gemm in g.graph.node:
        said = rewriting.said(gemm)
        known = all(name in g.constants for name in gemm.input[1:]) and len(gemm.input) == 3
        plain = not said.get("transA", 0) and said.get("alpha", 1.0) == said.get("beta", 1.0) == 1.0
        if gemm.op_type != "Gemm" or not known or not plain:
            continue
        style, weight, bias = gemm.input
        matrix = g.value(weight).T if said.get("transB", 0) else g.value(weight)
        row, made = f"{gemm.name}/row", f"{gemm.name}/made"
        axis = g.constant("row_axis", np.array([1], np.int64))
        whole = gemm.output[0] not in exact
        swaps[gemm.output[0]] = (
            helper.make_node("Unsqueeze", [style, axis], [row]),
            *_product(g, gemm.name, row, matrix, made, g.value(bias), whole=whole),
            helper.make_node("Squeeze", [made, axis], list(gemm.output)),
        )
    return with_native(g, swaps)


def single_outputs(model: rewriting.Model) -> rewriting.Model:
    """Convolutions of one tap with a single output channel, by the product of ours."""
    g = rewriting.Graph(model)
    swaps: Swaps = {}
    for conv in g.graph.node:
        if conv.op_type != "Conv" or len(conv.input) != 3 or conv.input[1] not in g.constants:
            continue
        weight = g.value(conv.input[1])
        if weight.shape[0] != 1 or weight.shape[1] == 1 or weight.shape[2:] != (1,):
            continue
        rows, made = f"{conv.name}/rows", f"{conv.name}/made"
        swaps[conv.output[0]] = (
            helper.make_node("Transpose", [conv.input[0]], [rows], perm=[0, 2, 1]),
            *_product(g, conv.name, rows, weight[:, :, 0].T, made, g.value(conv.input[2])),
            helper.make_node("Transpose", [made], list(conv.output), perm=[0, 2, 1]),
        )
    return with_native(g, swaps)


def row_sums(model: rewriting.Model) -> rewriting.Model:
    """Sums over the last axis of what a sigmoid makes of a layer: the product of ours, with ones."""
    g = rewriting.Graph(model)
    swaps: Swaps = {}
    for node in g.graph.node:
        if (
            node.op_type != "ReduceSum"
            or rewriting.said(node).get("keepdims", 1)
            or node.input[1] not in g.constants
        ):
            continue
        layer = _made_by(g, next(iter(_made_by(g, node.input[0], "Sigmoid")), None), "Add")
        biases = [g.value(name) for name in layer if name in g.constants]
        if not biases or biases[0].ndim != 1 or g.value(node.input[1]).tolist() not in ([-1], [2]):
            continue
        ones, made = np.ones((len(biases[0]), 1), np.float32), f"{node.name}/made"
        last = g.constant("row_sums_axis", np.array([-1], np.int64))
        swaps[node.output[0]] = (
            *_product(g, node.name, node.input[0], ones, made),
            helper.make_node("Squeeze", [made, last], list(node.output)),
        )
    return with_native(g, swaps)


def _product(
    g: rewriting.Graph,
    name: str,
    x: str,
    matrix: npt.NDArray[np.float32],
    output: str,
    bias: npt.NDArray[np.float32] | None = None,
    *,
    whole: bool = False,
) -> Iterator[NodeProto]:
    """`x @ matrix + bias`, of three axes, by the product of ours; `whole` leaves on what fills a panel."""
    columns = matrix.shape[1]
    behind = -columns % PANEL
    panels = g.constant(f"{name}/panels", in_panels(np.pad(matrix, ((0, 0), (0, behind)))))
    cut, moved = bool(behind) and not whole, bias is not None
    made = f"{name}/product" if cut or moved else output
    yield helper.make_node("Product", [x, panels], [made], name=name, domain=NATIVE_DOMAIN)
    if cut:
        ends = [
            g.constant(f"{name}/{end}", np.array([at], np.int64))
            for end, at in (("0", 0), ("m", columns), ("a", 2))
        ]
        yield helper.make_node("Slice", [made, *ends], [f"{name}/cut" if moved else output])
        made = f"{name}/cut"
    if bias is not None:
        offset = g.constant(f"{name}/offset", bias if cut else np.pad(bias, (0, behind)))
        yield helper.make_node("Add", [made, offset], [output])


def taps(model: rewriting.Model) -> rewriting.Model:
    """Convolutions of one channel tap by tap, as products and sums of whole tensors."""
    g = rewriting.Graph(model)
    swaps: Swaps = {}
    for conv in g.graph.node:
        if conv.op_type != "Conv" or len(conv.input) != 3 or conv.input[1] not in g.constants:
            continue
        said, weight = rewriting.said(conv), g.value(conv.input[1])
        if weight.ndim == 3 and weight.shape[:2] == (1, 1) and said.get("dilations", [1]) == [1]:
            swaps[conv.output[0]] = list(_tap_by_tap(g, conv, weight.reshape(-1), said))
    g.replace(swaps)
    return g.model


def _tap_by_tap(
    g: rewriting.Graph, conv: NodeProto, weight: npt.NDArray[np.float32], said: dict[str, Any]
) -> Iterator[NodeProto]:
    def integers(*values: int) -> str:
        return g.constant("taps_" + "_".join(map(str, values)), np.array(values, np.int64))

    before, behind = said.get("pads", [0, 0])
    padded, total = f"{conv.name}/padded", conv.input[2]
    yield helper.make_node("Pad", [conv.input[0], integers(0, 0, before, 0, 0, behind)], [padded])
    for tap, value in enumerate(weight):
        # To the end, less what the later taps read
        stop = tap - weight.size + 1 or np.iinfo(np.int64).max
        slicing = (integers(tap), integers(stop), integers(2), integers(*said.get("strides", [1])))
        factor = g.constant(f"{conv.name}/tap{tap}/factor", value)
        read, part, so_far = (f"{conv.name}/tap{tap}/{what}" for what in ("read", "part", "so_far"))
        if tap == weight.size - 1:
            so_far = conv.output[0]
        yield helper.make_node("Slice", [padded, *slicing], [read])
        yield helper.make_node("Mul", [read, factor], [part])
        yield helper.make_node("Add", [part, total], [so_far])
        total = so_far
