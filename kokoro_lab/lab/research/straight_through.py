"""Fine-tunes whole blocks on 8-bit integers: all of a block's weights together, on what the block gives.

Unlike `lab.tuning.rounding`, which fits a layer to its own inputs, the layers of a block can make up for each
other here. Inputs and weights are rounded in the forward pass, and gradients pass through the rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from kokoro_lab.graphs.quantise import Calibration, QuantisedLayer, Range, quantised_weights
from kokoro_lab.lab.research.block_training import Training
from kokoro_lab.lab.research.distillation import JUDGEMENTS, Lesson
from kokoro_lab.lab.research.vocoder_block import Block, error
from kokoro_lab.lab.tuning.block import SHIPPED, summary
from kokoro_lab.lab.tuning.precision import PESQ_MEAN_LOW

STRAIGHT = "straight-through"


def names_of(lesson: Lesson) -> list[str]:
    """The names of a block's convolutions, in the order in which they run."""
    return [name for step in lesson.recorder.steps for name in (step.first, step.second)]


def on_integers(lesson: Lesson, ranges: Mapping[str, Range] | None = None) -> Block:
    """The block as it ships on integers: with the calibrated ranges and the nearest levels."""
    known = Calibration.load() if ranges is None else ranges
    teacher = lesson.teacher
    rounding = tuple(
        QuantisedLayer.of(weight.transpose(1, 2, 0), known[name])
        for name, weight in zip(names_of(lesson), teacher.weights, strict=True)
    )
    return replace(teacher, rounding=rounding)


def tuned(lesson: Lesson, compute_s: float, ranges: Mapping[str, Range] | None = None) -> Training:
    """Train a block on integers, from the nearest levels on."""
    run = Training(on_integers(lesson, ranges), lesson.crops, lesson.held_out)
    run.run(compute_s, compute_s / JUDGEMENTS)
    return run


def integers(lesson: Lesson, block: Block) -> dict[str, QuantisedLayer]:
    """The integers of a block's convolutions, by their names, as `VariantMaker.compare` takes them."""
    assert block.rounding is not None
    found = {}
    for k, (name, layer) in enumerate(zip(names_of(lesson), block.rounding, strict=True)):
        folded = block.weights[k].transpose(1, 2, 0) * layer.step[None, :, None]
        levels, scale = quantised_weights(folded)
        shift = block.biases[k] - lesson.teacher.biases[k]
        found[name] = replace(layer, weights=levels, scale=scale, shift=shift)
    return found


def errors(lessons: Mapping[str, Lesson], runs: Mapping[str, Training]) -> pd.DataFrame:
    """The error of every block on held-out texts, in dB: with the nearest levels, and trained."""
    return pd.DataFrame(
        {
            name: {
                "nearest, dB": 10 * np.log10(error(on_integers(lesson), lesson.held_out)),
                f"{STRAIGHT}, dB": 10 * np.log10(error(runs[name].block, lesson.held_out)),
            }
            for name, lesson in lessons.items()
        }
    ).T.rename_axis("block")


def made_of(lessons: Mapping[str, Lesson], blocks: Mapping[str, Block]) -> dict[str, QuantisedLayer]:
    """The integers of all blocks."""
    return {
        name: layer for key, each in lessons.items() for name, layer in integers(each, blocks[key]).items()
    }


def verdict(heard: pd.DataFrame, blocks: Sequence[str]) -> str:
    """The answer in a sentence: worth it if the trained blocks gain PESQ in all of `int8`, by the whole
    interval, and `int8` is within its limit with them on integers."""
    rows = summary(heard).set_index(["rest", "method"])
    row = rows.loc[("int8", STRAIGHT)]
    limit = PESQ_MEAN_LOW["int8"]
    worth = row.pesq_gain_low > 0 and row.pesq_mean >= limit
    return (
        f"{'worth it' if worth else 'not worth it'}: with {' and '.join(blocks)} on integers, fine-tuned "
        f"straight-through, int8 gains PESQ {row.pesq_gain:.3f} ({row.pesq_gain_low:.3f} to "
        f"{row.pesq_gain_high:.3f}) on the {SHIPPED} levels and has {row.pesq_mean:.3f} ({limit:.2f} is its "
        "limit)"
    )


def both(lessons: Mapping[str, Lesson], runs: Mapping[str, Training]) -> dict[str, dict[str, QuantisedLayer]]:
    """The integers of all blocks, by method: the nearest levels, and trained."""
    nearest = {name: on_integers(lesson) for name, lesson in lessons.items()}
    trained = {name: run.block for name, run in runs.items()}
    return {SHIPPED: made_of(lessons, nearest), STRAIGHT: made_of(lessons, trained)}


def figures_of(table: pd.DataFrame, heard: pd.DataFrame) -> dict[str, float]:
    """What a result keeps: the errors of the blocks, and PESQ with all of them on integers."""
    found = {
        f"{block}_{str(way).replace(', dB', '').replace('-', '_')}_error_db": float(value)
        for block, row in table.iterrows()
        for way, value in row.items()
    }
    rows = summary(heard).set_index(["rest", "method"]).loc[("int8", STRAIGHT)]
    return found | {
        f"blocks_{name}": float(rows[name]) for name in ("pesq_mean", "pesq_gain", "pesq_gain_low")
    }
