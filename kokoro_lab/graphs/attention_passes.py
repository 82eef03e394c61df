"""A rewrite that takes what stands between the products of attention layers in two steps instead of a dozen.

Like those of `passes`: it takes a model, returns a new one, and keeps the numbers, these to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, helper

from kokoro_lab.graphs import rewriting
from kokoro_lab.graphs.native_passes import NATIVE_DOMAIN, PANEL, with_native, with_shapes

BY_HEAD, KEYS_BY_HEAD = [0, 2, 1, 3], [0, 2, 3, 1]
"""How queries and values, and how keys, are turned: to heads, positions, channels, and the last two the other
way round."""


class _Split(NamedTuple):
    """A tensor [1, T, heads · width] that is taken apart into heads, and what is added to it before, if
    anything is."""

    whole: str
    bias: str
    heads: int
    width: int


def attention(model: rewriting.Model) -> rewriting.Model:
    """Scores and mixtures of attention layers as operators of ours, `native/attention.cpp`."""
    g = rewriting.Graph(model)
    swaps: dict[str, Sequence[NodeProto]] = {}
    for softmax in g.graph.node:
        if softmax.op_type == "Softmax":
            swaps |= _layer(g, softmax)
    return with_shapes(with_native(g, swaps), model) if swaps else model


def _layer(g: rewriting.Graph, softmax: NodeProto) -> dict[str, Sequence[NodeProto]]:
    """What takes the place of one layer's nodes; nothing if it is not as it is known."""
    masked = g.maker.get(softmax.input[0])
    scores = _made_by(g, masked.input[0], "MatMul") if masked is not None else None
    mixture = _reader(g, softmax.output[0], "MatMul")
    joined = _reader(g, _reader_output(g, mixture, "Transpose"), "Reshape")
    if masked is None or masked.op_type != "Add" or scores is None or mixture is None or joined is None:
        return {}
    queries, keys = (_made_by(g, name, "Mul") for name in scores.input)
    if queries is None or keys is None or queries.input[1] != keys.input[1]:
        return {}
    parts = (
        _split(g, queries.input[0], BY_HEAD),
        _split(g, keys.input[0], KEYS_BY_HEAD),
        _split(g, mixture.input[1], BY_HEAD),
    )
    turned = g.maker[joined.input[0]]
    factors = _factors(g, queries.input[1])
    if any(part is None for part in parts) or factors is None or rewriting.said(turned)["perm"] != BY_HEAD:
        return {}
    of_queries, of_keys, of_values = (part for part in parts if part is not None)
    if len({part[2:] for part in (of_queries, of_keys, of_values)}) > 1 or of_values.width % PANEL:
        return {}
    known = [
        g.constant(f"{softmax.name}/factors", factors),
        g.constant(f"{softmax.name}/heads", np.array([of_values.heads], np.int64)),
    ]
    inputs = [of_queries.whole, of_keys.whole, masked.input[1], *known, of_queries.bias, of_keys.bias]
    return {
        masked.output[0]: (
            helper.make_node("Scores", inputs, list(masked.output), name=masked.name, domain=NATIVE_DOMAIN),
        ),
        joined.output[0]: (
            helper.make_node(
                "Mixture",
                [softmax.output[0], of_values.whole, of_values.bias],
                list(joined.output),
                name=joined.name,
                domain=NATIVE_DOMAIN,
            ),
        ),
    }


def _made_by(g: rewriting.Graph, name: str, operator: str) -> NodeProto | None:
    node = g.maker.get(name)
    return node if node is not None and node.op_type == operator else None


def _reader(g: rewriting.Graph, name: str | None, operator: str) -> NodeProto | None:
    """The only node that reads a tensor, if it is an `operator`."""
    readers = [node for node in g.graph.node if name in node.input]
    return readers[0] if len(readers) == 1 and readers[0].op_type == operator else None


def _reader_output(g: rewriting.Graph, node: NodeProto | None, operator: str) -> str | None:
    """What an `operator` makes that alone reads what `node` makes."""
    reader = _reader(g, node.output[0], operator) if node is not None else None
    return reader.output[0] if reader is not None else None


def _split(g: rewriting.Graph, name: str, turned: list[int]) -> _Split | None:
    """What is taken apart into heads, and turned like that, to become `name`."""
    transpose = _made_by(g, name, "Transpose")
    reshape = _made_by(g, transpose.input[0], "Reshape") if transpose is not None else None
    if transpose is None or reshape is None or rewriting.said(transpose)["perm"] != turned:
        return None
    lengths = _last_two(g, reshape.input[1])
    return _Split(*_biased(g, reshape.input[0]), *lengths) if lengths else None


def _biased(g: rewriting.Graph, name: str) -> tuple[str, str]:
    """What becomes `name` when a bias is added to it, and the bias; itself and "" if none is.

    Behind a product of ours alone: into its own, ONNX Runtime fuses the bias, and rounds otherwise.
    """
    added = _made_by(g, name, "Add")
    for bias, whole in (added.input, added.input[::-1]) if added is not None else ():
        if bias in g.constants and _made_by(g, whole, "Product") is not None:
            return whole, bias
    return name, ""


def _last_two(g: rewriting.Graph, shape: str) -> tuple[int, int] | None:
    """The last two of four lengths, if they are known."""
    if shape in g.constants:
        lengths = g.value(shape).tolist()
    else:
        joined = _made_by(g, shape, "Concat")
        known = [name for name in joined.input[-2:] if name in g.constants] if joined is not None else []
        lengths = [0] * (4 - len(known)) + [int(g.value(name).item()) for name in known]
    heads, width = lengths[-2:]
    return (heads, width) if len(lengths) == 4 and heads > 0 and width > 0 else None


def _factors(g: rewriting.Graph, name: str) -> npt.NDArray[np.float32] | None:
    """What queries and keys are multiplied with, and what their products are.

    ONNX Runtime takes a constant that both are multiplied with as one factor behind their product. Not so one
    over the fourth root of a length that the graph asks for while it runs.
    """
    if name in g.constants:
        factor = g.value(name)
        return np.array([1, factor.item() * factor.item()], np.float32) if factor.size == 1 else None
    root = _made_by(g, name, "Sqrt")
    inverse = _made_by(g, root.input[0], "Div") if root is not None else None
    length = _made_by(g, inverse.input[1], "Sqrt") if inverse is not None else None
    cast = _made_by(g, length.input[0], "Cast") if length is not None else None
    last = _made_by(g, cast.input[0], "Slice") if cast is not None else None
    shape = _made_by(g, last.input[0], "Shape") if last is not None else None
    if inverse is None or last is None or shape is None or inverse.input[0] not in g.constants:
        return None
    split, one = _split(g, shape.input[0], BY_HEAD), g.value(inverse.input[0])
    if split is None or one.size != 1 or one.item() != 1 or g.value(last.input[1]).tolist() != [-1]:
        return None
    return np.array([np.sqrt(np.float32(1) / np.sqrt(np.float32(split.width))), 1], np.float32)
