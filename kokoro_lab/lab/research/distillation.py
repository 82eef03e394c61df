"""Students for the vocoder's blocks that cost most: blocks with fewer taps, trained to give the same output.

Each block is trained by itself, so several machines can train several blocks at once. `growth` continues the
curves of error over training time.

A *block* is a group of layers with one name: six convolutions in three residual steps. A *crop* is a short
part of the signals at its input and output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import geometric_mean

import numpy as np
import pandas as pd

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.research import growth
from kokoro_lab.lab.research.block_recorder import BlockRecorder
from kokoro_lab.lab.research.block_training import Training
from kokoro_lab.lab.research.growth import Growth
from kokoro_lab.lab.research.residual_steps import Cuts
from kokoro_lab.lab.research.vocoder_block import (
    CROP,
    MARGIN,
    Block,
    Crop,
    error,
    fitted,
    middle,
)
from kokoro_lab.lab.results import Check, NegativeControl
from kokoro_lab.lab.tuning.comparison import Spoken
from kokoro_lab.metrics.intervals import Estimate, paired_ratio
from kokoro_lab.metrics.perceptual import PESQ_CEILING

BARE, CLOSED, TRAINED = "middle taps alone", "closed form", "trained"
LEAST_GAIN_DB, TEACHER_DB = 0.2, -50.0
EACH, LESS_DATA = 3, 0.25
"""How many crops, of 0.2 to 1.3 s, are taken from each segment, and the share of them that the training with
less data gets."""
JUDGEMENTS = 12
"""How often a training is judged on held-out texts."""


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """What a student learns a block from: the block as it ships (the teacher), and crops of the signals that
    enter and leave it, some for training and some held out."""

    recorder: BlockRecorder
    crops: list[Crop]
    held_out: list[Crop]

    @property
    def teacher(self) -> Block:
        return self.recorder.teacher

    def part(self, share: float) -> Lesson:
        """A lesson for the same block with a share of its training crops, taken from all texts."""
        return replace(self, crops=self.crops[:: round(1 / share)])


def lessons(
    blocks: Sequence[str], fit: Sequence[Spoken], held_out: Sequence[Spoken], config: EngineConfig
) -> dict[str, Lesson]:
    """Record `EACH` crops of every segment, for every block."""
    found = {}
    for block in tqdm(blocks, desc="recorded", disable=None):
        recorder = BlockRecorder(block, config)
        found[block] = Lesson(recorder, recorder.crops(fit, EACH), recorder.crops(held_out, EACH, seed=1))
    return found


def students(lesson: Lesson, taps: int) -> dict[str, Block]:
    """The block with fewer taps before any training: with only its middle taps (`BARE`), and with weights
    fitted by least squares (`CLOSED`)."""
    teacher = lesson.teacher
    bare = replace(teacher, weights=[middle(weight, taps) for weight in teacher.weights])
    return {BARE: bare, CLOSED: fitted(teacher, lesson.crops, taps)}


def trained(lesson: Lesson, student: Block, compute_s: float, checkpoint: Path | None = None) -> Training:
    """Train a student until `compute_s` seconds of CPU time are used. If `checkpoint` exists, training
    continues from it; afterwards it is written anew."""
    run = Training(student, lesson.crops, lesson.held_out)
    if checkpoint is not None and checkpoint.exists():
        run.restore(checkpoint)
    run.run(compute_s, compute_s / JUDGEMENTS)
    if checkpoint is not None:
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        run.save(checkpoint)
    return run


def made_of(
    before: Mapping[str, Mapping[str, Block]], runs: Mapping[str, Training]
) -> dict[str, dict[str, Block]]:
    """Way → block → student: the students that `students` returned for each block, and the trained ones."""
    found = {way: {block: ways[way] for block, ways in before.items()} for way in (BARE, CLOSED)}
    return found | {TRAINED: {block: run.block for block, run in runs.items()}}


def operations_per_s(run: Training) -> float:
    """Multiplications and additions in a second of a training's CPU time. A step of training takes three
    products for each weight and column (one forward, two backward), and a product is two operations."""
    size = sum(weight.size for weight in run.block.weights)
    return 6.0 * size * (CROP + 2 * MARGIN) * len(run.crops) * run.steps / run.compute_s


def cuts_of(lessons_of: Mapping[str, Lesson], blocks: Mapping[str, Block]) -> Cuts:
    """The cuts (see `residual_steps`) that put all of `blocks` into the model at once."""
    return {
        name: cut
        for block, lesson in lessons_of.items()
        for name, cut in blocks[block].cuts(lesson.teacher, lesson.recorder.steps[0]).items()
    }


def errors(lessons_of: Mapping[str, Lesson], made: Mapping[str, Mapping[str, Block]]) -> pd.DataFrame:
    """The error of every student on held-out texts: a row for each block, a column in dB for each way."""
    return pd.DataFrame(
        {
            block: {
                f"{way}, dB": 10 * np.log10(error(blocks[block], lesson.held_out))
                for way, blocks in made.items()
            }
            for block, lesson in lessons_of.items()
        }
    ).T.rename_axis("block")


def lines(runs: Mapping[str, Training], until_s: float) -> pd.DataFrame:
    """The error along the fitted line (`Growth`) of every training, up to `until_s` seconds of training: rows
    for `plots.growth`."""
    rows = []
    for name, run in runs.items():
        line = Growth.of(run.history)
        for seconds in np.geomspace(run.compute_s * growth.LEFT_OUT, until_s, 20):
            found = line.at(float(seconds))
            ends = {"error_db": found.value, "low_db": found.low, "high_db": found.high}
            row = {name: float(10 * np.log10(end)) for name, end in ends.items()}
            rows.append({"name": name, "compute_s": float(seconds)} | row)
    return pd.DataFrame(rows)


def gain_db(lesson: Lesson, before: Block, after: Block) -> Estimate:
    """By how many dB the error on held-out texts is lower with `after` than with `before`, with its 95 %
    interval over segments."""
    now, then = ([error(block, [crop]) for crop in lesson.held_out] for block in (after, before))
    ratio = paired_ratio(now, then, [place // EACH for place in range(len(now))])
    with np.errstate(divide="ignore"):
        value, low, high = (float(10 * np.log10(end)) for end in (ratio.value, ratio.low, ratio.high))
    return Estimate(value, low, high, ratio.units)


def foretold(
    runs: Mapping[str, Training], day_s: float, curve: pd.DataFrame, table: pd.DataFrame
) -> Estimate:
    """The PESQ to expect if each block is trained for `day_s` seconds. The errors (`table`) and the PESQ
    (`curve`) of the present students are fitted by a power law. It gives the PESQ for the mean error that the
    blocks should have by then."""
    lines_of = [Growth.of(run.history).at(day_s) for run in runs.values()]
    ways = [BARE, CLOSED, TRAINED]
    losses = PESQ_CEILING - curve.pesq_mean.loc[ways].to_numpy(float)
    wrong = 10 ** (table[[f"{way}, dB" for way in ways]].mean().to_numpy(float) / 10)

    def pesq(wanted: float) -> float:
        return PESQ_CEILING - growth.loss_at(wrong, losses, wanted)

    value, low, high = (
        geometric_mean([getattr(line, end) for line in lines_of]) for end in ("value", "low", "high")
    )
    return Estimate(pesq(value), pesq(high), pesq(low), lines_of[0].units)


def checks_of(lessons_of: Mapping[str, Lesson], table: pd.DataFrame) -> list[Check]:
    """The checks: the block in NumPy computes what the model's block computes, and training lowers the error
    on held-out texts. These also choose which block of a training is kept, so the gain is a little too
    large."""
    wrong = max(10 * np.log10(error(each.teacher, each.held_out)) for each in lessons_of.values())
    gained = float((table[f"{CLOSED}, dB"] - table[f"{TRAINED}, dB"]).min())
    return [
        Check("block_in_numpy_error_db", wrong, high=TEACHER_DB),
        Check("training_gain_db", gained, low=LEAST_GAIN_DB),
    ]


def controls(lesson: Lesson, student: Block, compute_s: float, curve: pd.DataFrame) -> list[NegativeControl]:
    """Controls: a student that is trained on the outputs of other crops must not gain, and students with only
    the middle taps must miss the limits of quality."""
    others = [*lesson.crops[1:], lesson.crops[0]]
    swapped = [replace(crop, y=crop.x + o.y - o.x) for crop, o in zip(lesson.crops, others, strict=True)]
    astray = trained(replace(lesson, crops=swapped), student, compute_s)
    history = astray.history.error_db
    caught = bool(history.iloc[0] - history.iloc[-1] < LEAST_GAIN_DB)
    return [
        NegativeControl("trained on the outputs of other crops", caught),
        NegativeControl(f"{BARE}, not fitted", not bool(curve.loc[BARE].within)),
    ]


def figures_of(
    table: pd.DataFrame,
    speed: float,
    day_s: float,
    runs: Mapping[str, Training],
    told: Mapping[str, Estimate],
) -> dict[str, float]:
    """The figures that a result keeps besides those of the curve. `told` has those that are kept with an
    interval."""
    found = {
        f"{block}_{str(way).replace(', dB', '').replace(' ', '_')}_error_db": float(value)
        for block, row in table.iterrows()
        for way, value in row.items()
    }
    for block, run in runs.items():
        found[f"{block}_day_error_db"] = float(10 * np.log10(Growth.of(run.history).at(day_s).value))
    for name, each in told.items():
        found |= {name: each.value, f"{name}_low": each.low, f"{name}_high": each.high}
    return found | {"training_gflops": speed / 1e9}


def told_of(
    lessons_of: Mapping[str, Lesson],
    made: Mapping[str, Mapping[str, Block]],
    less: Training,
    day_pesq: Estimate,
) -> dict[str, Estimate]:
    """Three figures with their intervals, of the first block: by how many dB training lowers the error that
    the closed form leaves; by how many dB training on all data leaves less error than training on a part of
    the data; and the PESQ to expect after a day's training."""
    block, lesson = next(iter(lessons_of.items()))
    trained = made[TRAINED][block]
    return {
        "gain_db": gain_db(lesson, made[CLOSED][block], trained),
        "data_gain_db": gain_db(lesson, less.block, trained),
        "day_pesq": day_pesq,
    }


def remarks(told: Mapping[str, Estimate]) -> list[str]:
    """Sentences on what training, more data and longer training gain."""
    doublings = np.log2(1 / LESS_DATA)
    return [
        f"training gains {told['gain_db']} dB on the closed form, on held-out texts, which also chose the "
        "block that is kept",
        f"{1 / LESS_DATA:g} times the data gain {told['data_gain_db']} dB, and twice as much again would "
        f"gain {told['data_gain_db'].value / doublings:.1f} dB more if this goes on",
        f"a GPU day for each block would come to PESQ {told['day_pesq']} at best: the line knows nothing of "
        "a floor",
    ]
