"""What nobody waits for is broken off, and does no harm to what comes after it."""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.model.decoder import DecodedSegment, SegmentRequest
from kokoro_lab.sessions.arenas import Interruption
from kokoro_lab.sessions.guarded_session import RAISED
from kokoro_lab.sessions.providers import make_session
from kokoro_lab.speech.engine import Engine

LONG = (
    "The harbour lights came on one by one, while the ferry turned towards the quay and the men on the pier "
    "threw their ropes, and nobody in the crowd behind them said a word until the last of the passengers had "
    "come ashore with all that they had been able to carry."
)


def counting_session() -> ort.InferenceSession:
    """Counts to what it is told, one operator after the other."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["going"], ["goes_on"]),
            helper.make_node("Add", ["sum", "one"], ["next"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("number", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("sum", TensorProto.FLOAT, []),
        ],
        [
            helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, []),
        ],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["count", "", "zero"], ["y"], body=body)],
        "g",
        [helper.make_tensor_value_info("count", TensorProto.INT64, [])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])],
        [numpy_helper.from_array(np.float32(value), name) for name, value in (("one", 1), ("zero", 0))],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return make_session(model.SerializeToString(), EngineConfig(threads=1))


def test_a_run_is_broken_off_from_another_thread() -> None:
    session, interruption = counting_session(), Interruption()
    begun = threading.Event()

    def run() -> None:
        with interruption.within():
            begun.set()
            session.run(None, {"count": np.array(10**10)})  # some hours

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run)
        assert begun.wait(10)
        time.sleep(0.05)
        assert not running.done()
        interruption.end()
        with pytest.raises(RAISED):
            running.result(60)
    assert session.run(None, {"count": np.array(5)}) == [5]


def test_what_is_begun_after_the_end_does_not_run() -> None:
    session, interruption = counting_session(), Interruption()
    interruption.end()
    with interruption.within(), pytest.raises(RAISED):
        session.run(None, {"count": np.array(10**10)})
    assert session.run(None, {"count": np.array(5)}) == [5]


def test_what_another_thread_runs_goes_on() -> None:
    session, interruption = counting_session(), Interruption()
    with interruption.within(), ThreadPoolExecutor(1) as pool:
        running = pool.submit(session.run, None, {"count": np.array(200_000)})
        interruption.end()
        assert running.result(60) == [200_000]


@pytest.mark.test_all
@pytest.mark.model
def test_a_listener_who_leaves_takes_the_segment_that_is_being_prepared_along(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = np.concatenate([chunk.samples for chunk in engine.stream(LONG)])
    begun, left = threading.Event(), threading.Event()
    decode = engine.decoder.decode

    def held(asked: SegmentRequest) -> DecodedSegment:
        """As it is, but for the second segment, which goes on when the listener has left."""
        if not asked.urgent:
            begun.set()
            assert left.wait(60)
        return decode(asked)

    with monkeypatch.context() as patch:
        patch.setattr(engine.decoder, "decode", held)
        # However slow the machine is: the second segment is prepared beside the first, and not behind it
        patch.setattr("kokoro_lab.speech.stream.LEAD_S", -math.inf)
        stream = engine.stream(LONG)
        preparation = stream._preparation
        for _ in stream:
            if begun.wait(0.5):
                break
        stream.close()
        left.set()
        prepared = stream._ahead._next
        assert prepared is not None
        wait([prepared], 60)
    assert begun.is_set()
    assert len(preparation.choices) == 1, "the second segment was prepared for nobody"
    np.testing.assert_array_equal(np.concatenate([chunk.samples for chunk in engine.stream(LONG)]), whole)
