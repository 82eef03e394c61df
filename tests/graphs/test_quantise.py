"""Eight bits between floats: the formula, its two forms, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs.quant_passes import quantisable, quantise_layers
from kokoro_lab.graphs.quantise import Calibration, QuantisedLayer, Range
from kokoro_lab.metrics.perceptual import signal_to_difference_db
from kokoro_lab.sessions.providers import make_session
from tests.graphs.test_fast_fir import whole

CONFIG = EngineConfig(threads=2)


def a_range(channels: int, seed: int = 0) -> Range:
    rng = np.random.default_rng(seed)
    return Range(
        -rng.uniform(0.1, 3, channels).astype(np.float32), rng.uniform(0.1, 6, channels).astype(np.float32)
    )


def conv(weight: np.ndarray, bias: np.ndarray, dilation: int = 1) -> onnx.ModelProto:
    """One convolution of floats that keeps the length."""
    reach = weight.shape[2] // 2 * dilation
    node = helper.make_node(
        "Conv", ["x", "w", "b"], ["y"], name="conv", dilations=[dilation], pads=[reach, reach]
    )
    return a_model([node], {"w": weight, "b": bias}, [1, weight.shape[1], None])


def product(*weights: np.ndarray) -> onnx.ModelProto:
    """As many matrix multiplications in a row as there are weights; equal ones are one constant."""
    constants: dict[str, np.ndarray] = {}
    nodes, at = [], "x"
    for k, weight in enumerate(weights):
        name = next((n for n, w in constants.items() if w is weight), f"w{k}")
        constants[name] = weight
        out = "y" if k == len(weights) - 1 else f"h{k}"
        nodes.append(helper.make_node("MatMul", [at, name], [out], name=f"product{k}"))
        at = out
    return a_model(nodes, constants, [1, None, weights[0].shape[0]])


def a_model(
    nodes: list[onnx.NodeProto], constants: dict[str, np.ndarray], shape: list[int | None]
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def run(model: onnx.ModelProto, x: np.ndarray, library: Path | None = None, threads: int = 2) -> np.ndarray:
    session = make_session(model.SerializeToString(), replace(CONFIG, threads=threads), library=library)
    found: np.ndarray = session.run(None, {"x": x})[0]
    return found


def by_formula(x: np.ndarray, quantised: QuantisedLayer, bias: np.ndarray, dilation: int) -> np.ndarray:
    levels = np.round(x * (np.float32(1) / quantised.step)[:, None]) + quantised.zero[:, None]
    integers = np.clip(levels, 0, 255) - quantised.zero[:, None].astype(np.float64)
    found: np.ndarray = (
        whole(integers, quantised.weights.astype(np.float64), dilation) * quantised.scale[:, None]
    )
    return found + bias[:, None]


@pytest.mark.parametrize("length", [1, 2, 15, 48, 49, 200, 1441])
@pytest.mark.parametrize(("taps", "dilation"), [(1, 1), (3, 1), (7, 5), (11, 3)])
@pytest.mark.parametrize("channels", [6, 8])
def test_the_operator_is_its_formula_on_any_number_of_threads(
    library: Path, length: int, taps: int, dilation: int, channels: int
) -> None:
    rng = np.random.default_rng(2)
    out = 72  # two tasks a block, the second of one tile
    x = (rng.normal(size=(1, channels, length)) * 2).astype(np.float32)
    weight = rng.normal(size=(out, channels, taps)).astype(np.float32)
    bias = rng.normal(size=out).astype(np.float32)
    ranges = a_range(channels)
    model = quantise_layers(conv(weight, bias, dilation), {"conv": ranges}, native=True)
    assert [n.op_type for n in model.graph.node] == ["QuantConv"]
    made = [run(model, x, library, threads) for threads in (1, 2)]
    expected = by_formula(x[0], QuantisedLayer.of(weight, ranges), bias, dilation)
    np.testing.assert_allclose(made[0][0], expected, atol=1e-4)
    np.testing.assert_array_equal(*made)


@pytest.mark.parametrize(("taps", "dilation"), [(1, 1), (3, 1), (7, 5), (11, 3)])
@pytest.mark.parametrize("length", [3, 200])
def test_stock_operators_compute_the_same(library: Path, length: int, taps: int, dilation: int) -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(1, 6, length)).astype(np.float32)
    weight, bias = rng.normal(size=(16, 6, taps)).astype(np.float32), rng.normal(size=16).astype(np.float32)
    native, stock = (
        quantise_layers(conv(weight, bias, dilation), {"conv": a_range(6)}, native=native)
        for native in (True, False)
    )
    assert "MatMulIntegerToFloat" in {n.op_type for n in stock.graph.node}
    np.testing.assert_allclose(run(native, x, library), run(stock, x), atol=1e-4)


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=20)
def test_within_its_range_little_is_lost(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ranges = a_range(12, seed)
    x = rng.uniform(ranges.low[:, None], ranges.high[:, None], (12, 400)).astype(np.float32)[None]
    weight, bias = rng.normal(size=(16, 12, 3)).astype(np.float32), np.zeros(16, np.float32)
    model = conv(weight, bias)
    rounded = run(quantise_layers(model, {"conv": ranges}, native=False), x)
    assert signal_to_difference_db(run(model, x).ravel(), rounded.ravel()) > 36


def test_the_largest_weights_and_values_are_multiplied_without_a_loss() -> None:
    # On a processor without VNNI, ONNX Runtime's product of signed weights would give 65,534 of 129,540
    ranges = Range(np.zeros(4, np.float32), np.full(4, 255.0, np.float32))
    weight = np.full((16, 4, 1), 127.0, np.float32)
    model = quantise_layers(conv(weight, np.zeros(16, np.float32)), {"conv": ranges}, native=False)
    found = run(model, np.full((1, 4, 2), 255.0, np.float32))
    np.testing.assert_allclose(found, np.full((1, 16, 2), 4 * 255 * 127.0), rtol=1e-5)


def test_beyond_its_range_a_value_is_clipped_and_zero_stays_zero() -> None:
    one = np.eye(8, dtype=np.float32)[:, :, None]
    ranges = Range(np.full(8, 0.5, np.float32), np.full(8, 2.0, np.float32))  # is widened to hold zero
    model = quantise_layers(conv(one, np.zeros(8, np.float32)), {"conv": ranges}, native=False)
    x = np.zeros((1, 8, 3), np.float32)
    x[..., 1], x[..., 2] = 100.0, -100.0
    np.testing.assert_allclose(run(model, x)[0, 0], [0, 2, 0], atol=1e-6)


@pytest.mark.parametrize("rows", [1, 36, 49, 130])
def test_a_product_finds_the_range_of_each_row(library: Path, rows: int) -> None:
    rng = np.random.default_rng(6)
    weight = rng.normal(size=(24, 72)).astype(np.float32) / 5
    x = rng.normal(size=(1, rows, 24)).astype(np.float32) * np.exp(rng.normal(size=(1, rows, 1)) * 3)
    x = x.astype(np.float32)
    x[0, 0] = 0
    model = product(weight)
    exact = run(model, x)
    made = [
        run(quantise_layers(model, {"product0": a_range(24)}, native=native), x, library, threads)
        for native, threads in ((True, 1), (True, 2), (False, 2))
    ]
    np.testing.assert_array_equal(made[0], made[1])
    np.testing.assert_allclose(made[0], made[2], rtol=1e-4, atol=1e-5)
    for row in range(1, rows):  # the loud ones do not drown the quiet ones
        assert signal_to_difference_db(exact[0, row], made[0][0, row]) > 30
    assert not made[0][0, 0].any()


@pytest.mark.parametrize("native", [True, False])
def test_products_that_share_a_weight_share_their_bytes(library: Path, native: bool) -> None:
    rng = np.random.default_rng(6)
    weight = rng.normal(size=(16, 16)).astype(np.float32) / 4
    model = product(weight, weight)
    ranges = {f"product{k}": Range(np.full(16, -k - 1.0), np.full(16, k + 1.0)) for k in range(2)}
    quantised = quantise_layers(model, ranges, native=native)
    bytes_of = TensorProto.INT8 if native else TensorProto.UINT8
    weights = [i for i in quantised.graph.initializer if i.data_type == bytes_of and len(i.dims) > 1]
    assert len(weights) == 1
    x = rng.uniform(-1, 1, (1, 40, 16)).astype(np.float32)
    assert signal_to_difference_db(run(model, x).ravel(), run(quantised, x, library).ravel()) > 30


def test_a_kept_layer_is_left_alone() -> None:
    model = conv(np.ones((8, 8, 1), np.float32), np.zeros(8, np.float32))
    assert quantise_layers(model, {}, native=True, keep=["conv"]) == model


def test_a_layer_that_was_left_out_of_the_calibration_is_named() -> None:
    model = conv(np.ones((8, 8, 1), np.float32), np.zeros(8, np.float32))
    assert quantisable(model) == {"conv": "x"}
    with pytest.raises(ValueError, match="no range was calibrated for conv"):
        quantise_layers(model, {"another": a_range(8)}, native=False)


@pytest.mark.parametrize("where", ["low", "high", "weight"])
def test_a_channel_that_is_not_a_number_is_refused(where: str) -> None:
    weight = np.ones((8, 4, 1), np.float32)
    ranges = a_range(4)
    {"low": ranges.low, "high": ranges.high, "weight": weight.ravel()}[where][1] = np.nan
    with pytest.raises(ValueError, match="must be finite"):
        QuantisedLayer.of(weight, ranges)


def test_ranges_of_another_layer_are_refused() -> None:
    with pytest.raises(ValueError, match="4 input channels, but ranges for"):
        QuantisedLayer.of(np.ones((8, 4, 1), np.float32), a_range(6))


def test_ranges_come_back_from_the_file(tmp_path: Path) -> None:
    Calibration({"a/b": a_range(5), "c": a_range(3)}).save(tmp_path / "r.npz")
    loaded = Calibration.load(tmp_path / "r.npz")
    assert list(loaded) == ["a/b", "c"]
    np.testing.assert_allclose(loaded["a/b"].high, a_range(5).high, rtol=1e-3)
