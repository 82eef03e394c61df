"""A pass that replaces the dozen nodes around the softmax of an attention layer by two operators of ours.

Like those of `passes`, it takes a model and returns a new one. It keeps all numbers to the last bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from onnx import NodeProto

from kokoro_lab.graphs.native_passes import PANEL, native_node, with_shapes
from kokoro_lab.graphs.rewriting import Graph, Model, Swaps, attributes_of, either_way

BY_HEAD, KEYS_BY_HEAD = [0, 2, 1, 3], [0, 2, 3, 1]
"""Orders in which a transposition puts the axes (batch, position, head, channel). For queries and values, the
result is (batch, head, position, channel); for keys, it is (batch, head, channel, position)."""


class _Split(NamedTuple):
    """A tensor [1, T, heads · width] that is divided into heads, and the bias that is added to it before, if
    any."""

    whole: str
    bias: str
    heads: int
    width: int


def attention(model: Model) -> Model:
    """Compute the scores of attention layers, and the weighted sums of their values, by operators of ours
    (`native/attention.cpp`)."""
    g = Graph(model)
    swaps: Swaps = {}
    for softmax in g.graph.node:
        if softmax.op_type == "Softmax":
            swaps |= _layer(g, softmax)
    return with_shapes(g.rewritten(swaps), model) if swaps else model


def _layer(g: Graph, softmax: NodeProto) -> Swaps:
    """If the attention layer of `softmax` has the expected form: the swaps that replace its nodes; else
    empty."""
    above = g.chain(softmax.input[0], "Add", "MatMul")
    behind = g.chain(softmax.output[0], "MatMul", "Transpose", "Reshape", onwards=True)
    if not above or not behind:
        return {}
    (masked, scores), (mixture, turned, joined) = above, behind
    queries, keys = (g.made_by(name, "Mul") for name in scores.input)
    if queries is None or keys is None or queries.input[1] != keys.input[1]:
        return {}
    of_queries = _split(g, queries.input[0], BY_HEAD)
    of_keys = _split(g, keys.input[0], KEYS_BY_HEAD)
    of_values = _split(g, mixture.input[1], BY_HEAD)
    factors = _factors(g, queries.input[1])
    if of_queries is None or of_keys is None or of_values is None or factors is None:
        return {}
    alike = of_queries[2:] == of_keys[2:] == of_values[2:]
    if not alike or of_values.width % PANEL or attributes_of(turned)["perm"] != BY_HEAD:
        return {}
    known = [g.constant(f"{softmax.name}/factors", factors), g.integers(of_values.heads)]
    inputs = [of_queries.whole, of_keys.whole, masked.input[1], *known, of_queries.bias, of_keys.bias]
    shares = [softmax.output[0], of_values.whole, of_values.bias]
    return {
        masked.output[0]: (native_node("Scores", inputs, masked),),
        joined.output[0]: (native_node("Mixture", shares, joined),),
    }


def _split(g: Graph, name: str, turned: list[int]) -> _Split | None:
    """If a tensor is divided into heads, and then transposed by the order `turned`, to become `name`: that
    tensor; else None."""
    found = g.chain(name, "Transpose", "Reshape")
    if not found or attributes_of(found[0])["perm"] != turned:
        return None
    whole, shape = found[1].input
    lengths = _last_two(g, shape)
    return _Split(*_biased(g, whole), *lengths) if lengths else None


def _biased(g: Graph, name: str) -> tuple[str, str]:
    """If a bias is added to a tensor to make `name`: that tensor and the bias; else `name` and "".

    Only a bias after our operator `Product` counts: ONNX Runtime fuses a bias into its own products, and
    rounds differently.
    """
    for bias, whole in either_way(g.maker.get(name), "Add"):
        if bias in g.constants and g.made_by(whole, "Product") is not None:
            return whole, bias
    return name, ""


def _last_two(g: Graph, shape: str) -> tuple[int, int] | None:
    """If `shape` has four lengths, and the last two are known: these two; else None."""
    if shape in g.constants:
        lengths = g.value(shape).tolist()
    else:
        joined = g.made_by(shape, "Concat")
        known = [name for name in joined.input[-2:] if name in g.constants] if joined is not None else []
        lengths = [0] * (4 - len(known)) + [int(g.value(name).item()) for name in known]
    heads, width = lengths[-2:]
    return (heads, width) if len(lengths) == 4 and heads > 0 and width > 0 else None


def _factors(g: Graph, name: str) -> npt.NDArray[np.float32] | None:
    """Two factors for our operator `Scores`: one for every query and every key, and one for their products.
    None if the graph's factor `name` is of another form.

    If the graph multiplies queries and keys by a constant, ONNX Runtime multiplies their products instead, so
    the first factor is 1. If the graph computes the factor while it runs, as one over the fourth root of a
    length, ONNX Runtime does multiply queries and keys, so the second factor is 1.
    """
    if name in g.constants:
        factor = g.value(name)
        return np.array([1, factor.item() * factor.item()], np.float32) if factor.size == 1 else None
    inverse = g.chain(name, "Sqrt", "Div")
    length = g.chain(inverse[1].input[1], "Sqrt", "Cast", "Slice", "Shape") if inverse else []
    if not length or inverse[1].input[0] not in g.constants:
        return None
    _, _, last, shape = length
    split, one = _split(g, shape.input[0], BY_HEAD), g.value(inverse[1].input[0])
    if split is None or one.size != 1 or one.item() != 1 or g.value(last.input[1]).tolist() != [-1]:
        return None
    return np.array([np.sqrt(np.float32(1) / np.sqrt(np.float32(split.width))), 1], np.float32)
