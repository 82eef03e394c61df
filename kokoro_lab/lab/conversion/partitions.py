"""Predicts which nodes of a graph a provider takes, in how many partitions, and why it refuses the others.

ONNX Runtime cuts a graph into partitions: the nodes that a provider takes go to it, the others to the CPU,
and tensors are copied in between. ONNX Runtime does so without a report when a session is made. This module
predicts it for Core ML on any machine: by the lists of operators that ship with ONNX Runtime for both of Core
ML's formats (`onnxruntime/tools/mobile_helpers`), by their notes, and by rules for shapes, some of which are
only in the provider's source (`core/providers/coreml/builders`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import onnx
import onnxruntime as ort
from onnx import NodeProto, TensorProto

from kokoro_lab.graphs import rewriting
from kokoro_lab.graphs.rewriting import Graph
from kokoro_lab.graphs.static_passes import LONGEST_AXIS

MOST_AXES = 5
"""Core ML's provider refuses tensors with more axes than this."""
NOT_LISTED = "operator not on the list"
NO_SHAPE = "shape unknown"
DYNAMIC = "shape not fixed"
TOO_LONG = f"an axis of 0 or over {LONGEST_AXIS:,}"
TOO_MANY = f"over {MOST_AXES} axes"
NO_FLOATS = "not on floats"

_FLOATS = {TensorProto.FLOAT, TensorProto.FLOAT16}
_OTHER_TYPES_TOO = {"Cast", "Gather", "Shape", "Slice", "And", "Where"}
"""Operators that the provider takes on integers or booleans too."""


@dataclass(frozen=True, slots=True)
class PredictableProvider:
    """A provider whose choice can be predicted.

    Parameters
    ----------
    name : str
    listed : frozenset of str or None
        Operators that the provider takes, as `domain:operator`; None if it takes all.
    ml_program : bool
        Whether graphs become Core ML's newer format, ML Program: it takes some nodes that the older one,
        NeuralNetwork, refuses.
    fixed_shapes_only : bool
        Whether the provider's option `RequireStaticInputShapes` is set: nodes with a dynamic shape are
        refused.
    shapes_seen : bool
        Whether to treat every shape as fixed at what it was in a run. Nodes that are still refused are
        refused for their operator or size.
    """

    name: str
    listed: frozenset[str] | None
    ml_program: bool = False
    fixed_shapes_only: bool = False
    shapes_seen: bool = False


@cache
def providers() -> tuple[PredictableProvider, ...]:
    """The CPU; Core ML with each of its two formats, as it is and as if all shapes were fixed; and Core ML
    with the format ML Program and the option for fixed shapes only."""
    newer = _listed("coreml_supported_mlprogram_ops.md")
    older = _listed("coreml_supported_neuralnetwork_ops.md")
    return (
        PredictableProvider("CPU", None),
        PredictableProvider("Core ML, MLProgram", newer, ml_program=True),
        PredictableProvider(
            "Core ML, MLProgram, fixed shapes only", newer, ml_program=True, fixed_shapes_only=True
        ),
        PredictableProvider(
            "Core ML, MLProgram, if shapes were fixed", newer, ml_program=True, shapes_seen=True
        ),
        PredictableProvider("Core ML, NeuralNetwork", older),
        PredictableProvider("Core ML, NeuralNetwork, if shapes were fixed", older, shapes_seen=True),
    )


def _listed(name: str) -> frozenset[str]:
    """The operators of one of ONNX Runtime's lists: tables of `|domain:operator|note|`."""
    path = Path(ort.__file__).parent / "tools" / "mobile_helpers" / name
    rows = (line.split("|") for line in path.read_text("utf-8").splitlines() if line.startswith("|"))
    return frozenset(row[1].strip() for row in rows if ":" in row[1] and row[1].strip("-: "))


Tensor = tuple[int, tuple[int | None, ...] | None]
"""Type and shape of a tensor. An unknown length is None; the shape is None if even the number of axes is
unknown."""


def refusal(
    node: NodeProto, g: Graph, tensors: Mapping[str, Tensor], provider: PredictableProvider
) -> str | None:
    """Why the provider refuses a node; None if it takes it. The first reason counts."""
    if provider.listed is None:
        return None
    if f"{node.domain or 'ai.onnx'}:{node.op_type}" not in provider.listed:
        return NOT_LISTED
    for name in filter(None, node.input):
        _, lengths = tensors.get(name, (0, None))
        if lengths is None:
            return NO_SHAPE
        if provider.fixed_shapes_only and None in lengths:
            return DYNAMIC
        if any(n is not None and not 0 < n <= LONGEST_AXIS for n in lengths):
            return TOO_LONG
        if len(lengths) > MOST_AXES:
            return TOO_MANY
    if node.op_type not in _OTHER_TYPES_TOO and tensors[node.input[0]][0] not in _FLOATS:
        return NO_FLOATS
    note = _NOTES.get(node.op_type)
    return note(_NodeQuestion(node, g, tensors, provider)) if note is not None else None


@dataclass(frozen=True, slots=True)
class _NodeQuestion:
    """A node that one of the functions in `_NOTES` examines, with all that these functions need."""

    node: NodeProto
    g: Graph
    tensors: Mapping[str, Tensor]
    provider: PredictableProvider

    def constant(self, first: int) -> bool:
        """Whether the inputs from `first` on are constants."""
        return all(not name or name in self.g.constants for name in self.node.input[first:])

    def lengths(self, k: int) -> tuple[int | None, ...]:
        return self.tensors[self.node.input[k]][1] or ()

    def attribute(self, name: str, default: Any) -> Any:
        held = next((a for a in self.node.attribute if a.name == name), None)
        return default if held is None else onnx.helper.get_attribute_value(held)


def _only(why: str, holds: Callable[[_NodeQuestion], bool]) -> Callable[[_NodeQuestion], str | None]:
    """A note of `_NOTES` that refuses a node, with the reason `why`, unless something `holds` for it."""
    return lambda a: None if holds(a) else why


_CONSTANTS = _only("needs constants", lambda a: a.constant(1))


def _conv(a: _NodeQuestion) -> str | None:
    if len(a.lengths(0)) not in (3, 4):
        return "only of one or two axes"
    return None if a.constant(2 if a.provider.ml_program else 1) else "needs constants"


def _conv_transpose(a: _NodeQuestion) -> str | None:
    """Why the provider refuses a transposed convolution, or None. The provider's code asks for one thing more
    than the published list of operators says: the same padding on all sides."""
    pads = a.attribute("pads", ())
    if not a.constant(1):
        return "needs constants"
    if a.attribute("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID") or len(set(pads)) != 1:
        return "padding not the same on all sides"
    plain = not a.attribute("output_shape", ()) and not any(a.attribute("output_padding", ()))
    return None if plain else "padded output"


def _slice(a: _NodeQuestion) -> str | None:
    if None in a.lengths(0):
        return DYNAMIC
    return _CONSTANTS(a)


def _padded_by_a_constant(a: _NodeQuestion) -> bool:
    return a.constant(1) and bool(a.attribute("mode", b"constant") == b"constant")


_NOTES: Mapping[str, Callable[[_NodeQuestion], str | None]] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Gather": _only("a single index", lambda a: bool(a.lengths(1))),
    **dict.fromkeys(("Gemm", "ReduceMean", "ReduceSum", "Split"), _CONSTANTS),
    "Pad": _only("only with a constant", _padded_by_a_constant),
    "Pow": _only(NO_FLOATS, lambda a: a.tensors[a.node.input[1]][0] in _FLOATS),
    "Resize": _only("only of four axes", lambda a: len(a.lengths(0)) == 4),
    "Slice": _slice,
}


# -------------------------------------------------------------------------------------- partitions


@dataclass(frozen=True, slots=True)
class Partitioning:
    """The partitions of a graph for a provider.

    Parameters
    ----------
    provider : str
    partitions : tuple of tuple of str
        Names of the nodes of each partition that the provider takes.
    refused : mapping of str to tuple of str
        Name of each node that the provider refuses → operator and reason.
    """

    provider: str
    partitions: tuple[tuple[str, ...], ...]
    refused: Mapping[str, tuple[str, str]]

    @property
    def taken(self) -> frozenset[str]:
        """Names of all nodes that the provider takes."""
        return frozenset(name for group in self.partitions for name in group)


def load(path: Path) -> rewriting.Model:
    """A graph without the weights that lie beside it."""
    return onnx.load(path, load_external_data=False)


def partition(
    model: rewriting.Model, provider: PredictableProvider, seen: Mapping[str, Tensor] | None = None
) -> Partitioning:
    """Predict which nodes a provider takes.

    Parameters
    ----------
    model : Model
        As ONNX Runtime hands it to providers: after its basic optimisations, shapes inferred (see
        `node_costs.optimised`). Node names must differ.
    seen : mapping of str to Tensor, optional
        Types and lengths of the tensors in a run (see `node_costs.observe`), for a provider with
        `shapes_seen`.
    """
    g = Graph(model)
    tensors = _tensors(model)
    if provider.shapes_seen:
        tensors |= seen or {}
    reasons = {node.name: refusal(node, g, tensors, provider) for node in g.graph.node}
    taken = {name for name, reason in reasons.items() if reason is None}
    operators = {node.name: node.op_type for node in g.graph.node}
    return Partitioning(
        provider.name,
        tuple(tuple(group) for group in _node_groups(g, taken)),
        {name: (operators[name], reason) for name, reason in reasons.items() if reason is not None},
    )


def _tensors(model: rewriting.Model) -> dict[str, Tensor]:
    graph = model.graph
    found: dict[str, Tensor] = {}
    for value in (*graph.value_info, *graph.input, *graph.output):
        held = value.type.tensor_type
        lengths = tuple(d.dim_value if d.HasField("dim_value") else None for d in held.shape.dim)
        found[value.name] = (held.elem_type, lengths if held.HasField("shape") else None)
    found |= {c.name: (c.data_type, tuple(c.dims)) for c in graph.initializer}
    return found


def _node_groups(g: Graph, taken: Set[str]) -> list[list[str]]:
    """Group the nodes as ONNX Runtime does (`CreateSupportedPartitionNodeGroups`).

    A node is visited after all nodes that make its inputs. Refused nodes next to the open group wait until no
    further node can join it, so that groups are as large as possible.
    """
    readers: dict[str, list[NodeProto]] = {}
    waiting_for: dict[str, int] = {}
    for node in g.graph.node:
        makers = {g.maker[i].name for i in rewriting.reads(node) if i in g.maker}
        waiting_for[node.name] = len(makers)
        for maker in makers:
            readers.setdefault(maker, []).append(node)
    ready = deque(node for node in g.graph.node if not waiting_for[node.name])
    later: deque[NodeProto] = deque()
    groups: list[list[str]] = []
    group: list[str] = []
    border: set[str] = set()
    while ready or later or group:
        if not ready:
            groups += [group] if group else []
            group, border, ready, later = [], set(), later, deque()
            continue
        node = ready.popleft()
        if node.name in taken:
            group.append(node.name)
            border.update(reader.name for reader in readers.get(node.name, ()))
        elif node.name in border:
            later.append(node)
            continue
        for reader in readers.get(node.name, ()):
            waiting_for[reader.name] -= 1
            if not waiting_for[reader.name]:
                ready.append(reader)
    return groups
