"""The names of tensors in Kokoro's ONNX exports and in the graphs that are made of them, and their units.

This module reads no graph, so that speaking imports no more than this (see `cutting`, `making`).
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
"""Frames of 25 ms that prosody gives each token id, pads included: as many as input ids, in the floating
point of the export."""
DURATION_FRAME_SAMPLES = 600
UNROUNDED = "/encoder/predictor/ReduceSum_output_0"
"""The durations at speed 1, before they are divided by the speed and rounded."""

TOKEN_INPUTS = ("input_ids", "tokens")
"""The onnx-community exports (fp32, fp16) use the first name, thewh1teagle's int8 the second."""
AUDIO_OUTPUTS = ("waveform", "audio")


class Signature(NamedTuple):
    """Names of one export's inputs and outputs."""

    tokens: str
    style: str
    speed: str
    audio: str


def frames_of(durations: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.int64]:
    """The `DURATIONS` tensor as the graph uses it: a later node raises durations under one frame to one."""
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
"""The features that the trunk gives to the vocoder: [1, 512, 2T], 80 frames a second."""
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
"""Where the fp32 export is cut: stage → its inputs and outputs. Run one after the other, the stages compute
the whole graph."""

SCALE, SHIFT = "scale", "shift"
"""Inputs of the rewritten vocoder: what its 44 AdaIN layers multiply by and add, one value a channel."""
INNER = "inner"
"""Input of the rewritten vocoder, int64 (4,): the trunk frames on which its second half works, and those
whose samples are asked for; of each the first frame, and the one after the last."""
KNOWN = "known"
"""Input of the rewritten vocoder, bool (): whether scale and shift hold the statistics already; if not, they
are those of a tensor with mean 0 and variance 1, and each layer looks at its own."""

EPSILON = 1e-5
TOLD_CHANNELS = 8704
TOLD, TOLD_MEAN, TOLD_VARIANCE = "told", "told_mean", "told_variance"
"""Inputs of the rewritten trunk: bool (), whether statistics are told or layers look for themselves; and of
each channel that AdaIN layers normalise, in their order, the segment's mean and variance, float32
(TOLD_CHANNELS,). Channels that come from outside of the blocks are there for the whole segment, so their
statistics are always computed."""
STOP = "stop"
"""Input of the rewritten trunk, int64 (1,): how many frames of 25 ms its blocks work on, from the first."""


def whole_trunk(frames: int) -> dict[str, npt.NDArray[Any]]:
    """The inputs that the rewritten trunk has besides those of the published one, to compute all `frames` of
    a segment with its own statistics."""
    nobodys = np.zeros(TOLD_CHANNELS, np.float32)
    return {
        TOLD: np.array(False),
        TOLD_MEAN: nobodys,
        TOLD_VARIANCE: nobodys,
        STOP: np.array([frames]),
    }
