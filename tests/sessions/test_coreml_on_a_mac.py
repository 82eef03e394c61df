"""Core ML where it is: `make test-macos`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.metrics.perceptual import signal_to_difference_db
from kokoro_lab.sessions import providers
from kokoro_lab.sessions.coreml_options import OPTIONS
from kokoro_lab.sessions.provider_registry import listed, named, this_machine
from kokoro_lab.speech.engine import Engine, load_engine

pytestmark = [
    pytest.mark.macos,
    pytest.mark.skipif(this_machine() != "macOS arm64", reason="needs Apple silicon: `make test-macos`"),
]
EVERY = [{name: value} for name, values in OPTIONS.items() for value in values]
AGREEMENT_LOW_DB = 40.0
"""Sixteen bits keep some 60 dB of a convolution."""


def convolution() -> bytes:
    """A convolution and what follows it in the vocoder, of fixed shape."""
    weights = np.random.default_rng(0).normal(0, 0.1, (16, 16, 3)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1]),
            helper.make_node("LeakyRelu", ["c"], ["y"], alpha=0.1),
        ],
        "convolution",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 16, 64])],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def test_core_ml_is_listed_as_available() -> None:
    assert listed(named("coreml")).available


@pytest.mark.parametrize("options", EVERY, ids=lambda o: "=".join(*o.items()))
def test_every_value_of_every_option_is_taken_and_predicts_twice_as_the_cpu_does(
    options: dict[str, str],
) -> None:
    config = EngineConfig(provider="coreml", coreml=options, threads=1)
    model, x = convolution(), np.random.default_rng(1).normal(size=(1, 16, 64)).astype(np.float32)
    (wanted,) = providers.cpu_session(model, config).run(None, {"x": x})
    session = providers.make_session(model, config)
    assert session.get_providers()[0] == "CoreMLExecutionProvider"
    for _ in range(2):  # some systems crash at the second prediction
        (found,) = session.run(None, {"x": x})
        assert signal_to_difference_db(wanted.ravel(), found.ravel()) > AGREEMENT_LOW_DB


@pytest.mark.model
def test_a_stream_on_core_ml_is_whole_and_says_where_it_ran(engine: Engine) -> None:
    on_coreml = load_engine(config=replace(engine.config, provider="auto:coreml"))
    for _ in range(2):
        clip = on_coreml.stream("The kettle is on, and the window is open.", voice="af_heart").joined()
        wanted = engine.stream("The kettle is on, and the window is open.", voice="af_heart").joined()
        assert abs(len(clip.samples) - len(wanted.samples)) < 0.05 * wanted.sample_rate_hz
        lost = [f for f in clip.report.fallbacks if f.stage == "provider"]
        assert bool(lost) == (clip.report.active_provider == "CPUExecutionProvider")
