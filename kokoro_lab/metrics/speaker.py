"""Do two recordings sound like the same person? The angle between their embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import onnxruntime as ort
import soxr
from onnx import numpy_helper, parser

from kokoro_lab.errors import ParameterError, WeightsError
from kokoro_lab.metrics.checkpoint import read_tensors
from kokoro_lab.metrics.mel import mel_power
from kokoro_lab.metrics.recordings import require_recording

Samples = npt.NDArray[np.float32]
Values = npt.NDArray[np.float32]

ENCODER_RATE_HZ = 16_000
MEL_BANDS, WINDOW_SAMPLES, HOP_SAMPLES = 40, 400, 160
PART_FRAMES = 160
"""Frames that the network hears at once: 1.6 s."""
PARTS_A_SECOND = 1.3
LEAST_COVERED = 0.75
"""The least share of speech in the last part; with less it is left out, unless it is the only one."""
QUIETEST_DBFS = -30.0
LAYERS, UNITS = 3, 256
SHORTEST_S = 0.4


class Embedder(Protocol):
    """Computes an embedding of the voice in a recording."""

    def embed(self, samples: Samples, sample_rate_hz: int) -> Values:
        """A vector of length 1. Vectors of one voice have about the same direction."""


class VoiceEncoder:
    """An `Embedder`: three recurrent layers over mel bands, loaded once (6 MB).

    Source: Wan et al., "Generalized end-to-end loss for speaker verification", 2018, with the weights of
    Resemblyzer 0.1.4 (Apache-2.0), which were trained on 1,800 h of English of 8,400 people. Its detector of
    silence is left out: ours are trimmed at both ends and have no long pauses inside.

    Parameters
    ----------
    path : Path
        The checkpoint: `weights.store.voice_encoder_path`. Nothing is downloaded here.

    Raises
    ------
    WeightsError
        The file is no checkpoint of this network.
    """

    def __init__(self, path: Path) -> None:
        tensors = read_tensors(path, "model_state")
        try:
            graph = network(tensors)
        except KeyError as error:
            raise WeightsError(f"{path} has no tensor {error}.", field=path.name) from error
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1  # matrices so small that a second thread would mostly wait
        self._session = ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    def embed(self, samples: Samples, sample_rate_hz: int) -> Values:
        """Embedding of one recording: float32 (256,), no value below 0, of length 1.

        Raises
        ------
        ParameterError
            Not one-dimensional, under 0.4 s, silent, or with samples that are not finite.
        """
        require_recording(samples, sample_rate_hz, SHORTEST_S)
        if not samples.any():
            raise ParameterError("A silent recording has no voice.", field="samples")
        heard = soxr.resample(samples, sample_rate_hz, ENCODER_RATE_HZ, quality="VHQ").astype(np.float32)
        level_dbfs = 10 * np.log10(np.mean(heard.astype(np.float64) ** 2))
        heard *= np.float32(10 ** (max(0.0, QUIETEST_DBFS - level_dbfs) / 20))
        (embeddings,) = self._session.run(None, {"mel": _parts(heard).transpose(1, 0, 2)})
        return _unit(_unit(embeddings).mean(0))


def speaker_similarity(
    reference: Samples, candidate: Samples, sample_rate_hz: int, encoder: Embedder
) -> float:
    """Cosine between the embeddings of two recordings, 0 to 1, higher is more alike.

    The recordings need not have the same text: one voice with two texts has about 0.87, two voices of one sex
    have 0.8 or less.

    Raises
    ------
    ParameterError
        As `VoiceEncoder.embed`.
    """
    first, second = (encoder.embed(samples, sample_rate_hz) for samples in (reference, candidate))
    return float(first @ second)


def _parts(heard: Samples) -> Values:
    """Mel power (parts, 160 frames, 40 bands) of overlapping parts of a recording at 16 kHz."""
    step = round(ENCODER_RATE_HZ / PARTS_A_SECOND / HOP_SAMPLES)
    frames = -(-(len(heard) + 1) // HOP_SAMPLES)
    starts = list(range(0, max(1, frames - PART_FRAMES + step + 1), step))
    covered = len(heard) / HOP_SAMPLES - starts[-1]
    if covered < LEAST_COVERED * PART_FRAMES and len(starts) > 1:
        starts.pop()
    missing = (starts[-1] + PART_FRAMES) * HOP_SAMPLES - len(heard)
    mel = mel_power(
        np.pad(heard, (0, max(0, missing))),
        ENCODER_RATE_HZ,
        window_samples=WINDOW_SAMPLES,
        hop_samples=HOP_SAMPLES,
        bands=MEL_BANDS,
    ).astype(np.float32)
    return np.stack([mel[start : start + PART_FRAMES] for start in starts])


def network(tensors: Mapping[str, Values]) -> bytes:
    """The network as an ONNX graph: mel (frames, parts, 40) to embeddings (parts, 256), not yet of length 1.

    Raises
    ------
    KeyError
        A tensor is missing.
    """
    values: dict[str, npt.NDArray[Any]] = {"direction": np.array([1]), "first": np.array([0])}
    steps = []
    states = "mel"
    for k in range(LAYERS):
        for part in ("weight_ih", "weight_hh"):
            values[f"{part}{k}"] = _reordered(tensors[f"lstm.{part}_l{k}"])[None]
        biases = [_reordered(tensors[f"lstm.bias_{part}_l{k}"]) for part in ("ih", "hh")]
        values[f"bias{k}"] = np.concatenate(biases)[None]
        # (frames, directions, parts, units): there is one direction
        steps.append(f"""
            all{k}, last{k} = LSTM <hidden_size = {UNITS}> ({states}, weight_ih{k}, weight_hh{k}, bias{k})
            states{k} = Squeeze (all{k}, direction)""")
        states = f"states{k}"
    values |= {"weight": tensors["linear.weight"], "bias": tensors["linear.bias"]}
    model = parser.parse_model(f"""<ir_version: 9, opset_import: ["": 17]>
        voice_encoder (float[{PART_FRAMES}, parts, {MEL_BANDS}] mel) => (float[parts, {UNITS}] embeddings) {{
            {"".join(steps)}
            heard = Squeeze (last{LAYERS - 1}, first)
            linear = Gemm <transB = 1> (heard, weight, bias)
            embeddings = Relu (linear)
        }}""")
    constants = (numpy_helper.from_array(np.ascontiguousarray(v), name) for name, v in values.items())
    model.graph.initializer.extend(constants)
    serialised: bytes = model.SerializeToString()
    return serialised


def _reordered(gates: Values) -> Values:
    """From PyTorch's order of the gates (input, forget, cell, output) to that of ONNX."""
    let_in, forget, cell, let_out = np.split(gates, 4)
    return np.concatenate([let_in, let_out, forget, cell])


def _unit(vectors: Values) -> Values:
    lengths: Values = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / lengths
