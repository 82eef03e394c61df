"""Do two recordings sound like the same person? The angle between their embeddings.

The network's weights are a PyTorch checkpoint, read without PyTorch. Before version 1.6 `torch.save` wrote
five pickles in a row (a magic number, the protocol, sizes of C types, the object, the order of its storages)
and after them the storages: a count, then raw values. A pickle can have any function called that it names.
This reader lets it name only three things, and puts our own in their place.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import numpy.typing as npt
import onnxruntime as ort
import soxr
from onnx import numpy_helper, parser

from kokoro_lab.errors import ParameterError, WeightsError
from kokoro_lab.metrics.mel import mel_power
from kokoro_lab.metrics.recordings import require_recording

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001


@dataclass(frozen=True, slots=True)
class _TensorPlace:
    """A tensor whose values are further down in the file: contiguous float32, from `start` of a storage."""

    storage: str
    start: int
    shape: tuple[int, ...]


def read_tensors(path: Path, member: str) -> dict[str, npt.NDArray[np.float32]]:
    """The float32 tensors of the dictionary `member` of a checkpoint, by their names.

    Parameters
    ----------
    path : Path
        What `torch.save` of a version before 1.6 wrote: a dictionary of dictionaries.

    Raises
    ------
    WeightsError
        The file is no such checkpoint, names anything but tensors, or ends too early.
    """
    try:
        with path.open("rb") as file:
            magic, protocol, _ = (_Restricted(file).load() for _ in range(3))
            if (magic, protocol) != (MAGIC, PROTOCOL):
                raise ValueError("another format")
            content, order = (_Restricted(file).load() for _ in range(2))
            storages = {key: _storage(file) for key in order}
        placed = {
            name: tensor for name, tensor in content[member].items() if isinstance(tensor, _TensorPlace)
        }
        return {name: _tensor(tensor, storages) for name, tensor in placed.items()}
    except OSError as error:
        raise WeightsError(f"{path} cannot be read: {error.strerror}.", field=path.name) from error
    # A broken pickle fails in as many ways as there are instructions in it
    except (ValueError, pickle.UnpicklingError, EOFError, LookupError, TypeError, AttributeError) as error:
        raise WeightsError(f"{path} is no checkpoint that can be read: {error}.", field=path.name) from error


class _Restricted(pickle.Unpickler):
    """Loads dictionaries, numbers and places of tensors, and refuses everything else."""

    def find_class(self, module: str, name: str) -> Callable[..., Any] | str:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _place
        if (module, name) == ("torch", "FloatStorage"):
            return name
        raise pickle.UnpicklingError(f"{module}.{name} is not allowed")

    def persistent_load(self, pid: Any) -> str:
        kind, values, key, *_ = pid
        if (kind, values) != ("storage", "FloatStorage"):
            raise pickle.UnpicklingError(f"a storage of {values} is not allowed")
        return str(key)


def _place(
    storage: str, start: int, shape: tuple[int, ...], stride: tuple[int, ...], *_: Any
) -> _TensorPlace:
    contiguous = tuple(int(np.prod(shape[axis + 1 :])) for axis in range(len(shape)))
    if stride != contiguous:
        raise pickle.UnpicklingError(f"a tensor of shape {shape} with strides {stride} is not allowed")
    return _TensorPlace(storage, start, shape)


def _storage(file: BinaryIO) -> npt.NDArray[np.float32]:
    count = int.from_bytes(file.read(8), "little")
    content = file.read(4 * count)
    if len(content) != 4 * count:
        raise EOFError("it ends too early")
    return np.frombuffer(content, "<f4")


def _tensor(placed: _TensorPlace, storages: dict[str, npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
    stop = placed.start + int(np.prod(placed.shape))
    return storages[placed.storage][placed.start : stop].reshape(placed.shape)


Samples = npt.NDArray[np.float32]
Values = npt.NDArray[np.float32]

ENCODER_RATE_HZ = 16_000
MEL_BANDS, WINDOW_SAMPLES, HOP_SAMPLES = 40, 400, 160
PART_FRAMES = 160
"""Frames that the network hears at once: 1.6 s."""
PARTS_A_SECOND = 1.3
LEAST_COVERED = 0.75
"""The least share of the last part of a recording that is not padding. If it is less, the last part is left
out, unless it is the only part."""
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
    silence is left out: our recordings are trimmed at both ends and have no long pauses inside.

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
            The recording is not one-dimensional, is shorter than 0.4 s or silent, or has samples that are not
            finite.
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
        In the cases in which `VoiceEncoder.embed` raises it.
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
    """Weights, from PyTorch's order of the gates (input, forget, cell, output) to that of ONNX."""
    let_in, forget, cell, let_out = np.split(gates, 4)
    return np.concatenate([let_in, let_out, forget, cell])


def _unit(vectors: Values) -> Values:
    lengths: Values = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / lengths
