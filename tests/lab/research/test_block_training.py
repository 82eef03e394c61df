"""A block that is trained: its gradients are those of its error, and a checkpoint continues it exactly."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kokoro_lab.lab.research import block_training, vocoder_block
from kokoro_lab.lab.research.block_training import Training
from kokoro_lab.lab.research.vocoder_block import CROP, MARGIN, Block, Crop, Values

CHANNELS, DILATIONS = 4, (1, 1, 3, 1, 5, 1)


def block(taps: int, seed: int = 0) -> Block:
    random = np.random.default_rng(seed)
    weights = [0.1 * random.normal(size=(taps, CHANNELS, CHANNELS)).astype(np.float32) for _ in DILATIONS]
    return Block(
        weights, [0.1 * random.normal(size=CHANNELS).astype(np.float32) for _ in DILATIONS], DILATIONS
    )


def crops(teacher: Block, count: int, columns: int = CROP + 2 * MARGIN) -> list[Crop]:
    random = np.random.default_rng(1)
    found = []
    for _ in range(count):
        x = random.normal(size=(CHANNELS, columns)).astype(np.float32)
        scale, shift = random.normal(1, 0.2, (2, len(DILATIONS), CHANNELS)).astype(np.float32)
        crop = Crop(x, x, scale, shift)
        found.append(Crop(x, teacher.forward(crop), scale, shift))
    return found


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of training takes 10 ms, on any machine."""
    readings = itertools.count()
    monkeypatch.setattr(block_training.time, "process_time", lambda: next(readings) / 100)


def test_gradients_are_those_of_the_error() -> None:
    student = block(3)
    double = Block([w.astype(np.float64) for w in student.weights], list(student.biases), DILATIONS)
    (crop,) = crops(block(5, 1), 1, 40)

    def loss() -> float:
        return float(np.square(double.forward(crop) - crop.y).sum() / 2)

    tape: list[tuple[Values, Values]] = []
    weights, biases = double.backward(crop, tape, double.forward(crop, tape) - crop.y)
    for k in range(len(DILATIONS)):
        for tensor, gradient, place in (
            (double.weights[k], weights[k], (0, 1, 2)),
            (double.weights[k], weights[k], (2, 3, 0)),
            (double.biases[k], biases[k], (1,)),
        ):
            before = tensor[place]
            tensor[place] = before + 1e-3
            above = loss()
            tensor[place] = before - 1e-3
            slope = (above - loss()) / (float(before + np.float32(1e-3)) - float(before - np.float32(1e-3)))
            tensor[place] = before
            assert gradient[place] == pytest.approx(slope, rel=0.02, abs=0.02)


@pytest.mark.usefixtures("clock")
def test_training_comes_nearer_than_the_closed_form_and_that_nearer_than_fewer_taps() -> None:
    teacher = block(5, 2)
    seen, unseen = crops(teacher, 6), crops(teacher, 9)[6:]
    assert vocoder_block.error(teacher, unseen) == pytest.approx(0, abs=1e-9)
    bare = Block([vocoder_block.middle(w, 3) for w in teacher.weights], teacher.biases, DILATIONS)
    closed = vocoder_block.fitted(teacher, seen, 3)
    run = Training(closed, seen, unseen)
    run.run(1.0, 0.05)
    assert run.history.error_ratio.is_monotonic_decreasing
    trained = vocoder_block.error(run.block, unseen)
    assert trained < vocoder_block.error(closed, unseen) < vocoder_block.error(bare, unseen)
    whole = vocoder_block.fitted(teacher, seen, 5)
    assert vocoder_block.error(whole, unseen) < 1e-3


@pytest.mark.usefixtures("clock")
def test_a_training_never_ends_worse_than_it_began() -> None:
    seen, other = crops(block(5, 2), 3), crops(block(3), 3)
    run = Training(block(3), seen, other)
    run.run(0.2, 0.02)
    assert len(run.history) > 3
    assert vocoder_block.error(run._now, other) > 1e-3
    assert vocoder_block.error(run.block, other) == run.history.error_ratio.iloc[-1] == pytest.approx(1e-12)


@pytest.mark.usefixtures("clock")
def test_a_checkpoint_is_continued(tmp_path: Path) -> None:
    teacher = block(3, 3)
    seen = crops(teacher, 5)
    begun, other = (Training(block(3), seen, seen[:1]) for _ in range(2))
    begun.run(0.2, 0.02)
    begun.save(tmp_path / "begun.npz")
    other.restore(tmp_path / "begun.npz")
    pd.testing.assert_frame_equal(other.history, begun.history)
    for one, two in zip(begun.block.weights, other.block.weights, strict=True):
        np.testing.assert_array_equal(one, two)
    other.run(0.4, 0.02)
    assert other.steps > begun.steps
    assert other.history.error_db.iloc[-1] < begun.history.error_db.iloc[-1]


def test_a_checkpoint_of_another_block_is_refused(tmp_path: Path) -> None:
    teacher = block(3, 3)
    seen = crops(teacher, 2)
    Training(block(3), seen, seen[:1]).save(tmp_path / "begun.npz")
    with pytest.raises(ValueError, match=r"begun\.npz is of a block with other shapes"):
        Training(block(5), seen, seen[:1]).restore(tmp_path / "begun.npz")


@pytest.mark.usefixtures("clock")
def test_training_stops_when_its_time_is_used() -> None:
    seen = crops(block(3, 3), 2)
    run = Training(block(3), seen, seen[:1])
    run.run(0.05, 0.02)
    assert run.compute_s == pytest.approx(0.05, abs=0.011)
    assert run.history.compute_s.iloc[-1] == run.compute_s
    steps = run.steps
    run.run(0.05, 0.02)
    assert run.steps == steps, "continued, its time is used"


def test_the_coordinates_of_training_make_the_curvature_alike() -> None:
    """Noise comes back to the last convolution as it was."""
    seen = crops(block(3, 3), 2)
    run = Training(block(3), seen, seen[:1])
    out, into = run._factors()[-1]
    np.testing.assert_allclose(out @ out.T, np.eye(CHANNELS), atol=0.15)
    assert into.shape == (3 * CHANNELS + 1, 3 * CHANNELS + 1)
