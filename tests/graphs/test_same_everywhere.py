"""Operators that stand in front of integers: right, and the same on every processor."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from onnx import helper, numpy_helper

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs import alike_passes, native_passes, passes, rewriting
from kokoro_lab.graphs.quant_passes import quantise_layers
from kokoro_lab.graphs.quantise import Range
from kokoro_lab.graphs.rewriting import Model
from kokoro_lab.graphs.signatures import KNOWN, SCALE, SHIFT
from kokoro_lab.metrics.perceptual import signal_to_difference_db
from kokoro_lab.native import operators
from kokoro_lab.sessions.providers import make_session
from tests.graphs.toy_graphs import STYLE, adain, model_of

Values = npt.NDArray[np.float32]
CHANNELS = 40
node = helper.make_node


def run(model: Model, library: Path | None, feed: Mapping[str, npt.NDArray], *, threads: int = 2) -> Values:
    session = make_session(model.SerializeToString(), EngineConfig(threads=threads), library=library)
    (y,) = session.run(None, dict(feed))
    return np.asarray(y, np.float32)


def angles() -> Model:
    return model_of([node("Atan", ["x"], ["y"], name="atan")], {"x": [1, "n"]}, {})


def test_an_arctangent_is_right_to_its_last_digit_or_two(library: Path) -> None:
    ours = alike_passes.arctangents(angles())
    assert rewriting.operators(ours) == {"Arctangent": 1}
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=5_000) * 10.0**k for k in range(-12, 13)])
    x = np.concatenate([x, [0.0, 1.0, -1.0, 3e38, 1e-45]]).astype(np.float32)[None]
    right = np.arctan(x.astype(np.float64))
    for threads in (1, 2):
        y = run(ours, library, {"x": x}, threads=threads)
        np.testing.assert_allclose(y, right, rtol=2.5e-7, atol=1e-45)


def test_an_arctangent_knows_the_ends_and_the_sign_of_nothing(library: Path) -> None:
    x = np.array([[np.inf, -np.inf, -0.0, np.nan]], np.float32)
    y = run(alike_passes.arctangents(angles()), library, {"x": x})[0]
    np.testing.assert_allclose(y[:2], [np.pi / 2, -np.pi / 2], rtol=1e-7)
    assert y[2] == 0
    assert np.signbit(y[2])
    assert np.isnan(y[3])


def normed(*, second_reader: bool = False, channels: int = CHANNELS) -> Model:
    """AdaIN and a leaky rectifier, as the trunk has them."""
    nodes, constants = adain(channels, ("Mul", "centred"), "moved", "norm", np.random.default_rng(5))
    nodes += [
        node("LeakyRelu", ["moved"], ["active"], alpha=0.2),
        node("Add", ["active", "moved" if second_reader else "x"], ["y"]),
    ]
    return model_of(nodes, {"x": [1, channels, "t"], "style": [1, STYLE]}, constants)


def spoken(length: int, channels: int = CHANNELS) -> dict[str, Values]:
    rng = np.random.default_rng(length)
    return {
        "x": (rng.normal(size=(1, channels, length)) * 3 + 1).astype(np.float32),
        "style": rng.normal(size=(1, STYLE)).astype(np.float32),
    }


@pytest.mark.parametrize("length", [1, 2, 15, 16, 17, 200])
@pytest.mark.parametrize("channels", [CHANNELS, 48])  # the styles of 48 fill three panels, of 40 not
def test_a_norm_and_its_style_are_operators_of_ours(library: Path, length: int, channels: int) -> None:
    theirs = normed(channels=channels)
    ours = alike_passes.rows_as_products(alike_passes.norms(theirs))
    assert set(rewriting.operators(ours)) == {"Unsqueeze", "Product", "Squeeze", "Norm", "Add"}
    feed = spoken(length, channels)
    expected = run(theirs, None, feed)
    for threads in (1, 2):
        np.testing.assert_allclose(run(ours, library, feed, threads=threads), expected, rtol=0, atol=5e-5)
    for again in (alike_passes.norms, alike_passes.rows_as_products):
        assert again(ours).SerializeToString(deterministic=True) == ours.SerializeToString(deterministic=True)


@pytest.mark.parametrize("length", [6_480, 6_481, 12_003])  # from where a channel begins, vectors do or not
def test_means_are_rounded_as_those_of_onnx_runtime(library: Path, length: int) -> None:
    # Far from zero, what a mean of thousands is rounded to is heard in what is centred with it
    feed = spoken(length)
    feed["x"] += np.float32(50)
    theirs = normed()
    del theirs.graph.node[-1]
    theirs.graph.output[0].name = "active"
    expected, ours = (
        run(model, operators, feed).reshape(-1)
        for model, operators in ((theirs, None), (alike_passes.norms(theirs), library))
    )
    assert signal_to_difference_db(expected, ours) > 118


def test_a_norm_that_something_else_reads_stays_where_it_is() -> None:
    other = normed(second_reader=True)
    assert "Norm" not in rewriting.operators(alike_passes.norms(other))


def test_a_style_that_something_else_reads_is_cut_to_its_length(library: Path) -> None:
    theirs = normed(second_reader=True)
    ours = alike_passes.rows_as_products(theirs)
    assert {"Product", "Slice"} <= set(rewriting.operators(ours))
    feed = spoken(20)
    np.testing.assert_allclose(run(ours, library, feed), run(theirs, None, feed), rtol=0, atol=5e-5)


def one_channel(taps: int = 3, **attributes: object) -> Model:
    rng = np.random.default_rng(6)
    constants = {"w": rng.normal(size=(1, 1, taps)).astype(np.float32), "b": np.array([0.3], np.float32)}
    return model_of(
        [node("Conv", ["x", "w", "b"], ["y"], name="c", **attributes)], {"x": [1, 1, "t"]}, constants
    )


@pytest.mark.parametrize("length", [1, 2, 3, 8, 101])
@pytest.mark.parametrize(
    ("taps", "attributes"), [(3, {"strides": [2], "pads": [1, 1]}), (3, {"pads": [2, 0]}), (1, {})]
)
def test_a_convolution_of_one_channel_is_taken_tap_by_tap(
    library: Path, length: int, taps: int, attributes: dict[str, object]
) -> None:
    theirs = one_channel(taps, **attributes)
    ours = alike_passes.taps(theirs)
    assert "Conv" not in rewriting.operators(ours)
    feed = {"x": np.random.default_rng(length).normal(size=(1, 1, length)).astype(np.float32)}
    np.testing.assert_allclose(run(ours, library, feed), run(theirs, None, feed), rtol=0, atol=1e-6)


def test_a_convolution_with_gaps_between_its_taps_is_left_alone() -> None:
    other = one_channel(dilations=[2], pads=[2, 2])
    assert rewriting.operators(alike_passes.taps(other)) == {"Conv": 1}


def transformer(width: int = 70, outputs: int = 50) -> Model:
    """What stands between a transformer's products, and behind it: durations, and a contour."""
    rng = np.random.default_rng(8)
    constants = {
        "gamma": rng.normal(size=width).astype(np.float32),
        "beta": rng.normal(size=width).astype(np.float32),
        "root": np.float32(0.7978845834732056),
        "cubic": np.float32(0.044714998453855515),
        "three": np.float32(3),
        "half": np.float32(0.5),
        "one": np.float32(1),
        "w": rng.normal(size=(width, outputs)).astype(np.float32) / 8,
        "b": rng.normal(size=outputs).astype(np.float32),
        "last": np.array([-1], np.int64),
        "contour_w": rng.normal(size=(1, width, 1)).astype(np.float32),
        "contour_b": np.array([0.2], np.float32),
    }
    nodes = [
        node("LayerNormalization", ["x", "gamma", "beta"], ["normal"], name="norm", epsilon=1e-12),
        node("Pow", ["normal", "three"], ["cubed"]),
        node("Mul", ["cubic", "cubed"], ["little"]),
        node("Add", ["normal", "little"], ["inner"]),
        node("Mul", ["inner", "root"], ["scaled"]),
        node("Tanh", ["scaled"], ["tanh"]),
        node("Add", ["tanh", "one"], ["open"]),
        node("Mul", ["normal", "half"], ["halved"]),
        node("Mul", ["halved", "open"], ["gelu"], name="gelu"),
        node("Softmax", ["gelu"], ["shares"], name="softmax", axis=-1),
        node("Add", ["gelu", "shares"], ["heard"]),
        node("MatMul", ["heard", "w"], ["bare"]),
        node("Add", ["b", "bare"], ["levels"]),
        node("Sigmoid", ["levels"], ["bins"]),
        node("ReduceSum", ["bins", "last"], ["durations"], name="sum", keepdims=0),
        node("Transpose", ["heard"], ["columns"], perm=[0, 2, 1]),
        node("Conv", ["columns", "contour_w", "contour_b"], ["contour"], name="contour"),
        node("Concat", ["durations", "flat"], ["y"], axis=1),
        node("Squeeze", ["contour", "middle"], ["flat"]),
    ]
    nodes[-2:] = nodes[:-3:-1]
    constants["middle"] = np.array([1], np.int64)
    return model_of(nodes, {"x": [1, "t", width]}, constants)


@pytest.mark.parametrize("rows", [1, 5, 36])
@pytest.mark.parametrize("spread", [0.01, 1.0, 30.0])
def test_what_stands_between_a_transformers_products(library: Path, rows: int, spread: float) -> None:
    theirs = transformer()
    ours = alike_passes.alike(theirs)
    operators = rewriting.operators(ours)
    assert operators["LayerNorm"] == operators["Gelu"] == operators["Softmax"] == 1
    assert operators["Product"] == 2
    assert not {"Tanh", "Pow", "ReduceSum", "Conv"} & set(operators)
    again = alike_passes.alike(ours)
    assert again.SerializeToString(deterministic=True) == ours.SerializeToString(deterministic=True)
    x = (np.random.default_rng(rows).normal(size=(1, rows, 70)) * spread).astype(np.float32)
    expected = run(theirs, None, {"x": x})
    for threads in (1, 2):
        found = run(ours, library, {"x": x}, threads=threads)
        np.testing.assert_allclose(found, expected, rtol=3e-6, atol=2e-5)


def test_what_is_no_number_is_not_hidden(library: Path) -> None:
    x = np.ones((1, 3, 70), np.float32)
    x[0, 1, 4] = np.nan
    y = run(alike_passes.alike(transformer()), library, {"x": x})
    assert np.isnan(y).tolist() == [[False, True, False] * 2]


def test_another_activation_is_no_gelu() -> None:
    other = transformer()
    (cubic,) = (c for c in other.graph.initializer if c.name == "cubic")
    cubic.CopyFrom(numpy_helper.from_array(np.float32(0.05), "cubic"))
    assert "Gelu" not in rewriting.operators(alike_passes.gelus(other))


def transformer_layer() -> Model:
    return alike_passes.alike(transformer(CHANNELS))


def vocoder_layer(*, quantised: bool) -> Model:
    """AdaIN, Snake and a convolution, as they ship: told the statistics, or looking at them."""
    rng = np.random.default_rng(7)
    nodes, constants = adain(CHANNELS, ("Mul", "centred"), "moved", "norm", rng)
    constants |= {
        "alpha": rng.uniform(0.5, 2, (1, CHANNELS, 1)).astype(np.float32),
        "per_alpha": np.float32(1),
        "w": rng.normal(size=(16, CHANNELS, 7)).astype(np.float32) / 10,
        "b": rng.normal(size=16).astype(np.float32),
    }
    constants["per_alpha"] = 1 / constants["alpha"]
    nodes += [
        node("Mul", ["alpha", "moved"], ["turned"]),
        node("Sin", ["turned"], ["sine"]),
        node("Mul", ["sine", "sine"], ["square"]),
        node("Mul", ["per_alpha", "square"], ["ripple"]),
        node("Add", ["moved", "ripple"], ["snake"]),
        node("Conv", ["snake", "w", "b"], ["convolved"], name="conv", pads=[9, 9], dilations=[3]),
        node("Atan", ["convolved"], ["y"], name="atan"),
    ]
    model = model_of(nodes, {"x": [1, CHANNELS, "t"], "style": [1, STYLE]}, constants)
    given = (passes.modulate, passes.snake_in_the_modulation, passes.own_statistics_unless_known)
    model = rewriting.apply(model, given)
    if quantised:
        least, most = np.full(CHANNELS, -6, np.float32), np.full(CHANNELS, 9, np.float32)
        model = quantise_layers(model, {"conv": Range(least, most)}, native=True)
    ours = (native_passes.statistics, native_passes.snake_convolutions, alike_passes.arctangents)
    return rewriting.apply(model, ours)


def floats_layer() -> Model:
    model = vocoder_layer(quantised=False)
    assert {"Statistics", "SnakeConv", "Arctangent"} <= set(rewriting.operators(model))
    return model


def integers_layer() -> Model:
    model = vocoder_layer(quantised=True)
    assert {"Statistics", "QuantSnakeConv", "Arctangent"} <= set(rewriting.operators(model))
    return model


def trunk_layer() -> Model:
    return alike_passes.rows_as_products(alike_passes.norms(normed()))


@pytest.fixture(scope="module", params=["intel", "znver2"])
def narrower(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our operators as an older processor would have them, of one maker or the other: with vectors half as
    wide, or a quarter."""
    compilers = operators.found_compilers()
    if not compilers or platform.machine() != "x86_64":
        pytest.skip("needs a C++ compiler on x86-64; scripts/aarch64/run.sh compares ARM64 with x86-64")
    made = tmp_path_factory.mktemp("narrower") / "native.so"
    flags = [flag.replace("native", "haswell") for flag in operators.FLAGS]
    tuned = f"-mtune={request.param}"
    sources = [str(path) for path in sorted(operators.SOURCES.glob("*.cpp"))]
    subprocess.run([*compilers[0], *flags, tuned, *sources, "-o", str(made)], check=True, timeout=300)
    return made


@pytest.mark.test_all
@pytest.mark.parametrize("made", [floats_layer, integers_layer, trunk_layer, transformer_layer])
@pytest.mark.parametrize("length", [1, 16, 333])
def test_vectors_of_another_width_give_the_same_bits(
    library: Path, narrower: Path, made: Callable[[], Model], length: int
) -> None:
    model = made()
    feed = spoken(length)
    if len(model.graph.input) == 1:
        feed = {"x": feed["x"].transpose(0, 2, 1)}
    if model.graph.input[-1].name == KNOWN:
        del feed["style"]
        rng = np.random.default_rng(1)
        feed |= {name: rng.uniform(0.5, 1, CHANNELS).astype(np.float32) for name in (SCALE, SHIFT)}
        feed[KNOWN] = np.array(False)
    expected = run(model, library, feed)
    assert np.isfinite(expected).all()
    np.testing.assert_array_equal(run(model, narrower, feed), expected)
