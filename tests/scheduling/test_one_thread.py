"""numpy's own threads sleep while the engine speaks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import ClassVar

import numpy as np
import pytest

from kokoro_lab.scheduling.one_thread import product

SPEAKS = """
import json, os, time

def tasks():
    return set(os.listdir("/proc/self/task"))

def ticks(task):
    with open(f"/proc/self/task/{task}/stat") as told:
        return sum(map(int, told.read().rpartition(")")[2].split()[11:13]))

before = tasks()
import numpy
idle = sorted(tasks() - before)  # they stay; of other threads, one may end while it is looked at
from kokoro_lab import load_engine
engine = load_engine()
time.sleep(0.5)  # whatever loading has woken sleeps again
before = [ticks(task) for task in idle]
for text in TEXTS:
    list(engine.stream(text, cached=False))
print(json.dumps([ticks(task) - spent for task, spent in zip(idle, before)]))
"""


@pytest.mark.test_all
@pytest.mark.model
@pytest.mark.skipif(sys.platform != "linux", reason="a thread's processor time is read from Linux' /proc")
@pytest.mark.parametrize(
    "texts",
    [["Yes.", "No.", "Hello.", "Stop.", "Go."], ["The ferry leaves at noon, and nobody waits for it."] * 4],
    ids=["one word", "a sentence"],
)
def test_a_stream_wakes_none_of_numpys_threads(texts: list[str]) -> None:
    # each product that they share keeps them spinning for some 20 ms: two ticks of a hundredth of a second
    done = subprocess.run(
        [sys.executable, "-c", f"TEXTS = {texts!r}\n{SPEAKS}"],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    ticks = json.loads(done.stdout)
    assert len(ticks) == 1, "numpy has one thread beside the caller's"
    assert ticks[0] <= 1


@pytest.mark.parametrize(
    ("rows", "inner", "columns"),
    [(None, 1715, 116), (None, 116, 16896), (1, 300, 512), (7, 300, 5000), (900, 288, 96), (0, 9, 4)],
)
@pytest.mark.parametrize("turned", [False, True])
def test_a_product_is_right(rows: int | None, inner: int, columns: int, turned: bool) -> None:
    draw = np.random.default_rng(inner)
    a = draw.standard_normal((inner,) if rows is None else (rows, inner)).astype(np.float32)
    b = draw.standard_normal((inner, columns)).astype(np.float32)
    b = np.asfortranarray(b) if turned else b
    found = product(a, b)
    assert found.dtype == np.float32
    assert found.shape == (*a.shape[:-1], columns)
    true = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(found, true, atol=2e-6 * inner, rtol=0)


class Recorded(np.ndarray):
    """Notes the shape of all that it is multiplied with."""

    shapes: ClassVar[list[tuple[int, ...]]] = []

    def __matmul__(self, other: np.ndarray) -> np.ndarray:
        self.shapes.append(other.shape)
        return np.asarray(self) @ other


def test_of_many_rows_no_product_is_with_a_vector() -> None:
    """Which OpenBLAS would divide among its threads: the tags of 800 marks took 3 s."""
    rows = np.ones((1_200, 288), np.float32).view(Recorded)
    product(rows, np.ones((288, 96), np.float32))
    assert min(columns for _, columns in Recorded.shapes) > 1
