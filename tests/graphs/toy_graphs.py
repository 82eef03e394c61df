"""Small graphs for those who rewrite graphs: a model of some nodes, and AdaIN as it was published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, TensorProto, helper, numpy_helper

from kokoro_lab.graphs.rewriting import Model
from kokoro_lab.graphs.signatures import EPSILON

STYLE = 128
Constants = dict[str, npt.NDArray[Any]]


def model_of(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Sequence[object]],
    constants: Mapping[str, npt.ArrayLike],
    output: str = "y",
) -> Model:
    """A graph of float inputs, by name and shape, that gives `output`."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, list(s)) for n, s in inputs.items()],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def adain(
    channels: int, square: Sequence[str], made: str, name: str, rng: np.random.Generator
) -> tuple[list[NodeProto], Constants]:
    """`x` over time and `style` to `made`: normalised, scaled and shifted; and the constants that this takes.

    `square` is an operator with what it reads behind `centred`: `("Pow", "two")`, or `("Mul", "centred")`.
    """
    n = helper.make_node
    constants: Constants = {
        "axes": np.array([2], np.int64),
        "two": np.array(2, np.float32),
        "epsilon": np.array(EPSILON, np.float32),
        "one": np.array(1, np.float32),
        "fc.weight": rng.normal(size=(2 * channels, STYLE)).astype(np.float32) * 0.1,
        "fc.bias": rng.normal(size=2 * channels).astype(np.float32),
        "split": np.array([channels, channels], np.int64),
        "column": np.array([2], np.int64),
    }
    operator, *read = square
    nodes = [
        n("Gemm", ["style", "fc.weight", "fc.bias"], ["h"], transB=1),
        n("Split", ["h", "split"], ["gamma_row", "beta_row"], axis=1),
        n("Unsqueeze", ["gamma_row", "column"], ["gamma"]),
        n("Unsqueeze", ["beta_row", "column"], ["beta"]),
        n("ReduceMean", ["x", "axes"], ["mean"]),
        n("Sub", ["x", "mean"], ["centred"]),
        n(operator, ["centred", *read], ["squared"]),
        n("ReduceMean", ["squared", "axes"], ["variance"]),
        n("Add", ["variance", "epsilon"], ["stable"]),
        n("Sqrt", ["stable"], ["deviation"]),
        n("Div", ["centred", "deviation"], ["normal"]),
        n("Add", ["gamma", "one"], ["factor"]),
        n("Mul", ["factor", "normal"], ["scaled"]),
        n("Add", ["scaled", "beta"], [made], name=name),
    ]
    return nodes, constants
