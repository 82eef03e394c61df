"""Our operators cut out of a graph, each with its counterpart in the graph without our operators.

For each kind of operator in a stage, the node with the most work is taken, with the tensors that the node
reads and writes while a real text is spoken. Its counterpart is the part of the other graph that computes the
same outputs from the same inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.g2p.vocab import PAD_ID
from kokoro_lab.graphs import signatures
from kokoro_lab.graphs.adain import AdainLayers
from kokoro_lab.graphs.artefacts import stages_folder
from kokoro_lab.lab.conversion.node_costs import MATRIX_PRODUCTS, node_operations
from kokoro_lab.lab.tuning.comparison import Spoken
from kokoro_lab.native.operators import Native, native_operators
from kokoro_lab.sessions.providers import make_session

Tensors = dict[str, np.ndarray[Any, Any]]
PRODUCTS = ("Conv", "ConvTranspose", "LSTM", *MATRIX_PRODUCTS)


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A node that runs our operator (`ours`), its counterpart without our operators (`theirs`), and the
    inputs of both.

    `operations` counts the multiplications and additions of the node's products, as these are defined.
    `traffic_bytes` counts the bytes of all inputs, weights and outputs once.
    """

    kind: str
    stage: str
    ours: onnx.ModelProto
    theirs: onnx.ModelProto
    feed: Tensors
    their_feed: Tensors
    operations: float
    traffic_bytes: float


@dataclass(frozen=True, slots=True, eq=False)
class RunStage:
    """A stage's graph with our operators (`ours`) and without (`theirs`), and the tensors of one run
    (`seen`): inputs and outputs of the stage, and inputs and outputs of our operators."""

    name: str
    ours: onnx.ModelProto
    theirs: onnx.ModelProto
    seen: Tensors


def stages_of(config: EngineConfig, spoken: Spoken, window_frames: int) -> list[RunStage]:
    """Run every stage of a variant while it speaks one segment.

    Parameters
    ----------
    window_frames : int
        Length of the window from the segment's middle that the vocoder decodes, in trunk frames of 12.5 ms.
    """
    native = native_operators(config)
    folders = stages_folder(config, native), stages_folder(replace(config, native="off"), Native(None))
    feed, found = first_feed(*spoken), []
    for stage in signatures.STAGES:
        ours, theirs = (onnx.load(signatures.graph_path(folder, stage)) for folder in folders)
        if stage == "vocoder":
            feed = window_feed(feed, folders[0], spoken[1], window_frames)
        seen = _seen(ours, feed, config, native)
        feed |= seen
        found.append(RunStage(stage, ours, theirs, seen))
    return found


def first_feed(token_ids: Sequence[int], style: np.ndarray[Any, Any]) -> Tensors:
    """The inputs of the prosody, and those inputs of the trunk that the prosody does not compute."""
    return {
        "input_ids": np.array([[PAD_ID, *token_ids, PAD_ID]], np.int64),
        "style": style,
        "speed": np.array([1.0], np.float32),
        signatures.DECODER_STYLE: style[:, :128],
    }


def window_feed(feed: Tensors, folder: Path, style: np.ndarray[Any, Any], frames: int) -> Tensors:
    """The vocoder's inputs for a window from the middle of a segment. The vocoder computes the statistics of
    this window itself."""
    trunk = feed[signatures.TRUNK]
    first = max(0, (trunk.shape[2] - frames) // 2)
    last = min(trunk.shape[2], first + frames)
    samples = slice(
        first * signatures.TRUNK_FRAME_SAMPLES,
        last * signatures.TRUNK_FRAME_SAMPLES + signatures.STFT_SIZE_SAMPLES,
    )
    scale, shift = AdainLayers.load(folder / "layers.npz").style_alone(style)
    return {
        signatures.TRUNK: np.ascontiguousarray(trunk[:, :, first:last]),
        signatures.EXCITATION: np.ascontiguousarray(feed[signatures.EXCITATION][:, samples]),
        signatures.SCALE: scale,
        signatures.SHIFT: shift,
        signatures.INNER: np.array([0, last - first, 0, last - first]),
        signatures.KNOWN: np.array(False),
    }


def window_work(vocoder: RunStage, config: EngineConfig) -> tuple[float, float, int]:
    """The work of one window of the vocoder: the number of operations, the bytes of our operators' tensors
    and of all weights, and the number of nodes."""
    inputs = {each.name for each in vocoder.theirs.graph.input}
    given = {name: value for name, value in vocoder.seen.items() if name in inputs}
    nodes, weights = vocoder.ours.graph.node, vocoder.ours.graph.initializer
    names = [name for node in filter(is_ours, nodes) for name in (*node.input, *node.output)]
    moved = sum(vocoder.seen[name].nbytes for name in names if name in vocoder.seen)
    moved += sum(numpy_helper.to_array(each).nbytes for each in weights)
    return operations_of(vocoder.theirs, given, config), float(moved), len(nodes)


def is_ours(node: onnx.NodeProto) -> bool:
    return node.domain == "kokoro_lab"


def session_of(model: onnx.ModelProto, config: EngineConfig, library: Path | None) -> Any:
    return make_session(
        model.SerializeToString(), replace(config, threads=1, provider="cpu"), library=library
    )


def _seen(model: onnx.ModelProto, feed: Tensors, config: EngineConfig, native: Native) -> Tensors:
    """Every tensor that goes into one of our operators or comes out of one, and the stage's inputs and
    outputs."""
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    made = {name for node in model.graph.node for name in node.output}
    wanted = [n for node in model.graph.node if is_ours(node) for n in (*node.input, *node.output)]
    outputs = [each.name for each in model.graph.output]
    inner = [name for name in dict.fromkeys(wanted) if name in made and name not in outputs]
    shown.graph.output.extend(onnx.ValueInfoProto(name=name) for name in inner)
    inputs = {each.name for each in model.graph.input}
    if "stop" in inputs:
        feed = signatures.whole_trunk(feed[signatures.ALIGNED].shape[2]) | feed
    given = {name: value for name, value in feed.items() if name in inputs}
    session = session_of(shown, config, native.library)
    names = [*outputs, *inner]
    return given | dict(zip(names, session.run(names, given), strict=True))


def cases(stage: RunStage, config: EngineConfig) -> Iterator[Case]:
    """For each kind of our operators in a stage, the node with the most work."""
    seen = stage.seen
    weights = {each.name: int(np.prod(each.dims)) for each in stage.ours.graph.initializer}
    there = {name for node in stage.theirs.graph.node for name in node.output}

    def work(node: onnx.NodeProto) -> int:
        size = sum(weights.get(name, 0) for name in node.input) or 1
        return size * max(seen[name].size for name in node.output if name)

    # If the other graph lacks one of a node's outputs, no part of that graph does the same work
    nodes = [
        node for node in filter(is_ours, stage.ours.graph.node) if set(filter(None, node.output)) <= there
    ]
    taken: set[str] = set()
    for node in sorted(nodes, key=work, reverse=True):
        outputs = list(filter(None, node.output))
        feed = {name: seen[name] for name in node.input if name in seen}
        theirs, their_feed = between(stage.theirs, feed, outputs, seen)
        if node.op_type in taken or not their_feed.keys() <= feed.keys():
            continue  # the counterpart would need an input that this node does not have
        taken.add(node.op_type)
        ours = _model(stage.ours, [node], feed, outputs)
        arrays = [*feed.values(), *(seen[name] for name in outputs)]
        moved = sum(array.nbytes for array in [*arrays, *map(numpy_helper.to_array, ours.graph.initializer)])
        operations = operations_of(theirs, their_feed, config)
        yield Case(node.op_type, stage.name, ours, theirs, feed, their_feed, operations, float(moved))


def _names_in(node: onnx.NodeProto) -> Iterator[str]:
    """Names of the tensors that a node and the nodes in its branches read."""
    yield from node.input
    for attribute in node.attribute:
        for inner in attribute.g.node:
            yield from _names_in(inner)


def between(
    model: onnx.ModelProto, feed: Tensors, outputs: Sequence[str], seen: Tensors
) -> tuple[onnx.ModelProto, Tensors]:
    """The part of a graph that computes `outputs` from the tensors of `feed`, and the inputs of this part.
    Inputs of the graph that are not in `feed` are taken from `seen`."""
    makers = {name: node for node in model.graph.node for name in node.output}
    inputs = {each.name for each in model.graph.input}
    fed: Tensors = {}
    needed: set[int] = set()
    todo = list(outputs)
    while todo:
        name = todo.pop()
        if name not in outputs and name in feed:
            fed[name] = feed[name]
        elif name in inputs:
            fed[name] = seen[name]
        elif name in makers and id(makers[name]) not in needed:
            needed.add(id(makers[name]))
            todo += _names_in(makers[name])
    nodes = [node for node in model.graph.node if id(node) in needed]
    return _model(model, nodes, fed, outputs), fed


def _model(
    model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto], feed: Tensors, outputs: Sequence[str]
) -> onnx.ModelProto:
    """A model that consists of `nodes`, some nodes of `model`, and their weights."""
    read = {name for node in nodes for name in _names_in(node)}
    given = [
        onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), [None] * array.ndim
        )
        for name, array in feed.items()
    ]
    weights = [each for each in model.graph.initializer if each.name in read and each.name not in feed]
    shown = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = onnx.helper.make_graph(list(nodes), "part", given, shown, weights)
    return onnx.helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


def operations_of(model: onnx.ModelProto, feed: Tensors, config: EngineConfig) -> float:
    """The additions and multiplications of a graph's convolutions, matrix products and recurrent layers, as
    these are defined, not as a fast algorithm computes them."""
    weights = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    nodes = [node for node in model.graph.node if node.op_type in PRODUCTS]
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    made = {name for node in model.graph.node for name in node.output}
    names = [name for node in nodes for name in (*node.input[:3], node.output[0]) if name in made]
    names = list(dict.fromkeys(names))
    there = {each.name for each in model.graph.output}
    shown.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in there)
    arrays = feed | weights
    if names:
        arrays |= dict(zip(names, session_of(shown, config, None).run(names, feed), strict=True))
    return sum(
        node_operations(node.op_type, [arrays[n].shape for n in node.input[:3]], arrays[node.output[0]].size)
        for node in nodes
    )
