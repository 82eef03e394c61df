"""Students of a block: how their errors go on, and what a wrong training looks like."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pandas as pd
import pytest

from kokoro_lab.lab.research import distillation, growth
from kokoro_lab.lab.research.block_recorder import BlockRecorder
from kokoro_lab.lab.research.block_training import Training
from kokoro_lab.lab.research.distillation import BARE, CLOSED, TRAINED, Lesson
from kokoro_lab.lab.research.growth import Growth
from kokoro_lab.lab.research.residual_steps import Step
from kokoro_lab.metrics.intervals import Estimate
from tests.lab.research.test_block_training import CHANNELS, block, clock, crops  # noqa: F401


def history(exponent: float, noise: float = 0.0) -> pd.DataFrame:
    seconds = np.arange(1, 13) * 10.0
    wrong = 0.5 * seconds**exponent * 10 ** (noise * np.random.default_rng(0).normal(size=12))
    return pd.DataFrame({"compute_s": seconds, "error_ratio": wrong, "error_db": 10 * np.log10(wrong)})


def test_a_power_law_is_continued() -> None:
    found = Growth.of(history(-0.5)).at(1e4)
    assert found.value == pytest.approx(0.005)
    assert found.low == pytest.approx(found.high, rel=1e-3)
    uncertain = Growth.of(history(-0.5, 0.02)).at(1e4)
    assert uncertain.low < 0.005 < uncertain.high
    assert uncertain.high / uncertain.low > 1.2


def test_a_line_through_too_few_points_is_refused() -> None:
    with pytest.raises(ValueError, match="a line needs 4 points, but training was judged 3 times"):
        Growth.of(history(-0.5).tail(3))


def test_a_loss_follows_its_error() -> None:
    assert growth.loss_at(np.array([0.1, 0.01]), np.array([1.0, 0.1]), 0.001) == pytest.approx(0.01)


@pytest.fixture
def lesson() -> Lesson:
    teacher = block(5, 2)
    shapes = [np.zeros((CHANNELS, CHANNELS, 5), np.float32)] * 2
    steps = [Step(f"/generator/resblocks.3/{k}", f"first{k}", f"second{k}", *shapes, 1) for k in range(3)]
    recorder = cast(BlockRecorder, SimpleNamespace(teacher=teacher, steps=[steps]))
    made = crops(teacher, 9)
    return Lesson(recorder, made[:6], made[6:])


@pytest.mark.usefixtures("clock")
def test_a_student_is_trained_and_a_wrong_training_is_caught(lesson: Lesson, tmp_path: Path) -> None:
    before = {"a": distillation.students(lesson, 3)}
    path = tmp_path / "kept" / "a.npz"
    run = distillation.trained(lesson, before["a"][CLOSED], 0.6, path)
    assert path.exists()
    again = distillation.trained(lesson, before["a"][CLOSED], 0.6, path)
    assert again.steps == run.steps, "continued, and its time is used"
    made = distillation.made_of(before, {"a": run})
    table = distillation.errors({"a": lesson}, made)
    bare, closed, trained = (table[f"{way}, dB"].item() for way in (BARE, CLOSED, TRAINED))
    assert trained < closed < bare
    exact, gained = distillation.checks_of({"a": lesson}, table)
    assert exact.passed
    assert gained.value == pytest.approx(closed - trained)
    curve = pd.DataFrame({"within": [False]}, index=[BARE])
    found = distillation.controls(lesson, before["a"][CLOSED], 0.3, curve)
    assert [control.caught for control in found] == [True, True]
    cuts = distillation.cuts_of({"a": lesson}, made[TRAINED])
    assert list(cuts) == [f"/generator/resblocks.3/{k}" for k in range(3)]
    assert next(iter(cuts.values()))[1].second.shape == (CHANNELS, CHANNELS, 3)  # type: ignore[union-attr]
    assert distillation.operations_per_s(run) > 0
    assert len(lesson.part(0.5).crops) == 3
    told = distillation.told_of({"a": lesson}, made, run, Estimate(4.5, 4.4, 4.6, 9))
    assert told["gain_db"].value == pytest.approx(closed - trained, abs=0.3)
    assert told["data_gain_db"].value == 0, "the same training"
    gained, _, day = distillation.remarks(told)
    assert "held-out texts, which also chose the block" in gained
    assert day.startswith("a GPU day for each block ")


def test_what_a_longer_training_would_reach_is_foretold() -> None:
    told = history(-0.5)
    first = pd.DataFrame({"compute_s": [0.0], "error_ratio": [0.5], "error_db": [-3.0]})
    run = cast(
        Training, SimpleNamespace(history=pd.concat([first, told], ignore_index=True), compute_s=120.0)
    )
    curve = pd.DataFrame({"pesq_mean": [1.2, 3.6, 4.3]}, index=[BARE, CLOSED, TRAINED])
    wrong = {f"{way}, dB": [error] for way, error in ((BARE, 2.0), (CLOSED, -3.0), (TRAINED, -12.0))}
    table = pd.DataFrame(wrong, index=["a"])
    pesq = distillation.foretold({"a": run}, 1e5, curve, table)
    assert 4.3 < pesq.low <= pesq.value <= pesq.high < 4.65
    lines = distillation.lines({"a": run}, 1e5)
    assert lines.error_db.is_monotonic_decreasing
    assert lines.compute_s.max() == pytest.approx(1e5)
    figures = distillation.figures_of(table, 4e10, 1e5, {"a": run}, {"day_pesq": pesq})
    assert figures["a_trained_error_db"] == -12
    assert figures["training_gflops"] == 40
    assert figures["day_pesq_low"] == pesq.low
