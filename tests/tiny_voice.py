"""A tiny ONNX voice with Kokoro's signature, so that most tests need no weights.

It hums: each token id has a tone of its own, raised by the style row that spoke it; each lasts a
number of frames that shrinks with speed; pads and spaces are silent. So wrong ids, a wrong row, a
wrong order, a lost segment and a forgotten speed can all be heard in the samples.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import VoiceError
from kokoro_lab.graphs.signatures import DURATION_FRAME_SAMPLES, DURATIONS
from kokoro_lab.model.decoder import WholeGraph
from kokoro_lab.speech.engine import Engine
from kokoro_lab.speech.parts import Parts
from kokoro_lab.weights.voices import PACK_SHAPE, Voice, VoiceCache

TOKEN_FRAMES = 4
TONE_HZ, TONE_PER_TOKEN_HZ, TONE_PER_STYLE_HZ = 200.0, 5.0, 400.0
AMPLITUDE = 0.2
SPACE_ID = 16


def token_hz(token_id: int, style_mean: float) -> float:
    """The tone of one token id spoken with a style whose decoder half averages `style_mean`."""
    return TONE_HZ + TONE_PER_TOKEN_HZ * token_id + TONE_PER_STYLE_HZ * style_mean


def build(path: Path, *, tokens: str = "input_ids", audio: str = "waveform") -> Path:
    """Write the model; `tokens` and `audio` name its input and output as one of the exports does."""
    constants = {
        "frames": np.float32(TOKEN_FRAMES),
        "one": np.float32(1),
        "zero": np.int64(0),
        "zero1": np.array([0], np.int64),
        "one1": np.array([1], np.int64),
        "axis": np.int64(0),
        "frame_samples": np.int64(DURATION_FRAME_SAMPLES),
        "step": np.int64(1),
        "pad": np.int64(0),
        "space": np.int64(SPACE_ID),
        "amplitude": np.float32(AMPLITUDE),
        "base_hz": np.float64(TONE_HZ),
        "token_hz": np.float64(TONE_PER_TOKEN_HZ),
        "style_hz": np.float64(TONE_PER_STYLE_HZ),
        "turn": np.float64(2 * np.pi / 24_000),
        "half": np.array([128], np.int64),
        "full": np.array([256], np.int64),
        "last": np.array([-1], np.int64),
    }
    n = helper.make_node
    nodes = [
        n("Squeeze", [tokens, "zero1"], ["ids"]),
        n("CastLike", ["ids", "one"], ["ids_float"]),
        n("Mul", ["ids_float", "zero_float"], ["no_ids"]),
        n("Slice", ["style", "half", "full", "one1"], ["prosody_style"]),
        n("ReduceMean", ["prosody_style"], ["prosody_mean"], keepdims=0),
        n("Add", ["frames", "prosody_mean"], ["plain"]),
        n("Div", ["plain", "speed"], ["scaled"]),
        n("Add", ["no_ids", "scaled"], ["raw"]),
        n("Round", ["raw"], [DURATIONS]),
        n("Max", [DURATIONS, "one"], ["lasting"]),
        n("Cast", ["lasting"], ["lasting_int"], to=TensorProto.INT64),
        n("CumSum", ["lasting_int", "axis"], ["ends"]),
        n("ReduceMax", ["ends"], ["total"], keepdims=0),
        n("Mul", ["total", "frame_samples"], ["count"]),
        n("Range", ["zero", "count", "step"], ["sample"]),
        n("Div", ["sample", "frame_samples"], ["frame"]),
        n("Range", ["zero", "total", "step"], ["each_frame"]),
        n("Unsqueeze", ["each_frame", "one1"], ["frame_column"]),
        n("GreaterOrEqual", ["frame_column", "ends"], ["passed"]),
        n("Cast", ["passed"], ["passed_int"], to=TensorProto.INT64),
        n("ReduceSum", ["passed_int", "one1"], ["token_of_frame"], keepdims=0),
        n("Gather", ["token_of_frame", "frame"], ["token_at"]),
        n("Gather", ["ids", "token_at"], ["id_at"]),
        n("Slice", ["style", "zero1", "half", "one1"], ["decoder_style"]),
        n("ReduceMean", ["decoder_style"], ["decoder_mean"], keepdims=0),
        n("Cast", ["decoder_mean"], ["mean64"], to=TensorProto.DOUBLE),
        n("Mul", ["mean64", "style_hz"], ["style_shift"]),
        n("Cast", ["id_at"], ["id64"], to=TensorProto.DOUBLE),
        n("Mul", ["id64", "token_hz"], ["token_shift"]),
        n("Add", ["token_shift", "style_shift"], ["shift"]),
        n("Add", ["shift", "base_hz"], ["hz"]),
        n("Mul", ["hz", "turn"], ["advance"]),
        n("CumSum", ["advance", "axis"], ["phase"]),
        n("Cast", ["phase"], ["phase32"], to=TensorProto.FLOAT),
        n("Sin", ["phase32"], ["tone"]),
        n("Equal", ["id_at", "pad"], ["is_pad"]),
        n("Equal", ["id_at", "space"], ["is_space"]),
        n("Or", ["is_pad", "is_space"], ["is_silent"]),
        n("Where", ["is_silent", "zero_float", "amplitude"], ["loud"]),
        n("Mul", ["tone", "loud"], ["flat"]),
        n("Unsqueeze", ["flat", "zero1"], [audio])
        if audio == "waveform"
        else n("Identity", ["flat"], [audio]),
    ]
    constants["zero_float"] = np.float32(0)
    graph = helper.make_graph(
        nodes,
        "hum",
        [
            helper.make_tensor_value_info(tokens, TensorProto.INT64, [1, "n"]),
            helper.make_tensor_value_info("style", TensorProto.FLOAT, [1, 256]),
            helper.make_tensor_value_info("speed", TensorProto.FLOAT, [1]),
        ],
        [helper.make_tensor_value_info(audio, TensorProto.FLOAT, [1, "s"] if audio == "waveform" else ["s"])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def voice(spec: str) -> Voice:
    """`hum` and `hum_high`: packs whose row r averages r / 1000, and that plus 0.5."""
    offsets = {"hum": 0.0, "hum_high": 0.5}
    if spec not in offsets:
        raise VoiceError(f"There is no voice {spec!r}.", field="voice", value=spec, allowed="hum, hum_high")
    pack = np.zeros(PACK_SHAPE, np.float32)
    pack[:, :, :128] = (np.arange(510, dtype=np.float32) / 1000)[:, None, None] + offsets[spec]
    return Voice(spec, (spec,), "en-us", pack, level_lufs=-17.0)


VOICES = VoiceCache(voice)


def engine(path: Path) -> Engine:
    """An engine that hums."""
    config = EngineConfig(variant="fp32", threads=1, first_audio_ttl_s=0)
    decoder = WholeGraph(build(path), config)
    return Engine(Parts(decoder, config, VOICES, "hum", lambda: decoder.placement))
