"""Prepares the cases for `run.sh`: graphs, their inputs, and the outputs of this machine."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.g2p.vocab import PAD_ID
from kokoro_lab.graphs import native_passes, passes, rewriting, signatures
from kokoro_lab.graphs.adain import AdainLayers
from kokoro_lab.graphs.making import published_stages
from kokoro_lab.graphs.quant_passes import quantise_layers
from kokoro_lab.graphs.quantise import Calibration, Range
from kokoro_lab.graphs.recipes import GIVEN, exclusions, recipes
from kokoro_lab.graphs.signatures import whole_trunk
from kokoro_lab.lab.gates.forced import fp32_prosody
from kokoro_lab.model.predictor import StatisticsPredictor
from kokoro_lab.model.vocoder import CONTEXT_FRAMES
from kokoro_lab.native.operators import native_operators
from kokoro_lab.sessions.providers import make_session
from kokoro_lab.weights.voices import load_voice

WINDOW = (40, 80)
"""Trunk frames."""


def one_layer(operator: str, weight: np.ndarray, dilation: int = 1) -> onnx.ModelProto:
    """A convolution or a product of matrices by itself, on floats."""
    channels = weight.shape[1] if operator == "Conv" else weight.shape[0]
    shape = [1, channels, None] if operator == "Conv" else [1, None, channels]
    reach = weight.shape[2] // 2 * dilation if operator == "Conv" else 0
    options = {"dilations": [dilation], "pads": [reach, reach]} if operator == "Conv" else {}
    graph = helper.make_graph(
        [helper.make_node(operator, ["x", "w"], ["y"], name="layer", **options)],
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weight, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def layers() -> dict[str, tuple[onnx.ModelProto, dict[str, np.ndarray]]]:
    """Integer layers as operators of ours, and what goes in."""
    rng = np.random.default_rng(0)
    found = {}
    for name, operator, weight, dilation in (
        ("conv_11_taps", "Conv", rng.normal(size=(72, 32, 11)), 5),
        ("conv_of_six_channels", "Conv", rng.normal(size=(8, 6, 3)), 1),
        ("product", "MatMul", rng.normal(size=(64, 72)), 1),
    ):
        inputs = weight.shape[1] if operator == "Conv" else weight.shape[0]
        ranges = {"layer": Range(np.full(inputs, -2.5, np.float32), np.full(inputs, 4.0, np.float32))}
        x = rng.normal(size=(1, inputs, 333) if operator == "Conv" else (1, 53, inputs)).astype(np.float32)
        model = quantise_layers(one_layer(operator, weight.astype(np.float32), dilation), ranges, native=True)
        found[name] = (model, {"x": x})
    return found


def speech(config: EngineConfig) -> dict[str, tuple[onnx.ModelProto, dict[str, np.ndarray]]]:
    """A sentence. Prosody and trunk as `int8` ships them; of the vocoder a window, in floats, in integers,
    and as `int8` ships it, which looks at its own statistics, or is told predicted ones."""
    stages, shipped = published_stages(config), recipes("int8", native=True)
    given = rewriting.apply(stages["vocoder"], GIVEN)
    in_floats = recipes("fp32", native=True)["vocoder"][1]
    integers = quantise_layers(given, Calibration.load(), native=False, keep=exclusions()["int8"])
    spoken, trunk, ours = (
        rewriting.apply(stages[stage], shipped[stage][1]) for stage in ("prosody", "trunk", "vocoder")
    )
    voice = load_voice("af_heart")
    segment = next(FrontEnd().segments("The committee met again on Tuesday.", "en-us", lambda _: None))
    style = voice.style(len(segment.token_ids))
    model = fp32_prosody(config)
    contours = model.contours(segment.token_ids, style, 1.0)
    prosody = model.behind(contours, style)
    layers = AdainLayers.of(passes.fold_constants(stages["vocoder"]))
    scale, shift = layers.style_alone(style)
    predicted = layers.scale_and_shift(*StatisticsPredictor.load().predict(prosody), style)
    width = WINDOW[1] - WINDOW[0]
    first, last = (frame * signatures.TRUNK_FRAME_SAMPLES for frame in WINDOW)
    feed = {
        signatures.TRUNK: np.ascontiguousarray(prosody.trunk[:, :, slice(*WINDOW)]),
        signatures.EXCITATION: prosody.excitation[:, first : last + signatures.STFT_SIZE_SAMPLES],
        signatures.SCALE: scale,
        signatures.SHIFT: shift,
        signatures.INNER: np.array(2 * [0, width]),
        signatures.KNOWN: np.array(False),
    }
    told = feed | {
        signatures.SCALE: predicted[0],
        signatures.SHIFT: predicted[1],
        signatures.KNOWN: np.array(True),
        signatures.INNER: np.array([0, width, CONTEXT_FRAMES, width - CONTEXT_FRAMES]),
    }
    heard = {
        signatures.ALIGNED: contours.aligned,
        signatures.F0: contours.f0_hz,
        signatures.ENERGY: contours.energy,
        signatures.DECODER_STYLE: style[:, :128],
    } | whole_trunk(contours.aligned.shape[2])
    ids = np.array([[PAD_ID, *segment.token_ids, PAD_ID]], np.int64)
    del trunk.graph.output[1:]
    only(spoken, signatures.F0)
    return {
        "prosody_int8_ours": (spoken, {"input_ids": ids, "style": style, "speed": np.ones(1, np.float32)}),
        "trunk_int8_ours": (trunk, heard),
        "vocoder_float": (given, feed),
        "vocoder_float_ours": (rewriting.apply(stages["vocoder"], in_floats), feed),
        "vocoder_int8": (integers, feed),
        "vocoder_int8_ours": (ours, feed),
        "vocoder_int8_ours_told": (ours, told),
    }


def before_the_vocoder(config: EngineConfig) -> dict[str, tuple[onnx.ModelProto, dict[str, np.ndarray]]]:
    """Prosody and excitation in ONNX Runtime's operators, and with ours, which promise the same bits."""
    stages = published_stages(config)
    rng = np.random.default_rng(1)
    ids = np.array([[0, *rng.integers(43, 150, 30), 0]], np.int64)
    spoken = {"input_ids": ids, "style": load_voice("af_heart").style(30), "speed": np.ones(1, np.float32)}
    pitch = {signatures.F0_CURVE: rng.uniform(-5, 300, size=(1, 1, 400)).astype(np.float32)}
    prosody, excitation = stages["prosody"], stages["excitation"]
    only(prosody, signatures.F0)
    return {
        "prosody": (prosody, spoken),
        "prosody_ours": (native_passes.known_products(native_passes.recurrences(prosody)), spoken),
        "excitation": (excitation, pitch),
        "excitation_ours": (native_passes.phases(excitation), pitch),
    }


def only(model: onnx.ModelProto, output: str) -> None:
    """Leave one output."""
    kept = [value for value in model.graph.output if value.name == output]
    del model.graph.output[:]
    model.graph.output.extend(kept)


def main(folder: Path) -> None:
    config = replace(EngineConfig.from_settings(), threads=2)
    library = native_operators(config).library
    cases = layers() | speech(config) | before_the_vocoder(config)
    for name, (model, feed) in cases.items():
        session = make_session(model.SerializeToString(), config, library=library)
        (made,) = session.run(None, feed)
        onnx.save(model, folder / f"{name}.onnx")
        named = {f"input{k}": value for k, value in enumerate(feed.values())}
        np.savez(folder / f"{name}.npz", names=np.array(list(feed)), made=made, **named)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
