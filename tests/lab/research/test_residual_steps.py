"""A step that is cut: what is left computes what the whole step does, where nothing is lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import NodeProto, TensorProto, helper

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ParameterError
from kokoro_lab.graphs.rewriting import Model
from kokoro_lab.lab.research import residual_steps
from kokoro_lab.lab.research.residual_steps import Cut, Step, narrowed, whole
from tests.graphs.toy_graphs import STYLE, adain, model_of

CHANNELS, COLUMNS = 16, 40
BLOCK = "/decoder/decoder/generator/resblocks.3/"
RANDOM = np.random.default_rng(0)


def weights(taps: int) -> Any:
    return (0.2 * RANDOM.normal(size=(CHANNELS, CHANNELS, taps))).astype(np.float32)


def step() -> Step:
    return Step(f"{BLOCK}0", f"{BLOCK}convs1.0/Conv", f"{BLOCK}convs2.0/Conv", weights(5), weights(3), 3)


def snaked(source: str, number: int, name: str) -> list[NodeProto]:
    n = helper.make_node
    factors = [f"scale_{number}", f"shift_{number}", "zero", "ones"]
    return [
        n("BatchNormalization", [source, *factors], [f"z{number}"], epsilon=0.0, name=f"norm{number}"),
        n("Cos", [f"z{number}"], [f"cos{number}"]),
        n("Sub", [f"z{number}", f"cos{number}"], [f"less{number}"]),
        n("Add", [f"less{number}", "one"], [f"snake{number}"]),
    ]


def vocoder(of: Step) -> Model:
    n = helper.make_node
    first = {"pads": [6, 6], "dilations": [3], "name": of.first}
    nodes = [
        n("Split", ["scale", "halves"], ["scale_0", "scale_1"], axis=0),
        n("Split", ["shift", "halves"], ["shift_0", "shift_1"], axis=0),
        *snaked("x", 0, of.first),
        n("Conv", ["snake0", "first", "first_bias"], ["inner"], **first),
        *snaked("inner", 1, of.second),
        n("Conv", ["snake1", "second", "second_bias"], ["added"], pads=[1, 1], name=of.second),
        n("Add", ["added", "x"], ["y"]),
    ]
    constants = {
        "halves": np.array([CHANNELS, CHANNELS], np.int64),
        "zero": np.zeros(CHANNELS, np.float32),
        "ones": np.ones(CHANNELS, np.float32),
        "one": np.array(1, np.float32),
        "first": of.first_weight,
        "second": of.second_weight,
        "first_bias": np.linspace(-1, 1, CHANNELS, dtype=np.float32),
        "second_bias": np.linspace(0, 2, CHANNELS, dtype=np.float32),
    }
    shapes = {"x": (1, CHANNELS, "t"), "scale": (2 * CHANNELS,), "shift": (2 * CHANNELS,)}
    return model_of(nodes, shapes, constants)


def spoken(model: Model) -> Any:
    random = np.random.default_rng(5)
    feed = {"x": random.normal(size=(1, CHANNELS, COLUMNS)), "scale": random.normal(size=2 * CHANNELS)}
    feed["shift"] = random.normal(size=2 * CHANNELS)
    return run(model, {name: value.astype(np.float32) for name, value in feed.items()})


def run(model: Model, feed: dict[str, Any]) -> Any:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = {given.name for given in session.get_inputs()}
    return session.run(["y"], {name: value for name, value in feed.items() if name in wanted})[0]


def test_channels_in_another_order_change_nothing() -> None:
    one = step()
    kept = np.arange(CHANNELS)[::-1].copy()
    cut = replace(whole(one), second=one.second_weight[:, kept], kept=kept)
    model = vocoder(one)
    found = narrowed(model, {one.name: (one, cut)})
    np.testing.assert_allclose(spoken(found), spoken(model), atol=1e-4)


def test_a_channel_without_weight_behind_it_can_be_left_out() -> None:
    one = step()
    kept = np.arange(0, CHANNELS, 2)
    one.second_weight[:, 1::2] = 0
    model = vocoder(one)
    shift = np.full(CHANNELS, 0.5, np.float32)
    cut = Cut(one.second_weight[:, kept], shift, kept)
    found = narrowed(model, {one.name: (one, cut)})
    np.testing.assert_allclose(spoken(found), spoken(model) + 0.5, atol=1e-4)
    widths = [tensor.dims[0] for tensor in found.graph.initializer if tensor.name.endswith("cut/bias")]
    assert widths == [8, 16]
    assert cut.products(one) == (8 * 16 * 5 + 16 * 8 * 3) * 4800


def test_one_convolution_reads_what_the_first_one_read() -> None:
    one = step()
    weight = weights(1)
    cut = Cut(weight, np.zeros(CHANNELS, np.float32))
    found = narrowed(vocoder(one), {one.name: (one, cut)})
    assert [node.op_type for node in found.graph.node].count("Conv") == 1
    assert spoken(found).shape == (1, CHANNELS, COLUMNS)
    assert cut.products(one) == 16 * 16 * 4800


def test_a_step_that_is_removed_adds_a_constant() -> None:
    one = step()
    shift = np.ones(CHANNELS, np.float32)
    found = narrowed(vocoder(one), {one.name: (one, Cut(None, shift))})
    random = np.random.default_rng(5)
    x = random.normal(size=(1, CHANNELS, COLUMNS)).astype(np.float32)
    added = 1 + np.linspace(0, 2, CHANNELS, dtype=np.float32)
    np.testing.assert_allclose(spoken(found), x + added[None, :, None], atol=1e-5)


def test_other_weights_for_both_convolutions() -> None:
    one = step()
    other = step()
    bias = np.linspace(-1, 1, CHANNELS, dtype=np.float32)
    cut = replace(whole(one), second=other.second_weight, first=(other.first_weight, bias))
    found = narrowed(vocoder(one), {one.name: (one, cut)})
    np.testing.assert_allclose(spoken(found), spoken(vocoder(other)), atol=1e-4)


def test_a_step_of_another_graph_is_left_alone() -> None:
    one = step()
    elsewhere = replace(one, first="/other/conv1/Conv", second="/other/conv2/Conv")
    model = vocoder(one)
    assert narrowed(model, {"other": (elsewhere, whole(elsewhere))}) == model


def test_ranges_are_those_of_the_channels_that_are_left() -> None:
    one = step()
    kept = np.arange(4)
    found = residual_steps.narrowed_ranges({one.name: (one, replace(whole(one), kept=kept))})
    assert found[one.second].low.shape == (4,)


def test_an_unknown_step_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    one = step()
    known = {one.first: (one.first_weight, 3), one.second: (one.second_weight, 1)}
    monkeypatch.setattr(residual_steps, "convolution_weights", lambda config: known)
    found = residual_steps.steps_of("*/resblocks.3/*", EngineConfig())
    assert list(found) == [one.name]
    assert found[one.name].positions_per_s == 4800
    with pytest.raises(ParameterError, match="No residual step is called 'x'"):
        residual_steps.steps_of("x", EngineConfig())


def trunk(of: Step) -> Model:
    """A step of the trunk as `trunk_passes.told_statistics` leaves it."""
    n = helper.make_node
    norm, constants = adain(CHANNELS, ("Mul", "centred"), "normed", "norm2/Add_3", np.random.default_rng(1))
    replaced = {"gamma_row", "gamma", "beta", "mean", "variance"}
    nodes = [n("Conv", ["source", "first"], ["x"], pads=[6, 6], dilations=[3], name=of.first)]
    for node in norm:
        if replaced.isdisjoint(node.output):
            nodes.append(node)
        elif node.output[0] == "gamma_row":
            nodes += [
                n("Unsqueeze", ["h", "column"], ["columns"]),
                n("Slice", ["columns", "from_0", "from_1", "channel_axis"], ["gamma"]),
                n("Slice", ["columns", "from_1", "from_2", "channel_axis"], ["beta"]),
            ]
        elif node.output[0] in ("mean", "variance"):
            name = node.output[0]
            nodes += [
                n("ReduceMean", node.input, [f"{name}/own"]),
                n("Concat", [f"told_{name}"], [f"{name}/told"], axis=1),
                n("Where", ["told", f"{name}/told", f"{name}/own"], [name]),
            ]
    nodes += [
        n("LeakyRelu", ["normed"], ["active"], alpha=0.2),
        n("Conv", ["active", "second"], ["y"], pads=[1, 1], name=of.second),
    ]
    constants |= {f"from_{k}": np.array([k * CHANNELS], np.int64) for k in range(3)}
    constants |= {"channel_axis": np.array([1], np.int64)}
    constants |= {"first": of.first_weight, "second": of.second_weight}
    told = dict.fromkeys(("told_mean", "told_variance"), (1, CHANNELS, 1))
    shapes = {"source": (1, CHANNELS, "t"), "style": (1, STYLE), **told}
    model = model_of(nodes, shapes, constants)
    model.graph.input.append(helper.make_tensor_value_info("told", TensorProto.BOOL, []))
    return model


@pytest.mark.parametrize("told", [False, True])
def test_layers_of_the_trunk_lose_the_same_channels(told: bool) -> None:
    one = replace(step(), name="/decoder/a/0", first="/decoder/a/conv1/Conv", second="/decoder/a/conv2/Conv")
    one.second_weight[:, 1::2] = 0
    kept = np.arange(0, CHANNELS, 2)
    cut = Cut(one.second_weight[:, kept], np.zeros(CHANNELS, np.float32), kept)
    random = np.random.default_rng(3)
    feed = {
        "source": random.normal(size=(1, CHANNELS, COLUMNS)).astype(np.float32),
        "style": random.normal(size=(1, STYLE)).astype(np.float32),
        "told_mean": random.normal(size=(1, CHANNELS, 1)).astype(np.float32),
        "told_variance": random.uniform(1, 2, (1, CHANNELS, 1)).astype(np.float32),
        "told": np.array(told),
    }
    model = trunk(one)
    found = narrowed(model, {one.name: (one, cut)})
    np.testing.assert_allclose(run(found, feed), run(model, feed), atol=1e-4)
    assert one.positions_per_s == 40
