"""Durations can be asked of every export, whatever its floating point."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from kokoro_lab.graphs.cutting import with_durations
from kokoro_lab.graphs.signatures import DURATIONS, frames_of


@pytest.mark.parametrize("element_type", [TensorProto.FLOAT, TensorProto.FLOAT16])
def test_durations_come_out_in_the_floating_point_of_the_export(tmp_path: Path, element_type: int) -> None:
    nodes = [
        helper.make_node("Cast", ["raw"], ["typed"], to=element_type),
        helper.make_node("Round", ["typed"], [DURATIONS]),
        helper.make_node("Cast", [DURATIONS], ["waveform"], to=TensorProto.FLOAT),
    ]
    shown = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in ("raw", "waveform")]
    graph = helper.make_graph(nodes, "small", shown[:1], shown[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.save(model, tmp_path / "small.onnx")
    session = ort.InferenceSession(
        with_durations(tmp_path / "small.onnx"), providers=["CPUExecutionProvider"]
    )
    (durations,) = session.run([DURATIONS], {"raw": np.array([0.2, 2.6, 7], np.float32)})
    np.testing.assert_array_equal(frames_of(durations), [1, 3, 7])
