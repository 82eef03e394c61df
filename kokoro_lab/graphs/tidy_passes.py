"""Passes that only tidy a graph: useless nodes are removed, and computed shapes become constants.

The rewritten graph states the same arithmetic, to the last bit. But ONNX Runtime may fuse other nodes of it,
and so round a sum at another place, as with any of its optimisations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto

from kokoro_lab.graphs.native_passes import convolution_over_time
from kokoro_lab.graphs.rewriting import (
    END,
    Graph,
    Model,
    attributes_of,
    copied,
    in_place_of,
    inferred,
    node_by_node,
)


def drop_no_ops(model: Model) -> Model:
    """Remove nodes whose output equals their input: identities, products with one, and pairs of
    transpositions that cancel.

    Several transpositions in a row become one.
    """
    g = Graph(model)
    kept = {o.name for o in g.graph.output}
    while True:
        aliases = {
            n.output[0]: source
            for n in g.graph.node
            if n.output[0] not in kept and (source := _handed_on(g, n)) is not None
        }
        merged = {} if aliases else dict(_merged(g))
        if not aliases and not merged:
            return g.model
        for node in g.graph.node:
            _rename(node, aliases)
        g.keep(merged.get(node.output[0], node) for node in g.graph.node)


def _handed_on(g: Graph, node: NodeProto) -> str | None:
    """If the output of `node` always equals one of its inputs: that input; else None."""
    source = str(node.input[0]) if node.input else ""
    if node.op_type == "Identity":
        return source
    if node.op_type in ("Mul", "Div") and _is_one(g, node.input[1]):
        return source
    if node.op_type == "Mul" and _is_one(g, node.input[0]):
        return str(node.input[1])
    if node.op_type == "Transpose":
        order = _order(node)
        return source if order and order == sorted(order) else None
    above = g.made_by(source, "Cast") if node.op_type == "Cast" else None
    return source if above is not None and attributes_of(above)["to"] == attributes_of(node)["to"] else None


def _is_one(g: Graph, name: str) -> bool:
    tensor = g.constants.get(name)
    # A constant of more axes could give the product more than the other factor has
    if tensor is None or len(tensor.dims) > 1 or np.prod(tensor.dims) != 1:
        return False
    return tensor.data_type in (TensorProto.FLOAT, TensorProto.INT64) and bool(g.value(name).item() == 1)


def _order(node: NodeProto) -> list[int]:
    """The order of axes that the transposition `node` states; empty if it states none and so reverses
    them."""
    order: list[int] = attributes_of(node).get("perm", [])
    return order


def _merged(g: Graph) -> Iterator[tuple[str, NodeProto]]:
    """Each transposition of a transposed tensor, replaced by one transposition of the original tensor."""
    for node in g.graph.node:
        above = g.made_by(node.input[0], "Transpose") if node.op_type == "Transpose" else None
        if above is not None and _order(above) and _order(node):
            order = [_order(above)[k] for k in _order(node)]
            yield node.output[0], in_place_of(node, "Transpose", [above.input[0]], perm=order)


def _rename(node: NodeProto, aliases: dict[str, str]) -> None:
    for k, name in enumerate(node.input):
        while name in aliases:
            name = aliases[name]
        node.input[k] = name
    for attribute in node.attribute:
        if attribute.HasField("g"):
            for inner in attribute.g.node:
                _rename(inner, aliases)


def canonical_shapes(model: Model) -> Model:
    """Replace a shape that is computed from lengths of its own input by a constant.

    `Reshape(x, [Shape(t)[0], Shape(t)[1], 12, 64])`, where t is x or has its leading axes, is
    `Reshape(x, [0, 0, 12, 64])`: zero means "as it was".
    """
    g = Graph(model)
    computed = [n for n in g.graph.node if n.op_type == "Reshape" and n.input[1] not in g.constants]
    dims = _dims(model) if computed else {}
    for node in computed:
        shape = _constant_shape(g, node, len(dims.get(node.input[0], ())))
        if shape is not None:
            node.input[1] = g.integers(*shape)
    return g.keep(g.graph.node)


def known_lengths(model: Model) -> Model:
    """Replace a length that is computed while the model runs, though it is always the same, by a constant."""
    g = Graph(model)
    asked = {n.output[0]: n for n in g.graph.node if n.op_type in ("Gather", "Slice") and _shape_above(g, n)}
    if not asked:
        return g.model
    dims = _dims(model)
    found: set[str] = set()
    for output, node in asked.items():
        axis = _axis_asked_for(g, node)
        known = dims.get(_shape_above(g, node) or "", ())
        if axis is None or not -len(known) <= axis < len(known) or not known[axis].HasField("dim_value"):
            continue
        length = np.array(known[axis].dim_value, np.int64)
        g.constant(output, length if node.op_type == "Gather" else length.reshape(1))
        found.add(output)
    return g.keep(node for node in g.graph.node if node.output[0] not in found)


def _dims(model: Model) -> dict[str, Sequence[Any]]:
    """Tensor → the lengths of its axes, as far as they follow from the graph."""
    values = (*inferred(model), *model.graph.input)
    return {value.name: value.type.tensor_type.shape.dim for value in values}


def _shape_above(g: Graph, node: NodeProto) -> str | None:
    """If `node` takes a part of a tensor's shape: that tensor; else None."""
    above = g.made_by(node.input[0], "Shape")
    return str(above.input[0]) if above is not None and not above.attribute else None


def _axis_asked_for(g: Graph, node: NodeProto) -> int | None:
    """If `node` takes one length out of a shape, at a constant place: that place, the axis; else None."""
    if node.input[1] not in g.constants:
        return None
    first = g.value(node.input[1])
    if node.op_type == "Gather":
        return int(first) if first.shape == () else None
    last = g.value(node.input[2]) if node.input[2] in g.constants else None
    plain = len(node.input) < 4 or (node.input[3] in g.constants and not g.value(node.input[3]).any())
    if last is None or first.shape != (1,) or not plain or len(node.input) > 4:
        return None
    end = int(first[0]) + 1 if first[0] != -1 else END
    return int(first[0]) if int(last[0]) == end else None


def _constant_shape(g: Graph, reshape: NodeProto, rank: int) -> list[int] | None:
    joined = g.made_by(reshape.input[1], "Concat")
    if joined is None:
        return None
    leading = set(_of_equal_lead(g, reshape.input[0]))
    shape = []
    for position, part in enumerate(joined.input):
        if part in g.constants:
            lengths = g.value(part).reshape(-1)
            if len(lengths) != 1 or lengths[0] == 0:  # a zero that was meant so would be read otherwise
                return None
            shape.append(int(lengths[0]))
        elif _length_of(g, part) == (reshape.input[0], position) or (
            position < rank - 1 and _length_of(g, part) in {(tensor, position) for tensor in leading}
        ):
            shape.append(0)
        else:
            return None
    return shape


def _of_equal_lead(g: Graph, tensor: str) -> Iterator[str]:
    """Earlier tensors whose lengths `tensor` has in all axes but the last: products with a matrix keep
    them."""
    node = g.maker.get(tensor)
    while node is not None:
        if node.op_type == "MatMul" and len(g.lengths(node.input[1])) == 2:
            tensor = node.input[0]
        elif node.op_type == "Add" and 1 in (sides := [len(g.lengths(i)) for i in node.input]):
            tensor = node.input[1 - sides.index(1)]
        else:
            return
        yield tensor
        node = g.maker.get(tensor)


def _length_of(g: Graph, name: str) -> tuple[str, int] | None:
    """If `name` is the length of a tensor along an axis, written as `Unsqueeze(Gather(Shape(tensor), axis))`:
    that tensor and that axis; else None."""
    chain = g.chain(name, "Unsqueeze", "Gather", "Shape")
    if not chain:
        return None
    _, gather, shape = chain
    index = gather.input[1]
    if index not in g.constants or g.constants[index].dims or shape.attribute:
        return None
    return shape.input[0], int(g.value(index))


@node_by_node
def repeated_afterwards(g: Graph, conv: NodeProto) -> Sequence[NodeProto] | None:
    """If columns are repeated before a convolution of one tap, repeat the convolution's output instead, so
    that each column is computed once."""
    repeat = g.made_by(conv.input[0], "Resize") if _is_of_one_tap(g, conv) else None
    if repeat is None or g.only_reader(repeat.output[0], "Conv") is None:
        return None
    if attributes_of(repeat).get("mode", b"nearest") != b"nearest":
        return None
    before = f"{conv.output[0]}/once"
    return [
        copied(conv, [repeat.input[0], *conv.input[1:]], before),
        copied(repeat, [before, *repeat.input[1:]], conv.output[0]),
    ]


def _is_of_one_tap(g: Graph, conv: NodeProto) -> bool:
    given = attributes_of(conv)
    plain = not any(given.get("pads", [0])) and set(given.get("strides", [1])) == {1}
    return plain and convolution_over_time(g, conv)[2:] == (1,)
