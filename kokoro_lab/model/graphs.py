"""Kokoro's ONNX exports: their inputs and outputs, and the tensors inside that we ask for as well."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import onnx
import onnxruntime as ort

from kokoro_lab.errors import WeightsError

DURATIONS = "/encoder/Round_output_0"
"""Frames of 25 ms that prosody gives each token id, pads included: float32, as many as input ids."""
DURATION_FRAME_SAMPLES = 600

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
    one graph output adds that output, and the 325 MB before it are not parsed.
    """
    extra = onnx.ModelProto()
    output = extra.graph.output.add()
    output.name = DURATIONS
    output.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    appendix: bytes = extra.SerializeToString()
    return model.read_bytes() + appendix


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
