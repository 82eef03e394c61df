"""What only tidies a graph changes no bit of what it computes, and leaves alone what it is not sure of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs.rewriting import Model, inferred, operators, shapes
from kokoro_lab.graphs.tidy_passes import canonical_shapes, drop_no_ops, known_lengths, repeated_afterwards
from kokoro_lab.sessions.providers import make_session

HEADS, WIDTH = 2, 6
n = helper.make_node


def a_model(
    nodes: list[NodeProto], constants: dict[str, np.ndarray], shape: list[Any] | None = None
) -> Model:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape or ["batch", "length", WIDTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def run(model: Model, x: np.ndarray) -> np.ndarray:
    found: np.ndarray = make_session(model.SerializeToString(), EngineConfig(threads=1)).run(None, {"x": x})[
        0
    ]
    return found


def noise(*shape: int) -> np.ndarray:
    found: np.ndarray = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    return found


def attention() -> Model:
    """A query as an export of PyTorch writes it: split into heads by lengths that it looks up, and scaled by
    one over the root of a length."""
    lengths = [
        n("Shape", ["x"], ["shape"]),
        *(n("Gather", ["shape", f"k{k}"], [f"length{k}"]) for k in range(2)),
        *(n("Unsqueeze", [f"length{k}", "first"], [f"part{k}"]) for k in range(2)),
        n("Concat", ["part0", "part1", "heads", "rest"], ["split"], axis=0),
    ]
    scale = [
        n("Shape", ["turned"], ["turned_shape"]),
        n("Slice", ["turned_shape", "minus", "end"], ["last"]),
        n("Cast", ["last"], ["last_float"], to=TensorProto.FLOAT),
        n("Sqrt", ["last_float"], ["root"]),
    ]
    nodes = [
        *lengths,
        n("MatMul", ["x", "weight"], ["product"]),
        n("Add", ["bias", "product"], ["query"]),
        n("Reshape", ["query", "split"], ["separate"], name="reshape"),
        n("Transpose", ["separate"], ["turned"], perm=[0, 2, 1, 3]),
        *scale,
        n("Div", ["turned", "root"], ["y"]),
    ]
    return a_model(nodes, constants())


def constants() -> dict[str, np.ndarray]:
    return {
        "k0": np.array(0),
        "k1": np.array(1),
        "first": np.array([0]),
        "heads": np.array([HEADS]),
        "rest": np.array([WIDTH // HEADS]),
        "minus": np.array([-1]),
        "end": np.array([np.iinfo(np.int64).max]),
        "weight": noise(WIDTH, WIDTH),
        "bias": noise(WIDTH),
    }


def idle() -> Model:
    """A product, and around it what does nothing."""
    nodes = [
        n("Identity", ["x"], ["same"]),
        n("Mul", ["one", "same"], ["once"]),
        n("Transpose", ["once"], ["there"], perm=[1, 2, 0]),
        n("Transpose", ["there"], ["back"], perm=[2, 0, 1]),
        n("Cast", ["back"], ["cast"], to=TensorProto.FLOAT),
        n("Cast", ["cast"], ["cast_again"], to=TensorProto.FLOAT),
        n("Div", ["cast_again", "one"], ["whole"]),
        n("Transpose", ["whole"], ["a"], perm=[0, 2, 1]),
        n("Transpose", ["a"], ["b"], perm=[1, 0, 2]),
        n("Mul", ["b", "two"], ["twice"]),
        n("Identity", ["twice"], ["y"]),
    ]
    return a_model(nodes, {"one": np.float32(1), "two": np.float32(2)})


@pytest.mark.parametrize("length", [1, 5])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("rewrite", [canonical_shapes, known_lengths, drop_no_ops])
@pytest.mark.parametrize("made", [attention, idle])
def test_not_a_bit_changes(
    made: Callable[[], Model], rewrite: Callable[[Model], Model], batch: int, length: int
) -> None:
    x = noise(batch, length, WIDTH)
    np.testing.assert_array_equal(run(rewrite(made()), x), run(made(), x))


def test_a_shape_of_its_own_lengths_is_a_constant() -> None:
    found = canonical_shapes(attention())
    assert not {"Gather", "Unsqueeze", "Concat"} & set(operators(found))
    (shape,) = (i for i in found.graph.initializer if i.name.startswith("integers_"))
    assert numpy_helper.to_array(shape).tolist() == [0, 0, HEADS, WIDTH // HEADS]


def test_a_length_that_is_always_the_same_is_a_constant() -> None:
    found = known_lengths(canonical_shapes(attention()))
    assert "Slice" not in operators(found)
    assert "Shape" not in operators(found)


def test_nothing_that_does_nothing_is_left() -> None:
    found = operators(drop_no_ops(idle()))
    # The last identity gives the output its name; one cast stands for both
    assert found == {"Cast": 1, "Transpose": 1, "Mul": 1, "Identity": 1}


def test_the_last_length_of_what_was_multiplied_is_another_one() -> None:
    """Lengths of x, where the product of x with a matrix is reshaped: all are its own but the last."""
    nodes = [
        n("Shape", ["x"], ["shape"]),
        *(n("Gather", ["shape", f"k{k}"], [f"length{k}"]) for k in range(3)),
        *(n("Unsqueeze", [f"length{k}", "first"], [f"part{k}"]) for k in range(3)),
        n("Concat", ["part0", "part1", "part2", "rest"], ["split"], axis=0),
        n("MatMul", ["x", "weight"], ["product"]),
        n("Reshape", ["product", "split"], ["y"]),
    ]
    values = constants() | {"weight": noise(WIDTH, 2 * WIDTH), "k2": np.array(2), "rest": np.array([2])}
    x = noise(2, 3, WIDTH)
    model = a_model(nodes, values)
    np.testing.assert_array_equal(run(canonical_shapes(model), x), run(model, x))
    assert run(model, x).shape == (2, 3, WIDTH, 2)


def another(**changed: Any) -> Model:
    """`attention`, with something that makes its shape another one than its own."""
    model = attention()
    for tensor in model.graph.initializer:
        if tensor.name in changed:
            tensor.CopyFrom(numpy_helper.from_array(np.array(changed[tensor.name]), tensor.name))
    return model


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"k0": 1, "k1": 0}, id="lengths in another order"),
        pytest.param({"heads": [0]}, id="a zero that is meant"),
    ],
)
def test_another_shape_is_left_alone(changed: dict[str, Any]) -> None:
    model = another(**changed)
    assert operators(canonical_shapes(model)) == operators(model)


def test_a_length_that_varies_is_left_alone() -> None:
    model = attention()
    assert operators(known_lengths(model))["Gather"] == 2


def test_a_factor_of_more_axes_is_no_no_op() -> None:
    nodes = [n("Mul", ["x", "ones"], ["y0"]), n("Identity", ["y0"], ["y"])]
    model = a_model(nodes, {"ones": np.ones((1, 1, 1, 1), np.float32)})
    found = drop_no_ops(model)
    assert operators(found)["Mul"] == 1
    assert run(found, noise(1, 2, WIDTH)).ndim == 4


def test_a_branch_reads_what_is_left() -> None:
    inner = helper.make_graph(
        [n("Identity", ["same"], ["z"])], "then", [], [helper.make_tensor_value_info("z", 1, None)]
    )
    other = helper.make_graph(
        [n("Neg", ["same"], ["w"])], "else", [], [helper.make_tensor_value_info("w", 1, None)]
    )
    nodes = [
        n("Identity", ["x"], ["same"]),
        n("If", ["always"], ["y"], then_branch=inner, else_branch=other),
    ]
    model = drop_no_ops(a_model(nodes, {"always": np.array(True)}))
    assert operators(model) == {"If": 1}
    x = noise(1, 2, WIDTH)
    np.testing.assert_array_equal(run(model, x), x)


def test_lengths_follow_from_small_constants_and_from_the_types_of_large_ones() -> None:
    model = a_model(
        [n("MatMul", ["x", "w"], ["p"]), n("Reshape", ["p", "l"], ["r"]), n("Identity", ["r"], ["y"])],
        {"w": np.zeros((WIDTH, 16), np.float32), "l": np.array([0, 0, 4, 4])},
    )
    assert shapes(inferred(model)) == {"p": ["batch", "length", 16], "r": ["batch", "length", 4, 4]}
    assert [constant.name for constant in model.graph.initializer] == ["w", "l"]


def repeated(*, taps: int = 1, stride: int = 1, mode: str = "nearest", second_reader: bool = False) -> Model:
    """Columns repeated twice, and a convolution over them."""
    constants = {"scales": np.array([1, 1, 2], np.float32), "weight": noise(8, WIDTH, taps)}
    attributes = {"mode": mode, "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    nodes = [
        n("Resize", ["x", "", "scales"], ["twice"], **attributes),
        n("Conv", ["twice", "weight"], ["y"], pads=[taps // 2, taps // 2], strides=[stride]),
    ]
    if second_reader:
        nodes[-1].output[0] = "convolved"
        nodes.append(n("Concat", ["convolved", "twice"], ["y"], axis=1))
    return a_model(nodes, constants, [1, WIDTH, "length"])


@pytest.mark.parametrize("length", [2, 7, 130])
def test_columns_are_repeated_behind_what_looks_at_one_at_a_time(length: int) -> None:
    model = repeated()
    tidied = repeated_afterwards(model)
    assert [node.op_type for node in tidied.graph.node] == ["Conv", "Resize"]
    x = noise(1, WIDTH, length)
    np.testing.assert_array_equal(run(tidied, x), run(model, x))


@pytest.mark.parametrize("changed", [{"taps": 3}, {"stride": 2}, {"mode": "linear"}, {"second_reader": True}])
def test_they_are_not_where_something_else_is_made_of_them(changed: dict[str, Any]) -> None:
    model = repeated(**changed)
    assert [node.op_type for node in repeated_afterwards(model).graph.node][:2] == ["Resize", "Conv"]
