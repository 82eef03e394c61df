"""Reads tensors inside the model while it speaks: for fitting, calibration and tests.

`calibrate` finds the range of each layer's inputs, so that eight bits cover the values that occur.

The model has four stages: *prosody* (durations, pitch and energy of a segment), *trunk* (512 features for
each frame of 12.5 ms), *excitation* (the source signal of the voice) and *vocoder* (samples). *Statistics*
are the mean and the variance by which a layer normalises a channel over a segment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.g2p.vocab import PAD_ID
from kokoro_lab.graphs import passes, rewriting, signatures, trunk_passes
from kokoro_lab.graphs.adain import AdainLayers
from kokoro_lab.graphs.artefacts import stages_folder
from kokoro_lab.graphs.making import published_stages
from kokoro_lab.graphs.quant_passes import convolutions_of, quantisable
from kokoro_lab.graphs.quantise import Calibration, Range
from kokoro_lab.lab.tuning.comparison import one_voice_each
from kokoro_lab.model.prosody import Contours, Prosody
from kokoro_lab.native.operators import Native, native_operators
from kokoro_lab.sessions.providers import make_session

Values = npt.NDArray[np.float32]

TAIL = 0.001
"""Share of a channel's values that its range leaves out at either end. Activations have heavy tails, and a
range that covers the rarest value wastes steps on all others."""
POSITIONS = 4000
"""At most this many values of each channel are read from a segment, evenly spread over it: enough to find
the range that leaves out the share `TAIL` at either end."""


def whole_vocoder(
    prosody: Prosody, scale: Values, shift: Values, *, known: bool
) -> dict[str, npt.NDArray[Any]]:
    """The vocoder's inputs to compute a whole segment; `known` says whether `scale` and `shift` contain the
    statistics already, or only the style."""
    return {
        signatures.TRUNK: prosody.trunk,
        signatures.EXCITATION: prosody.excitation,
        signatures.SCALE: scale,
        signatures.SHIFT: shift,
        signatures.INNER: np.array(2 * [0, prosody.frames]),
        signatures.KNOWN: np.array(known),
    }


class TrunkStatistics:
    """The exact statistics of the published model's trunk, for the channels whose statistics can be set."""

    def __init__(self, config: EngineConfig) -> None:
        trunk = rewriting.apply(published_stages(config)["trunk"], (passes.fold_constants,))
        layers = passes.adain_layers(trunk)
        self._told = trunk_passes.told_channels(trunk)
        self._names = [layer.mean for layer in layers] + [layer.variance for layer in layers]
        self._session = make_session(passes.report_statistics(trunk).SerializeToString(), config)

    def __call__(self, contours: Contours, style: Values) -> tuple[Values, Values]:
        """Mean and variance of each channel, float32 (8704,) each."""
        feed = {
            signatures.ALIGNED: contours.aligned,
            signatures.F0: contours.f0_hz,
            signatures.ENERGY: contours.energy,
            signatures.DECODER_STYLE: style[:, :128],
        }
        mean, variance = _means_and_variances(self._session.run(self._names, feed))
        return mean[self._told], variance[self._told]


class OwnStatistics:
    """The exact statistics that a variant's shipped vocoder computes for whole segments."""

    def __init__(self, config: EngineConfig) -> None:
        native = native_operators(config)
        folder = stages_folder(config, native)
        self._layers = AdainLayers.load(folder / "layers.npz")
        model = onnx.load(signatures.graph_path(folder, "vocoder"))
        chosen = {n.output[0]: n for n in model.graph.node if signatures.KNOWN in n.input}
        # An input of the node that takes given statistics has the number of its layer in its name
        ordered = sorted(chosen.values(), key=_place)
        self._names = [n.output[0] for n in ordered] + [n.output[1] for n in ordered]
        model.graph.output.extend(
            onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in self._names
        )
        self._session = make_session(model.SerializeToString(), config, library=native.library)

    def __call__(self, prosody: Prosody) -> tuple[Values, Values]:
        """Mean and variance of each channel, float32 (8448,) each. Layers that normalise the same signal
        share its channels."""
        factor, offset = self._layers.style_alone(prosody.style)
        feed = whole_vocoder(prosody, factor, offset, known=False)
        mean, variance = _means_and_variances(self._session.run(self._names, feed))
        return self._layers.found(prosody.style, mean, variance)


def _means_and_variances(found: Sequence[Values]) -> tuple[Values, Values]:
    """The means and the variances of all layers, each joined layer by layer; the first half of `found` are
    means."""
    mean, variance = np.split(np.concatenate([values.reshape(-1) for values in found]), 2)
    return mean, variance


def _place(chosen: onnx.NodeProto) -> int:
    """The number of the layer whose statistics a node gives. The node is an `If` of
    `own_statistics_unless_known`, or a `Statistics`."""
    if chosen.op_type == "If":
        chosen = next(a.g for a in chosen.attribute if a.name == "then_branch").node[0]
    (scale,) = (name for name in chosen.input if name.startswith(f"{signatures.SCALE}_"))
    return int(scale.removeprefix(f"{signatures.SCALE}_"))


def convolution_weights(config: EngineConfig) -> dict[str, tuple[Values, int]]:
    """Weights (channels out, channels in, taps) and dilation of every convolution that can run on integers.

    The weights are those in the graphs that `ActivationReporter` runs.
    """
    folder = _stock_stages(config)
    found: dict[str, tuple[Values, int]] = {}
    for name in ("prosody", "trunk", "vocoder"):
        found |= convolutions_of(passes.fold_constants(onnx.load(folder / f"{name}.onnx")))
    return found


class ActivationReporter:
    """Runs the fp32 model stage by stage, and returns the input of every layer that can run on integers.

    Parameters
    ----------
    config : EngineConfig
        Configuration whose threads and cache are used for the fp32 model.
    """

    def __init__(self, config: EngineConfig) -> None:
        plain = replace(config, variant="fp32", native="off", stages=None)
        folder = _stock_stages(config)
        self._layers = AdainLayers.load(folder / "layers.npz")
        self._watched = {
            name: _WatchedGraph(folder / f"{name}.onnx", plain) for name in ("prosody", "trunk", "vocoder")
        }
        self._excitation = make_session(str(folder / "excitation.onnx"), plain)

    def __call__(self, token_ids: Sequence[int], style: Values, speed: float) -> Iterator[tuple[str, Values]]:
        """Name and input of each layer while a segment is spoken. The input is float32 (channels, positions);
        a position is a step in time, or one of the segment's input ids."""
        prosody, trunk, vocoder = self._watched.values()
        ids = np.array([[PAD_ID, *token_ids, PAD_ID]], dtype=np.int64)
        found = prosody({"input_ids": ids, "style": style, "speed": np.array([speed], np.float32)})
        yield from prosody.activations(found)
        beside = signatures.whole_trunk(found[signatures.ALIGNED].shape[2])
        found = trunk(found | {signatures.DECODER_STYLE: style[:, :128]} | beside)
        yield from trunk.activations(found)
        (excitation,) = self._excitation.run(
            [signatures.EXCITATION], {signatures.F0_CURVE: found[signatures.F0_CURVE]}
        )
        scale, shift = self._layers.style_alone(style)
        own = {signatures.SCALE: scale, signatures.SHIFT: shift, signatures.KNOWN: np.array(False)}
        whole = {
            signatures.INNER: np.array(2 * [0, found[signatures.TRUNK].shape[2]]),
            signatures.EXCITATION: excitation,
        }
        yield from vocoder.activations(vocoder(found | own | whole))


def _stock_stages(config: EngineConfig) -> Path:
    plain = replace(config, variant="fp32", native="off", stages=None)
    return stages_folder(plain, Native(None, "activations are read in stock operators"))


class _WatchedGraph:
    """A graph that has been changed so that it also returns the inputs of all layers that can run on
    integers."""

    def __init__(self, path: Path, config: EngineConfig) -> None:
        model = passes.fold_constants(onnx.load(path))
        self._layers = quantisable(model)
        there = {output.name for output in model.graph.output}
        model.graph.output.extend(
            onnx.helper.make_tensor_value_info(tensor, onnx.TensorProto.FLOAT, None)
            for tensor in sorted(set(self._layers.values()) - there)
        )
        self._session = make_session(model.SerializeToString(), config)

    def __call__(self, feed: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        wanted = {i.name for i in self._session.get_inputs()}
        names = [o.name for o in self._session.get_outputs()]
        return dict(zip(names, self._session.run(names, {k: feed[k] for k in wanted}), strict=True))

    def activations(self, found: Mapping[str, npt.NDArray[Any]]) -> Iterator[tuple[str, Values]]:
        for name, tensor in self._layers.items():
            values = found[tensor]
            # Convolutions have their channels first, products of matrices last
            yield name, values[0] if name.endswith("Conv") else values.reshape(-1, values.shape[-1]).T


def calibrate(texts: Sequence[str], voices: Sequence[str]) -> Calibration:
    """Have the float model speak every text, each by the next of `voices` in turn, and keep the widest range
    of each channel.

    Returns
    -------
    Calibration
        The ranges of every layer that can run on integers.
    """
    report = ActivationReporter(EngineConfig())
    widest: dict[str, Range] = {}
    for token_ids, style in one_voice_each(texts, voices, what="calibrated"):
        for layer, values in report(token_ids, style, 1.0):
            found = bulk_of(values, TAIL)
            widest[layer] = Range.widest([widest.get(layer, found), found])
    return Calibration(widest)


def bulk_of(values: npt.NDArray[np.float32], tail: float) -> Range:
    """Range of each channel, without the share `tail` at either end.

    Parameters
    ----------
    values : numpy.ndarray
        float32 (channels, positions). At most `POSITIONS` of the positions are read.
    """
    spread = values[:, :: -(-values.shape[1] // POSITIONS)]
    left_out = int(tail * spread.shape[1])
    last = spread.shape[1] - 1 - left_out
    ordered = np.partition(spread, (left_out, last), axis=1)
    return Range(ordered[:, left_out].copy(), ordered[:, last].copy())
