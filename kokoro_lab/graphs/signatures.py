"""The names of tensors in Kokoro's ONNX exports and in the graphs that are made of them, and their units.

This module reads no graph, so speaking does not import the modules that do (`cutting`, `making`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kokoro_lab.errors import WeightsError

if TYPE_CHECKING:
    import onnxruntime as ort

DURATIONS = "/encoder/Round_output_0"
"""Name of the tensor with the duration of each input id, pads included, in frames of 25 ms. Its type is that
of the export: float32 or float16."""
DURATION_FRAME_SAMPLES = 600
UNROUNDED = "/encoder/predictor/ReduceSum_output_0"
"""Name of the tensor with the durations at speed 1, before they are divided by the speed and rounded."""

TOKEN_INPUTS = ("input_ids", "tokens")
"""Names that exports have for the input of token ids. Those of onnx-community (fp32, fp16) use the first
name, and the int8 export of thewh1teagle uses the second."""
AUDIO_OUTPUTS = ("waveform", "audio")


class Signature(NamedTuple):
    """Names of one export's inputs and outputs."""

    tokens: str
    style: str
    speed: str
    audio: str


def frames_of(durations: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.int64]:
    """The values of the tensor `DURATIONS` as whole numbers of frames. Like a later node of the graph, this
    raises durations below one frame to one."""
    frames: npt.NDArray[np.int64] = np.maximum(np.rint(durations), 1).astype(np.int64).reshape(-1)
    return frames


def signature(session: ort.InferenceSession, name: str) -> Signature:
    """The names of an export's inputs and of its output.

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
    """The file of the graph `name` in a folder of stages: in ONNX Runtime's own format if there is such a
    file, else in ONNX."""
    own = folder / f"{name}.ort"
    return own if own.exists() else folder / f"{name}.onnx"


_DECODER = "/decoder/decoder/"
ALIGNED = "/encoder/MatMul_1_output_0"
"""Text features stretched to frames of 25 ms: [1, 512, T]."""
F0, ENERGY = "/encoder/Reshape_output_0", "/encoder/Reshape_1_output_0"
"""F0 in Hz, and energy: one value for each trunk frame, [1, 2T]."""
DECODER_STYLE = "/decoder/Slice_output_0"
"""`style[:, :128]`."""
TRUNK = f"{_DECODER}decode.3/Div_4_output_0"
"""The features that the trunk gives to the vocoder: [1, 512, 2T], 80 frames a second."""
VOICED_HZ = 10.0
"""The F0 in Hz above which the model makes a frame voiced (in its module `SineGen`)."""
F0_CURVE = f"{_DECODER}Unsqueeze_output_0"
EXCITATION = f"{_DECODER}generator/Reshape_3_output_0"
"""The excitation's samples, padded for the STFT: [1, 300 · 2T + 20]."""
WAVEFORM = "waveform"

TRUNK_FRAME_SAMPLES = 300
STFT_SIZE_SAMPLES = 20

STAGES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "prosody": (("input_ids", "style", "speed"), (ALIGNED, F0, ENERGY, DURATIONS, UNROUNDED)),
    "trunk": ((ALIGNED, F0, ENERGY, DECODER_STYLE), (TRUNK, F0_CURVE)),
    "excitation": ((F0_CURVE,), (EXCITATION,)),
    "vocoder": ((TRUNK, EXCITATION, DECODER_STYLE), (WAVEFORM,)),
}
"""Where the fp32 export is cut: stage → its inputs and outputs. If the stages run one after another, they
compute what the whole graph computes."""

SCALE, SHIFT = "scale", "shift"
"""Inputs of the rewritten vocoder: what its 44 AdaIN layers multiply by and add, one value a channel."""
INNER = "inner"
"""Input of the rewritten vocoder, int64 (4,): the trunk frames that are decoded after the second upsampling,
and those whose samples are asked for. Two numbers for each: the first frame, and the one after the last."""
KNOWN = "known"
"""Input of the rewritten vocoder, bool (): whether scale and shift were made from known statistics. If not,
they were made from a mean of 0 and a variance of 1, and each layer computes the statistics of its own
input."""

EPSILON = 1e-5
"""Added to each variance, as in the model's InstanceNorm."""
TOLD_CHANNELS = 8704
TOLD, TOLD_MEAN, TOLD_VARIANCE = "told", "told_mean", "told_variance"
"""Names of three inputs of the rewritten trunk. `TOLD`, bool (), says whether statistics are given; if not,
each layer computes its own. `TOLD_MEAN` and `TOLD_VARIANCE`, float32 (TOLD_CHANNELS,), are the segment's mean
and variance for the channels that AdaIN layers normalise, in the order of the layers. Channels that no
residual block makes are not among them: they exist for the whole segment, so the graph always computes their
statistics."""
STOP = "stop"
"""Input of the rewritten trunk, int64 (1,): how many frames of 25 ms its residual blocks compute, counted
from the first frame of the segment."""


def whole_trunk(frames: int) -> dict[str, npt.NDArray[Any]]:
    """The inputs that the rewritten trunk has besides those of the published one, to compute all `frames` of
    a segment with the segment's own statistics."""
    nobodys = np.zeros(TOLD_CHANNELS, np.float32)
    return {
        TOLD: np.array(False),
        TOLD_MEAN: nobodys,
        TOLD_VARIANCE: nobodys,
        STOP: np.array([frames]),
    }
