"""Graphs made from the weights: what the manifest says of them is so, and making them says how far it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs.artefacts import stages_folder
from kokoro_lab.graphs.cutting import cut
from kokoro_lab.graphs.making import make_stages, steps_of
from kokoro_lab.graphs.recipes import recipes
from kokoro_lab.graphs.rewriting import operators
from kokoro_lab.metrics.perceptual import signal_to_difference_db
from kokoro_lab.model.decoder import StagedDecoder
from kokoro_lab.native.operators import native_operators
from kokoro_lab.speech.engine import Engine, load_engine
from kokoro_lab.weights.joining import sha256_of
from kokoro_lab.weights.store import model_path, model_sha256

pytestmark = pytest.mark.model
FP16 = replace(EngineConfig.from_settings(), variant="fp16", first_audio_ttl_s=0)
LINES = ["The committee met again on Tuesday.", "She had never seen the sea so still, nor so bright."]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The excitation alone, and what was said while it was made."""
    said: list[str] = []
    folder = tmp_path_factory.mktemp("made") / "stages"
    wanted = {name: recipe for name, recipe in recipes("int8", False).items() if name == "excitation"}
    make_stages(folder, replace(FP16, variant="int8"), wanted, begins=said.append)
    assert said == steps_of(wanted)
    return folder, said


def test_making_says_what_it_does(made: tuple[Path, list[str]]) -> None:
    assert made[1][0] == "reading the weights"
    assert "excitation: writing" in made[1]


def test_the_manifest_describes_what_lies_beside_it(made: tuple[Path, list[str]]) -> None:
    folder = made[0]
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    assert manifest["source_sha256"] == model_sha256("fp32")
    assert manifest["variant"] == "int8"
    assert manifest["onnxruntime"] == onnxruntime.__version__
    about: Mapping[str, Any] = manifest["graphs"]["excitation"]
    path = folder / "excitation.onnx"
    graph = onnx.load(path)
    assert about["sha256"] == sha256_of(path)
    assert about["bytes"] == path.stat().st_size
    assert about["operators"] == operators(graph)
    assert about["nodes"] == len(graph.graph.node)
    assert list(about["inputs"]) == [i.name for i in graph.graph.input]
    assert list(about["outputs"]) == [o.name for o in graph.graph.output]


def test_shapes_name_what_varies() -> None:
    from kokoro_lab.graphs.rewriting import shapes

    stages = cut(onnx.load(model_path("fp32")))
    assert shapes(stages["prosody"].graph.input) == {
        "input_ids": [1, "sequence_length"],
        "style": [1, 256],
        "speed": [1],
    }


@pytest.mark.test_all
def test_fp16_is_half_the_bytes_and_the_same_voice(engine: Engine) -> None:
    halves = load_engine(config=FP16)
    assert isinstance(halves.decoder, StagedDecoder)
    assert isinstance(engine.decoder, StagedDecoder)
    folders = [stages_folder(e.config, native_operators(e.config)) for e in (halves, engine)]
    bytes_of = [sum(p.stat().st_size for p in f.glob("*.onnx") if "exact" not in p.name) for f in folders]
    assert bytes_of[0] < 0.52 * bytes_of[1]
    for line in LINES:
        segment = next(engine.front_end.segments(line, "en-us", lambda _: None))
        style = engine.voice("af_heart").style(len(segment.token_ids))
        contours = engine.decoder.prosody.contours(segment.token_ids, style, 1.0)
        ours, theirs = (
            d.vocoder.whole(d.prosody.behind(contours, style)) for d in (halves.decoder, engine.decoder)
        )
        assert np.isfinite(ours).all()
        assert signal_to_difference_db(theirs, ours) > 25


def test_fp16_streams_like_every_variant_in_stages() -> None:
    stream = load_engine(config=FP16).stream(LINES[0])
    chunks = [chunk.samples for chunk in stream]
    assert len(chunks) > 10
    assert stream.report.variant == "fp16"
    assert stream.report.statistics == "predicted"
