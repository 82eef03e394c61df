"""What rewriting a graph takes: its nodes by what they make, its constants by name, and passes in a row."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import NodeProto, ValueInfoProto, numpy_helper

Model = onnx.ModelProto
Pass = Callable[[Model], Model]

LENGTHS = 64
"""Constants of no more values than this may be lengths."""


class Graph:
    """A model's graph with its nodes by what they make and its constants by name."""

    def __init__(self, model: Model) -> None:
        self.model = Model()
        self.model.CopyFrom(model)
        self.graph = self.model.graph
        self.index()

    def index(self) -> None:
        self.maker = {o: n for n in self.graph.node for o in n.output}
        self.constants = {i.name: i for i in self.graph.initializer}

    def value(self, name: str) -> npt.NDArray[Any]:
        array: npt.NDArray[Any] = numpy_helper.to_array(self.constants[name])
        return array

    def constant(self, name: str, value: npt.ArrayLike) -> str:
        """Add a constant, or replace the one of that name."""
        tensor = numpy_helper.from_array(np.asarray(value), name)
        if name in self.constants:
            self.constants[name].CopyFrom(tensor)
        else:
            self.graph.initializer.append(tensor)
            self.constants[name] = self.graph.initializer[-1]
        return name

    def replace(self, swaps: dict[str, Sequence[NodeProto]], head: Iterable[NodeProto] = ()) -> None:
        """Put new nodes in the place of the node that makes a tensor, and `head` before all others; drop
        what nothing reads then."""
        nodes = [*head]
        for node in self.graph.node:
            nodes.extend(swaps.get(node.output[0], (node,)))
        self.keep(nodes)

    def keep(self, nodes: Iterable[NodeProto]) -> None:
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


def reads(node: NodeProto) -> Iterator[str]:
    """Every tensor that a node reads, in its branches too."""
    yield from node.input
    for attribute in node.attribute:
        if attribute.HasField("g"):
            for inner in attribute.g.node:
                yield from reads(inner)


def said(node: NodeProto) -> dict[str, Any]:
    """The attributes of a node, by name."""
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def renamed(node: NodeProto, output: str) -> NodeProto:
    """The same node, but for what its one output is called."""
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.output[:] = [output]
    return copy


def apply(model: Model, recipe: Sequence[Pass]) -> Model:
    """The model after every pass of `recipe`, in order."""
    for rewrite in recipe:
        model = rewrite(model)
    return model


def inferred(model: Model) -> list[ValueInfoProto]:
    """What can be known of the type and the lengths of each tensor that a node makes.

    ONNX's inference copies the model several times over, and only small constants can tell it a length: it
    is given the types of the large ones alone (0.1 s instead of 1.5 s for the whole model).
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
    """Each input or output with its lengths, named where they vary, "" where they have no name; None where
    not even their number is stated."""
    found: dict[str, list[int | str] | None] = {}
    for value in values:
        tensor = value.type.tensor_type
        lengths = [d.dim_param if not d.HasField("dim_value") else d.dim_value for d in tensor.shape.dim]
        found[value.name] = lengths if tensor.HasField("shape") else None
    return found


def operators(model: Model) -> dict[str, int]:
    """How many nodes of each operator type, most first."""
    return dict(Counter(node.op_type for node in model.graph.node).most_common())
