"""Cuts Kokoro's ONNX export into stages, and adds the durations as an output."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx.utils import Extractor

from kokoro_lab.errors import WeightsError
from kokoro_lab.graphs.rewriting import inferred
from kokoro_lab.graphs.signatures import DURATIONS, STAGES


def with_durations(model: Path) -> bytes:
    """The bytes of the model in the file `model`, with the phonemes' durations as a further output.

    Serialised protocol buffers merge when they are joined: appending a model that holds nothing but one graph
    output adds that output, and the 325 MB before it are not parsed. The appended output states no type,
    since it differs between fp32 and fp16: ONNX Runtime infers it.
    """
    extra = onnx.ModelProto()
    output = extra.graph.output.add()
    output.name = DURATIONS
    appendix: bytes = extra.SerializeToString()
    return model.read_bytes() + appendix


def cut(model: onnx.ModelProto) -> dict[str, onnx.ModelProto]:
    """The stages of the fp32 export, each a model of its own.

    Raises
    ------
    WeightsError
        The model lacks a tensor at which it is to be cut.
    """
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
