"""The vocoder's fixed windows where Core ML is: `make test-macos`.

Every path runs twice or more: what crashes or changes does so at the second prediction.
"""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from kokoro_lab.graphs import mlprogram
from kokoro_lab.graphs.static_passes import SAMPLES
from kokoro_lab.lab.conversion.exports import VocoderInputs
from kokoro_lab.lab.conversion.provider_partitions import speak
from kokoro_lab.model.static_vocoder import (
    WINDOWS,
    StaticVocoder,
    StaticWindows,
    static_folder,
    write_program,
)
from kokoro_lab.speech.engine import Engine
from tests.graphs.assigned import assigned

pytestmark = [
    pytest.mark.macos,
    pytest.mark.model,
    pytest.mark.skipif(
        (platform.system(), platform.machine()) != ("Darwin", "arm64"),
        reason="needs Apple silicon: `make test-macos`",
    ),
]
PREDICTIONS = 3
COREML = {"ModelFormat": "MLProgram", "RequireStaticInputShapes": "1"}
UNITS = ("CPUOnly", "CPUAndGPU", "CPUAndNeuralEngine", "ALL")
WINDOW = WINDOWS[0]


@pytest.fixture(scope="module")
def sentence(engine: Engine) -> VocoderInputs:
    return speak(engine, "The kettle is on.", "af_heart")


@pytest.fixture(scope="module")
def given(engine: Engine, sentence: VocoderInputs) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """What a window is fed with, and what the CPU makes of it."""
    fixed = StaticVocoder(static_folder(engine.config), engine.config, StaticWindows((WINDOW,)))
    feed = sentence.feed(WINDOW, fixed.spectrum(sentence.prosody))
    return feed, fixed.run(WINDOW, feed)


def agrees(found: list[np.ndarray], reference: np.ndarray, allowed: float) -> None:
    for samples in found:
        assert np.isfinite(samples).all()
        assert np.abs(samples - reference).max() <= allowed * np.abs(reference).max()
        assert np.abs(samples - found[0]).max() <= 1e-3 * np.abs(reference).max()


@pytest.mark.parametrize("precision", mlprogram.PRECISIONS)
def test_core_ml_predicts_what_onnx_runtime_gives(
    engine: Engine, given: tuple[dict[str, np.ndarray], np.ndarray], precision: str, tmp_path: Path
) -> None:
    feed, reference = given
    path = tmp_path / "vocoder.mlpackage"
    write_program(static_folder(engine.config), WINDOW, path, precision)
    # Apple's sine is no more exact than half precision on some units
    allowed = max(mlprogram.ERROR_HIGH[precision], mlprogram.ERROR_HIGH["float16"])
    agrees(mlprogram.predict(path, feed, PREDICTIONS), reference, allowed)


@pytest.mark.parametrize("units", UNITS)
def test_the_provider_takes_the_window_whole_and_speaks_like_the_cpu(
    engine: Engine, given: tuple[dict[str, np.ndarray], np.ndarray], units: str, tmp_path: Path
) -> None:
    feed, reference = given
    graph = static_folder(engine.config) / f"{WINDOW.name}.onnx"
    options = COREML | {"MLComputeUnits": units, "ModelCacheDirectory": str(tmp_path)}
    provider = ("CoreMLExecutionProvider", options)
    assert set(assigned(graph, [provider])) == {"CoreMLExecutionProvider"}
    session = ort.InferenceSession(str(graph), providers=[provider, "CPUExecutionProvider"])
    found = [session.run([SAMPLES], feed)[0] for _ in range(PREDICTIONS)]
    agrees(found, reference, mlprogram.ERROR_HIGH["float16"])
    assert any(WINDOW.cache_key in path.name for path in tmp_path.iterdir())
