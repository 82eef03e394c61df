"""Our operators do what they say, and are done without where they cannot be built."""

from __future__ import annotations

import logging
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs.fast_fir import FastFir, packed
from kokoro_lab.graphs.native_passes import NATIVE_DOMAIN, exact_stft
from kokoro_lab.metrics.perceptual import signal_to_difference_db
from kokoro_lab.model.decoder import SegmentRequest, StagedDecoder
from kokoro_lab.native import operators
from kokoro_lab.native.operators import Native, damage_to, native_operators
from kokoro_lab.sessions.providers import make_session
from kokoro_lab.speech.engine import Engine
from tests.graphs.test_fast_fir import whole

CONFIG = EngineConfig(threads=2)


def snake_conv(weight: np.ndarray, bias: np.ndarray, dilation: int, phases: int) -> bytes:
    """The operator alone."""
    plan, weights = packed(FastFir.of(weight, dilation, phases))
    constants = {"plan": plan, "weights": weights, "bias": bias}
    inputs = {"x": [1, None, None], "scale": [None], "shift": [None]}
    names = ["x", *constants, "scale", "shift"]
    graph = helper.make_graph(
        [helper.make_node("SnakeConv", names, ["y"], domain=NATIVE_DOMAIN)],
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(NATIVE_DOMAIN, 1)]
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    serialised: bytes = model.SerializeToString()
    return serialised


@pytest.mark.parametrize("length", [1, 2, 15, 48, 49, 96, 97, 200, 385, 1441, 3077])
@pytest.mark.parametrize(("taps", "dilation"), [(3, 1), (7, 5), (11, 3), (11, 5)])
@pytest.mark.parametrize("phases", [1, 2, 4])
def test_snake_conv_is_its_formula(library: Path, length: int, taps: int, dilation: int, phases: int) -> None:
    rng = np.random.default_rng(3)
    channels_in, channels_out = 6, 72  # two tasks a run, the second of one tile
    x = rng.normal(size=(1, channels_in, length)).astype(np.float32)
    scale = rng.normal(size=channels_in).astype(np.float32) * 3
    shift = rng.normal(size=channels_in).astype(np.float32) * 3
    weight = rng.normal(size=(channels_out, channels_in, taps)).astype(np.float32) / np.sqrt(6 * taps)
    bias = rng.normal(size=channels_out).astype(np.float32)
    model = snake_conv(weight, bias, dilation, phases)
    made = {}
    for threads in (1, 2):
        session = make_session(model, replace(CONFIG, threads=threads), library=library)
        (made[threads],) = session.run(None, {"x": x, "scale": scale, "shift": shift})
    z = (x[0] * scale[:, None] + shift[:, None]).astype(np.float64)
    expected = whole(z - np.cos(z) + 1, weight, dilation) + bias[:, None]
    np.testing.assert_allclose(made[1][0], expected, atol=3e-5, rtol=0)
    np.testing.assert_array_equal(made[1], made[2])


@pytest.mark.parametrize("phases", [1, 2, 4])
def test_a_long_window_and_a_part_of_it_have_the_same_bits(library: Path, phases: int) -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(1, 6, 5000)).astype(np.float32)
    weight = rng.normal(size=(72, 6, 11)).astype(np.float32)
    model = snake_conv(weight, np.ones(72, np.float32), 5, phases)
    session = make_session(model, CONFIG, library=library)

    def run(part: np.ndarray) -> np.ndarray:
        found: np.ndarray = session.run(
            None, {"x": part, "scale": np.ones(6, np.float32), "shift": np.zeros(6, np.float32)}
        )[0]
        return found

    # Of a fast convolution, neighbours that cancel are seen from further off than its taps reach
    begin, length, margin = 4000, 300, 60
    of_all, of_part = run(x), run(x[:, :, begin : begin + length].copy())
    inside = slice(begin + margin, begin + length - margin)
    np.testing.assert_array_equal(of_part[:, :, margin:-margin], of_all[:, :, inside], strict=True)


@pytest.mark.parametrize("spread", [0.01, 30.0, 1000.0])
def test_its_cosine_is_right_far_from_zero(library: Path, spread: float) -> None:
    z = (np.random.default_rng(5).normal(size=(1, 8, 4000)) * spread).astype(np.float32)
    one = np.eye(8, dtype=np.float32)[:, :, None]
    session = make_session(snake_conv(one, np.zeros(8, np.float32), 1, 1), CONFIG, library=library)
    feed = {"x": z, "scale": np.ones(8, np.float32), "shift": np.zeros(8, np.float32)}
    expected = z.astype(np.float64) - np.cos(z.astype(np.float64)) + 1
    np.testing.assert_allclose(session.run(None, feed)[0], expected, atol=1e-6, rtol=1e-6)


def test_an_empty_tensor_is_answered(library: Path) -> None:
    one = np.eye(8, dtype=np.float32)[:, :, None]
    session = make_session(snake_conv(one, np.zeros(8, np.float32), 1, 1), CONFIG, library=library)
    feed = {"x": np.zeros((1, 8, 0), np.float32), "scale": np.ones(8, np.float32)}
    assert session.run(None, feed | {"shift": np.zeros(8, np.float32)})[0].shape == (1, 8, 0)


def stft(size: int, hop: int) -> onnx.ModelProto:
    """The STFT as the vocoder's graph has it: real and imaginary parts apart."""
    constants = {
        "hop": np.int64(hop),
        "window": np.hanning(size).astype(np.float32),
        "size": np.int64(size),
        "first": np.int64(0),
        "second": np.int64(1),
    }
    nodes = [
        helper.make_node("STFT", ["x", "hop", "window", "size"], ["spectrum"], name="stft", onesided=1),
        helper.make_node("Transpose", ["spectrum"], ["turned"], perm=[0, 2, 1, 3]),
        helper.make_node("Gather", ["turned", "first"], ["real"], axis=3),
        helper.make_node("Gather", ["turned", "second"], ["imaginary"], axis=3),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, None])],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("real", "imaginary")],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


@pytest.mark.parametrize("length", [20, 21, 320, 6020, 24_020])
def test_our_stft_is_onnx_runtimes_to_the_last_bit(library: Path, length: int) -> None:
    x = np.random.default_rng(9).normal(size=(1, length)).astype(np.float32) * 0.1
    x[:, length // 2 :] = 0  # where the voice pauses, phases hang on the sign of a zero
    model = stft(20, 5)
    ours = exact_stft(model)
    assert "STFT" not in {node.op_type for node in ours.graph.node}
    parts = [
        make_session(m.SerializeToString(), CONFIG, library=library).run(None, {"x": x})
        for m in (model, ours)
    ]
    for theirs, made in zip(*parts, strict=True):
        np.testing.assert_array_equal(made, theirs)
        np.testing.assert_array_equal(np.signbit(made), np.signbit(theirs))


def test_a_library_shares_nothing_with_another_build_of_it_in_the_same_process(library: Path) -> None:
    """Else the second one that a process loads would hand over the operators of the first one as well."""
    found = subprocess.run(
        ["nm", "--dynamic", "--defined-only", str(library)], capture_output=True, text=True, check=True
    )
    kinds = {name: kind for _, kind, name in map(str.split, found.stdout.splitlines())}
    assert set(kinds.values()) <= {"T", "W"}, "functions alone"
    ours = sorted(name for name in kinds if not name.startswith(("_ZSt", "_ZNSt", "_ZNKSt")))
    assert ours == ["RegisterCustomOps", "kokoro_brake"]


@pytest.mark.test_all
@pytest.mark.model
def test_with_and_without_our_operators_the_samples_are_the_same(engine: Engine, library: Path) -> None:
    segment = next(engine.front_end.segments("A quarter to nine, then.", "en-us", lambda _: None))
    style = engine.voice("af_heart").style(len(segment.token_ids))
    spoken = []
    for choice in ("auto", "off"):
        config = replace(engine.config, native=choice)
        decoder = StagedDecoder(config)
        decoded = decoder.decode(SegmentRequest(segment.token_ids, style, predicted=True))
        spoken.append(np.concatenate(list(decoded.blocks)))
        assert decoder.details["native_operators"].startswith("FastConv" if choice == "auto" else "none")
    assert signal_to_difference_db(spoken[1], spoken[0]) > 100


def test_it_can_be_turned_off() -> None:
    assert native_operators(replace(CONFIG, native="off")) == Native(None, "KOKORO_NATIVE=off")


def test_no_compiler_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(operators, "find_spec", lambda name: None)  # nor zig, which a package can bring
    found = native_operators(replace(CONFIG, home=tmp_path))
    assert found.library is None
    assert "no C++ compiler" in str(found)


def test_a_compiler_that_fails_is_no_error_but_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, library: Path
) -> None:
    (tmp_path / "fast_conv.cpp").write_text("this is not C++\n")
    monkeypatch.setattr(operators, "SOURCES", tmp_path)
    found = native_operators(replace(CONFIG, home=tmp_path / "home"))
    assert found.library is None
    assert "error" in found.reason
    assert not list((tmp_path / "home").rglob("*.so"))


@pytest.mark.test_all
def test_it_is_built_once_and_anew_for_other_sources(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, library: Path
) -> None:
    config = replace(CONFIG, home=tmp_path / "home")
    said: list[str] = []
    first = native_operators(config, said.append)
    assert native_operators(config, said.append) == first
    assert len(said) == 1
    sources = tmp_path / "sources"
    sources.mkdir()
    for path in operators.sources():
        (sources / path.name).write_text(path.read_text() + "\n// another\n")
    monkeypatch.setattr(operators, "SOURCES", sources)
    second = native_operators(config, said.append)
    assert second.library is not None
    assert second.library != first.library


@pytest.mark.parametrize("damaged", ["library", "record", "record is gone"])
def test_a_damaged_library_is_built_anew_and_said(
    damaged: str,
    tmp_path: Path,
    library: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = tmp_path / "derived"
    home.mkdir()
    ours, record = (home / name for name in (library.name, library.with_suffix(".json").name))

    def copied(_: str, into: Path) -> str:
        """In place of the compiler, which takes seconds."""
        for path in (into, into.with_suffix(".json")):
            path.write_bytes((library.parent / path.name).read_bytes())
        return ""

    copied("", ours)
    monkeypatch.setattr(operators, "_build", copied)
    content = bytearray(ours.read_bytes())
    content[100_000] ^= 1
    if damaged == "library":
        ours.write_bytes(content)
    elif damaged == "record":
        record.write_text("{")
    else:
        record.unlink()
    said: list[str] = []
    with caplog.at_level(logging.WARNING):
        assert native_operators(replace(CONFIG, home=tmp_path), said.append).library == ours
    assert len(said) == 1
    assert ours.read_bytes() == library.read_bytes()
    assert damage_to(ours, again=True) is None
    assert ("built anew" in caplog.text) == (damaged != "record is gone")
