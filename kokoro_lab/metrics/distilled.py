"""DistillMOS: the quality of a recording without a reference, by a second model of listeners.

It has another teacher than DNSMOS and hears another part of the sound: the complex spectrum, phases included.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime as ort
import soxr
from onnx import numpy_helper, parser

from kokoro_lab.errors import WeightsError
from kokoro_lab.metrics.checkpoint import read_tensors
from kokoro_lab.metrics.recordings import require_recording

Samples = npt.NDArray[np.float32]
Values = npt.NDArray[np.float32]

RATE_HZ = 16_000
PART_SAMPLES = 122_880
"""7.68 s: what the network hears at once. Shorter recordings end in silence; longer ones are heard in
overlapping parts."""
MOST_HOP_SAMPLES = 16_000
WINDOW_SAMPLES, HOP_SAMPLES = 320, 160
BINS, PART_FRAMES = WINDOW_SAMPLES // 2 + 1, PART_SAMPLES // HOP_SAMPLES
COMPRESSION, FAINTEST = 0.3, 1e-12
CONVOLUTIONS, LAYERS, HEADS, UNITS = 6, 7, 8, 200
CHANNELS = 256 * 4
"""Channels times bins behind the convolutions."""
STEPS = PART_FRAMES // 2
EPSILON = 1e-5
_ENCODER = "transformer_pool_attn.transformer"
_POOL = "transformer_pool_attn.pool"


class DistillMos:
    """Rates recordings: convolutions over the spectrum, then seven layers of attention (17 MB).

    Source: Stahl and Gamper, "Distillation and pruning for scalable self-supervised representation-based
    speech quality assessment", 2025, with the weights of the package `distillmos` 0.9.1 (MIT).

    Parameters
    ----------
    path : Path
        The checkpoint: `weights.store.rater_path`. Nothing is downloaded here.

    Raises
    ------
    WeightsError
        The file is no checkpoint of this network.
    """

    def __init__(self, path: Path) -> None:
        try:
            graph = network(read_tensors(path, "model"))
        except KeyError as error:
            raise WeightsError(f"{path} has no tensor {error}.", field=path.name) from error
        self._session = ort.InferenceSession(graph, providers=["CPUExecutionProvider"])
        self._opinion = lru_cache(maxsize=32)(self._rated)

    def opinion(self, samples: Samples, sample_rate_hz: int) -> float:
        """Overall quality, 1 to 5, higher is better. A recording is rated once, however often it is compared.

        Raises
        ------
        ParameterError
            No samples, more than one channel, or samples that are not finite.
        """
        require_recording(samples)
        return self._opinion(samples.astype(np.float32).tobytes(), sample_rate_hz)

    def _rated(self, samples: bytes, sample_rate_hz: int) -> float:
        heard = soxr.resample(np.frombuffer(samples, np.float32), sample_rate_hz, RATE_HZ, quality="VHQ")
        found = [self._session.run(None, {"spectrum": spectrum(part)[None]})[0] for part in parts(heard)]
        return 1 + 4 * float(np.mean(found))


def parts(heard: Samples) -> list[Samples]:
    """Parts of `PART_SAMPLES`, at even distances of up to a second; the last one ends with the recording."""
    heard = np.pad(heard, (0, max(0, PART_SAMPLES - len(heard))))
    over = len(heard) - PART_SAMPLES
    starts = np.linspace(0, 1, -(-over // MOST_HOP_SAMPLES) + 1)
    return [heard[int(share * over) :][:PART_SAMPLES] for share in starts]


def spectrum(part: Samples) -> Values:
    """Real and imaginary part of the spectrum with its magnitudes compressed: (2, `BINS`, `PART_FRAMES`)."""
    loudest = np.abs(part).max() + np.float32(1e-8)
    around = (WINDOW_SAMPLES - HOP_SAMPLES) // 2
    padded = np.pad(part / loudest, around, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, WINDOW_SAMPLES)[::HOP_SAMPLES]
    found = np.fft.rfft(frames * np.hanning(WINDOW_SAMPLES + 1)[:-1]).T
    magnitude = np.maximum(np.abs(found), FAINTEST)
    found *= magnitude ** (COMPRESSION - 1)
    return np.stack([found.real, found.imag]).astype(np.float32)


def network(tensors: Mapping[str, Values]) -> bytes:
    """The network as an ONNX graph: spectrum (parts, 2, `BINS`, `PART_FRAMES`) to quality (parts, 1, 1), from
    0 to 1.

    Raises
    ------
    KeyError
        A tensor is missing.
    """
    values: dict[str, npt.NDArray[np.generic]] = {
        "flat": np.array([0, CHANNELS, STEPS]),
        "heads": np.array([0, 0, HEADS, UNITS // HEADS]),
        "joined": np.array([0, 0, UNITS]),
        "smaller": np.array((UNITS // HEADS) ** -0.5, np.float32),
    }
    steps = []

    def linear(result: str, given: str, weight: Values, bias: Values) -> None:
        values[f"{result}_weight"], values[f"{result}_bias"] = np.ascontiguousarray(weight.T), bias
        steps.append(f"""
            {result}_product = MatMul ({given}, {result}_weight)
            {result} = Add ({result}_product, {result}_bias)""")

    def of(name: str) -> tuple[Values, Values]:
        return tensors[f"{name}.weight"], tensors[f"{name}.bias"]

    def normalised(result: str, given: str, change: str, name: str) -> None:
        values[f"{result}_scale"], values[f"{result}_shift"] = of(name)
        as_learnt = f"<epsilon = {EPSILON}> ({result}_sum, {result}_scale, {result}_shift)"
        steps.append(f"""
            {result}_sum = Add ({given}, {change})
            {result} = LayerNormalization {as_learnt}""")

    heard = "spectrum"
    for k in range(CONVOLUTIONS):
        values[f"kernel{k}"], values[f"offset{k}"] = of(f"cnn.cnn.{2 * k}")
        strides = [2 if k else 1, 2 if k == CONVOLUTIONS - 1 else 1]
        steps.append(f"""
            convolved{k} = Conv <strides = {strides}, pads = [0, 1, 0, 1]> ({heard}, kernel{k}, offset{k})
            heard{k} = LeakyRelu <alpha = 0.1> (convolved{k})""")
        heard = f"heard{k}"
    steps.append(f"""
            channels = Reshape ({heard}, flat)
            states = Transpose <perm = [0, 2, 1]> (channels)""")
    # Two normalisations and a projection are one matrix
    scale, shift = _then(
        _scaling(tensors, "transformer_pool_attn.norm_input"), _scaling(tensors, f"{_ENCODER}.norm")
    )
    weight, bias = of(f"{_ENCODER}.linear_proj")
    linear("projected", "states", weight * scale, bias + weight @ shift)
    values["places"] = tensors[f"{_ENCODER}.position_encoding.pe"]
    steps.append("""
            layer0 = Add (projected, places)""")
    for k in range(LAYERS):
        name = f"{_ENCODER}.transformer_encoder.layers.{k}"
        attention = f"{name}.self_attn"
        weight, bias = (tensors[f"{attention}.in_proj_{part}"] for part in ("weight", "bias"))
        for number, part in enumerate(("asked", "offered", "told")):
            rows = slice(number * UNITS, (number + 1) * UNITS)
            linear(f"{part}{k}", f"layer{k}", weight[rows], bias[rows])
        steps.append(f"""
            asked_by_head{k} = Reshape (asked{k}, heads)
            offered_by_head{k} = Reshape (offered{k}, heads)
            told_by_head{k} = Reshape (told{k}, heads)
            query{k} = Transpose <perm = [0, 2, 1, 3]> (asked_by_head{k})
            key{k} = Transpose <perm = [0, 2, 3, 1]> (offered_by_head{k})
            value{k} = Transpose <perm = [0, 2, 1, 3]> (told_by_head{k})
            product{k} = MatMul (query{k}, key{k})
            score{k} = Mul (product{k}, smaller)
            share{k} = Softmax <axis = -1> (score{k})
            mean{k} = MatMul (share{k}, value{k})
            by_step{k} = Transpose <perm = [0, 2, 1, 3]> (mean{k})
            together{k} = Reshape (by_step{k}, joined)""")
        linear(f"attended{k}", f"together{k}", *of(f"{attention}.out_proj"))
        normalised(f"between{k}", f"layer{k}", f"attended{k}", f"{name}.norm1")
        linear(f"wide{k}", f"between{k}", *of(f"{name}.linear1"))
        steps.append(f"""
            active{k} = Relu (wide{k})""")
        linear(f"narrow{k}", f"active{k}", *of(f"{name}.linear2"))
        normalised(f"layer{k + 1}", f"between{k}", f"narrow{k}", f"{name}.norm2")
    values["last_scale"], values["last_shift"] = _scaling(tensors, "transformer_pool_attn.norm_trans")
    steps.append(f"""
            last_scaled = Mul (layer{LAYERS}, last_scale)
            last = Add (last_scaled, last_shift)""")
    linear("wide", "last", *of(f"{_POOL}.linear1"))
    steps.append("""
            active = Relu (wide)""")
    linear("weight", "active", *of(f"{_POOL}.linear2"))
    steps.append("""
            share = Softmax <axis = 1> (weight)
            in_a_row = Transpose <perm = [0, 2, 1]> (share)
            pooled = MatMul (in_a_row, last)""")
    linear("score", "pooled", *of(f"{_POOL}.linear3"))
    model = parser.parse_model(f"""<ir_version: 9, opset_import: ["": 17]>
        distill_mos (float[parts, 2, {BINS}, {PART_FRAMES}] spectrum) => (float[parts, 1, 1] quality) {{
            {"".join(steps)}
            quality = Sigmoid (score)
        }}""")
    constants = (numpy_helper.from_array(np.ascontiguousarray(v), name) for name, v in values.items())
    model.graph.initializer.extend(constants)
    serialised: bytes = model.SerializeToString()
    return serialised


def _scaling(tensors: Mapping[str, Values], name: str) -> tuple[Values, Values]:
    """Scale and shift of a batch normalisation."""
    mean, variance = (tensors[f"{name}.running_{part}"] for part in ("mean", "var"))
    scale = tensors[f"{name}.weight"] / np.sqrt(variance + np.float32(EPSILON))
    return scale, tensors[f"{name}.bias"] - mean * scale


def _then(first: tuple[Values, Values], second: tuple[Values, Values]) -> tuple[Values, Values]:
    """Two scalings one after the other, as one."""
    return first[0] * second[0], first[1] * second[0] + second[1]
