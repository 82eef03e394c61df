"""Fine-tunes the integers of blocks that run in parallel, group by group through the vocoder.

A *group* is three residual blocks whose outputs are averaged; the vocoder has two. Each layer first gets
better ranges for its inputs and is rounded by itself (`tuning.block`). From there, all integers of a group
are trained together (`straight_through`), on what the vocoder on integers gives them and towards what the
float vocoder gives. The second group is trained on what the first one gives after its training, so that it
can make up for errors of the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs.quantise import QuantisedLayer
from kokoro_lab.graphs.recipes import exclusions
from kokoro_lab.lab.research.parallel_blocks import Integers, Layers
from kokoro_lab.lab.research.recorded_group import EACH, MOMENTS_EVERY, Group, recorded
from kokoro_lab.lab.research.straight_through import RATE, StraightThrough
from kokoro_lab.lab.research.vocoder_block import error
from kokoro_lab.lab.results import Check, NegativeControl
from kokoro_lab.lab.tuning import block as alone
from kokoro_lab.lab.tuning.block import BEST, SHIPPED
from kokoro_lab.lab.tuning.comparison import Spoken
from kokoro_lab.lab.tuning.precision import layers_in_float
from kokoro_lab.lab.tuning.rounding import Moments
from kokoro_lab.metrics.intervals import Estimate, paired_ratio

TOGETHER = "together"
BLOCKS_DB, INTEGERS_DB, LEAST_GAIN_DB = -50.0, -40.0, -0.1
"""Checks: the greatest error of the blocks in NumPy in float and on integers, against ONNX Runtime; and the
least gain of training on held-out texts, in dB. Below 0, because what training gains is a finding: it need
only not harm, and a training towards wrong outputs must."""


@dataclass(frozen=True, slots=True, eq=False)
class Tuned:
    """A group with all that was tried on it.

    Parameters
    ----------
    table : pandas.DataFrame
        The rows of `block.attempts`.
    rounded : mapping of str to mapping
        Method → layer → its integers, each layer rounded by itself.
    everywhere : StraightThrough
        The training with all convolutions of the group on integers.
    as_shipped : StraightThrough
        The training with those convolutions in float that `int8` keeps in float.
    fitted_on, unseen : mapping of str to Moments
        The moments of each layer's inputs, on the texts of the fit and on held-out ones.
    """

    group: Group
    table: pd.DataFrame
    rounded: Mapping[str, Layers]
    everywhere: StraightThrough
    as_shipped: StraightThrough
    fitted_on: Mapping[str, Moments]
    unseen: Mapping[str, Moments]


def tuned(
    groups: Sequence[Sequence[str]],
    fit: Sequence[Spoken],
    held_out: Sequence[Spoken],
    steps: int,
    config: EngineConfig,
) -> list[Tuned]:
    """Tune one group after the other, each on what the tuned groups before it give.

    Parameters
    ----------
    groups : sequence of sequence of str
        The names of the blocks of each group, such as "resblocks.3".
    steps : int
        Steps of each training.
    """
    found: list[Tuned] = []
    for blocks in groups:
        before = integers_of([each.everywhere for each in found])
        group = recorded(blocks, before, fit, held_out, config)
        fitted_on, unseen = (
            group.moments(group.crops[::MOMENTS_EVERY]),
            group.moments(group.held_out[::MOMENTS_EVERY]),
        )
        table, rounded = alone.attempts(group.layers, fitted_on, unseen)
        kept = [name for name in layers_in_float(exclusions()["int8"]) if name in group.layers]
        runs = []
        for in_float in ([], kept) if kept else ([],):
            start = group.with_layers(rounded[BEST], in_float)
            run = StraightThrough(start, group.crops)
            run.run(steps)
            runs.append(run)
        found.append(Tuned(group, table, rounded, runs[0], runs[-1], fitted_on, unseen))
    return found


def integers_of(runs: Sequence[StraightThrough]) -> dict[str, QuantisedLayer]:
    """The best integers of several trainings."""
    return {name: layer for run in runs for name, layer in run.best.layers.items()}


def layer_table(found: Sequence[Tuned]) -> pd.DataFrame:
    """The rows of `block.attempts` of all groups."""
    return pd.concat([each.table for each in found], ignore_index=True)


def output_table(found: Sequence[Tuned]) -> pd.DataFrame:
    """The error of each group's mean output with all of its convolutions on integers, in dB, as the mean of
    the held-out crops: a row for each way to find the integers. And by how many dB it is lower than with
    integers that were each rounded by itself (`BEST`), with its 95 % interval over segments."""
    rows = []
    for each in found:
        group = each.group
        ways = {SHIPPED: group.plain, BEST: each.everywhere.start, TOGETHER: each.everywhere.best}
        errors = {way: _errors(group, integers) for way, integers in ways.items()}
        for way, own in errors.items():
            gain = _gain_db(errors[BEST], own)
            row = {"group": _name(group), "way": way, "error_db": float(np.mean(10 * np.log10(own)))}
            rows.append(row | {"gain_db": gain.value, "gain_low": gain.low, "gain_high": gain.high})
    return pd.DataFrame(rows)


def history(found: Sequence[Tuned]) -> pd.DataFrame:
    """How the error on the crops that judge changed in each training."""
    return pd.concat(
        [
            run.history.assign(group=_name(each.group), layers_in_float=_in_float(run))
            for each in found
            for run in dict.fromkeys((each.everywhere, each.as_shipped))
        ],
        ignore_index=True,
    )


def checks_of(found: Sequence[Tuned], outputs: pd.DataFrame) -> list[Check]:
    """The checks: NumPy computes what ONNX Runtime computes, in float and on integers; rounding with feedback
    gains at each layer; and training harms no group's output (`outputs` is the `output_table`)."""
    return [
        Check("blocks_in_numpy_error_db", max(each.group.blocks_db for each in found), high=BLOCKS_DB),
        Check("integers_in_numpy_error_db", max(each.group.integers_db for each in found), high=INTEGERS_DB),
        *alone.checks_of(layer_table(found)),
        Check("training_gain_db", float(outputs.gain_db[outputs.way == TOGETHER].min()), low=LEAST_GAIN_DB),
    ]


def controls(last: Tuned, steps: int, rate: float = RATE) -> list[NegativeControl]:
    """The controls: layers that are fitted to the inputs of other channels, and integers that are trained
    towards the outputs of other channels, must not pass."""
    group, first = last.group, last.group.plain.names[0]
    fitted_on, unseen = ({name: some[name] for name in first} for some in (last.fitted_on, last.unseen))
    astray = alone.controls({name: group.layers[name] for name in first}, fitted_on, unseen)
    swapped = [replace(c, y=c.x + np.roll(c.y - c.x, 1, axis=0)) for c in group.crops]
    run = StraightThrough(last.everywhere.start, swapped)
    run.run(steps, rate)
    gained = _gain_db(_errors(group, run.start), _errors(group, run.best))
    caught = gained.value < LEAST_GAIN_DB
    return [*astray, NegativeControl("trained on the outputs of other channels", caught=caught)]


def figures_of(found: Sequence[Tuned], outputs: pd.DataFrame) -> dict[str, float]:
    """The figures of the trainings that a result keeps: for each group, the error with each way to find the
    integers and the gain of training, in dB, from the `output_table`; and the CPU time of all trainings."""
    figures: dict[str, float] = {}
    for number, (_, own) in enumerate(outputs.groupby("group", sort=False)):
        for row in own.to_dict("records"):
            figures[f"group_{number}_{row['way']}_error_db"] = row["error_db"]
        figures |= {
            f"group_{number}_training_{end}": row[end] for end in ("gain_db", "gain_low", "gain_high")
        }
    trainings = {run for each in found for run in (each.everywhere, each.as_shipped)}
    return figures | {"training_compute_s": sum(run.compute_s for run in trainings)}


def shipped_bytes(found: Sequence[Tuned]) -> int:
    """How many bytes the package would have to ship, so that a user's machine has the tuned integers: besides
    their differences from the nearest ones, a step and a zero for each input channel."""
    return sum(
        alone.difference_bytes(layer.weights, each.rounded[SHIPPED][name].weights) + 5 * len(layer.step)
        for each in found
        for name, layer in each.everywhere.best.layers.items()
    )


def _name(group: Group) -> str:
    return ", ".join(names[0].split("/")[-3] for names in group.plain.names)


def _in_float(run: StraightThrough) -> int:
    return sum(map(len, run.start.names)) - len(run.start.layers)


def _errors(group: Group, integers: Integers) -> list[float]:
    """The error of each held-out crop."""
    blocks = integers.rounded(integers.latent)
    return [error(blocks, [crop]) for crop in group.held_out]


def _gain_db(before: Sequence[float], after: Sequence[float]) -> Estimate:
    """By how many dB the crops' errors fall, with its 95 % interval over segments."""
    ratio = paired_ratio(after, before, [place // EACH for place in range(len(after))])
    with np.errstate(divide="ignore"):
        value, low, high = (float(10 * np.log10(end)) for end in (ratio.value, ratio.low, ratio.high))
    return Estimate(value, low, high, ratio.units)
