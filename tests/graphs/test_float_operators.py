"""Operators of ours in the stages before the vocoder, beside those of ONNX Runtime that they stand for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import TensorProto, helper

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs import attention_passes, native_passes, rewriting, trunk_passes
from kokoro_lab.graphs.making import published_stages
from kokoro_lab.graphs.quant_passes import byte_recurrences
from kokoro_lab.graphs.rewriting import Model
from kokoro_lab.graphs.signatures import ALIGNED, DURATIONS, ENERGY, EXCITATION, F0, F0_CURVE, VOICED_HZ
from kokoro_lab.sessions.providers import make_session
from kokoro_lab.speech.engine import Engine
from tests.graphs.toy_graphs import STYLE, adain, model_of

CONFIG = EngineConfig(threads=2)
Values = npt.NDArray[np.float32]
node = helper.make_node


def run(model: Model, library: Path, feed: Mapping[str, Values], *, threads: int = 2) -> Values:
    session = make_session(model.SerializeToString(), replace(CONFIG, threads=threads), library=library)
    (y,) = session.run(None, dict(feed))
    return np.asarray(y, np.float32)


def transformer_step(inputs: int, outputs: int) -> Model:
    """A product as a transformer has it: a bias, what comes by, and a norm."""
    rng = np.random.default_rng(3)
    constants = {
        "weight": rng.normal(size=(inputs, outputs)).astype(np.float32) / math.sqrt(inputs),
        "bias": rng.normal(size=outputs).astype(np.float32),
        "gamma": rng.normal(size=outputs).astype(np.float32),
        "beta": rng.normal(size=outputs).astype(np.float32),
    }
    nodes = [
        node("MatMul", ["x", "weight"], ["product"], name="product"),
        node("Add", ["bias", "product"], ["biased"]),
        node("Add", ["biased", "by"], ["sum"]),
        node("LayerNormalization", ["sum", "gamma", "beta"], ["y"], axis=-1),
    ]
    return model_of(nodes, {"x": [1, "n", inputs], "by": [1, "n", outputs]}, constants)


@pytest.mark.parametrize("rows", [1, 5, 12, 13, 36, 57, 130])
@pytest.mark.parametrize(("inputs", "outputs"), [(128, 32), (256, 96), (768, 768), (2048, 64)])
def test_a_product_and_what_is_fused_behind_it_are_the_same_to_the_last_bit(
    library: Path, rows: int, inputs: int, outputs: int
) -> None:
    theirs = transformer_step(inputs, outputs)
    ours = native_passes.known_products(theirs)
    assert "MatMul" not in rewriting.operators(ours)
    rng = np.random.default_rng(rows)
    feed = {
        "x": rng.normal(size=(1, rows, inputs)).astype(np.float32),
        "by": rng.normal(size=(1, rows, outputs)).astype(np.float32),
    }
    expected = run(theirs, library, feed)
    for threads in (1, 2):
        np.testing.assert_array_equal(run(ours, library, feed, threads=threads), expected)


def test_products_that_do_not_fit_are_left_alone() -> None:
    other = transformer_step(64, 40)
    assert native_passes.known_products(other) is other


def recurrence(inputs: int, hidden: int, state: float = 0.0, **more: object) -> Model:
    """An LSTM in both directions from a state of zeros, as the published graph has it."""
    rng = np.random.default_rng(8)
    shapes = {"w": (2, 4 * hidden, inputs), "r": (2, 4 * hidden, hidden), "b": (2, 8 * hidden)}
    constants: dict[str, npt.ArrayLike] = {
        name: rng.normal(size=shape).astype(np.float32) / math.sqrt(shape[-1] if name != "b" else 1)
        for name, shape in shapes.items()
    }
    constants["shape"] = np.array([2, 1, hidden], np.int64)
    constants["known"] = np.full((2, 1, hidden), state, np.float32)
    attributes = {"direction": "bidirectional", "hidden_size": hidden} | more
    nodes = [
        node("ConstantOfShape", ["shape"], ["zeros"]),
        node("LSTM", ["x", "w", "r", "b", "", "zeros", "known"], ["y", "last", "cell"], **attributes),
    ]
    return model_of(nodes, {"x": ["t", 1, inputs]}, constants)


@pytest.mark.parametrize("steps", [1, 2, 37, 150])
@pytest.mark.parametrize(("inputs", "hidden"), [(640, 256), (512, 256), (40, 64)])
def test_a_recurrence_is_the_same_to_the_last_bit(
    library: Path, steps: int, inputs: int, hidden: int
) -> None:
    theirs = recurrence(inputs, hidden)
    ours = native_passes.recurrences(theirs)
    assert rewriting.operators(ours) == {"BiLstm": 1}
    x = np.random.default_rng(steps).normal(size=(steps, 1, inputs)).astype(np.float32)
    x[steps // 2] *= 100  # where gates are shut, or wide open
    expected = run(theirs, library, {"x": x})
    assert expected.shape == (steps, 2, 1, hidden)
    for threads in (1, 2):
        np.testing.assert_array_equal(run(ours, library, {"x": x}, threads=threads), expected)


@pytest.mark.parametrize("lengths", [[40], [1, 9, 1, 30], [5] * 20, [2, 1] * 7])
def test_of_steps_that_are_alike_a_recurrence_is_the_same_too(library: Path, lengths: list[int]) -> None:
    theirs = recurrence(64, 64)
    tokens = np.random.default_rng(5).normal(size=(len(lengths), 1, 64)).astype(np.float32)
    tokens[-1] = tokens[0]
    feed = {"x": np.repeat(tokens, lengths, axis=0)}
    ours = native_passes.recurrences(theirs)
    np.testing.assert_array_equal(run(ours, library, feed), run(theirs, library, feed))


def test_a_recurrence_may_have_its_weights_in_bytes(library: Path) -> None:
    theirs = recurrence(40, 64)
    x = np.random.default_rng(9).normal(size=(20, 1, 40)).astype(np.float32)
    whole, expected, found = (
        run(model, library, {"x": x})
        for model in (theirs, byte_recurrences(theirs), byte_recurrences(native_passes.recurrences(theirs)))
    )
    np.testing.assert_array_equal(found, expected)
    assert 0 < np.abs(found - whole).max() < 0.02


def test_a_recurrence_hides_nothing_that_is_not_a_number(library: Path) -> None:
    ours = native_passes.recurrences(recurrence(40, 64))
    x = np.zeros((9, 1, 40), np.float32)
    x[4, 0, 3] = np.nan
    y = run(ours, library, {"x": x})
    assert np.isnan(y[4:, 0]).all()
    assert np.isnan(y[:5, 1]).all()
    assert np.isfinite(y[:4, 0]).all()
    assert np.isfinite(y[5:, 1]).all()


@pytest.mark.parametrize("more", [{"hidden": 40}, {"clip": 3.0}, {"direction": "forward"}, {"state": 0.1}])
def test_recurrences_of_another_kind_are_left_alone(more: dict[str, Any]) -> None:
    other = recurrence(**{"inputs": 40, "hidden": 64} | more)
    assert native_passes.recurrences(other) is other


def source(overtones: int = 9) -> Model:
    """The excitation from phases on, as the model's graph has it; phases come from F0 in a shorter way."""
    rng = np.random.default_rng(4)
    constants = {
        "frame": np.array([1, 1, 300], np.float32),
        "overtones": np.arange(1, overtones + 1, dtype=np.float32)[None, :, None],
        "turns": np.float32(2 * np.pi * 300 / 24_000),
        "axis": np.int64(2),
        "tenth": np.float32(0.1),
        "ten": np.float32(10),
        "weights": rng.normal(size=(overtones, 1)).astype(np.float32) / 3,
        "bias": np.array([-0.03], np.float32),
    }
    interpolated = {"coordinate_transformation_mode": "half_pixel", "mode": "linear"}
    held = {"coordinate_transformation_mode": "asymmetric", "mode": "nearest", "nearest_mode": "floor"}
    nodes = [
        node("Mul", ["f0", "overtones"], ["each"]),
        node("CumSum", ["each", "axis"], ["cycles"]),
        node("Mul", ["cycles", "turns"], ["phase"]),
        node("Resize", ["phase", "", "frame"], ["phases"], **interpolated),
        node("Transpose", ["phases"], ["turned"], perm=[0, 2, 1]),
        node("Sin", ["turned"], ["sines"]),
        node("Mul", ["sines", "tenth"], ["soft"]),
        node("Resize", ["f0", "", "frame"], ["held"], **held),
        node("Transpose", ["held"], ["pitch"], perm=[0, 2, 1]),
        node("Greater", ["pitch", "ten"], ["above"]),
        node("Cast", ["above"], ["voiced"], to=TensorProto.FLOAT),
        node("Mul", ["soft", "voiced"], ["heard"]),
        node("MatMul", ["heard", "weights"], ["mixed"]),
        node("Add", ["bias", "mixed"], ["moved"]),
        node("Tanh", ["moved"], ["y"]),
    ]
    return model_of(nodes, {"f0": [1, 1, "t"]}, constants)


@pytest.mark.parametrize("frames", [1, 2, 3, 33, 700, 3000])
def test_phases_are_those_of_onnx_runtime_to_the_last_bit_however_far_they_are(
    library: Path, frames: int
) -> None:
    rng = np.random.default_rng(frames)
    f0 = 180 + 60 * np.cumsum(rng.normal(size=(1, 1, frames)), axis=-1) / np.sqrt(frames)
    f0[..., frames // 3 : frames // 2] = rng.uniform(0, 9.9, (1, 1, frames // 2 - frames // 3))
    feed = {"f0": f0.astype(np.float32)}
    theirs = source()
    ours = native_passes.phases(theirs)
    assert rewriting.operators(ours)["Phases"] == 1
    expected = run(theirs, library, feed)
    assert expected.shape == (1, 300 * frames, 1)
    for threads in (1, 2):
        np.testing.assert_array_equal(run(ours, library, feed, threads=threads), expected)


def norm_and_convolution(*, second_reader: bool = False) -> Model:
    """AdaIN, a leaky rectifier and a wide convolution, as the trunk has them."""
    channels = 256
    rng = np.random.default_rng(5)
    nodes, constants = adain(channels, ("Mul", "centred"), "moved", "norm", rng)
    constants |= {
        "weight": rng.normal(size=(256, channels, 3)).astype(np.float32) / 30,
        "bias": rng.normal(size=256).astype(np.float32),
    }
    nodes += [
        node("LeakyRelu", ["moved"], ["active"], alpha=0.2),
        node("Conv", ["active", "weight", "bias"], ["convolved"], name="conv", pads=[1, 1]),
        node("Add", ["convolved", "moved" if second_reader else "x"], ["y"]),
    ]
    return model_of(nodes, {"x": [1, channels, "t"], "style": [1, STYLE]}, constants)


@pytest.mark.parametrize("length", [1, 2, 47, 200])
def test_a_norm_is_part_of_the_convolution_behind_it(library: Path, length: int) -> None:
    theirs = norm_and_convolution()
    ours = trunk_passes.norms_in_convolutions(native_passes.fast_convolutions(theirs))
    assert set(rewriting.operators(ours)) == {"Gemm", "NormConv", "Add"}
    rng = np.random.default_rng(length)
    feed = {
        "x": (rng.normal(size=(1, 256, length)) * 3 + 1).astype(np.float32),
        "style": rng.normal(size=(1, 128)).astype(np.float32),
    }
    expected = run(theirs, library, feed)
    for threads in (1, 2):
        np.testing.assert_allclose(run(ours, library, feed, threads=threads), expected, rtol=0, atol=5e-5)
    twice = trunk_passes.norms_in_convolutions(ours)
    assert twice.SerializeToString(deterministic=True) == ours.SerializeToString(deterministic=True)


def test_a_norm_that_something_else_reads_stays_where_it_is() -> None:
    fast = native_passes.fast_convolutions(norm_and_convolution(second_reader=True))
    assert "FastConv" in rewriting.operators(trunk_passes.norms_in_convolutions(fast))


def two_ways(*, second_reader: bool = False) -> Model:
    """Two convolutions, their sum over the root of two."""
    rng = np.random.default_rng(6)
    constants = {
        "wide": rng.normal(size=(8, 6, 3)).astype(np.float32),
        "bias": rng.normal(size=8).astype(np.float32),
        "short": rng.normal(size=(8, 6, 1)).astype(np.float32),
        "root": np.float32(np.sqrt(2)),
    }
    nodes = [
        node("Conv", ["x", "wide", "bias"], ["a"], name="wide", pads=[1, 1]),
        node("Conv", ["x", "short"], ["b"], name="short"),
        node("Add", ["a", "b"], ["sum"], name="sum"),
        node("Div", ["sum", "root"], ["both"]),
        node("Add", ["both", "a" if second_reader else "both"], ["y"]),
    ]
    return model_of(nodes, {"x": [1, 6, "t"]}, constants)


def test_a_division_is_done_by_the_weights(library: Path) -> None:
    theirs = two_ways()
    ours = trunk_passes.divided_beforehand(theirs)
    assert "Div" not in rewriting.operators(ours)
    feed = {"x": np.random.default_rng(7).normal(size=(1, 6, 90)).astype(np.float32)}
    np.testing.assert_allclose(run(ours, library, feed), run(theirs, library, feed), rtol=0, atol=1e-5)
    twice = trunk_passes.divided_beforehand(ours)
    assert twice.SerializeToString(deterministic=True) == ours.SerializeToString(deterministic=True)


def test_but_not_where_something_else_reads_what_they_make() -> None:
    assert "Div" in rewriting.operators(trunk_passes.divided_beforehand(two_ways(second_reader=True)))


@pytest.fixture(scope="module")
def stages() -> Mapping[str, Model]:
    return published_stages(EngineConfig())


def spoken_ids(engine: Engine) -> tuple[npt.NDArray[np.int64], Values]:
    segment = next(
        engine.front_end.segments("A quarter to nine, then, and not before.", "en-us", lambda _: None)
    )
    ids = np.array([[0, *segment.token_ids, 0]], np.int64)
    return ids, engine.voice("af_heart").style(len(segment.token_ids))


@pytest.mark.test_all
@pytest.mark.model
def test_the_models_prosody_is_the_published_one_to_the_last_bit(
    engine: Engine, library: Path, stages: Mapping[str, Model]
) -> None:
    ids, style = spoken_ids(engine)
    feed = {"input_ids": ids, "style": style, "speed": np.ones(1, np.float32)}
    wanted = [ALIGNED, F0, ENERGY, DURATIONS]
    ours = native_passes.known_products(native_passes.recurrences(stages["prosody"]))
    ours = attention_passes.attention(ours)
    assert rewriting.operators(ours)["Product"] > 70
    assert rewriting.operators(ours)["Mixture"] == 12
    assert rewriting.operators(ours)["BiLstm"] == 6
    found = [
        make_session(m.SerializeToString(), CONFIG, library=library).run(wanted, feed)
        for m in (stages["prosody"], ours)
    ]
    for theirs, made in zip(*found, strict=True):
        np.testing.assert_array_equal(made, theirs)


@pytest.mark.model
def test_the_models_excitation_is_the_published_one_to_the_last_bit(
    engine: Engine, library: Path, stages: Mapping[str, Model]
) -> None:
    ids, style = spoken_ids(engine)
    prosody = make_session(stages["prosody"].SerializeToString(), CONFIG)
    (f0,) = prosody.run([F0], {"input_ids": ids, "style": style, "speed": np.ones(1, np.float32)})
    assert 0.2 < (f0 > VOICED_HZ).mean() < 0.9
    ours = native_passes.phases(stages["excitation"])
    assert "Phases" in rewriting.operators(ours)
    theirs, made = (
        make_session(m.SerializeToString(), CONFIG, library=library).run(
            [EXCITATION], {F0_CURVE: f0[:, None]}
        )[0]
        for m in (stages["excitation"], ours)
    )
    np.testing.assert_array_equal(made, theirs)
