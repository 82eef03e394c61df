"""A report says how exactly its samples were computed, and that is how they were."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.native import toolchain
from kokoro_lab.native.operators import native_operators
from kokoro_lab.sessions.providers import cpu_session, recorded_options
from kokoro_lab.speech.engine import Engine

LEAST = np.float32(1e-45)
"""The smallest number that single precision has: denormal."""
OURS = {"native_operators": "FastConv, Norm"}


def doubled(operator: str, domain: str, **session: object) -> float:
    """What becomes of twice the least number in a session."""
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
    node = helper.make_node(operator, ["x", "x"], ["y"], domain=domain)
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(helper.make_graph([node], "g", [value], [out]), opset_imports=opset)
    model.ir_version = 9
    onnx.checker.check_model(model)
    run = cpu_session(model.SerializeToString(), EngineConfig(), **session)  # type: ignore[arg-type]
    return float(run.run(None, {"x": np.full(4, LEAST, np.float32)})[0][0])


def test_denormals_are_kept_as_the_record_says() -> None:
    assert recorded_options(EngineConfig())["denormals"] == "kept"
    assert doubled("Add", "") == 2 * LEAST


def test_our_operators_are_built_without_loose_math(monkeypatch: pytest.MonkeyPatch) -> None:
    assert toolchain.math_mode(OURS) == "strict, our operators"
    monkeypatch.setattr(toolchain, "FLAGS", (*toolchain.FLAGS, "-ffast-math"))
    assert toolchain.math_mode(OURS) == "loose (-ffast-math), our operators"
    stock = {"native_operators": "none: KOKORO_NATIVE=off"}
    assert toolchain.math_mode(stock) == "strict, ONNX Runtime's operators"


def test_our_operators_leave_the_processors_flag_alone() -> None:
    """A library that is linked with loose math sets it for the whole thread as it is loaded."""
    library = native_operators(EngineConfig()).library
    if library is None:
        pytest.skip("no C++ compiler")
    assert doubled("Add", "", library=library) == 2 * LEAST
    assert np.full(1, LEAST, np.float32) * np.float32(2) == 2 * LEAST


def test_every_report_names_both(hum: Engine) -> None:
    record = hum.synthesize("Hello.", voice="hum").report.session
    assert record["denormals"] == "kept"
    assert record["math_mode"].startswith("strict")
