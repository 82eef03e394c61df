"""Published graphs run as they are: both spellings of their inputs, and no other model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import onnxruntime as ort
import pytest

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import (
    SynthesisError,
    WeightsError,
)
from kokoro_lab.graphs.signatures import DURATION_FRAME_SAMPLES
from kokoro_lab.metrics.perceptual import signal_to_difference_db
from kokoro_lab.model.decoder import SegmentRequest, StagedDecoder, WholeGraph
from kokoro_lab.speech.engine import Engine
from kokoro_lab.weights.store import model_path
from tests import tiny_voice
from tests.speech.decoders import PARAGRAPH, with_decoder


def test_not_a_number_is_never_played(tmp_path: Path, hum: Engine) -> None:
    import onnx

    path = tiny_voice.build(tmp_path / "nan.onnx")
    model = onnx.load(path)
    amplitude = next(i for i in model.graph.initializer if i.name == "amplitude")
    amplitude.CopyFrom(onnx.numpy_helper.from_array(np.float32("nan"), "amplitude"))
    onnx.save(model, path)
    engine = with_decoder(hum, WholeGraph(path, EngineConfig(threads=1)))
    with pytest.raises(SynthesisError, match="finite"):
        engine.synthesize("Hello.", voice="hum")


def test_both_spellings_of_inputs_and_outputs_are_understood(tmp_path: Path, hum: Engine) -> None:
    other = WholeGraph(
        tiny_voice.build(tmp_path / "b.onnx", tokens="tokens", audio="audio"), EngineConfig(threads=1)
    )
    np.testing.assert_array_equal(
        with_decoder(hum, other).synthesize("Hello.", voice="hum").samples,
        hum.synthesize("Hello.", voice="hum").samples,
    )


def test_another_model_is_refused(tmp_path: Path) -> None:
    path = tiny_voice.build(tmp_path / "c.onnx", tokens="something")
    with pytest.raises(WeightsError, match="not a Kokoro export"):
        WholeGraph(path, EngineConfig(threads=1))


@pytest.mark.model
@pytest.mark.parametrize(
    ("variant", "native", "tokens", "audio", "least_db"),
    [
        ("fp32", "auto", "input_ids", "waveform", 100.0),
        ("fp32", "off", "input_ids", "waveform", float("inf")),  # to the last bit
        ("int8-upstream", "off", "tokens", "audio", 100.0),
    ],
)
def test_decoding_equals_onnx_runtime_called_by_hand(
    engine: Engine, variant: str, native: Literal["auto", "off"], tokens: str, audio: str, least_db: float
) -> None:
    path = model_path(variant)
    config = replace(engine.config, variant=variant, native=native)
    decoder = StagedDecoder(config) if variant == "fp32" else WholeGraph(path, config)
    options = ort.SessionOptions()
    options.intra_op_num_threads = config.thread_count
    options.enable_mem_pattern = False
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    voice = engine.voice("af_heart")
    for text in ("Hello there.", PARAGRAPH.split(". ")[2]):
        segment = next(engine.front_end.segments(text, "en-us", lambda _: None))
        style = voice.style(len(segment.token_ids))
        by_hand = session.run(
            [audio],
            {
                tokens: np.array([[0, *segment.token_ids, 0]]),
                "style": style,
                "speed": np.array([1.0], np.float32),
            },
        )[0].reshape(-1)
        decoded = decoder.decode(SegmentRequest(segment.token_ids, style))
        samples = np.concatenate(list(decoded.blocks))
        assert len(samples) == decoded.durations.sum() * DURATION_FRAME_SAMPLES
        assert signal_to_difference_db(by_hand, samples) >= least_db
