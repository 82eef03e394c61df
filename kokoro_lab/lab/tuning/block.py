"""Better integers for convolutions, each by itself: what they gain at the layer's output, and what they cost.

`lab.research.fine_tune` trains the integers of several layers together, starting from these.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from kokoro_lab.graphs.quantise import QuantisedLayer, Range, Values
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.results import Check, NegativeControl
from kokoro_lab.lab.tuning.rounding import METHODS, Matrix, Moments, RoundedLevels, refitted

SHIPPED, BEST = "nearest", "feedback"
WIDTHS = (0.7, 0.8, 0.9, 1.0, 1.2, 1.5)
"""The ranges of input channels that are tried, as multiples of those that ship."""


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """A convolution as it ships with integer weights, and its float weights (channels out, channels in,
    taps)."""

    name: str
    weight: Values
    dilation: int
    quantised: QuantisedLayer

    @property
    def target(self) -> Matrix:
        """The weights in units of the inputs' steps, float64 (channels out, channels in · taps)."""
        folded = self.weight.astype(np.float64) * self.quantised.step[None, :, None]
        return folded.reshape(len(folded), -1)

    def on(self, rounded: RoundedLevels) -> QuantisedLayer:
        """The layer with the integers `rounded`."""
        return replace(
            self.quantised,
            weights=rounded.levels.reshape(self.weight.shape),
            scale=rounded.scale.astype(np.float32),
            shift=rounded.shift.astype(np.float32),
        )


def with_best_ranges(layer: Layer, known: Range, seen: Sequence[Values]) -> Layer:
    """The layer with another range for each input channel: that of `WIDTHS` times the range `known` with
    which rounding and clipping leave the least error of `seen`, the channel's inputs.

    Parameters
    ----------
    known : Range
        The ranges that ship.
    seen : sequence of numpy.ndarray
        float32 (channels in, positions) each.
    """
    tried = [Range(known.low * width, known.high * width) for width in WIDTHS]
    errors = []
    for ranges in tried:
        made = QuantisedLayer.of(layer.weight, ranges)
        errors.append(sum(np.square(made.rounded(v) * made.step[:, None] - v).sum(1) for v in seen))
    best = np.argmin(errors, axis=0)
    low, high = (np.choose(best, [side[end] for side in tried]) for end in (0, 1))
    return replace(layer, quantised=QuantisedLayer.of(layer.weight, Range(low, high)))


def attempts(
    layers: Mapping[str, Layer],
    fitted_on: Mapping[str, Moments],
    held_out: Mapping[str, Moments],
    *,
    methods: Sequence[str] = tuple(METHODS),
) -> tuple[pd.DataFrame, dict[str, dict[str, QuantisedLayer]]]:
    """Round every layer by every method.

    Returns
    -------
    pandas.DataFrame
        One row for each layer and method: fitted_db and held_out_db, the power of the layer's output divided
        by that of its error, in dB, on the texts of the fit and on held-out ones; compute_s; shipped_bytes,
        the bytes that the package would have to ship. Two more "methods" are no integers but limits: "float"
        (the float weights on rounded inputs) and "float_refit" (the best weights on rounded inputs).
    dict
        Method → layer → its integers.
    """
    rows = []
    made: dict[str, dict[str, QuantisedLayer]] = {method: {} for method in methods}
    for name, layer in tqdm(layers.items(), desc="layers", disable=None):
        target, moments, unseen = layer.target, fitted_on[name], held_out[name]
        plain = METHODS[SHIPPED](target, moments)
        for method in methods:
            started = time.process_time()
            found = METHODS[method](target, moments)
            seconds = time.process_time() - started
            made[method][name] = layer.on(found)
            rows.append(
                {"layer": name, "method": method}
                | _ratios(target, found.weights, found.shift, moments, unseen)
                | {
                    "compute_s": seconds,
                    "shipped_bytes": float(_shipped_bytes(method, found, plain, moments)),
                }
            )
        for method, weights in {"float": target, "float_refit": refitted(target, moments)}.items():
            shift = target @ moments.exact_mean - weights @ moments.rounded_mean
            rows.append({"layer": name, "method": method} | _ratios(target, weights, shift, moments, unseen))
    return pd.DataFrame(rows), made


def _ratios(
    target: Matrix, weights: Matrix, shift: Matrix, moments: Moments, unseen: Moments
) -> dict[str, float]:
    return {
        "fitted_db": moments.ratio_db(target, weights, shift),
        "held_out_db": unseen.ratio_db(target, weights, shift),
    }


def _shipped_bytes(method: str, found: RoundedLevels, plain: RoundedLevels, moments: Moments) -> int:
    """How many bytes the package would have to ship, besides the float weights, so that a user's machine
    makes the same integers."""
    if method == SHIPPED:
        return 0
    if method == "separable_feedback":
        channels = len(moments.rounded_mean) // moments.taps
        return channels * (channels + 1) + 4 * moments.taps**2
    if method == "gain_and_bias":
        return 8 * len(found.scale)
    return difference_bytes(found.levels, plain.levels)


def difference_bytes(levels: npt.NDArray[np.int8], plain: npt.NDArray[np.int8]) -> int:
    """How many bytes say how a layer's levels (channels out, ...) differ from the nearest ones, with a scale
    and a shift for each output. Most levels are the nearest or the one beside it, so the difference is
    packed."""
    return 8 * len(levels) + len(zlib.compress((levels - plain).tobytes(), 9))


def by_method(table: pd.DataFrame) -> pd.DataFrame:
    """For each method in the table of `attempts`: means of the ratios over the layers, and sums of time and
    bytes."""
    grouped = table.groupby("method", sort=False)
    means = grouped[["fitted_db", "held_out_db"]].mean()
    return means.join(grouped[["compute_s", "shipped_bytes"]].sum())


def checks_of(table: pd.DataFrame) -> list[Check]:
    """The checks: the best method helps on held-out texts, and no method has less error than `refitted` float
    weights."""
    means = by_method(table)
    gained = means.held_out_db[BEST] - means.held_out_db[SHIPPED]
    beyond = means.fitted_db[list(METHODS)].max() - means.fitted_db["float_refit"]
    return [
        Check("held_out_gain_db", gained, low=0.5),
        Check("beyond_the_limit_db", beyond, high=0.05),
    ]


def controls(
    layers: Mapping[str, Layer], fitted_on: Mapping[str, Moments], held_out: Mapping[str, Moments]
) -> list[NegativeControl]:
    """The control: a fit on the inputs of other channels, which must not help."""
    astray = {name: _shuffled(moments) for name, moments in fitted_on.items()}
    table, _ = attempts(layers, astray, held_out, methods=(SHIPPED, BEST))
    gained = by_method(table).held_out_db
    caught = bool(gained[BEST] - gained[SHIPPED] < 0.5)
    return [NegativeControl("fitted on the inputs of other channels", caught=caught)]


def _shuffled(moments: Moments) -> Moments:
    order = np.random.default_rng(0).permutation(len(moments.exact_mean))
    square = np.ix_(order, order)
    return replace(
        moments,
        exact_mean=moments.exact_mean[order],
        rounded_mean=moments.rounded_mean[order],
        exact=moments.exact[square],
        cross=moments.cross[square],
        rounded=moments.rounded[square],
    )
