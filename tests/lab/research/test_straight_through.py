"""A block that is trained on integers is trained as it will run, and its integers are those that run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pandas as pd
import pytest

from kokoro_lab.graphs.quantise import Range
from kokoro_lab.lab.research import straight_through
from kokoro_lab.lab.research.distillation import Lesson
from kokoro_lab.lab.research.residual_steps import Step
from kokoro_lab.lab.research.vocoder_block import BlockRecorder, convolved, error
from tests.lab.research.test_block_training import CHANNELS, block, clock, crops  # noqa: F401


@pytest.fixture
def lesson() -> Lesson:
    teacher = block(3, 2)
    shapes = [np.zeros((CHANNELS, CHANNELS, 3), np.float32)] * 2
    steps = [Step(f"{k}", f"first{k}", f"second{k}", *shapes, 1) for k in range(3)]
    made = crops(teacher, 7)
    recorder = cast(BlockRecorder, SimpleNamespace(teacher=teacher, steps=steps))
    return Lesson(recorder, made[:5], made[5:])


@pytest.fixture
def ranges(lesson: Lesson) -> dict[str, Range]:
    low, high = np.full(CHANNELS, -3, np.float32), np.full(CHANNELS, 5, np.float32)
    return {name: Range(low, high) for name in straight_through.names_of(lesson)}


def test_integers_are_those_that_were_trained(lesson: Lesson, ranges: dict[str, Range]) -> None:
    rounded = straight_through.on_integers(lesson, ranges)
    assert list(straight_through.integers(lesson, rounded)) == straight_through.names_of(lesson)
    crop = lesson.held_out[0]
    z = crop.scale[0][:, None] * crop.x + crop.shift[0][:, None]
    snake = z - np.cos(z) + 1
    layer = straight_through.integers(lesson, rounded)["first0"]
    weights = layer.weights.transpose(2, 0, 1) * layer.scale[None, :, None]
    as_shipped = convolved(weights.astype(np.float32), layer.rounded(snake), 1)
    seen, _ = rounded._seen(0, snake)
    np.testing.assert_allclose(convolved(rounded.weight(0), seen, 1), as_shipped, atol=1e-4)


def test_a_clipped_input_has_no_gradient(lesson: Lesson, ranges: dict[str, Range]) -> None:
    rounded = straight_through.on_integers(lesson, ranges)
    values = np.tile(np.array([-9, 0, 1, 9], np.float32), (CHANNELS, 1))
    seen, inside = rounded._seen(0, values)
    np.testing.assert_array_equal(np.broadcast_to(inside, seen.shape)[0], [0, 1, 1, 0])
    np.testing.assert_allclose(seen[0], [-3, 0, 1, 5], atol=0.04)


@pytest.mark.usefixtures("clock")
def test_training_makes_up_for_rounding(lesson: Lesson, ranges: dict[str, Range]) -> None:
    coarse = {name: Range(8 * low, 8 * high) for name, (low, high) in ranges.items()}
    run = straight_through.tuned(lesson, 0.6, coarse)
    nearest = error(straight_through.on_integers(lesson, coarse), lesson.held_out)
    assert error(run.block, lesson.held_out) < nearest
    shifts = [layer.shift for layer in straight_through.integers(lesson, run.block).values()]
    assert any(np.abs(shift).max() > 0 for shift in shifts if shift is not None)


@pytest.mark.parametrize(
    ("gain", "pesq", "said"), [(0.02, 4.6, "worth"), (0.0, 4.6, "not"), (0.02, 4.5, "not")]
)
def test_a_gain_that_is_heard_within_the_limit_is_worth_it(gain: float, pesq: float, said: str) -> None:
    noise = 0.001 * np.random.default_rng(0).normal(size=8)
    table = pd.DataFrame(
        [
            {"text": text, "rest": "int8", "method": method, "stoi": 0.99, "pesq": pesq + more + noise[text]}
            for method, more in (("nearest", 0.0), (straight_through.STRAIGHT, 0.0))
            for text in range(8)
        ]
    )
    trained = table.method == straight_through.STRAIGHT
    table.loc[trained, "pesq"] += gain + 0.1 * noise
    assert straight_through.verdict(table, ["resblocks.5"]).startswith(said)
