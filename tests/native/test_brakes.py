"""A run is held between two operators, and computes the same when it goes on."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from onnx import TensorProto, helper

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs.native_passes import NATIVE_DOMAIN
from kokoro_lab.native.brakes import Brake, brakes_of
from kokoro_lab.native.operators import native_operators
from kokoro_lab.sessions.providers import make_session
from kokoro_lab.speech.engine import Engine, load_engine

BLOCK_S = 60
STANDS_S = 0.05
"""A run that is not held takes a hundredth of this."""


def test_a_run_stands_still_before_an_operator_until_it_is_let_go() -> None:
    config = EngineConfig(threads=1)
    library = native_operators(config).library
    makes = brakes_of(library)
    assert makes is not None
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None]) for name in "xy"]
    node = helper.make_node("Gelu", ["x"], ["y"], domain=NATIVE_DOMAIN)
    graph = helper.make_graph([node], "g", values[:1], values[1:])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(NATIVE_DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    session = make_session(model.SerializeToString(), config, library=library)
    feed = {"x": np.linspace(-3, 3, 64, dtype=np.float32)}
    (expected,) = session.run(None, feed)
    brake, is_over = makes(), threading.Event()

    def run() -> np.ndarray:
        with brake:
            (found,) = session.run(None, feed)
        is_over.set()
        return found

    brake.hold()
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(run)
        assert not is_over.wait(STANDS_S)
        (other,) = session.run(None, feed)  # a thread without the brake is not held
        brake.let_go()
        assert np.array_equal(future.result(BLOCK_S), expected)
        brake.hold()
        assert np.array_equal(
            pool.submit(session.run, None, feed).result(BLOCK_S)[0], expected
        )  # it was taken off
    assert np.array_equal(other, expected)


def test_without_a_library_there_are_no_brakes() -> None:
    assert brakes_of(None) is None


@pytest.mark.model
def test_speech_that_is_held_again_and_again_has_the_same_samples() -> None:
    engine = load_engine()
    makes = engine.parts.brakes
    assert makes is not None
    units = []

    def jerky() -> Brake:
        brake = makes()
        assert isinstance(brake, Brake)
        brake.hold()
        timer = threading.Timer(0.01, brake.let_go)
        timer.daemon = True
        timer.start()
        units.append(timer)
        return brake

    text = "One run is held, another goes on. Nothing that is heard depends on it."
    plain = engine.stream(text, cached=False).joined()
    held = Engine(replace(engine.parts, brakes=jerky)).stream(text, cached=False).joined()
    assert len(units) > 2
    assert np.array_equal(held.samples, plain.samples)
