"""Kokoro's ONNX exports: their inputs and outputs, and the tensors inside that we ask for as well."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort

from kokoro_lab.errors import WeightsError
from kokoro_lab.graphs.rewriting import inferred

DURATIONS = "/encoder/Round_output_0"
"""Frames of 25 ms that prosody gives each token id, pads included: as many as input ids, in the floating
point of the export."""
DURATION_FRAME_SAMPLES = 600
UNROUNDED = "/encoder/predictor/ReduceSum_output_0"
"""The same at speed 1, before it is divided by the speed and rounded."""

TOKEN_INPUTS = ("input_ids", "tokens")
"""The onnx-community exports (fp32, fp16) use the first name, thewh1teagle's int8 the second."""
AUDIO_OUTPUTS = ("waveform", "audio")


class Signature(NamedTuple):
    """Names of one export's inputs and outputs."""

    tokens: str
    style: str
    speed: str
    audio: str


def with_durations(model: Path) -> bytes:
    """The serialised model with its durations as a further output.

    Serialised protocol buffers merge when they are joined: appending a model that holds nothing but
    one graph output adds that output, and the 325 MB before it are not parsed. Its type is left to be
    inferred: the fp16 export's is another one.
    """
    extra = onnx.ModelProto()
    output = extra.graph.output.add()
    output.name = DURATIONS
    appendix: bytes = extra.SerializeToString()
    return model.read_bytes() + appendix


def frames_of(durations: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.int64]:
    """The `DURATIONS` tensor as the graph uses it: behind it, durations are clipped to one frame."""
    frames: npt.NDArray[np.int64] = np.maximum(np.rint(durations), 1).astype(np.int64).reshape(-1)
    return frames


def signature(session: ort.InferenceSession, name: str) -> Signature:
    """Which input is which in this export.

    Raises
    ------
    WeightsError
        It is not an export of Kokoro that we know.
    """
    inputs = [i.name for i in session.get_inputs()]
    outputs = [o.name for o in session.get_outputs()]
    tokens = next((n for n in TOKEN_INPUTS if n in inputs), None)
    audio = next((n for n in AUDIO_OUTPUTS if n in outputs), None)
    if tokens is None or audio is None or {"style", "speed"} - set(inputs):
        raise WeightsError(
            f"{name} is not a Kokoro export: its inputs are {inputs}, its outputs {outputs}.",
            field="variant",
            value=name,
            allowed=f"inputs {' or '.join(TOKEN_INPUTS)}, style, speed; output {' or '.join(AUDIO_OUTPUTS)}",
        )
    return Signature(tokens, "style", "speed", audio)


def graph_path(folder: Path, name: str) -> Path:
    """A graph in a folder of stages: in ONNX Runtime's own format where that is there, else ONNX."""
    own = folder / f"{name}.ort"
    return own if own.exists() else folder / f"{name}.onnx"


_DECODER = "/decoder/decoder/"
ALIGNED = "/encoder/MatMul_1_output_0"
"""Text features stretched to frames of 25 ms: [1, 512, T]."""
F0, ENERGY = "/encoder/Reshape_output_0", "/encoder/Reshape_1_output_0"
"""Hz and energy, two values a frame: [1, 2T]."""
DECODER_STYLE = "/decoder/Slice_output_0"
"""`style[:, :128]`."""
TRUNK = f"{_DECODER}decode.3/Div_4_output_0"
"""What the vocoder is fed with: [1, 512, 2T], 80 frames a second."""
VOICED_HZ = 10.0
"""The model's own threshold between voiced and unvoiced (its `SineGen`)."""
F0_CURVE = f"{_DECODER}Unsqueeze_output_0"
EXCITATION = f"{_DECODER}generator/Reshape_3_output_0"
"""The harmonic source as a signal, padded for the STFT: [1, 300 · 2T + 20]."""
WAVEFORM = "waveform"

TRUNK_FRAME_SAMPLES = 300
STFT_SIZE_SAMPLES = 20

STAGES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "prosody": (("input_ids", "style", "speed"), (ALIGNED, F0, ENERGY, DURATIONS, UNROUNDED)),
    "trunk": ((ALIGNED, F0, ENERGY, DECODER_STYLE), (TRUNK, F0_CURVE)),
    "excitation": ((F0_CURVE,), (EXCITATION,)),
    "vocoder": ((TRUNK, EXCITATION, DECODER_STYLE), (WAVEFORM,)),
}
"""Where the fp32 export is cut: stage → its inputs and outputs. Run in turn they are the whole graph."""


def cut(model: onnx.ModelProto) -> dict[str, onnx.ModelProto]:
    """The stages of the fp32 export, each a model of its own.

    Raises
    ------
    WeightsError
        The model lacks a tensor at which it is to be cut.
    """
    from onnx.utils import Extractor

    made = {o for n in model.graph.node for o in n.output} | {i.name for i in model.graph.input}
    wanted = {name for inputs, outputs in STAGES.values() for name in inputs + outputs}
    if wanted - made:
        raise WeightsError(
            f"The model cannot be cut: it has no tensor {sorted(wanted - made)[0]}.",
            field="variant",
            mend="Only the fp32 export of onnx-community is known to have them; use another variant whole.",
        )
    described = onnx.ModelProto()
    described.CopyFrom(model)
    described.graph.ClearField("value_info")
    described.graph.value_info.extend(inferred(model))
    known = {v.name for v in described.graph.value_info}
    for name in sorted(wanted - known):
        described.graph.value_info.append(
            onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
        )
    extractor = Extractor(described)
    return {
        stage: extractor.extract_model(list(inputs), list(outputs))
        for stage, (inputs, outputs) in STAGES.items()
    }
