"""Measures each node of a graph: its time on the CPU by ONNX Runtime's profiler, and its arithmetic."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt
import onnx
import onnxruntime as ort
import pandas as pd
from onnx import NodeProto, TensorProto

from kokoro_lab.graphs.rewriting import Graph

SMALL_BYTES = 4096
MATRIX_PRODUCTS = ("MatMul", "Gemm", "MatMulInteger", "MatMulIntegerToFloat")
Feed = Mapping[str, npt.NDArray[Any]]


def optimised(model: Path, folder: Path, feed: Feed | None = None) -> Path:
    """Write the graph to `folder` as ONNX Runtime hands it to providers: after basic optimisations, with
    shapes, and with a name for each node.

    Its large weights lie in a file beside it.

    Parameters
    ----------
    feed : mapping of str to numpy.ndarray, optional
        Examples of the inputs. An input whose number of axes the graph leaves open gets as many as its
        example has; the last axis may have any length.
    """
    if feed is not None:
        model = _with_axes(model, feed, folder)
    path = folder / f"{model.stem}.basic.onnx"
    options = _options(ort.GraphOptimizationLevel.ORT_ENABLE_BASIC)
    options.optimized_model_filepath = str(path)
    options.add_session_config_entry(
        "session.optimized_model_external_initializers_file_name", f"{model.stem}.weights"
    )
    # Small weights stay in the graph, since shapes follow from them
    options.add_session_config_entry(
        "session.optimized_model_external_initializers_min_size_in_bytes", str(SMALL_BYTES)
    )
    ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    graph = onnx.shape_inference.infer_shapes(onnx.load(path, load_external_data=False), data_prop=True)
    for k, node in enumerate(graph.graph.node):
        node.name = f"{k}:{node.name or node.op_type}"
    onnx.save(graph, path)
    return path


def _with_axes(model: Path, feed: Feed, folder: Path) -> Path:
    """The model, or a copy of it in `folder` that states how many axes each input has."""
    graph = onnx.load(model, load_external_data=False)
    open_ones = [i for i in graph.graph.input if not i.type.tensor_type.HasField("shape")]
    if not open_ones:
        return model
    for value in open_ones:
        shape = value.type.tensor_type.shape
        for length in feed[value.name].shape[:-1]:
            shape.dim.add().dim_value = length
        shape.dim.add().dim_param = f"{value.name}_length"
    path = folder / f"{model.stem}.axes.onnx"
    onnx.save(graph, path)
    return path


@dataclass(frozen=True, slots=True, eq=False)
class GraphRun:
    """One run of a graph.

    Parameters
    ----------
    costs : pandas.DataFrame
        By node: time_s on the CPU, with ONNX Runtime's default number of threads; operations, the number of
        multiplications and additions, two for each product that is added up.
    tensors : mapping of str to tuple
        Type and lengths of each output of each node.
    outputs : mapping of str to numpy.ndarray
    """

    costs: pd.DataFrame
    tensors: Mapping[str, tuple[int, tuple[int, ...]]]
    outputs: Mapping[str, npt.NDArray[Any]]


def observe(model: Path, feed: Feed, runs: int = 1) -> GraphRun:
    """Run a graph without further optimisation, and measure each node's time and tensors.

    Parameters
    ----------
    model : Path
        From `optimised`, so that no node is fused with another and every one has a name.
    feed : mapping of str to numpy.ndarray
        Values of the inputs; values that the graph does not need are ignored.
    runs : int
        How many runs are timed, after a first run that is not timed.
    """
    graph = Graph(onnx.load(model, load_external_data=False))
    with tempfile.TemporaryDirectory() as folder:
        options = _options(ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(folder) / "profile")
        session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        wanted = {i.name: feed[i.name] for i in session.get_inputs()}
        names = [o.name for o in session.get_outputs()]
        for _ in range(runs + 1):
            outputs = session.run(names, wanted)
        events = json.loads(Path(session.end_profiling()).read_text("utf-8"))
    begin_us = sorted(e["ts"] for e in events if e["name"] == "model_run")[1]
    nodes = {node.name: node for node in graph.graph.node}
    costs: list[tuple[str, float, float]] = []
    tensors = {name: (_TYPES[str(value.dtype)], value.shape) for name, value in wanted.items()}
    for event in events:
        name = event["name"].removesuffix("_kernel_time")
        if event["cat"] != "Node" or name == event["name"] or name not in nodes or event["ts"] < begin_us:
            continue
        node = nodes[name]
        costs.append((name, event["dur"] / 1e6 / runs, _operations(node, graph, event["args"]) / runs))
        made = event["args"]["output_type_shape"]
        # If a node gives only some of its outputs, the profiler does not say which
        if len(made) == len([o for o in node.output if o]):
            tensors |= {
                o: (_TYPES[next(iter(held))], tuple(next(iter(held.values()))))
                for o, held in zip(filter(None, node.output), made, strict=True)
                if next(iter(held)) in _TYPES
            }
    table = pd.DataFrame(costs, columns=["node", "time_s", "operations"]).groupby("node").sum()
    return GraphRun(table, tensors, dict(zip(names, outputs, strict=True)))


_TYPES = {
    "float": TensorProto.FLOAT,
    "float32": TensorProto.FLOAT,
    "int64": TensorProto.INT64,
    "int32": TensorProto.INT32,
    "bool": TensorProto.BOOL,
}
"""Name of a type, as the profiler or NumPy writes it → ONNX's number for this type."""


def _options(level: Any) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = level
    return options


def _operations(node: NodeProto, graph: Graph, args: Mapping[str, Any]) -> float:
    made = sum(
        math.prod(_lengths(args["output_type_shape"], k)) for k in range(len(args["output_type_shape"]))
    )
    shapes = [
        tuple(graph.constants[i].dims) if i in graph.constants else _lengths(args["input_type_shape"], k)
        for k, i in enumerate(node.input)
    ]
    return node_operations(node.op_type, shapes, made)


def node_operations(kind: str, shapes: Sequence[tuple[int, ...]], made: int) -> float:
    """The additions and multiplications of one run of a node, as its kind is defined, not as a fast algorithm
    computes them. A node that computes no products has one for each value of its outputs.

    Parameters
    ----------
    kind : str
        ONNX's name of the operator.
    shapes : sequence of tuple of int
        The shape of each input.
    made : int
        The number of values in all outputs.
    """
    if kind == "Conv":
        return 2.0 * made * math.prod(shapes[1][1:])
    if kind == "ConvTranspose":
        return 2.0 * math.prod(shapes[0]) * math.prod(shapes[1][1:])
    if kind in MATRIX_PRODUCTS:
        return 2.0 * made * shapes[0][-1]
    if kind == "LSTM":
        return 2.0 * math.prod(shapes[0][:2]) * sum(math.prod(shape) for shape in shapes[1:3])
    if kind == "STFT":
        return 2.0 * made * math.prod(shapes[2])
    return float(made)


def _lengths(shapes: Sequence[Mapping[str, Sequence[int]]], k: int) -> tuple[int, ...]:
    return tuple(next(iter(shapes[k].values()))) if k < len(shapes) else ()
