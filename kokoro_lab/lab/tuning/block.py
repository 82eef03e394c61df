"""An experiment: better integers for one block of the model, what they gain, and what they cost.

A block is all convolutions whose names match a pattern, such as `*/resblocks.5/*`. The gain is measured at
the outputs of these layers and in the sound.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np
import pandas as pd

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ParameterError
from kokoro_lab.graphs.quantise import Calibration, QuantisedLayer, Values
from kokoro_lab.graphs.recipes import exclusions
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.results import Check, NegativeControl
from kokoro_lab.lab.tuning.comparison import Spoken, mean_interval
from kokoro_lab.lab.tuning.precision import VariantMaker, layers_in_float
from kokoro_lab.lab.tuning.reporter import ActivationReporter, convolution_weights
from kokoro_lab.lab.tuning.rounding import METHODS, Matrix, Moments, MomentSum, RoundedLevels, refitted

SHIPPED, BEST = "nearest", "feedback"


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


def layers_of(pattern: str, config: EngineConfig) -> dict[str, Layer]:
    """The convolutions whose names match `pattern`, by name.

    Raises
    ------
    ParameterError
        No convolution's name matches.
    """
    ranges = Calibration.load()
    found = {
        name: Layer(name, weight, dilation, QuantisedLayer.of(weight, ranges[name]))
        for name, (weight, dilation) in convolution_weights(config).items()
        if fnmatchcase(name, pattern)
    }
    if not found:
        raise ParameterError(
            f"No convolution is called {pattern!r}.",
            field="block",
            value=pattern,
            allowed="a pattern such as */resblocks.5/*",
        )
    return found


def moments_of(
    layers: Mapping[str, Layer], segments: Iterable[Spoken], config: EngineConfig
) -> dict[str, Moments]:
    """The moments of each layer's input while the float model speaks the segments."""
    report = ActivationReporter(config)
    sums = {name: MomentSum(layer.quantised, layer.dilation) for name, layer in layers.items()}
    for token_ids, style in segments:
        for name, values in report(token_ids, style, 1.0):
            if name in sums:
                sums[name].add(values)
    return {name: total.moments() for name, total in sums.items()}


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
    outputs = 8 * len(found.scale)
    if method == "gain_and_bias":
        return outputs
    # Most levels are the nearest or the one beside it: the difference is packed
    return outputs + len(zlib.compress((found.levels - plain.levels).tobytes(), 9))


def heard(
    layers: Sequence[str],
    made: Mapping[str, Mapping[str, QuantisedLayer]],
    lines: Sequence[str],
    voices: Sequence[str],
    config: EngineConfig,
) -> pd.DataFrame:
    """Compare the sound of every method with fp32 twice: with the block on integers and all other layers in
    float; and with the shipped `int8` in which the whole block has the method's integers.

    Returns
    -------
    pandas.DataFrame
        The rows of `precision.compare`, with columns method and rest (how the other layers run, "float" or
        "int8").
    """
    maker = VariantMaker(replace(config, variant="int8"))
    shipped = layers_in_float(exclusions()["int8"])
    others = [name for name in Calibration.load() if name not in set(layers)]
    kept = {"float": others, "int8": [name for name in shipped if name not in set(layers)]}
    tables = []
    for method, integers in made.items():
        for rest, keep in kept.items():
            table = maker.compare(lines, voices, keep=keep, adjusted=integers)
            tables.append(table.assign(method=method, rest=rest))
    return pd.concat(tables, ignore_index=True)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """PESQ and STOI of each method from the table of `heard`, and by how much PESQ is higher than with the
    nearest levels, segment by segment."""
    rows = []
    shipped = table[table.method == SHIPPED]
    for (rest, method), part in table.groupby(["rest", "method"], sort=False):
        base = shipped[shipped.rest == rest]
        gain = part.assign(gained=part.pesq.to_numpy() - base.pesq.to_numpy())
        low, high = mean_interval(gain, "gained")
        rows.append(
            {
                "rest": rest,
                "method": method,
                "pesq_mean": part.pesq.mean(),
                "pesq_p5": part.pesq.quantile(0.05),
                "stoi_mean": part.stoi.mean(),
                "pesq_gain": gain.gained.mean(),
                "pesq_gain_low": low,
                "pesq_gain_high": high,
            }
        )
    return pd.DataFrame(rows)


def whole_run(
    table: pd.DataFrame, layers: Mapping[str, Layer], moments: Mapping[str, Moments], config: EngineConfig
) -> pd.DataFrame:
    """What better integers for every convolution of the model would cost, estimated from those of the block.

    Returns
    -------
    pandas.DataFrame
        A row for each method: moments_min and rounding_min of CPU time (moments grow with the square of a
        layer's inputs, rounding with the cube), shipped_mb (grows with the weights).
    """
    every = [weight.shape for weight, _ in convolution_weights(config).values()]
    block = [layer.weight.shape for layer in layers.values()]

    def times_as_much(power: int) -> float:
        inputs = [[channels * taps for _, channels, taps in shapes] for shapes in (every, block)]
        whole, part = (float(sum(n**power for n in some)) for some in inputs)
        return whole / part

    weights = float(sum(map(np.prod, every)) / sum(map(np.prod, block)))
    means = by_method(table).loc[list(METHODS)]
    return pd.DataFrame(
        {
            "moments_min": sum(m.compute_s for m in moments.values()) * times_as_much(2) / 60,
            "rounding_min": means.compute_s * times_as_much(3) / 60,
            "shipped_mb": means.shipped_bytes * weights / 1e6,
        }
    )


def figures_of(table: pd.DataFrame) -> dict[str, float]:
    """The PESQ values of `heard` as figures of a result."""
    rows = summary(table).to_dict("records")
    return {
        f"{row['method']}_rest_{row['rest']}_{figure}": row[figure]
        for row in rows
        for figure in ("pesq_mean", "pesq_gain")
    }


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
