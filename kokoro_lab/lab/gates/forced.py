"""Decoders that take durations, pitch and energy from the fp32 model instead of computing their own.

Precision changes timing first: upstream's int8 export makes most clips 25 or 50 ms longer or shorter, and a
comparison of samples then measures timing. With the fp32 model's prosody, every duration frame of 600 samples
stands for the same part of the speech, so only the sound differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from kokoro_lab.dsp import require_finite
from kokoro_lab.engine_config import WHOLE_MODEL, EngineConfig
from kokoro_lab.errors import WeightsError
from kokoro_lab.g2p.vocab import PAD_ID
from kokoro_lab.graphs.artefacts import stages_folder
from kokoro_lab.graphs.rewriting import inferred
from kokoro_lab.graphs.signatures import DURATIONS, ENERGY, F0, frames_of, signature
from kokoro_lab.model.decoder import DecodedSegment, Decoder, SegmentRequest, StagedDecoder
from kokoro_lab.model.prosody import ProsodyModel
from kokoro_lab.native.operators import native_operators
from kokoro_lab.sessions.providers import stage_session
from kokoro_lab.weights.voices import Voice

TOLD = (DURATIONS, F0, ENERGY)
_NUMPY: dict[int, type[np.floating[Any]]] = {
    onnx.TensorProto.FLOAT: np.float32,
    onnx.TensorProto.FLOAT16: np.float16,
}


class DecoderAround:
    """A decoder like `decoder`, except that the function `decode` decodes each segment."""

    def __init__(
        self, decoder: Decoder, decode: Callable[[SegmentRequest], DecodedSegment], **details: str
    ) -> None:
        self.decode = decode
        self.predicts = decoder.predicts
        self.conversion = getattr(decoder, "conversion", {})  # results with other prosody need this, too
        self._decoder = decoder
        self._details = details

    @property
    def details(self) -> Mapping[str, str]:
        return {**self._decoder.details, **self._details}


class ToldGraph:
    """A `Decoder` that runs an export as one graph, with the prosody of the fp32 model.

    Parameters
    ----------
    path : Path
        An ONNX file of the model, as somebody exported it.
    prosody : ProsodyModel
        The prosody of the fp32 model, from `fp32_prosody`.

    Raises
    ------
    WeightsError
        The export has no tensors of prosody that could be set.
    """

    def __init__(self, path: Path, prosody: ProsodyModel, config: EngineConfig) -> None:
        self._name = path.name
        model = onnx.load(path)
        self._types = with_told_prosody(model, path.name)
        self._session = stage_session(WHOLE_MODEL, model.SerializeToString(), config)
        self._names = signature(self._session, path.name)
        self._inputs = [i.name for i in self._session.get_inputs()]
        self._prosody = prosody

    @property
    def details(self) -> Mapping[str, str]:
        return {"prosody": "fp32"}

    def predicts(self, voice: Voice) -> str | None:
        return "this variant runs as one graph"

    def decode(self, asked: SegmentRequest) -> DecodedSegment:
        """Decode a segment as `Decoder.decode` does. A segment has as many samples as the fp32 model gives,
        frame by frame."""
        contours = self._prosody.contours(asked.token_ids, asked.style, asked.speed, asked.delivery)
        durations = frames_of(contours.durations)
        told = (durations, contours.f0_hz, contours.energy)
        feed = {
            name: np.ascontiguousarray(value, self._types[name]).reshape(1, -1)
            for name, value in zip(TOLD, told, strict=True)
        } | {
            self._names.tokens: np.array([[PAD_ID, *asked.token_ids, PAD_ID]], dtype=np.int64),
            self._names.style: asked.style,
            self._names.speed: np.array([asked.speed], np.float32),
        }
        # Without the nodes of the durations, speed may be no input any more
        (audio,) = self._session.run([self._names.audio], {name: feed[name] for name in self._inputs})
        samples = np.ascontiguousarray(audio, np.float32).reshape(-1)
        require_finite(samples, f"{self._name}, {len(asked.token_ids)} token ids")
        return DecodedSegment(durations, iter((samples,)), contours.fallbacks)


def told_stages(stages: StagedDecoder, prosody: ProsodyModel) -> Decoder:
    """A decoder of `stages`, a variant that runs in stages, with the contours of the fp32 model
    (`fp32_prosody`).

    A segment has as many samples as the fp32 model gives, frame by frame.
    """

    def decode(asked: SegmentRequest) -> DecodedSegment:
        contours = prosody.contours(asked.token_ids, asked.style, asked.speed, asked.delivery)
        if asked.predicted:
            samples = np.concatenate(list(stages.windows(contours, asked.style, urgent=asked.urgent)))
        else:
            samples = stages.vocoder.whole(stages.prosody.behind(contours, asked.style))
        require_finite(samples, f"{len(asked.token_ids)} token ids")
        return DecodedSegment(frames_of(contours.durations), iter((samples,)), contours.fallbacks)

    return DecoderAround(stages, decode, prosody="fp32")


def fp32_prosody(config: EngineConfig) -> ProsodyModel:
    """The fp32 model's stages before the vocoder, for comparing the variant of `config` with it."""
    plain = replace(config, variant="fp32")
    native = native_operators(plain)
    return ProsodyModel(stages_folder(plain, native), plain, native)


def with_told_prosody(model: onnx.ModelProto, name: str) -> dict[str, type[np.floating[Any]]]:
    """Turn the tensors of prosody into inputs of the graph, in place; the nodes that computed them are no
    longer used.

    Returns
    -------
    dict
        Tensor → NumPy type that it takes.

    Raises
    ------
    WeightsError
        A tensor of `TOLD` does not exist, or is not of floating point.
    """
    types = {info.name: info.type.tensor_type.elem_type for info in inferred(model)}
    found: dict[str, type[np.floating[Any]]] = {}
    for tensor in TOLD:
        maker = next((node for node in model.graph.node if tensor in node.output), None)
        if maker is None or types.get(tensor) not in _NUMPY:
            raise WeightsError(
                f"{name} cannot be told its prosody: it has no tensor {tensor} of floating point.",
                field="variant",
                value=name,
                mend="Compare it with its own prosody.",
            )
        maker.output[list(maker.output).index(tensor)] = f"{tensor}_unread"
        model.graph.input.append(onnx.helper.make_tensor_value_info(tensor, types[tensor], None))
        found[tensor] = _NUMPY[types[tensor]]
    for stale in [info for info in model.graph.value_info if info.name in TOLD]:
        model.graph.value_info.remove(stale)
    return found
