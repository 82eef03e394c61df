"""Integers of parallel blocks: what they compute, and the gradients that go straight through them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kokoro_lab.graphs.quantise import QuantisedLayer, Range
from kokoro_lab.lab.research.parallel_blocks import Integers, Layers, ParallelBlocks, RoundedBlock, Tape
from kokoro_lab.lab.research.straight_through import StraightThrough
from kokoro_lab.lab.research.vocoder_block import CROP, MARGIN, Block, Crop, error
from tests.lab.research.test_block_training import CHANNELS, DILATIONS, block

NAMES = tuple(tuple(f"block{b}/{k}" for k in range(len(DILATIONS))) for b in range(2))


def teachers() -> tuple[Block, ...]:
    return block(3, 1), block(5, 2)


def crops(count: int, columns: int = CROP + 2 * MARGIN, seed: int = 1) -> list[Crop]:
    random, found = np.random.default_rng(seed), []
    for _ in range(count):
        x = random.normal(size=(CHANNELS, columns)).astype(np.float32)
        scale, shift = random.normal(1, 0.2, (2, 2, len(DILATIONS), CHANNELS)).astype(np.float32)
        crop = Crop(x, x, scale, shift)
        found.append(replace(crop, y=ParallelBlocks(teachers()).forward(crop)))
    return found


def integers(leave_out: str = "", low: float = -1.0, high: float = 6.0, coarse: int = 1) -> Integers:
    """The nearest integers; with `coarse`, only every so-manieth level is used."""
    ranges, layers = Range(np.full(CHANNELS, low, np.float32), np.full(CHANNELS, high, np.float32)), {}
    for teacher, names in zip(teachers(), NAMES, strict=True):
        for weight, name in zip(teacher.weights, names, strict=True):
            layer = QuantisedLayer.of(weight.transpose(1, 2, 0), ranges)
            levels = (np.round(layer.weights / coarse) * coarse).astype(np.int8)
            layers[name] = replace(layer, weights=levels)
    layers.pop(leave_out, None)
    return Integers(teachers(), NAMES, layers)


def as_rounded(found: Integers) -> ParallelBlocks:
    return found.rounded(found.latent)


def test_the_mean_of_the_blocks_goes_on() -> None:
    (crop,) = crops(1, 30)
    own = [
        teacher.forward(replace(crop, scale=crop.scale[b], shift=crop.shift[b]))
        for b, teacher in enumerate(teachers())
    ]
    np.testing.assert_allclose(crop.y, np.mean(own, axis=0), atol=1e-5)


def test_integers_compute_what_the_layer_s_arithmetic_says() -> None:
    found = integers()
    layer = found.layers[NAMES[0][2]]
    (first, _) = as_rounded(found).blocks
    values = np.random.default_rng(3).normal(2, 3, (CHANNELS, 50)).astype(np.float32)
    levels, slope = first.read(2, values)
    np.testing.assert_array_equal(levels, layer.rounded(values))
    low, high = -1.0 - layer.step, 6.0 + layer.step
    clipped = (values < low[:, None]) | (values > high[:, None])
    assert clipped.any()
    assert (slope[clipped] == 0).all(), "what is clipped does not follow its input"
    inside = (values > -0.9) & (values < 5.9)
    np.testing.assert_allclose((slope * layer.step[:, None])[inside], 1)
    weights = layer.weights.transpose(2, 0, 1) * layer.scale[:, None]
    np.testing.assert_allclose(first.weights[2], weights, rtol=1e-6)


def test_integers_come_back_from_the_weights_that_they_stand_for() -> None:
    found = integers()
    shifted = {n: replace(q, shift=np.arange(CHANNELS, dtype=np.float32)) for n, q in found.layers.items()}
    back = replace(found, layers=shifted)
    back = back.nearest(back.latent)
    for name, layer in shifted.items():
        np.testing.assert_array_equal(back.layers[name].weights, layer.weights)
        np.testing.assert_allclose(back.layers[name].shift, layer.shift, atol=1e-6)  # type: ignore[arg-type]


def test_without_rounding_gradients_are_those_of_the_error() -> None:
    """No convolution is on integers: checked by finite differences, in double precision."""
    (crop,) = crops(1, 40)
    double = ParallelBlocks(
        tuple(
            RoundedBlock([w.astype(np.float64) for w in b.weights], list(b.biases), DILATIONS, (None,) * 6)
            for b in teachers()
        )
    )
    wanted = -crop.y

    def loss() -> float:
        return float(np.square(double.forward(crop) - wanted).sum() / 2)

    tapes: list[Tape] = []
    wrong = double.forward(crop, tapes) - wanted
    gradients = double.backward(crop, tapes, wrong)
    for number, own in enumerate(double.blocks):
        for k in range(len(DILATIONS)):
            for tensor, gradient, place in (
                (own.weights[k], gradients[number][0][k], (1, 2, 3)),
                (own.biases[k], gradients[number][1][k], (1,)),
            ):
                before = tensor[place]
                ends = before + np.float32(1e-3), before - np.float32(1e-3)
                losses = []
                for end in ends:
                    tensor[place] = end
                    losses.append(loss())
                tensor[place] = before
                slope = (losses[0] - losses[1]) / float(ends[0] - ends[1])
                assert gradient[place] == pytest.approx(slope, rel=0.02, abs=0.02)


def test_with_fine_levels_gradients_go_straight_through() -> None:
    """Bytes that clip nothing change the gradients of the float blocks little; weights are in units of the
    inputs' steps."""
    (crop,) = crops(1, 200)
    wrong = np.random.default_rng(4).normal(size=crop.y.shape).astype(np.float32)
    found = integers(low=-12.0, high=12.0)
    both = []
    for blocks in (ParallelBlocks(teachers()), as_rounded(found)):
        tapes: list[Tape] = []
        blocks.forward(crop, tapes)
        both.append(blocks.backward(crop, tapes, wrong))
    step = found.layers[NAMES[0][0]].step
    for exact, rounded in zip(*both, strict=True):
        for side, unit in ((0, step), (1, np.ones(1))):
            for one, other in zip(exact[side], rounded[side], strict=True):
                assert np.linalg.norm(one - other * unit) < 0.1 * np.linalg.norm(one)


def test_training_together_makes_up_for_what_each_rounding_left() -> None:
    """Levels are few here, so that rounding leaves much to make up for."""
    start, unseen = integers(coarse=24), crops(3, seed=2)
    run = StraightThrough(start, crops(8))
    run.run(40, rate=0.3)
    found = run.history
    assert found.steps.iloc[-1] == 40
    assert found.error_db.iloc[0] - found.error_db.min() > 3
    gained = error(as_rounded(start), unseen) / error(as_rounded(run.best), unseen)
    assert 10 * np.log10(gained) > 3
    assert run.compute_s > 0


def test_a_training_towards_something_else_never_ends_worse_than_it_began() -> None:
    """What it is judged by are its last crops."""
    seen = crops(12)
    run = StraightThrough(integers(), [replace(crop, y=-crop.y) for crop in seen[:10]] + seen[10:])
    run.run(10, rate=0.1)
    assert error(as_rounded(run.last), seen[10:]) > error(as_rounded(run.start), seen[10:])
    assert run.best is run.start


def test_the_first_step_changes_few_integers() -> None:
    run = StraightThrough(integers(), crops(3))
    run.run(1, rate=0.02)
    before, after = (
        np.concatenate([q.weights.ravel() for q in i.layers.values()]) for i in (run.start, run.last)
    )
    assert 0 < np.mean(before != after) < 0.03
    assert np.abs(after - before).max() == 1


def test_a_convolution_in_float_stays_as_it_is() -> None:
    name = NAMES[1][3]
    start, seen = integers(leave_out=name), crops(3)
    run = StraightThrough(start, seen)
    run.run(5, rate=0.1)
    assert name not in run.last.layers
    judged = 10 * np.log10(error(as_rounded(run.last), seen[-1:]))
    assert run.history.error_db.iloc[-1] == pytest.approx(judged, abs=1e-3), (
        "what was trained is what is made"
    )
    first, moved = start.latent.blocks[1], run.last.latent.blocks[1]
    np.testing.assert_array_equal(first.weights[3], moved.weights[3])
    np.testing.assert_array_equal(first.biases[3], moved.biases[3])
    assert not np.array_equal(first.biases[4], moved.biases[4])


def test_a_training_gives_the_same_integers_each_time() -> None:
    first, second = (StraightThrough(integers(), crops(3)) for _ in range(2))
    for run in (first, second):
        run.run(5)
    pd.testing.assert_series_equal(first.history.error_db, second.history.error_db)


def test_layers_without_integers_run_in_float() -> None:
    none: Layers = {}
    (crop,) = crops(1, 30)
    np.testing.assert_array_equal(as_rounded(replace(integers(), layers=none)).forward(crop), crop.y)
