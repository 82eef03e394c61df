"""What Core ML takes is foretold: by its list, its notes and its rules for shapes, and its partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

from kokoro_lab.graphs.rewriting import Model
from kokoro_lab.lab.conversion import partitions
from kokoro_lab.lab.conversion.node_costs import observe, optimised
from kokoro_lab.lab.conversion.partitions import PredictableProvider
from tests.graphs.assigned import assigned

CPU, PROGRAM, FIXED, SEEN, NETWORK, NETWORK_SEEN = partitions.providers()
CHANNELS, LENGTH = 4, 20


def graph(
    nodes: Sequence[NodeProto],
    length: int | str | None = LENGTH,
    constants: Mapping[str, Any] | None = None,
    kind: int = TensorProto.FLOAT,
    axes: int = 3,
) -> Model:
    """x through these nodes to y; shapes inferred, nodes named by what they make."""
    for node in nodes:
        node.name = node.output[0]
    shape = None if length is None else [1, CHANNELS, *([1] * (axes - 3)), length]
    made = helper.make_graph(
        list(nodes),
        "toy",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(np.asarray(v), name) for name, v in (constants or {}).items()],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    return onnx.shape_inference.infer_shapes(model, data_prop=True)


def n(op: str, inputs: str, output: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op, inputs.split(), [output], **attributes)


def reason(model: Model, provider: PredictableProvider = PROGRAM) -> str | None:
    """Why the node that makes y is refused."""
    return partitions.partition(model, provider).refused.get("y", ("", None))[1]


def test_the_cpu_takes_all_in_one_partition() -> None:
    found = partitions.partition(graph([n("Cos", "x", "a"), n("LSTM", "a", "y")]), CPU)
    assert found.partitions == (("a", "y"),)
    assert not found.refused


def test_the_lists_are_those_that_ship_with_onnx_runtime() -> None:
    assert PROGRAM.listed is not None
    assert NETWORK.listed is not None
    assert "ai.onnx:Cos" in PROGRAM.listed - NETWORK.listed
    assert "ai.onnx:BatchNormalization" in NETWORK.listed - PROGRAM.listed
    assert "ai.onnx:LSTM" not in PROGRAM.listed | NETWORK.listed


@pytest.mark.parametrize(("provider", "taken"), [(PROGRAM, True), (FIXED, True), (NETWORK, False)])
def test_an_operator_is_taken_if_it_is_listed(provider: PredictableProvider, taken: bool) -> None:
    assert (reason(graph([n("Cos", "x", "y")]), provider) is None) == taken


@pytest.mark.parametrize(
    ("length", "provider", "why"),
    [
        ("t", PROGRAM, None),
        ("t", FIXED, partitions.DYNAMIC),
        (None, PROGRAM, partitions.NO_SHAPE),
        (16_384, PROGRAM, None),
        (16_385, PROGRAM, partitions.TOO_LONG),
        (0, PROGRAM, partitions.TOO_LONG),
    ],
)
def test_lengths_decide(length: int | str | None, provider: PredictableProvider, why: str | None) -> None:
    assert reason(graph([n("Cos", "x", "y")], length), provider) == why


def test_six_axes_are_too_many() -> None:
    assert reason(graph([n("Cos", "x", "y")], axes=6)) == partitions.TOO_MANY
    assert reason(graph([n("Cos", "x", "y")], axes=5)) is None


def test_integers_are_refused_where_floats_are_meant() -> None:
    model = graph([n("Add", "x x", "y")], kind=TensorProto.INT64)
    assert reason(model) == partitions.NO_FLOATS
    assert reason(graph([n("Cast", "x", "y", to=TensorProto.FLOAT)], kind=TensorProto.INT64)) is None


WEIGHT = {"w": np.zeros((CHANNELS, 2, 4), np.float32)}


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        ({"strides": [2], "pads": [1, 1]}, None),
        ({"strides": [2], "pads": [1, 0]}, "padding not the same on all sides"),
        ({"strides": [2]}, "padding not the same on all sides"),  # the provider reads pads that are not there
        ({"strides": [2], "pads": [1, 1], "output_padding": [1]}, "padded output"),
    ],
)
def test_transposed_convolutions(attributes: Mapping[str, Any], why: str | None) -> None:
    model = graph([n("ConvTranspose", "x w", "y", **attributes)], constants=WEIGHT)
    assert reason(model) == why
    assert reason(model, NETWORK) == partitions.NOT_LISTED


def test_crops_must_be_constants() -> None:
    bounds = {name: np.array([k], np.int64) for name, k in (("a", 1), ("b", 5), ("axis", 2))}
    assert reason(graph([n("Slice", "x a b axis", "y")], constants=bounds)) is None
    assert reason(graph([n("Slice", "x a b axis", "y")], "t", bounds)) == partitions.DYNAMIC
    shape = n("Shape", "x", "s")
    computed = graph([shape, n("Slice", "x s b axis", "y")], constants=bounds)
    assert reason(computed) == "needs constants"


def test_what_runs_is_known_where_the_graph_does_not_say() -> None:
    model = graph([n("Cos", "x", "y")], None)
    seen = {"x": (TensorProto.FLOAT, (1, CHANNELS, LENGTH))}
    assert partitions.partition(model, SEEN, seen).taken == {"y"}
    assert not partitions.partition(model, PROGRAM, seen).taken


def test_a_refused_node_in_the_middle_makes_two_partitions() -> None:
    found = partitions.partition(graph([n("Cos", "x", "a"), n("Tan", "a", "b"), n("Cos", "b", "y")]), PROGRAM)
    assert found.partitions == (("a",), ("y",))
    assert list(found.refused.values()) == [("Tan", partitions.NOT_LISTED)]


def test_a_refused_node_beside_makes_none() -> None:
    """Two branches: what is refused in one does not cut the other."""
    nodes = [n("Cos", "x", "a"), n("Tan", "x", "b"), n("Cos", "a", "c"), n("Add", "b c", "y")]
    assert partitions.partition(graph(nodes), PROGRAM).partitions == (("a", "c", "y"),)


def test_partitions_are_those_of_onnx_runtimes_own_checker() -> None:
    """Of it, only how it groups: it knows operators and shapes, and no notes."""
    from onnxruntime.tools.mobile_helpers.usability_checker import check_coreml_partitions

    nodes, last = [], "x"
    for k, op in enumerate(["Cos", "Sin", "Tan", "Mul", "Atan", "Exp", "Cos", "Floor", "Add"]):
        inputs = f"{last} x" if op in ("Mul", "Add") else last
        last = f"t{k}"
        nodes.append(n(op, inputs, last))
    nodes.append(n("Identity", last, "y"))
    model = graph(nodes)
    for provider, config in ((FIXED, "mlprogram"), (NETWORK, "neuralnetwork")):
        theirs = check_coreml_partitions(model, True, f"coreml_supported_{config}_ops.md")
        ours = partitions.partition(model, provider)
        assert len(ours.partitions) == theirs.num_partitions
        assert len(ours.taken) == theirs.num_supported_nodes


def test_onnx_runtime_says_what_it_gives_to_whom(tmp_path: Path) -> None:
    path = tmp_path / "toy.onnx"
    onnx.save(graph([n("Cos", "x", "a"), n("Exp", "a", "y")]), path)
    assert assigned(path, ["CPUExecutionProvider"]) == {"CPUExecutionProvider": (2, 2)}


def test_a_nodes_cost_is_its_arithmetic_and_its_time(tmp_path: Path) -> None:
    path = tmp_path / "toy.onnx"
    weight = {"w": np.ones((6, CHANNELS, 3), np.float32)}
    onnx.save(graph([n("Conv", "x w", "a", pads=[1, 1]), n("Cos", "a", "y")], "t", weight), path)
    plain = optimised(path, tmp_path)
    seen = observe(plain, {"x": np.ones((1, CHANNELS, LENGTH), np.float32)}, runs=2)
    operations = {name.split(":")[1]: count for name, count in seen.costs.operations.items()}
    assert operations == {"a": 2 * 6 * LENGTH * CHANNELS * 3, "y": 6 * LENGTH}
    assert seen.costs.time_s.sum() > 0
    assert seen.tensors["a"] == (TensorProto.FLOAT, (1, 6, LENGTH))
    assert seen.outputs["y"].shape == (1, 6, LENGTH)
