"""Structured pruning of residual steps, repaired in closed form, and where it costs least.

A step's output is linear in what enters its last convolution. So second moments of recorded activations give
the best weights for any subset of channels, and the error that remains, without a run of the model. What is
left of a step is its *level*: all of it, a share of its inner channels, one convolution of one tap instead of
two convolutions, or only the mean of its output, if the step is removed. How well an error of a step is heard
is measured once for each step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.research.cut_sounds import Sounds
from kokoro_lab.lab.research.regression import Matrix, Regression, StepMoments
from kokoro_lab.lab.research.residual_steps import Channels, Cut, Cuts, Step, whole
from kokoro_lab.lab.results import Check, NegativeControl
from kokoro_lab.lab.tuning.rounding import RIDGE
from kokoro_lab.metrics.perceptual import signal_to_difference_db

KEPT = (0.875, 0.75, 0.625, 0.5, 0.375, 0.25)
"""Shares of a step's inner channels that may be kept; each is a level."""
GROUP = 16
"""Channels are kept in multiples of this: our operators compute 8 outputs and read 4 inputs at a time."""
ONE_TAP, REMOVED, PROBE = "one tap", "removed", "kept 0.5"


@dataclass(frozen=True, slots=True, eq=False)
class Option:
    """A step at one level: the weights that it then has, what it computes, and its error.

    Parameters
    ----------
    level : str
        Such as "kept 0.5".
    products : float
        Multiplications for a second of speech.
    error, unrepaired : float
        Squared error of the step's output, divided by the output's variance, on held-out texts: with the
        fitted weights, and without a fit.
    """

    step: Step
    level: str
    cut: Cut
    products: float
    error: float
    unrepaired: float


def options(step: Step, fit: StepMoments, held_out: StepMoments) -> list[Option]:
    """The step at every level, from the whole step to none of it."""
    found = [Option(step, "all", whole(step), step.products, 0.0, 0.0)]
    shipped = step.second_weight.reshape(len(step.second_weight), -1).astype(np.float64)
    kept = np.arange(step.second_weight.shape[1])
    for share in KEPT:
        count = max(GROUP, round(share * step.second_weight.shape[1] / GROUP) * GROUP)
        if count < len(kept):
            kept = best_channels(shipped, fit.inner, kept, count)
            found.append(_kept(step, f"kept {share}", kept, fit.inner, held_out.inner))
    nothing = np.zeros(len(shipped), np.float32)
    weights = fit.outer.fitted(np.zeros_like(fit.outer.cross))
    shift = fit.outer.shift(weights)
    cut = Cut(weights[:, :, None].astype(np.float32), shift)
    # No weights ship for the one tap: without a repair, the step gives only its bias
    errors = held_out.outer.error(weights, shift), held_out.outer.error(0 * weights, nothing)
    found.append(Option(step, ONE_TAP, cut, cut.products(step), *errors))
    none = np.zeros_like(shipped)
    shift, unseen = fit.inner.shift(none), held_out.inner
    cut = Cut(None, shift)
    found.append(Option(step, REMOVED, cut, 0.0, unseen.error(none, shift), unseen.error(none, nothing)))
    return found


def _kept(step: Step, level: str, kept: Channels, fit: Regression, held_out: Regression) -> Option:
    chosen = inputs_of(kept, fit.taps)
    weight = step.second_weight[:, kept]
    plain = weight.reshape(len(weight), -1).astype(np.float64)
    part, unseen = fit.of(chosen), held_out.of(chosen)
    weights = part.fitted(plain)
    shift = part.shift(weights)
    cut = Cut(weights.reshape(weight.shape).astype(np.float32), shift, kept)
    errors = unseen.error(weights, shift), unseen.error(plain, np.zeros_like(shift))
    return Option(step, level, cut, cut.products(step), *errors)


def inputs_of(kept: Channels, taps: int) -> npt.NDArray[np.int64]:
    """The indices of the inputs that belong to the channels `kept`, `taps` for each."""
    return (kept[:, None] * taps + np.arange(taps)).reshape(-1)


def best_channels(shipped: Matrix, fit: Regression, kept: Channels, count: int) -> Channels:
    """Those `count` of the `kept` channels without which the error would be largest, even with the best
    weights for the others.

    Removing a channel, with the best weights for the others, adds the error wᵀ·B⁻¹·w: w are the channel's
    weights, and B is its block of rows and columns in the inverse of the covariance (Hassibi & Stork 1993,
    who remove one weight instead of a channel).
    """
    chosen = inputs_of(kept, fit.taps)
    covariance = fit.inputs[np.ix_(chosen, chosen)].astype(np.float64)
    covariance[np.diag_indices_from(covariance)] += RIDGE * np.trace(covariance) / len(covariance)
    inverse = np.linalg.inv(covariance).reshape(len(kept), fit.taps, len(kept), fit.taps)
    own = np.arange(len(kept))
    left = np.linalg.inv(inverse[own, :, own])
    weights = shipped.reshape(len(shipped), -1, fit.taps)[:, kept]
    losses = np.einsum("ock,ckl,ocl->c", weights, left, weights, optimize=True)
    return np.sort(kept[np.argsort(-losses, kind="stable")[:count]])


def sensitivity(every: Mapping[str, Sequence[Option]], sounds: Sounds) -> dict[str, float]:
    """How well an error of each step is heard: the squared distance (`Sounds.distance`) of the sound with the
    step at the level `PROBE`, divided by the step's error at that level. The squared distances of small
    errors in several steps add up."""
    found = {}
    for name, levels in tqdm(every.items(), desc="steps", disable=None):
        probe = next(option for option in levels if option.level == PROBE)
        found[name] = sounds.distance({name: (probe.step, probe.cut)}) / max(probe.error, 1e-9)
    return found


Plan = dict[str, Option]
"""Name of a step → the step at the level that it takes."""


def plan(every: Mapping[str, Sequence[Option]], heard: Mapping[str, float], share: float) -> Plan:
    """The levels that leave out `share` of all multiplications and are expected to be heard least.

    Every step takes the level with the least sum of expected distance and price · products. The price is the
    lowest one at which enough is left out.
    """
    wanted = share * sum(levels[0].products for levels in every.values())

    def chosen(price: float) -> Plan:
        return {
            name: min(levels, key=lambda o: (heard[o.step.name] * o.error + price * o.products, o.products))
            for name, levels in every.items()
        }

    def left_out(found: Plan) -> float:
        return sum(option.step.products - option.products for option in found.values())

    low, high = 0.0, 1.0
    while left_out(chosen(high)) < wanted and high < 1e12:
        low, high = high, 10 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if left_out(chosen(middle)) >= wanted else (middle, high)
    return chosen(high)


def plans(
    every: Mapping[str, Sequence[Option]], heard: Mapping[str, float], shares: Sequence[float]
) -> dict[str, Plan]:
    """The plan for each of `shares`, with the share in percent as its name."""
    return {f"{100 * share:g} %": plan(every, heard, share) for share in shares}


def plans_table(several: Mapping[str, Plan]) -> pd.DataFrame:
    """The level of every step, a column for each plan."""
    found = {name: {each: o.level for each, o in levels.items()} for name, levels in several.items()}
    return pd.DataFrame(found).rename(index=short).rename_axis("step")


def short(step: str) -> str:
    """The name of a step without what all names begin with."""
    return step.removeprefix("/decoder/decoder/").removeprefix("generator/")


def cuts_of(found: Plan) -> Cuts:
    """The cuts of a plan; without the steps that keep everything."""
    return {name: (option.step, option.cut) for name, option in found.items() if option.level != "all"}


def at_random(steps: Mapping[str, Step], share: float) -> Cuts:
    """Cuts that keep a random `share` of every step's inner channels, with the weights that ship."""
    random = np.random.default_rng(0)
    cuts = {}
    for name, step in steps.items():
        outputs, channels, _ = step.second_weight.shape
        count = max(GROUP, round(share * channels / GROUP) * GROUP)
        kept = np.sort(random.permutation(channels)[:count])
        cuts[name] = (step, Cut(step.second_weight[:, kept], np.zeros(outputs, np.float32), kept))
    return cuts


def table_of(every: Mapping[str, Sequence[Option]], heard: Mapping[str, float]) -> pd.DataFrame:
    """Every level of every step: step, level, saved_percent of the products of all steps, error_db and
    unrepaired_db on held-out texts, and distance_db, the expected distance of the sound."""
    total = sum(levels[0].products for levels in every.values())
    rows = [
        {
            "step": short(name),
            "level": option.level,
            "saved_percent": 100 * (option.step.products - option.products) / total,
            "error_db": 10 * np.log10(max(option.error, 1e-12)),
            "unrepaired_db": 10 * np.log10(max(option.unrepaired, 1e-12)),
            "distance_db": float(np.sqrt(heard[name] * max(option.error, 0))),
        }
        for name, levels in every.items()
        for option in levels
        if option.level != "all"
    ]
    return pd.DataFrame(rows)


# ------------------------------------------------------------------------------------------- judgement

LEAST_SNR_DB, LEAST_GAIN_DB = 80.0, 1.0
AT_RANDOM = "half at random, not repaired"


def reordered(steps: Mapping[str, Step]) -> Cuts:
    """Cuts that remove nothing, and only put the inner channels of every step in another order. They must
    change no sample."""
    cuts = {}
    for name, step in steps.items():
        kept = np.arange(step.second_weight.shape[1])[::-1].copy()
        cuts[name] = (step, replace(whole(step), second=step.second_weight[:, kept], kept=kept))
    return cuts


def least_snr_db(sounds: Sounds, cuts: Cuts) -> float:
    """The SNR of segments with cuts against the same segments without, for the segment where it is least."""
    pairs = zip(sounds.plain, sounds.of(cuts), strict=True)
    return float(min(signal_to_difference_db(*pair) for pair in pairs))


def gain_db(table: pd.DataFrame) -> float:
    """By how many dB the repair lowers the error on held-out texts if half of the channels are left: the mean
    over the steps."""
    half = table[table.level == PROBE]
    return float((half.unrepaired_db - half.error_db).mean())


def checks_of(snr_db: float, table: pd.DataFrame) -> list[Check]:
    """The checks: rewriting with all channels (`reordered`) changes nothing, and a repair gains on texts that
    it never saw."""
    return [
        Check("reordered_snr_db", snr_db, low=LEAST_SNR_DB),
        Check("repair_gain_db", gain_db(table), low=LEAST_GAIN_DB),
    ]


def controls(
    steps: Mapping[str, Step],
    fit: Mapping[str, StepMoments],
    held_out: Mapping[str, StepMoments],
    curve: pd.DataFrame,
) -> list[NegativeControl]:
    """Controls: a repair that is fitted on the inputs of other channels must gain nothing, and half of the
    channels, taken at random and not repaired, must miss the limits of quality."""
    gains = []
    for name, step in steps.items():
        order = np.random.default_rng(0).permutation(len(fit[name].inner.mean))
        astray = fit[name].inner.of(order)
        kept = np.arange(0, step.second_weight.shape[1], 2)
        option = _kept(step, PROBE, kept, astray, held_out[name].inner)
        gains.append(10 * np.log10(option.unrepaired / option.error))
    return [
        NegativeControl("fitted on the inputs of other channels", bool(np.mean(gains) < LEAST_GAIN_DB)),
        NegativeControl(AT_RANDOM, not bool(curve.loc[AT_RANDOM].within)),
    ]
