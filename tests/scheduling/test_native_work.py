"""A process that ends while a thread is in native code ends in order."""

from __future__ import annotations

import subprocess
import sys

import pytest

LEAVES = """
import threading, time
import numpy as np, onnxruntime
from onnx import TensorProto, helper
from kokoro_lab.scheduling.kept_threads import KeptThreads
from kokoro_lab.scheduling import native_work

size = 1500
names = ["x", "y1", "y2", "y3", "y4", "y5"]
nodes = [helper.make_node("MatMul", [name, "x"], [next_one]) for name, next_one in zip(names, names[1:])]
ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [size, size]) for name in ("x", "y5")]
graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
session = onnxruntime.InferenceSession(model.SerializeToString())
begun = threading.Event()

def work():
    begun.set()
    session.run(None, {"x": np.zeros((size, size), np.float32)})

KeptThreads("speech").submit(work)
begun.wait()
time.sleep(0.03)
"""


@pytest.mark.parametrize("leaving", ["", "raise SystemExit(3)", "raise KeyboardInterrupt"])
def test_a_thread_in_native_code_is_waited_for(leaving: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LEAVES + leaving], capture_output=True, text=True, check=False
    )
    assert "terminate called" not in done.stderr
    assert done.returncode == {"": 0, "raise SystemExit(3)": 3}.get(leaving, -2), done.stderr


def test_what_hangs_is_not_waited_for() -> None:
    hangs = """
import threading
from kokoro_lab.scheduling import native_work
from kokoro_lab.scheduling.kept_threads import KeptThreads

native_work.LONGEST_WAIT_S = 0.1
begun = threading.Event()
KeptThreads("speech").submit(lambda: (begun.set(), threading.Event().wait()))
begun.wait()
"""
    done = subprocess.run(
        [sys.executable, "-c", hangs], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
