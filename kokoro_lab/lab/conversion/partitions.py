"""Which nodes of a graph a provider takes, and in how many pieces.

ONNX Runtime cuts a graph into partitions: what a provider takes goes to it piece by piece, what it refuses
is the CPU's, and tensors are copied in between. It does so in silence when a session is made. Here it is
worked out for Core ML on any machine, by `coreml_rules`; `assigned` asks ONNX Runtime itself for providers
that are there.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import onnx
import onnxruntime as ort
from onnx import NodeProto

from kokoro_lab.graphs import rewriting
from kokoro_lab.graphs.rewriting import Graph
from kokoro_lab.lab.conversion.coreml_rules import PredictableProvider, Tensor, refusal


@dataclass(frozen=True, slots=True)
class Partitioning:
    """What a provider makes of a graph.

    Parameters
    ----------
    provider : str
    nodes : int
    partitions : tuple of tuple of str
        Names of the nodes of each piece that it takes.
    refused : mapping of str to tuple of str
        Name of each node that it refuses → operator and reason.
    """

    provider: str
    nodes: int
    partitions: tuple[tuple[str, ...], ...]
    refused: Mapping[str, tuple[str, str]]

    @property
    def taken(self) -> frozenset[str]:
        """Names of all nodes that it takes."""
        return frozenset(name for piece in self.partitions for name in piece)

    @property
    def reasons(self) -> dict[tuple[str, str], int]:
        """(operator, reason) → how many nodes, most first."""
        return dict(Counter(self.refused.values()).most_common())


def load(path: Path) -> rewriting.Model:
    """A graph without the weights that lie beside it."""
    return onnx.load(path, load_external_data=False)


def partition(
    model: rewriting.Model, provider: PredictableProvider, seen: Mapping[str, Tensor] | None = None
) -> Partitioning:
    """Foretell which nodes a provider takes.

    Parameters
    ----------
    model : Model
        As ONNX Runtime hands it to providers: after its basic optimisations, shapes inferred (see
        `node_costs.optimised`). Node names must differ.
    seen : mapping of str to Tensor, optional
        What tensors were in a run (see `node_costs.observe`), for a provider that asks for it.
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
        len(g.graph.node),
        tuple(tuple(piece) for piece in _pieces(g, taken)),
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


def _pieces(g: Graph, taken: Set[str]) -> list[list[str]]:
    """Group the nodes as ONNX Runtime does (`CreateSupportedPartitionNodeGroups`).

    Nodes are visited when all that they read is made. What is refused next to the open piece waits until the
    piece can grow no more, so that a piece is as large as it can be.
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
    pieces: list[list[str]] = []
    piece: list[str] = []
    border: set[str] = set()
    while ready or later or piece:
        if not ready:
            pieces += [piece] if piece else []
            piece, border, ready, later = [], set(), later, deque()
            continue
        node = ready.popleft()
        if node.name in taken:
            piece.append(node.name)
            border.update(reader.name for reader in readers.get(node.name, ()))
        elif node.name in border:
            later.append(node)
            continue
        for reader in readers.get(node.name, ()):
            waiting_for[reader.name] -= 1
            if not waiting_for[reader.name]:
                ready.append(reader)
    return pieces


def assigned(
    model: Path, requested: Sequence[str | tuple[str, dict[str, str]]]
) -> dict[str, tuple[int, int]]:
    """What ONNX Runtime itself gives to each provider that is here.

    Parameters
    ----------
    model : Path
    requested : sequence
        Providers as `InferenceSession` takes them, the best first; the CPU takes what is left.

    Returns
    -------
    dict
        Provider → pieces and nodes. The CPU's nodes count as a piece each.
    """
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    session = ort.InferenceSession(str(model), options, providers=list(requested))
    found: dict[str, tuple[int, int]] = {}
    for piece in session.get_provider_graph_assignment_info():
        pieces, nodes = found.get(piece.ep_name, (0, 0))
        found[piece.ep_name] = (pieces + 1, nodes + len(piece.get_nodes()))
    return found
