"""A graph that is told its prosody uses what it is told, and reads nothing of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import WeightsError
from kokoro_lab.lab.gates.forced import TOLD, ToldGraph, fp32_prosody, told_stages, with_told_prosody
from kokoro_lab.metrics.perceptual import signal_to_difference_db
from kokoro_lab.model.decoder import Decoder, SegmentRequest, StagedDecoder
from kokoro_lab.speech.engine import Engine
from kokoro_lab.weights.store import model_path


def small(element_type: int = TensorProto.FLOAT, tensors: tuple[str, ...] = TOLD) -> onnx.ModelProto:
    """A graph that computes the tensors of prosody as 1, and gives their sum."""
    one = numpy_helper.from_array(np.ones((1, 3), np.float32), "one")
    nodes = [helper.make_node("Cast", ["one"], [name], to=element_type) for name in tensors]
    nodes.append(helper.make_node("Sum", list(tensors), ["sum"]))
    nodes.append(helper.make_node("Cast", ["sum"], ["waveform"], to=TensorProto.FLOAT))
    output = helper.make_tensor_value_info("waveform", TensorProto.FLOAT, [1, 3])
    graph = helper.make_graph(nodes, "small", [], [output], [one])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


@pytest.mark.parametrize(
    ("element_type", "dtype"), [(TensorProto.FLOAT, np.float32), (TensorProto.FLOAT16, np.float16)]
)
def test_what_it_is_told_is_what_it_uses(element_type: int, dtype: type) -> None:
    model = small(element_type)
    types = with_told_prosody(model, "small")
    assert types == dict.fromkeys(TOLD, dtype)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    told = {name: np.full((1, 3), value, dtype) for name, value in zip(TOLD, (10, 20, 30), strict=True)}
    np.testing.assert_array_equal(session.run(["waveform"], told)[0], [[60, 60, 60]])


@pytest.mark.parametrize("model", [small(tensors=TOLD[:2]), small(TensorProto.INT64)])
def test_a_graph_without_prosody_is_refused(model: onnx.ModelProto) -> None:
    with pytest.raises(WeightsError, match="cannot be told its prosody"):
        with_told_prosody(model, "small")


@pytest.mark.model
@pytest.mark.parametrize(("variant", "least_db"), [("int8-upstream", 8), ("int8", 15)])
def test_told_the_reference_prosody_int8_gives_as_many_samples(
    engine: Engine, variant: str, least_db: float
) -> None:
    config = replace(engine.config, variant=variant)
    prosody = fp32_prosody(config)
    told: Decoder = (
        told_stages(StagedDecoder(config), prosody)
        if variant == "int8"
        else ToldGraph(model_path(variant, config.home), prosody, config)
    )
    voice = engine.voice("af_heart")
    (segment,) = engine.front_end.segments("The kettle is on.", "en-us", lambda _: None)
    style = voice.style(len(segment.token_ids))
    reference = engine.decoder.decode(SegmentRequest(segment.token_ids, style))
    candidate = told.decode(SegmentRequest(segment.token_ids, style))
    np.testing.assert_array_equal(candidate.durations, reference.durations)
    (wanted,), (found,) = reference.blocks, candidate.blocks
    # 8 bit: far from exact, but the same waveform; with a pitch of its own it would be near 0 dB
    assert signal_to_difference_db(wanted, found) > least_db
    # Told stages can be decoded in windows too; an export that runs as a whole says why it cannot
    assert (told.predicts(voice) is None) == (variant == "int8")
    windows = told.decode(SegmentRequest(segment.token_ids, style, predicted=variant == "int8")).blocks
    assert sum(map(len, windows)) == len(wanted)


@pytest.mark.model
def test_the_file_is_named_where_it_is_no_export(tmp_path: Path) -> None:
    onnx.save(small(tensors=TOLD[:1]), tmp_path / "other.onnx")
    with pytest.raises(WeightsError, match="no tensor"):
        ToldGraph(tmp_path / "other.onnx", fp32_prosody(EngineConfig()), EngineConfig())
