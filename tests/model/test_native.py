"""Our operators do what they say, and are done without where they cannot be built."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from kokoro_lab.config import EngineConfig
from kokoro_lab.engine import Engine
from kokoro_lab.metrics.perceptual import signal_to_difference_db
from kokoro_lab.model import native
from kokoro_lab.model.artefacts import stages_folder
from kokoro_lab.model.decoder import Staged
from kokoro_lab.model.native import Native, native_operators
from kokoro_lab.model.passes import NATIVE_DOMAIN
from kokoro_lab.model.providers import make_session

CONFIG = EngineConfig(threads=2)


@pytest.fixture(scope="module")
def library() -> Path:
    built = native_operators(CONFIG)
    if built.library is None:
        pytest.skip(f"our own operators cannot be built here: {built.reason}")
    return built.library


def modulate_snake(reads_x_again: bool) -> bytes:
    """The operator alone; or such that it may not write over its input."""
    nodes = [
        helper.make_node("Identity", ["x"], ["kept"]),
        helper.make_node("ModulateSnake", ["kept", "scale", "shift"], ["y"], domain=NATIVE_DOMAIN),
    ]
    outputs = ["y"]
    if reads_x_again:
        nodes.append(helper.make_node("Neg", ["kept"], ["after"]))
        outputs.append("after")
    values = {"x": [1, None, None], "scale": [None], "shift": [None]}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in values.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(NATIVE_DOMAIN, 1)]
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    serialised: bytes = model.SerializeToString()
    return serialised


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 3, 7), (1, 128, 1001), (1, 256, 64), (1, 5, 0)])
@pytest.mark.parametrize("spread", [0.01, 3.0, 400.0])
@pytest.mark.parametrize("reads_x_again", [False, True])
def test_modulate_snake_is_its_formula(
    library: Path, shape: tuple[int, int, int], spread: float, reads_x_again: bool
) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=shape).astype(np.float32)
    scale = (rng.normal(size=shape[1]) * spread).astype(np.float32)
    shift = (rng.normal(size=shape[1]) * spread).astype(np.float32)
    session = make_session(modulate_snake(reads_x_again), CONFIG, library=library)
    y, *after = session.run(None, {"x": x, "scale": scale, "shift": shift})
    z = x * scale[:, None] + shift[:, None]  # float32, as the operator has it
    expected = z.astype(np.float64) - np.cos(z.astype(np.float64)) + 1
    # A product and a sum that are rounded once instead of twice may move z by its last bit
    np.testing.assert_allclose(y, expected, atol=2e-6 + 4e-7 * np.abs(z).max(initial=0), rtol=0)
    for kept in after:
        np.testing.assert_array_equal(kept, -x)


@pytest.mark.model
def test_with_and_without_our_operators_the_samples_are_the_same(engine: Engine, library: Path) -> None:
    segment = next(engine.front_end.segments("A quarter to nine, then.", "en-us", lambda _: None))
    style = engine.voice("af_heart").style(len(segment.token_ids))
    spoken = []
    for choice in ("auto", "off"):
        config = replace(engine.config, native=choice)
        decoder = Staged(stages_folder(config.home), config)
        decoded = decoder.decode(segment.token_ids, style, 1.0, predicted=True)
        spoken.append(np.concatenate(list(decoded.blocks)))
        assert decoder.details["native_operators"].startswith("modulate" if choice == "auto" else "none")
    assert signal_to_difference_db(spoken[1], spoken[0]) > 100


def test_it_can_be_turned_off() -> None:
    assert native_operators(replace(CONFIG, native="off")) == Native(None, "KOKORO_NATIVE=off")


def test_no_compiler_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = native_operators(replace(CONFIG, home=tmp_path))
    assert found.library is None
    assert "no C++ compiler" in str(found)


def test_a_compiler_that_fails_is_no_error_but_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, library: Path
) -> None:
    (tmp_path / "modulate_snake.cpp").write_text("this is not C++\n")
    monkeypatch.setattr(native, "SOURCES", tmp_path)
    found = native_operators(replace(CONFIG, home=tmp_path / "home"))
    assert found.library is None
    assert "error" in found.reason
    assert not list((tmp_path / "home").rglob("*.so"))


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
    for path in native.SOURCES.glob("*.*"):
        (sources / path.name).write_text(path.read_text() + "\n// another\n")
    monkeypatch.setattr(native, "SOURCES", sources)
    second = native_operators(config, said.append)
    assert second.library is not None
    assert second.library != first.library
