"""ML Programs: what is written is read back and gives ONNX Runtime's samples, operation by operation."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper

from kokoro_lab.errors import ParameterError, WeightsError
from kokoro_lab.graphs import mlprogram
from kokoro_lab.graphs.rewriting import Model, operators
from kokoro_lab.graphs.static_passes import SAMPLES
from kokoro_lab.lab.conversion import mil_reference
from kokoro_lab.lab.conversion.exports import evaluated
from kokoro_lab.lab.conversion.provider_partitions import speak
from kokoro_lab.metrics.perceptual import signal_to_difference_db
from kokoro_lab.model.static_vocoder import (
    WINDOWS,
    StaticVocoder,
    StaticWindows,
    static_folder,
    write_program,
)
from kokoro_lab.speech.engine import Engine
from tests.graphs.small_vocoder import SHAPES, small_feed, small_vocoder


def run(model: Model) -> npt.NDArray[np.float32]:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (samples,) = session.run([SAMPLES], small_feed())
    return np.asarray(samples)


def kinds(program: mil_reference.Program) -> Counter[str]:
    """How many operations of each kind."""
    return Counter(operation.op_type for operation in program.operations)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small vocoder in single precision."""
    path = tmp_path_factory.mktemp("packages") / "small.mlpackage"
    mlprogram.write(small_vocoder(), path, "float32", {"window_frames": "6"})
    return path


def test_a_program_says_what_it_takes_and_what_it_was_made_of(package: Path) -> None:
    program = mil_reference.read(package)
    assert program.inputs == SHAPES
    assert program.outputs == (SAMPLES,)
    assert program.metadata["window_frames"] == "6"
    assert kinds(program)["conv"] == operators(small_vocoder())["Conv"]


def test_evaluated_by_itself_it_gives_onnx_runtimes_samples(package: Path) -> None:
    samples = mil_reference.evaluate(mil_reference.read(package), small_feed())[SAMPLES]
    reference = run(small_vocoder())
    assert samples.shape == reference.shape
    assert np.abs(samples - reference).max() <= 1e-5 * np.abs(reference).max()


def test_another_program_does_not(package: Path) -> None:
    samples = mil_reference.evaluate(mil_reference.read(package), small_feed())[SAMPLES]
    other = run(small_vocoder(seed=4))
    assert np.abs(samples - other).max() > mlprogram.ERROR_HIGH["int8"] * np.abs(other).max()


@pytest.mark.parametrize(("precision", "low_db"), [("float16", 50), ("int8", 30)])
def test_fewer_bits_cost_what_they_may(precision: str, low_db: float, tmp_path: Path) -> None:
    path = tmp_path / "small.mlpackage"
    mlprogram.write(small_vocoder(), path, precision)
    program = mil_reference.read(path)
    reference = run(small_vocoder())
    samples = mil_reference.evaluate(program, small_feed())[SAMPLES]
    assert np.abs(samples - reference).max() <= mlprogram.ERROR_HIGH[precision] * np.abs(reference).max()
    assert signal_to_difference_db(reference.reshape(-1), samples.reshape(-1)) >= low_db
    # Where nothing is rounded, nothing was made smaller
    assert not np.array_equal(samples, reference)
    assert ("constexpr_affine_dequantize" in kinds(program)) == (precision == "int8")


def test_inputs_of_another_shape_are_refused(package: Path) -> None:
    feed = small_feed() | {"trunk": np.zeros((1, 8, 7), np.float32)}
    with pytest.raises(WeightsError, match="trunk"):
        mil_reference.evaluate(mil_reference.read(package), feed)


def test_an_operator_without_a_translation_is_named(tmp_path: Path) -> None:
    model = small_vocoder()
    model.graph.node[2].CopyFrom(helper.make_node("Tanh", ["trunk"], ["leaky"]))
    with pytest.raises(WeightsError, match="Tanh"):
        mlprogram.write(model, tmp_path / "small.mlpackage")
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_written_is_refused(package: Path, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="bfloat16"):
        mlprogram.write(small_vocoder(), tmp_path / "small.mlpackage", "bfloat16")
    for path in (package, tmp_path / "small.onnx"):
        with pytest.raises(ParameterError, match=path.name):
            mlprogram.write(small_vocoder(), path)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="cannot be written"):
        mlprogram.write(small_vocoder(), tmp_path / "none" / "small.mlpackage", "float32")


def test_a_damaged_package_is_noticed(package: Path, tmp_path: Path) -> None:
    copy = tmp_path / "small.mlpackage"
    shutil.copytree(package, copy)
    (weights,) = copy.rglob("weight.bin")
    weights.write_bytes(bytes(len(weights.read_bytes())))
    with pytest.raises(WeightsError, match="package"):
        mil_reference.read(copy)
    with pytest.raises(WeightsError, match="package"):
        mil_reference.read(tmp_path / "none.mlpackage")


def test_columns_of_small_weights_keep_their_bits_in_eight() -> None:
    """Balanced, every input channel has a largest weight of one; the product stays what it was."""
    from kokoro_lab.graphs.static_passes import balanced_columns

    balanced = balanced_columns(small_vocoder())
    weight = next(
        numpy_helper.to_array(c) for c in balanced.graph.initializer if c.name == "step/level_weight"
    )
    assert np.abs(weight).max((0, 2)) == pytest.approx(1)
    assert np.abs(run(balanced) - run(small_vocoder())).max() < 1e-4


def test_only_a_mac_predicts(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    with pytest.raises(ParameterError, match="Mac"):
        mlprogram.predict(package, small_feed())


@pytest.mark.test_all
@pytest.mark.model
def test_the_vocoder_as_a_program_agrees_with_onnx_runtime(engine: Engine, tmp_path: Path) -> None:
    sentence = speak(engine, "The kettle is on.", "af_heart")
    folder, window = static_folder(engine.config), WINDOWS[0]
    path = tmp_path / "vocoder.mlpackage"
    write_program(folder, window, path, "float32")
    program = mil_reference.read(path)
    assert kinds(program)["conv"] == operators(onnx.load(folder / f"{window.name}.onnx"))["Conv"]
    assert program.metadata["window_frames"] == "12"
    assert len(program.metadata["source_sha256"]) == len(program.metadata["graph_sha256"]) == 64
    fixed = StaticVocoder(folder, engine.config, StaticWindows((window,)))
    assert evaluated(path, window, fixed, sentence)["error"] <= mlprogram.ERROR_HIGH["float32"]
