"""What comes by a convolution of ours is added where it puts its outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs import native_passes, rewriting
from kokoro_lab.graphs.rewriting import Model
from kokoro_lab.sessions.providers import make_session
from tests.graphs.test_context import convolution_of, feed_of, operator, told

KINDS = ["SnakeConv", "QuantSnakeConv"]
CHANNELS_OUT = 8
"""Of `operator`."""


def with_sum(model: Model, *, other_way_round: bool = False) -> Model:
    """The same model, and behind it a sum with what comes by."""
    g = rewriting.Graph(model)
    (out,) = g.graph.output
    names = ["by", out.name] if other_way_round else [out.name, "by"]
    g.graph.node.append(helper.make_node("Add", names, ["sum"]))
    g.graph.input.append(helper.make_tensor_value_info("by", TensorProto.FLOAT, [1, CHANNELS_OUT, None]))
    del g.graph.output[:]
    g.graph.output.append(helper.make_tensor_value_info("sum", TensorProto.FLOAT, None))
    return g.model


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [7, 96, 230, 3500])
@pytest.mark.parametrize("asked", [None, (2, 9), (11, 14)])
def test_it_is_the_same_sum_to_the_last_bit(
    library: Path, kind: str, length: int, asked: tuple[int, int] | None
) -> None:
    model = operator(kind)
    if asked is not None:
        model = told(model, asked, 6, 13)
    theirs = with_sum(model, other_way_round=length == 96)
    ours = native_passes.sums_of_convolutions(theirs)
    assert "Add" not in rewriting.operators(ours)
    assert native_passes.sums_of_convolutions(ours) == ours
    feed = feed_of(theirs, length)
    expected, found = (
        make_session(m.SerializeToString(), EngineConfig(threads=2), library=library).run(None, feed)[0]
        for m in (theirs, ours)
    )
    # Columns that nobody asked for count too: a fast convolution behind them sees them, and rounds by them
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_a_convolution_that_something_else_reads_is_left_alone(kind: str) -> None:
    model = with_sum(operator(kind))
    node = convolution_of(model)
    model.graph.node.append(helper.make_node("Add", [node.output[0], "sum"], ["twice"]))
    model.graph.output.append(helper.make_tensor_value_info("twice", TensorProto.FLOAT, None))
    assert rewriting.operators(native_passes.sums_of_convolutions(model))["Add"] == 2


def test_a_constant_which_may_be_of_another_shape_is_left_alone() -> None:
    g = rewriting.Graph(with_sum(operator("SnakeConv")))
    g.constant("by", np.ones((1, CHANNELS_OUT, 1), np.float32))
    g.graph.input.remove(next(i for i in g.graph.input if i.name == "by"))
    assert "Add" in rewriting.operators(native_passes.sums_of_convolutions(g.model))
