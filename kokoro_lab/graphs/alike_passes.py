"""Passes after which every processor computes the same numbers, to the last bit.

Before a layer on integers, floats are rounded to bytes. If the last bit of a float differs between two
machines, it is now and then rounded to another byte, which changes further bytes. In the end, the samples of
the two machines differ as much as the samples of a graph with integers differ from those of a graph with
floats. Most operators of ONNX Runtime give the same bits on x86-64 and on ARM64. The others are means, norms,
softmax, GELU, arctangents, products of one row, and convolutions of one channel. Either the order of their
sums depends on the vector width, or one processor rounds a step once and another one twice.

Like the passes of `passes`, each takes a model, returns a new one, and keeps the numbers up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, helper

from kokoro_lab.graphs.native_passes import (
    NATIVE_DOMAIN,
    PANEL,
    convolution_over_time,
    in_panels,
    native_node,
)
from kokoro_lab.graphs.passes import Adain, adain_layers
from kokoro_lab.graphs.rewriting import (
    END,
    Graph,
    Model,
    apply,
    attributes_of,
    either_way,
    node_by_node,
    sliced,
)
from kokoro_lab.graphs.signatures import EPSILON


def alike(model: Model) -> Model:
    """Apply all passes of this module. A graph that computes with integers needs them, and so does a graph
    whose outputs such a graph reads."""
    return apply(
        model,
        (norms, layer_norms, softmaxes, gelus, arctangents, rows_as_products, single_outputs, row_sums, taps),
    )


def norms(model: Model) -> Model:
    """Replace each AdaIN layer and its leaky rectifier by one operator of ours, which goes over the tensor
    once instead of ten times."""
    g = Graph(model)
    rectified = rectified_norms(model, g)
    return g.rewritten({o: (native_node("Norm", inputs, g.maker[o]),) for o, inputs in rectified})


def rectified_norms(model: Model, g: Graph) -> Iterator[tuple[str, list[str]]]:
    """Find each AdaIN layer whose output only a leaky rectifier reads. Yields the rectifier's output and the
    inputs of the operator of ours that replaces both: x, the style's gamma and beta, epsilon and slope in one
    constant, and the inputs that `_told` returns. The constant is added to `g`, the `Graph` of `model`."""
    for layer in adain_layers(model):
        node = g.only_reader(layer.output, "LeakyRelu")
        if node is not None:
            slope = attributes_of(node).get("alpha", 0.01)
            rest = g.constant(f"{layer.name}/rest", np.array([EPSILON, slope], np.float32))
            yield node.output[0], [layer.x, layer.from_style, rest, *_told(g, layer)]


def _told(g: Graph, layer: Adain) -> list[str]:
    """The tensors by which the statistics of a layer can be set from outside: whether they are set, the
    means, and the variances. Empty if they cannot be set."""
    choices = [g.maker[name] for name in (layer.mean, layer.variance)]
    if any(choice.op_type != "Where" for choice in choices):
        return []
    return [choices[0].input[0], *(choice.input[1] for choice in choices)]


@node_by_node
def layer_norms(g: Graph, node: NodeProto) -> Sequence[NodeProto] | None:
    """Replace each layer normalisation over the last axis that has a factor and an offset by our operator,
    which gives every processor the same bits."""
    given = attributes_of(node)
    if node.op_type != "LayerNormalization" or given.get("axis", -1) != -1 or len(node.input) != 3:
        return None
    epsilon = g.constant(f"{node.name}/epsilon", np.array([given.get("epsilon", 1e-5)], np.float32))
    return [native_node("LayerNorm", [*node.input, epsilon], node)]


@node_by_node
def softmaxes(_: Graph, node: NodeProto) -> Sequence[NodeProto] | None:
    """Replace softmax over the last axis by our operator, which gives every processor the same bits."""
    return [native_node("Softmax", node.input, node)] if _is_row_by_row(node, "Softmax") else None


@node_by_node
def arctangents(_: Graph, node: NodeProto) -> Sequence[NodeProto] | None:
    """Replace arctangents by our operator, which gives every processor the same bits."""
    return [native_node("Arctangent", node.input, node)] if _is_row_by_row(node, "Atan") else None


def _is_row_by_row(node: NodeProto, operator: str) -> bool:
    return node.op_type == operator and not node.domain and attributes_of(node).get("axis", -1) == -1


@node_by_node
def gelus(g: Graph, node: NodeProto) -> Sequence[NodeProto] | None:
    """Replace GELU by our operator, if the graph writes it in this form: `x / 2 * (1 + tanh(sqrt(2 / pi) * (x
    + 0.044715 * x ** 3)))`."""
    for half, other in either_way(node, "Mul"):
        x = _with(g, half, "Mul", 0.5)
        tanh = g.made_by(_with(g, other, "Add", 1.0), "Tanh")
        inner = _with(g, tanh.input[0], "Mul", np.sqrt(2 / np.pi)) if tanh is not None else None
        for plain, cubic in either_way(g.maker.get(inner or ""), "Add"):
            if plain == x and _with(g, _with(g, cubic, "Mul", 0.044715), "Pow", 3.0) == x:
                return [native_node("Gelu", [x], node)]
    return None


def _with(g: Graph, name: str | None, operator: str, value: float) -> str | None:
    """If `operator` makes the tensor `name` from another tensor and the constant `value`: the other tensor;
    else None."""
    for constant, other in either_way(g.maker.get(name or ""), operator):
        if constant in g.constants and g.value(constant).size == 1:
            return other if np.isclose(g.value(constant).item(), value, rtol=1e-5) else None
    return None


@node_by_node
def rows_as_products(g: Graph, gemm: NodeProto) -> Sequence[NodeProto] | None:
    """Compute the product of the style, which is a single row, and a constant matrix by our operator. It
    stores the matrix in panels of `PANEL` columns, and columns of zeros fill the last panel. So the product
    has more columns than the matrix. They are cut off, unless only norms read the product: our norm accepts
    more values than it has channels."""
    given = attributes_of(gemm)
    known = all(name in g.constants for name in gemm.input[1:]) and len(gemm.input) == 3
    plain = not given.get("transA", 0) and given.get("alpha", 1.0) == given.get("beta", 1.0) == 1.0
    if gemm.op_type != "Gemm" or not known or not plain:
        return None
    style, weight, bias = gemm.input
    matrix = g.value(weight).T if given.get("transB", 0) else g.value(weight)
    row, made = f"{gemm.name}/row", f"{gemm.name}/made"
    axis = g.integers(1)
    whole = all(reader.op_type == "Norm" for reader in g.readers.get(gemm.output[0], ()))
    return [
        helper.make_node("Unsqueeze", [style, axis], [row]),
        *_product(g, gemm.name, row, matrix, made, g.value(bias), whole=whole),
        helper.make_node("Squeeze", [made, axis], list(gemm.output)),
    ]


@node_by_node
def single_outputs(g: Graph, conv: NodeProto) -> Sequence[NodeProto] | None:
    """Compute each convolution of one tap and one output channel as a matrix product, by our operator."""
    lengths = convolution_over_time(g, conv)
    if len(conv.input) != 3 or lengths[:1] != (1,) or lengths[1] == 1 or lengths[2] != 1:
        return None
    rows, made = f"{conv.name}/rows", f"{conv.name}/made"
    matrix, bias = g.value(conv.input[1])[:, :, 0].T, g.value(conv.input[2])
    return [
        helper.make_node("Transpose", [conv.input[0]], [rows], perm=[0, 2, 1]),
        *_product(g, conv.name, rows, matrix, made, bias),
        helper.make_node("Transpose", [made], list(conv.output), perm=[0, 2, 1]),
    ]


@node_by_node
def row_sums(g: Graph, node: NodeProto) -> Sequence[NodeProto] | None:
    """Compute the sum of a sigmoid's output over its last axis as a product with a column of ones, by our
    operator for products."""
    if node.op_type != "ReduceSum" or attributes_of(node).get("keepdims", 1):
        return None
    layer = g.chain(node.input[0], "Sigmoid", "Add")
    biases = [g.value(name) for name in layer[1].input if name in g.constants] if layer else []
    axes = g.value(node.input[1]).tolist() if node.input[1] in g.constants else None
    if not biases or biases[0].ndim != 1 or axes not in ([-1], [2]):
        return None
    ones, made = np.ones((len(biases[0]), 1), np.float32), f"{node.name}/made"
    return [
        *_product(g, node.name, node.input[0], ones, made),
        helper.make_node("Squeeze", [made, g.integers(-1)], list(node.output)),
    ]


def _product(
    g: Graph,
    name: str,
    x: str,
    matrix: npt.NDArray[np.float32],
    output: str,
    bias: npt.NDArray[np.float32] | None = None,
    *,
    whole: bool = False,
) -> Iterator[NodeProto]:
    """The nodes that compute `x @ matrix + bias` with our operator for products; `x` has three axes. With
    `whole`, the output keeps the additional columns that come from filling the matrix's last panel with
    zeros."""
    columns = matrix.shape[1]
    behind = -columns % PANEL
    panels = g.constant(f"{name}/panels", in_panels(np.pad(matrix, ((0, 0), (0, behind)))))
    cut, moved = bool(behind) and not whole, bias is not None
    made = f"{name}/product" if cut or moved else output
    yield helper.make_node("Product", [x, panels], [made], name=name, domain=NATIVE_DOMAIN)
    if cut:
        yield sliced(g, made, f"{name}/cut" if moved else output, 0, columns)
        made = f"{name}/cut"
    if bias is not None:
        offset = g.constant(f"{name}/offset", bias if cut else np.pad(bias, (0, behind)))
        yield helper.make_node("Add", [made, offset], [output])


@node_by_node
def taps(g: Graph, conv: NodeProto) -> Sequence[NodeProto] | None:
    """Compute each convolution from one channel to one channel as a sum over its taps: for each tap, the
    whole input, shifted, times the tap's weight."""
    if len(conv.input) != 3 or convolution_over_time(g, conv)[:2] != (1, 1):
        return None
    given = attributes_of(conv)
    return list(_tap_by_tap(g, conv, given)) if given.get("dilations", [1]) == [1] else None


def _tap_by_tap(g: Graph, conv: NodeProto, given: dict[str, Any]) -> Iterator[NodeProto]:
    weight = g.value(conv.input[1]).reshape(-1)
    before, behind = given.get("pads", [0, 0])
    padded, total = f"{conv.name}/padded", conv.input[2]
    yield helper.make_node("Pad", [conv.input[0], g.integers(0, 0, before, 0, 0, behind)], [padded])
    for tap, value in enumerate(weight):
        factor = g.constant(f"{conv.name}/tap{tap}/factor", value)
        read, part, so_far = (f"{conv.name}/tap{tap}/{what}" for what in ("read", "part", "so_far"))
        if tap == weight.size - 1:
            so_far = conv.output[0]
        # To the end, less what the later taps read
        stop = tap - weight.size + 1 or END
        yield sliced(g, padded, read, tap, stop, step=given.get("strides", [1])[0])
        yield helper.make_node("Mul", [read, factor], [part])
        yield helper.make_node("Add", [part, total], [so_far])
        total = so_far
