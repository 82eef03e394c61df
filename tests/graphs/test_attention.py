"""Attention layers head by head, beside ONNX Runtime's operators that they stand for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from onnx import helper

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs import native_passes, rewriting
from kokoro_lab.graphs.attention_passes import attention
from kokoro_lab.graphs.rewriting import Model
from kokoro_lab.sessions.providers import make_session
from tests.graphs.toy_graphs import model_of

HEADS, INPUTS = 3, 96
Values = npt.NDArray[np.float32]
node = helper.make_node


def layer(
    *, width: int = 64, asked: bool = True, biased: bool = True, turned: tuple[int, ...] = (0, 2, 1, 3)
) -> Model:
    """An attention layer as the published graph has it. Where a length is `asked` for, the factor of queries
    and keys follows from it while the graph runs; else it is a constant."""
    rng = np.random.default_rng(7)
    channels = HEADS * width
    constants: dict[str, npt.ArrayLike] = {
        "heads": np.array([0, 0, HEADS, width], np.int64),
        "joined": np.array([0, 0, channels], np.int64),
        "one": np.array([1], np.float32),
        "last": np.array([-1], np.int64),
        "end": np.array([np.iinfo(np.int64).max], np.int64),
    }
    nodes = []
    for name, order in (("q", turned), ("k", (0, 2, 3, 1)), ("v", (0, 2, 1, 3))):
        constants[f"{name}.weight"] = rng.normal(size=(INPUTS, channels)).astype(np.float32) / math.sqrt(
            INPUTS
        )
        constants[f"{name}.bias"] = rng.normal(size=channels).astype(np.float32)
        nodes.append(node("MatMul", ["x", f"{name}.weight"], [f"{name}.product"]))
        whole = f"{name}.product"
        if biased:
            nodes.append(node("Add", [f"{name}.product", f"{name}.bias"], [f"{name}.whole"]))
            whole = f"{name}.whole"
        nodes.append(node("Reshape", [whole, "heads"], [f"{name}.heads"]))
        nodes.append(node("Transpose", [f"{name}.heads"], [f"{name}.turned"], perm=list(order)))
    if asked:
        nodes += [
            node("Shape", ["q.turned"], ["shape"]),
            node("Slice", ["shape", "last", "end"], ["length"]),
            node("Cast", ["length"], ["cast"], to=1),
            node("Sqrt", ["cast"], ["root"]),
            node("Div", ["one", "root"], ["inverse"]),
            node("Sqrt", ["inverse"], ["factor"]),
        ]
    else:
        constants["factor"] = np.array(width**-0.25, np.float32)
    nodes += [
        node("Mul", ["q.turned", "factor"], ["queries"]),
        node("Mul", ["k.turned", "factor"], ["keys"]),
        node("MatMul", ["queries", "keys"], ["scores"]),
        node("Add", ["scores", "mask"], ["masked"]),
        node("Softmax", ["masked"], ["shares"], axis=-1, name="softmax"),
        node("MatMul", ["shares", "v.turned"], ["mixed"]),
        node("Transpose", ["mixed"], ["back"], perm=[0, 2, 1, 3]),
        node("Reshape", ["back", "joined"], ["y"]),
    ]
    return model_of(nodes, {"x": [1, "n", INPUTS], "mask": [1, 1, 1, "n"]}, constants)


def run(model: Model, library: Path, feed: Mapping[str, Values], *, threads: int = 2) -> Values:
    session = make_session(model.SerializeToString(), EngineConfig(threads=threads), library=library)
    return np.asarray(session.run(None, dict(feed))[0], np.float32)


@pytest.mark.parametrize("positions", [2, 3, 31, 36, 57, 130, 300])
@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("biased", [True, False])
def test_an_attention_layer_is_the_same_to_the_last_bit(
    library: Path, positions: int, asked: bool, biased: bool
) -> None:
    theirs = native_passes.known_products(layer(asked=asked, biased=biased))
    ours = attention(theirs)
    assert rewriting.operators(ours) == {"Product": 3, "Scores": 1, "Softmax": 1, "Mixture": 1}
    rng = np.random.default_rng(positions)
    closed = np.where(np.arange(positions) < max(1, positions - 3), 0, -1e9).astype(np.float32)
    feed = {
        "x": rng.normal(size=(1, positions, INPUTS)).astype(np.float32),
        "mask": closed.reshape(1, 1, 1, -1),
    }
    expected = run(theirs, library, feed)
    for threads in (1, 2):
        np.testing.assert_array_equal(run(ours, library, feed, threads=threads), expected)


def test_a_bias_that_onnx_runtime_fuses_is_left_to_it(library: Path) -> None:
    theirs = layer(asked=False)
    ours = attention(theirs)
    assert rewriting.operators(ours)["Add"] == 3
    rng = np.random.default_rng(2)
    feed = {
        "x": rng.normal(size=(1, 40, INPUTS)).astype(np.float32),
        "mask": np.zeros((1, 1, 1, 40), np.float32),
    }
    np.testing.assert_array_equal(run(ours, library, feed), run(theirs, library, feed))


def test_no_positions_are_no_error(library: Path) -> None:
    feed = {"x": np.zeros((1, 0, INPUTS), np.float32), "mask": np.zeros((1, 1, 1, 0), np.float32)}
    ours = attention(native_passes.known_products(layer(asked=False)))
    assert run(ours, library, feed).size == 0


@pytest.mark.parametrize("other", [{"width": 40}, {"turned": (0, 2, 3, 1)}])
def test_what_is_no_such_layer_is_left_alone(other: dict[str, object]) -> None:
    model = layer(**other)  # type: ignore[arg-type]  # options of several types
    assert attention(model) is model
