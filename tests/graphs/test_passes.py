"""Each rewrite keeps the numbers of the graph that it rewrites, and does nothing twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs import native_passes, passes, quant_passes, rewriting, trunk_passes
from kokoro_lab.graphs.adain import AdainLayers
from kokoro_lab.graphs.rewriting import Model
from kokoro_lab.native.operators import native_operators
from kokoro_lab.sessions.providers import make_session
from tests.graphs import toy_graphs
from tests.graphs.toy_graphs import STYLE

CHANNELS, TAPS, OUT = 6, 5, 8

NATIVE = native_operators(EngineConfig())
needs_native = pytest.mark.skipif(
    NATIVE.library is None, reason=f"our own operators cannot be built here: {NATIVE.reason}"
)


def adain_snake_conv() -> Model:
    """One residual step as the vocoder has it: AdaIN over time, Snake, a weight-normed convolution."""
    n = helper.make_node
    rng = np.random.default_rng(7)
    nodes, constants = toy_graphs.adain(CHANNELS, ("Pow", "two"), "y", "adain/Add_3", rng)
    constants |= {
        "alpha": rng.uniform(0.3, 2.0, size=(1, CHANNELS, 1)).astype(np.float32),
        "direction": rng.normal(size=(OUT, CHANNELS, TAPS)).astype(np.float32),
        "length": rng.normal(size=(OUT, 1, 1)).astype(np.float32),
        "bias": rng.normal(size=OUT).astype(np.float32),
    }
    constants["reciprocal"] = (1 / constants["alpha"]).astype(np.float32)
    nodes += [
        n("Mul", ["alpha", "y"], ["turned"]),
        n("Sin", ["turned"], ["sine"]),
        n("Pow", ["sine", "two"], ["sine_squared"]),
        n("Mul", ["reciprocal", "sine_squared"], ["wave"]),
        n("Add", ["y", "wave"], ["snake"]),
        n("Mul", ["direction", "length"], ["weight"]),
        n("Conv", ["snake", "weight", "bias"], ["waveform"], name="conv", pads=[2, 2], kernel_shape=[TAPS]),
    ]
    shapes = {"x": [1, CHANNELS, "t"], "style": [1, STYLE]}
    return toy_graphs.model_of(nodes, shapes, constants, "waveform")


def run(model: Model, **feed: np.ndarray) -> dict[str, np.ndarray]:
    config = EngineConfig(threads=1, optimisation="none")
    session = make_session(model.SerializeToString(), config, library=NATIVE.library)
    names = [o.name for o in session.get_outputs()]
    wanted = {i.name for i in session.get_inputs()}
    return dict(zip(names, session.run(None, {k: v for k, v in feed.items() if k in wanted}), strict=True))


def inputs() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(8)
    return {
        "x": (rng.normal(size=(1, CHANNELS, 200)) * 3 + 1).astype(np.float32),
        "style": rng.normal(size=(1, STYLE)).astype(np.float32),
    }


def folded() -> Model:
    return passes.fold_constants(adain_snake_conv())


def given(feed: dict[str, np.ndarray], model: Model) -> dict[str, np.ndarray]:
    """Scale and shift for `model` from the statistics that the untouched graph reports for `feed`."""
    layers = AdainLayers.of(folded())
    reported = run(passes.report_statistics(folded()), **feed)
    mean, variance = (reported[name].reshape(-1) for name in layers.names)
    scale, shift = layers.scale_and_shift(mean, variance, feed["style"])
    if not {"Cos", "SnakeConv"} & set(rewriting.operators(model)):
        scale, shift = scale / layers.factor, shift / layers.factor
    return {**feed, "scale": scale, "shift": shift}


@pytest.mark.parametrize(
    "recipe",
    [
        (),
        pytest.param((native_passes.snake_convolutions,), marks=needs_native),
        pytest.param((native_passes.statistics,), marks=needs_native),
    ],
)
def test_one_graph_takes_its_own_statistics_or_those_that_it_is_given(
    recipe: tuple[Callable[[Model], Model], ...],
) -> None:
    feed = inputs()
    whole = run(adain_snake_conv(), **feed)["waveform"]
    modulated = (passes.modulate, passes.snake_in_the_modulation, passes.own_statistics_unless_known)
    model = rewriting.apply(folded(), (*modulated, *recipe))
    known = given(feed, model) | {"known": np.array(True)}
    scale, shift = AdainLayers.of(folded()).style_alone(feed["style"])
    unknown = feed | {"scale": scale, "shift": shift, "known": np.array(False)}
    for asked in (known, unknown):
        np.testing.assert_allclose(run(model, **asked)["waveform"], whole, rtol=1e-4, atol=1e-4)
    # Told a lie, it believes it; asked to look for itself, it does not need to be told
    wrong = known | {"scale": known["scale"] * 1.2}
    assert np.abs(run(model, **wrong)["waveform"] - whole).max() > 0.1
    louder = unknown | {"x": feed["x"] * 3 + 1}
    np.testing.assert_allclose(
        run(model, **louder)["waveform"],
        run(adain_snake_conv(), **(feed | {"x": louder["x"]}))["waveform"],
        rtol=1e-3,
        atol=1e-3,
    )


def test_weights_kept_in_half_precision_are_floats_again_when_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quant_passes, "LEAST_VALUES", 100)
    model = folded()
    stored = quant_passes.half_weights(model)
    kinds = {i.name: i.data_type for i in stored.graph.initializer}
    assert kinds["fc.weight/half"] == kinds["weight/half"] == TensorProto.FLOAT16
    assert kinds["bias"] == TensorProto.FLOAT
    np.testing.assert_allclose(
        run(stored, **inputs())["waveform"], run(model, **inputs())["waveform"], rtol=0.02, atol=0.02
    )


def test_the_weights_of_an_lstm_are_kept_as_bytes() -> None:
    rng = np.random.default_rng(3)
    constants = {name: rng.normal(size=(1, 16, 6)).astype(np.float32) for name in "wr"}
    graph = helper.make_graph(
        [helper.make_node("LSTM", ["x", "w", "r"], ["waveform"], hidden_size=4)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["t", 1, 6])],
        [helper.make_tensor_value_info("waveform", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(v[:, :, : 4 if k == "r" else 6].copy(), k) for k, v in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    stored = quant_passes.byte_recurrences(model)
    assert {i.data_type for i in stored.graph.initializer if "bytes" in i.name} == {TensorProto.INT8}
    x = rng.normal(size=(30, 1, 6)).astype(np.float32)
    np.testing.assert_allclose(run(stored, x=x)["waveform"], run(model, x=x)["waveform"], atol=0.05)


def test_a_weight_too_large_for_half_precision_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quant_passes, "LEAST_VALUES", 1)
    graph = rewriting.Graph(folded())
    graph.constant("weight", graph.value("weight") * 1e6)
    with pytest.raises(ValueError, match="weight has values beyond"):
        quant_passes.half_weights(graph.model)


@pytest.mark.parametrize("rewrite", [passes.fold_constants, passes.squares_as_products])
def test_the_same_inputs_give_the_same_output(rewrite: Callable[[Model], Model]) -> None:
    feed = inputs()
    np.testing.assert_allclose(
        run(rewrite(adain_snake_conv()), **feed)["waveform"],
        run(adain_snake_conv(), **feed)["waveform"],
        rtol=1e-5,
        atol=1e-5,
    )


@pytest.mark.parametrize(
    "recipe",
    [
        (passes.modulate,),
        (passes.modulate, passes.snake_in_the_modulation),
        (passes.modulate, passes.snake_in_the_modulation, passes.squares_as_products),
        pytest.param(
            (passes.modulate, passes.snake_in_the_modulation, native_passes.snake_convolutions),
            marks=needs_native,
        ),
    ],
)
def test_given_its_statistics_the_graph_needs_no_look_at_the_whole(
    recipe: tuple[Callable[[Model], Model], ...],
) -> None:
    feed = inputs()
    whole = run(adain_snake_conv(), **feed)["waveform"]
    model = rewriting.apply(folded(), recipe)
    assert "ReduceMean" not in rewriting.operators(model)
    np.testing.assert_allclose(run(model, **given(feed, model))["waveform"], whole, rtol=1e-4, atol=1e-4)
    # a window with two frames of context is that part of the whole
    window = {**given(feed, model), "x": feed["x"][:, :, 50:104]}
    np.testing.assert_allclose(
        run(model, **window)["waveform"][:, :, 2:-2], whole[:, :, 52:102], rtol=1e-4, atol=1e-4
    )


def test_other_statistics_give_another_output() -> None:
    feed = inputs()
    model = passes.modulate(folded())
    right = given(feed, model)
    wrong = {**right, "shift": right["shift"] + 0.1}
    assert not np.allclose(run(model, **right)["waveform"], run(model, **wrong)["waveform"], atol=1e-2)


@pytest.mark.parametrize(
    "rewrite",
    [
        passes.fold_constants,
        passes.squares_as_products,
        passes.modulate,
        passes.snake_in_the_modulation,
        passes.plain_overlap_add,
        passes.report_statistics,
        native_passes.snake_convolutions,
        native_passes.fast_convolutions,
        native_passes.known_products,
        native_passes.phases,
        trunk_passes.divided_beforehand,
        trunk_passes.norms_in_convolutions,
        passes.crop_before_the_second_half,
    ],
)
def test_a_second_time_changes_nothing(rewrite: Callable[[Model], Model]) -> None:
    model = folded()
    if rewrite in (passes.snake_in_the_modulation, native_passes.snake_convolutions):
        model = passes.modulate(model)
    if rewrite is native_passes.snake_convolutions:
        model = passes.snake_in_the_modulation(model)
    once = rewrite(model)
    assert rewrite(once).SerializeToString(deterministic=True) == once.SerializeToString(deterministic=True)


@needs_native
@pytest.mark.parametrize(
    ("changed", "taken"),
    [
        ({}, True),
        ({"channels_in": 128}, False),
        ({"taps": 1}, False),
        ({"strides": [2]}, False),
        ({"dilations": [2], "pads": [2, 2]}, False),
        ({"pads": [0, 0]}, False),
        ({"dilations": [3], "pads": [3, 3]}, True),
        ({"bias": True}, True),
    ],
)
def test_wide_convolutions_are_taken_apart_and_no_others(changed: dict[str, Any], taken: bool) -> None:
    options = {"channels_in": 256, "taps": 3, "strides": [1], "dilations": [1], "pads": [1, 1], "bias": False}
    options |= changed
    channels_in, taps, bias = (options.pop(name) for name in ("channels_in", "taps", "bias"))
    rng = np.random.default_rng(2)
    weight = rng.normal(size=(16, channels_in, taps)).astype(np.float32) / 30
    constants = {"weight": weight} | ({"bias": np.ones(16, np.float32)} if bias else {})
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", *constants], ["waveform"], name="conv", **options)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, channels_in, None])],
        [helper.make_tensor_value_info("waveform", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    fast = native_passes.fast_convolutions(model)
    assert ("FastConv" in rewriting.operators(fast)) == taken
    x = rng.normal(size=(1, channels_in, 77)).astype(np.float32)
    np.testing.assert_allclose(run(fast, x=x)["waveform"], run(model, x=x)["waveform"], atol=1e-5)


def test_a_pass_leaves_its_input_alone() -> None:
    model = adain_snake_conv()
    before = model.SerializeToString(deterministic=True)
    rewriting.apply(model, (passes.fold_constants, passes.modulate, passes.snake_in_the_modulation))
    assert model.SerializeToString(deterministic=True) == before


def test_what_nothing_reads_is_dropped() -> None:
    model = passes.modulate(folded())
    names = {i.name for i in model.graph.initializer}
    assert "fc.weight" not in names
    assert "style" not in {i.name for i in model.graph.input}
    assert isinstance(model, onnx.ModelProto)
