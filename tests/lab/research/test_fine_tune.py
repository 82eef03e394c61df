"""A fine-tune of integers: what wrong fits look like, and when it is worth it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kokoro_lab.lab.research import fine_tune
from kokoro_lab.lab.research import fine_tune_verdict as judged
from kokoro_lab.lab.research.fine_tune import Tuned
from kokoro_lab.lab.research.recorded_group import EACH, Group
from kokoro_lab.lab.research.straight_through import StraightThrough
from kokoro_lab.lab.tuning import block as alone
from kokoro_lab.lab.tuning.block import BEST, SHIPPED, Layer
from kokoro_lab.metrics.intervals import Estimate
from tests.lab.research.test_block_training import DILATIONS
from tests.lab.research.test_parallel_blocks import NAMES, crops, integers, teachers

STEPS, RATE = 40, 0.3


@pytest.fixture(scope="module")
def tuned() -> Tuned:
    plain = integers(coarse=24)
    names = tuple(tuple(f"/generator/resblocks.{b}/{k}/Conv" for k in range(6)) for b in range(2))
    renamed = dict(zip(np.ravel(names), np.ravel(NAMES), strict=True))
    plain = replace(plain, names=names, layers={new: plain.layers[old] for new, old in renamed.items()})
    layers = {
        name: Layer(name, weight.transpose(1, 2, 0), dilation, plain.layers[name])
        for own, teacher in zip(names, teachers(), strict=True)
        for name, weight, dilation in zip(own, teacher.weights, DILATIONS, strict=True)
    }
    group = Group(plain, layers, crops(8), crops(EACH * 3, seed=2), -90.0, -60.0)
    fitted_on, unseen = group.moments(group.crops), group.moments(group.held_out)
    table, rounded = alone.attempts(layers, fitted_on, unseen)
    runs = []
    for in_float in ([], [names[1][5]]):
        run = StraightThrough(group.with_layers(plain.layers, in_float), group.crops)
        run.run(STEPS, RATE)
        runs.append(run)
    return Tuned(group, table, rounded, *runs, fitted_on, unseen)


def test_a_group_that_is_tuned_passes_and_wrong_fits_are_caught(tuned: Tuned) -> None:
    checks = {check.name: check for check in fine_tune.checks_of([tuned], fine_tune.output_table([tuned]))}
    assert checks["training_gain_db"].value > 3
    assert checks["blocks_in_numpy_error_db"].passed
    assert checks["integers_in_numpy_error_db"].value == -60
    caught = {control.name: control.caught for control in fine_tune.controls(tuned, STEPS, RATE)}
    assert caught == {
        "fitted on the inputs of other channels": True,
        "trained on the outputs of other channels": True,
    }


def test_the_moments_are_those_of_what_enters_each_convolution(tuned: Tuned) -> None:
    name = "/generator/resblocks.1/0/Conv"
    (crop,) = tuned.group.crops[:1]
    z = crop.scale[1][0][:, None] * crop.x + crop.shift[1][0][:, None]
    entered = (z - np.cos(z) + 1) / tuned.group.layers[name].quantised.step[:, None]
    found = tuned.group.moments([crop])[name].exact_mean.reshape(len(entered), -1)
    np.testing.assert_allclose(found.mean(1), entered.mean(1), rtol=0.02, atol=0.02)


def test_the_outputs_table_says_what_training_gains(tuned: Tuned) -> None:
    outputs = fine_tune.output_table([tuned])
    table = outputs.set_index("way")
    assert list(table.index) == [SHIPPED, BEST, "together"]
    assert table.gain_low["together"] > 0
    assert table.group.unique().tolist() == ["resblocks.0, resblocks.1"]
    figures = fine_tune.figures_of([tuned], outputs)
    assert figures["group_0_training_gain_db"] == table.gain_db["together"]
    history = fine_tune.history([tuned])
    assert set(history.layers_in_float) == {0, 1}
    assert fine_tune.shipped_bytes([tuned]) > 12 * 8 * 4


def heard(same: float, together: float, spread: float = 0.002) -> pd.DataFrame:
    """PESQ of six texts in two voices: 4.60 as it ships, and so much more with tuned integers."""
    random, rows = np.random.default_rng(0), []
    for text in range(6):
        for voice in ("a", "b"):
            level = 4.60 + random.normal(scale=0.03)
            for name, gain in ((judged.SHIPS, 0.0), (judged.SAME, same), (judged.TOGETHER, together)):
                pesq = level + gain + random.normal(scale=spread)
                rows.append({"text": text, "voice": voice, "candidate": name, "pesq": pesq, "stoi": 1.0})
    return pd.DataFrame(rows)


SAVED = Estimate(0.06, 0.05, 0.07, 6)


@pytest.mark.parametrize(
    ("same", "together", "saved", "said"),
    [
        (0.03, -0.05, SAVED, "worth it: "),
        (0.0, 0.0, SAVED, "worth it: "),
        (0.0, 0.0, Estimate(0.04, 0.02, 0.06, 6), "not worth it: "),
        (0.0, -0.02, SAVED, "not worth it: "),
        (0.015, 0.02, Estimate(0.0, -0.01, 0.01, 6), "not worth it: "),
    ],
)
def test_worth_is_by_what_is_heard_or_by_what_is_saved_at_equal_sound(
    same: float, together: float, saved: Estimate, said: str
) -> None:
    assert judged.verdict(heard(same, together), saved, 500_000).startswith(said)


def test_a_mean_below_the_limit_is_not_worth_it() -> None:
    low = heard(0.0, 0.0)
    assert judged.verdict(low.assign(pesq=low.pesq - 0.1), SAVED, 500_000).startswith("not worth it: ")


def test_a_gain_by_chance_is_not_worth_it() -> None:
    assert judged.verdict(heard(0.03, -0.05, spread=0.2), SAVED, 500_000).startswith("not worth it: ")


def test_a_verdict_says_by_how_much_it_misses() -> None:
    found = judged.verdict(heard(0.0, -0.03), Estimate(0.03, 0.01, 0.05, 6), 500_000)
    assert "missed, the saving by 2.0 points, the loss by 0.02" in found
    assert "0.5 MB would be shipped" in found


def test_of_one_text_a_verdict_names_no_interval() -> None:
    found = judged.verdict(heard(0.0, 0.0), Estimate(-0.009, -math.inf, 1.0, 1), 500_000)
    assert found.startswith("not worth it: ")
    assert "inf" not in found
    assert "-0.9 %" in found


@pytest.mark.parametrize("texts", [1, 2])
def test_of_one_or_two_texts_no_gain_in_sound_is_worth_it(texts: int) -> None:
    table = heard(0.1, 0.0)
    few = table[table.text < texts]
    for saved in (Estimate(0.0, -math.inf, math.inf, texts), SAVED):
        found = judged.verdict(few, saved, 500_000)
        assert found.startswith("not worth it: ")
        assert "inf" not in found
    assert judged.verdict(table[table.text < 3], SAVED, 500_000).startswith("worth it: ")


def test_gains_are_paired_by_text_and_voice() -> None:
    table = heard(0.02, 0.0)
    shuffled = table.sample(frac=1, random_state=1)
    paired = judged.gain(shuffled, judged.SAME)
    assert paired.value == pytest.approx(0.02, abs=0.002)
    assert paired.high - paired.low < 0.01
    summary = judged.summary(table)
    assert summary.pesq_gain[judged.SHIPS] == 0
    figures = judged.figures_of(table, SAVED, 500_000)
    assert figures["saved_share_low"] == 0.05
    assert figures["tuned_same_layers_in_float_pesq_gain"] == pytest.approx(paired.value)


def test_what_is_saved_is_computing_time_beside_what_ships() -> None:
    rows = [
        {
            **{"system": name, "text_number": text, "round": turn, "repetition": 0, "wall_s": seconds},
            "compute_s": seconds,
        }
        for text in range(5)
        for turn in range(3)
        for name, seconds in ((judged.SHIPS, 1.0 + 0.1 * turn), (judged.TOGETHER, 0.9 * (1.0 + 0.1 * turn)))
    ]
    found = judged.saving(pd.DataFrame(rows))
    assert found.value == pytest.approx(0.1)
    assert found.low <= found.value <= found.high
