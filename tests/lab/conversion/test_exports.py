"""Graphs to take along: whole, finite, alike, and refused where they would not run."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kokoro_lab.dsp import require_finite
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ParameterError, SynthesisError, WeightsError
from kokoro_lab.graphs.artefacts import recipe_of, stages_folder
from kokoro_lab.lab.conversion.exports import export, speak_alike
from kokoro_lab.model.decoder import DecodedSegment, SegmentRequest
from kokoro_lab.native.operators import Native, native_operators
from kokoro_lab.speech.engine import Engine, load_engine
from kokoro_lab.weights.joining import sha256_of
from kokoro_lab.weights.voices import Voice

INT8 = EngineConfig(variant="int8")
STYLE = np.zeros((1, 256), np.float32)
SEGMENTS = [([1, 2], STYLE), ([3], STYLE)]


class Speaker:
    """A `Decoder` that says what it was given."""

    details: Mapping[str, str] = {}

    def __init__(self, *spoken: np.ndarray) -> None:
        self._spoken = list(spoken)

    def predicts(self, voice: Voice) -> str | None:
        return None

    def decode(self, asked: SegmentRequest) -> DecodedSegment:
        samples = self._spoken.pop(0)
        require_finite(samples, "a test")
        return DecodedSegment(np.ones(1, np.int64), iter((samples,)))


def noise(seed: int, length: int = 600) -> np.ndarray:
    found: np.ndarray = np.random.default_rng(seed).normal(size=length).astype(np.float32)
    return found


def test_graphs_that_speak_the_same_say_so() -> None:
    found = speak_alike(Speaker(noise(1), noise(2)), Speaker(noise(1), noise(2)), SEGMENTS)
    assert found == {
        "segments_count": 2,
        "audio_s": 0.05,
        "differing_samples_count": 0,
        "agreement_db": None,
    }


def test_rounding_is_measured() -> None:
    rounded = noise(2) * np.float32(1 + 1e-5)
    found = speak_alike(Speaker(noise(1), noise(2)), Speaker(noise(1), rounded), SEGMENTS)
    assert found["agreement_db"] == pytest.approx(100, abs=1)
    assert 0 < found["differing_samples_count"] <= 600


def not_a_number() -> np.ndarray:
    found = noise(2)
    found[77] = np.nan
    return found


@pytest.mark.parametrize(
    ("second", "error", "said"),
    [
        pytest.param(not_a_number(), SynthesisError, "not finite", id="not a number"),
        pytest.param(noise(3), WeightsError, "agree with their source to", id="another voice"),
        pytest.param(noise(2, 599), WeightsError, "599 samples", id="another length"),
        pytest.param(np.zeros(600, np.float32), WeightsError, "agree with their source to", id="silence"),
    ],
)
def test_graphs_that_speak_otherwise_are_refused(
    second: np.ndarray, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        speak_alike(Speaker(noise(1), noise(2)), Speaker(noise(1), second), SEGMENTS)


def test_a_check_that_spoke_nothing_is_no_check() -> None:
    with pytest.raises(WeightsError, match="nothing to speak"):
        speak_alike(Speaker(), Speaker(), [])


@pytest.mark.parametrize(
    ("config", "form", "field"),
    [(replace(INT8, variant="int8-upstream"), "ort", "variant"), (INT8, "tflite", "--format")],
)
def test_what_cannot_be_exported_is_refused(
    config: EngineConfig, form: str, field: str, tmp_path: Path
) -> None:
    with pytest.raises(ParameterError) as caught:
        export(config, tmp_path / "new", form, SEGMENTS)
    assert caught.value.field == field
    assert caught.value.allowed
    assert not (tmp_path / "new").exists()


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ParameterError, match="there already"):
        export(INT8, tmp_path, "ort", SEGMENTS)
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def exported(folder: Path, **changed: Any) -> EngineConfig:
    """A folder that looks like an export of int8, something `changed`, and a configuration that runs it."""
    made_for = {"format": "ort", "native": True, "machine": platform.machine()} | changed
    for name in ("vocoder.ort", "layers.npz"):
        (folder / name).write_bytes(b"12345")
    promised = {"bytes": 5, "sha256": sha256_of(folder / "vocoder.ort")}
    graphs, files = {"vocoder": dict(promised)}, {"layers.npz": promised}
    manifest = {
        "variant": "int8",
        "recipe": recipe_of("int8", native_operators=made_for["native"]),
        "graphs": graphs,
        "files": files,
        "export": made_for,
    }
    for part in (manifest, graphs["vocoder"]):
        part.update({k: v for k, v in changed.items() if k in part})
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return replace(INT8, stages=folder, home=folder / "home")


LIBRARY = Native(Path("library.so"))


def test_a_whole_export_is_run_as_it_is(tmp_path: Path) -> None:
    assert stages_folder(exported(tmp_path), LIBRARY) == tmp_path


@pytest.mark.parametrize(
    ("changed", "native", "said"),
    [
        pytest.param({"bytes": 6}, LIBRARY, r"vocoder\.ort does not hold", id="cut short"),
        pytest.param({"sha256": "0" * 64}, LIBRARY, r"vocoder\.ort does not hold", id="other bytes"),
        pytest.param({"variant": "fp32"}, LIBRARY, "they are fp32, not int8", id="another variant"),
        pytest.param({"machine": "vax"}, LIBRARY, "optimised for vax", id="another machine"),
        pytest.param({}, Native(None, "no compiler"), "no compiler", id="without our operators"),
        pytest.param({"recipe": 35}, LIBRARY, "another version of kokoro-lab", id="of an older recipe"),
        pytest.param(
            {"recipe": 35, "native": False},
            Native(None, "none"),
            "another version of kokoro-lab",
            id="of an older recipe, in stock operators",
        ),
    ],
)
def test_an_export_that_would_not_run_is_refused(
    changed: dict[str, Any], native: Native, said: str, tmp_path: Path
) -> None:
    with pytest.raises(WeightsError, match=said) as caught:
        stages_folder(exported(tmp_path, **changed), native)
    assert caught.value.mend


def test_an_export_without_a_file_that_it_promises_is_refused(tmp_path: Path) -> None:
    config = exported(tmp_path)
    (tmp_path / "layers.npz").unlink()
    with pytest.raises(WeightsError, match=r"layers\.npz is missing") as caught:
        stages_folder(config, LIBRARY)
    assert "kokoro-lab export" in str(caught.value.mend)


@pytest.mark.parametrize("manifest", [None, "{", "[]", '{"graphs": {}}'])
def test_a_folder_that_is_no_export_is_refused(manifest: str | None, tmp_path: Path) -> None:
    if manifest is not None:
        (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(WeightsError, match="no export that is whole"):
        stages_folder(replace(INT8, stages=tmp_path), LIBRARY)


@pytest.mark.model
@pytest.mark.parametrize("form", ["ort", "onnx"])
def test_the_engine_speaks_from_an_export_what_it_speaks_from_its_cache(
    form: str, engine: Engine, tmp_path: Path
) -> None:
    config = replace(EngineConfig.from_settings(), variant="int8", first_audio_ttl_s=0)
    line = "The committee met again on Tuesday."
    segments = list(engine.front_end.segments(line, "en-us", lambda _: None))
    style = engine.voice("af_heart").style(len(segments[0].token_ids))
    manifest = export(config, tmp_path / "taken", form, [(segments[0].token_ids, style)])
    assert manifest["export"]["checked"]["segments_count"] == 1
    source = json.loads((stages_folder(config, native_operators(config)) / "manifest.json").read_text())
    for name, about in manifest["graphs"].items():
        assert about["made_from_sha256"] == source["graphs"][name]["sha256"]
        assert about["bytes"] == (tmp_path / "taken" / f"{name}.{form}").stat().st_size
        assert sum(about["operators"].values()) == about["nodes"] > 10
    ours, taken = (
        load_engine(config=c).synthesize(line) for c in (config, replace(config, stages=tmp_path / "taken"))
    )
    np.testing.assert_allclose(taken.samples, ours.samples, atol=1e-4)
