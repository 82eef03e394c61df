"""Tools for passes: they find nodes and constants of a graph, and replace nodes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import NodeProto, ValueInfoProto, numpy_helper

Model = onnx.ModelProto
Pass = Callable[[Model], Model]
Swaps = dict[str, Sequence[NodeProto]]
"""Tensor → the nodes that replace the node which makes this tensor."""

END = int(np.iinfo(np.int64).max)
"""The end of a slice that reaches to the end of its axis."""
LENGTHS = 64
"""A constant with more values is taken to be no list of lengths, so ONNX's shape inference does not get its
values."""


class Graph:
    """A copy of a model's graph. `maker` finds a node by a tensor that it makes, `readers` finds the nodes
    that read a tensor, and `constants` finds a constant by its name."""

    def __init__(self, model: Model) -> None:
        self.model = Model()
        self.model.CopyFrom(model)
        self.graph = self.model.graph
        self.index()

    def index(self) -> None:
        self.maker = {o: n for n in self.graph.node for o in n.output}
        self.constants = {i.name: i for i in self.graph.initializer}
        self.readers: dict[str, list[NodeProto]] = {}
        for node in self.graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)

    def made_by(self, name: str | None, operator: str) -> NodeProto | None:
        """The node that makes the tensor `name`, if it is an `operator`; else None."""
        node = self.maker.get(name) if name else None
        return node if node is not None and node.op_type == operator else None

    def only_reader(self, name: str | None, operator: str) -> NodeProto | None:
        """The node that reads the tensor `name`, if no other node reads it and it is an `operator`; else
        None."""
        readers = self.readers.get(name, []) if name else []
        return readers[0] if len(readers) == 1 and readers[0].op_type == operator else None

    def chain(self, name: str, *operators: str, onwards: bool = False) -> list[NodeProto]:
        """If nodes of these `operators`, one after the other, lead to the tensor `name`: these nodes, the
        nearest first; else empty.

        Each node makes the first input of the node before it in the list. With `onwards`, the chain leads
        away from the tensor: each node is the only reader of the first output of the node before it.
        """
        found: list[NodeProto] = []
        for operator in operators:
            node = (self.only_reader if onwards else self.made_by)(name, operator)
            if node is None:
                return []
            found.append(node)
            name = node.output[0] if onwards else node.input[0]
        return found

    def value(self, name: str) -> npt.NDArray[Any]:
        array: npt.NDArray[Any] = numpy_helper.to_array(self.constants[name])
        return array

    def lengths(self, name: str) -> tuple[int, ...]:
        """If the tensor `name` is a constant: the lengths of its axes; else empty."""
        return tuple(self.constants[name].dims) if name in self.constants else ()

    def constant(self, name: str, value: npt.ArrayLike) -> str:
        """Add a constant, or replace the one of that name. Returns its name."""
        tensor = numpy_helper.from_array(np.asarray(value), name)
        if name in self.constants:
            self.constants[name].CopyFrom(tensor)
        else:
            self.graph.initializer.append(tensor)
            self.constants[name] = self.graph.initializer[-1]
        return name

    def integers(self, *values: int) -> str:
        """Add a constant of these integers, int64 (n,). Returns its name."""
        return self.constant("integers_" + "_".join(map(str, values)), np.array(values, np.int64))

    def has_input(self, name: str) -> bool:
        return any(given.name == name for given in self.graph.input)

    def add_input(self, name: str, kind: int, shape: Sequence[int | str] | None) -> None:
        self.graph.input.append(onnx.helper.make_tensor_value_info(name, kind, shape))

    def set_output(self, name: str, shape: Sequence[int] | None = None) -> None:
        """Make the float32 tensor `name` the only output of the graph."""
        del self.graph.output[:]
        self.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape))

    def rewritten(self, swaps: Swaps, head: Iterable[NodeProto] = ()) -> Model:
        """The model after nodes were replaced as `swaps` says, with the nodes of `head` before all others.
        The domains of new operators are declared. Nodes whose outputs nothing reads are removed."""
        nodes = [*head]
        if not swaps and not nodes:
            return self.model
        for node in self.graph.node:
            nodes.extend(swaps.get(node.output[0], (node,)))
        imported = {opset.domain for opset in self.model.opset_import}
        for domain in dict.fromkeys(node.domain for node in nodes):
            if domain not in imported:
                self.model.opset_import.append(onnx.helper.make_opsetid(domain, 1))
        return self.keep(nodes)

    def keep(self, nodes: Iterable[NodeProto]) -> Model:
        """The model with only these `nodes`, less those whose outputs neither another node nor the caller
        reads."""
        nodes = list(nodes)
        while True:
            read = {i for n in nodes for i in reads(n)} | {o.name for o in self.graph.output}
            alive = [n for n in nodes if any(o in read for o in n.output)]
            if len(alive) == len(nodes):
                break
            nodes = alive
        used = {i for n in nodes for i in reads(n)}
        graph = onnx.GraphProto()
        graph.name = self.graph.name
        graph.node.extend(nodes)
        graph.initializer.extend(c for c in self.graph.initializer if c.name in used)
        graph.input.extend(i for i in self.graph.input if i.name in used)
        graph.output.extend(self.graph.output)
        self.graph.CopyFrom(graph)
        self.index()
        return self.model


def node_by_node(rule: Callable[[Graph, NodeProto], Sequence[NodeProto] | None]) -> Pass:
    """A pass that replaces each node by the nodes that a rule returns for it; None keeps the node."""

    @wraps(rule)
    def rewrite(model: Model) -> Model:
        g = Graph(model)
        made = ((node.output[0], rule(g, node)) for node in g.graph.node)
        return g.rewritten({output: nodes for output, nodes in made if nodes is not None})

    return rewrite


def either_way(node: NodeProto | None, operator: str) -> Iterator[tuple[str, str]]:
    """If `node` is an `operator`: its two inputs, in one order and in the other; else empty."""
    if node is not None and node.op_type == operator:
        yield from ((node.input[0], node.input[1]), (node.input[1], node.input[0]))


def reads(node: NodeProto) -> Iterator[str]:
    """Every tensor that a node reads; if it is an If, also those that its branches read."""
    yield from node.input
    for attribute in node.attribute:
        if attribute.HasField("g"):
            for inner in attribute.g.node:
                yield from reads(inner)


def attributes_of(node: NodeProto) -> dict[str, Any]:
    """The attributes of a node, by name."""
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def copied(node: NodeProto, inputs: Sequence[str] | None = None, output: str | None = None) -> NodeProto:
    """A copy of a node with other inputs, or another name of its one output."""
    copy = NodeProto()
    copy.CopyFrom(node)
    if inputs is not None:
        copy.input[:] = inputs
    if output is not None:
        copy.output[:] = [output]
    return copy


def in_place_of(replaced: NodeProto, operator: str, inputs: Sequence[str], **attributes: Any) -> NodeProto:
    """A new node, of the type `operator`, with the name and the outputs of the node `replaced`."""
    outputs = list(replaced.output)
    node: NodeProto = onnx.helper.make_node(operator, inputs, outputs, name=replaced.name, **attributes)
    return node


def sliced(
    g: Graph, whole: str, part: str, start: int, stop: int, *, axis: int = 2, step: int | None = None
) -> NodeProto:
    """A node that makes the tensor `part`: the values of the tensor `whole` from `start` to `stop` along one
    axis, which is time unless another one is given."""
    bounds = [g.integers(value) for value in (start, stop, axis, step) if value is not None]
    node: NodeProto = onnx.helper.make_node("Slice", [whole, *bounds], [part], name=part)
    return node


def apply(model: Model, recipe: Sequence[Pass]) -> Model:
    """The model after every pass of `recipe`, in order."""
    for rewrite in recipe:
        model = rewrite(model)
    return model


def inferred(model: Model) -> list[ValueInfoProto]:
    """The inferred types and lengths of the tensors that nodes make.

    ONNX's inference copies the model several times, and only small constants can hold lengths. So it gets
    only the types and lengths of large constants, which takes 0.1 s instead of 1.5 s for the whole model.
    """
    light = Model(ir_version=model.ir_version, opset_import=model.opset_import)
    light.graph.node.extend(model.graph.node)
    light.graph.input.extend(model.graph.input)
    light.graph.output.extend(model.graph.output)
    light.graph.value_info.extend(model.graph.value_info)
    for tensor in model.graph.initializer:
        if math.prod(tensor.dims) <= LENGTHS:
            light.graph.initializer.append(tensor)
        else:
            stated = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            light.graph.input.append(stated)
    return list(onnx.shape_inference.infer_shapes(light).graph.value_info)


def shapes(values: Iterable[ValueInfoProto]) -> dict[str, list[int | str] | None]:
    """Input or output → the lengths of its axes. A length that varies is replaced by its name, which is "" if
    it has none. If the number of axes is not stated, the list is None."""
    found: dict[str, list[int | str] | None] = {}
    for value in values:
        tensor = value.type.tensor_type
        lengths = [d.dim_param if not d.HasField("dim_value") else d.dim_value for d in tensor.shape.dim]
        found[value.name] = lengths if tensor.HasField("shape") else None
    return found


def operators(model: Model) -> dict[str, int]:
    """Operator type → how many nodes of the model have this type, the most frequent first."""
    return dict(Counter(node.op_type for node in model.graph.node).most_common())
