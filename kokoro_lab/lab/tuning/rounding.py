"""Better integers for a layer: weights fitted to its inputs, instead of each rounded to the nearest integer.

A convolution is a matrix `target` (channels out, channels in · taps) times columns `x` of inputs. On integers
it is `scale · levels` times columns `q` of rounded inputs (`levels` are the integers), and its error,

    E ‖target · x − scale · levels · q − shift‖²

is quadratic, so it can be computed from the second `Moments` of x and q alone, however many positions they
were added up from. Everything here is in units of the input's steps, so that q are the integers themselves.

Seen on `resblocks.5` (6 convolutions, 12 texts to fit on, 5 held out, mean of the layers): nearest 28.9 dB,
gain and bias 29.9, feedback 30.4, where float weights on inputs of eight bits have 30.6: the remaining error
is the inputs' rounding, which training of a layer's weights can only reduce by overfitting (34.0 dB on the
12). `lab.research.fine_tune` also chooses the inputs' ranges, trains several layers together, and hears them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from kokoro_lab.graphs.quantise import WEIGHT_LEVELS, QuantisedLayer, Values, quantised_weights

Matrix = npt.NDArray[np.float64]

POSITIONS = 1500
"""The most positions (columns of a layer's input) of a segment that are used, evenly spread."""
RIDGE = 1e-3
"""Weight of the penalty on differences from the original weights (ridge regression), as a share of the
inputs' mean power. Without it, an input that is nearly 0 in calibration could get any weight."""
COLUMNS_AT_ONCE = 128


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Second moments of the columns that enter a convolution, over positions.

    Parameters
    ----------
    count, taps : int
        Number of positions, and number of taps of the convolution.
    compute_s : float
        CPU seconds that adding up took, without those of the model.
    exact_mean, rounded_mean : numpy.ndarray
        float64 (inputs,), inputs being channels · taps.
    exact, cross, rounded : numpy.ndarray
        Covariances (inputs, inputs) of the exact columns, of the exact (rows) with the rounded ones, and of
        the rounded ones.
    """

    count: int
    taps: int
    compute_s: float
    exact_mean: Matrix
    rounded_mean: Matrix
    exact: Matrix
    cross: Matrix
    rounded: Matrix

    def error(self, target: Matrix, weights: Matrix, shift: Matrix) -> float:
        """Mean squared error, summed over the outputs, of `weights` on rounded inputs."""
        offset = target @ self.exact_mean - weights @ self.rounded_mean - shift
        spread = (
            np.vdot(target @ self.exact, target)
            - 2 * np.vdot(target @ self.cross, weights)
            + np.vdot(weights @ self.rounded, weights)
        )
        return float(spread + offset @ offset)

    def power(self, target: Matrix) -> float:
        """Variance of the outputs of the layer in float, summed over the outputs."""
        return float(np.vdot(target @ self.exact, target))

    def ratio_db(self, target: Matrix, weights: Matrix, shift: Matrix) -> float:
        """Power of the layer's output divided by that of its error with `weights` and `shift`, in dB."""
        error = max(self.error(target, weights, shift), np.finfo(np.float64).tiny)
        return float(10 * np.log10(self.power(target) / error))

    def separable(self) -> Matrix:
        """The covariance of the rounded inputs, approximated by a product of one covariance of channels and
        one of taps, which would take only some kilobytes to ship."""
        taps = self.taps
        channels = len(self.rounded_mean) // taps
        whole = self.rounded.reshape(channels, taps, channels, taps)
        between_channels = np.einsum("ctdt->cd", whole) / taps
        between_taps = np.einsum("ctcu->tu", whole)
        between_taps /= np.trace(between_taps) / taps
        return np.kron(between_channels.astype(np.float16).astype(np.float64), between_taps)


class MomentSum:
    """Adds up moments, segment by segment, for one layer."""

    def __init__(self, quantised: QuantisedLayer, dilation: int) -> None:
        self._quantised = quantised
        self._dilation = dilation
        inputs = quantised.weights.shape[1] * quantised.weights.shape[2]
        self._count = 0
        self._compute_s = 0.0
        self._means = np.zeros((2, inputs))
        self._products = np.zeros((3, inputs, inputs))

    def add(self, values: Values) -> None:
        """Add the layer's input of a segment, float32 (channels in, positions)."""
        started = time.process_time()
        quantised = self._quantised
        exact, rounded = (
            columns(v, quantised.weights.shape[2], self._dilation).astype(np.float32)
            for v in (values / quantised.step[:, None], quantised.rounded(values))
        )
        self._count += exact.shape[1]
        self._means += np.stack([exact.sum(1, np.float64), rounded.sum(1, np.float64)])
        for product, (a, b) in zip(
            self._products, ((exact, exact), (exact, rounded), (rounded, rounded)), strict=True
        ):
            product += a @ b.T
        self._compute_s += time.process_time() - started

    def moments(self) -> Moments:
        """The moments that were added up so far.

        Raises
        ------
        ValueError
            No inputs were added.
        """
        if not self._count:
            raise ValueError("moments of no position at all")
        exact, rounded = self._means / self._count
        means = ((exact, exact), (exact, rounded), (rounded, rounded))
        covariances = (
            p / self._count - np.outer(a, b) for p, (a, b) in zip(self._products, means, strict=True)
        )
        taps = self._quantised.weights.shape[2]
        return Moments(self._count, taps, self._compute_s, exact, rounded, *covariances)


def columns(values: Values, taps: int, dilation: int, most: int = POSITIONS) -> Values:
    """The inputs of a convolution that keeps the length, one column for each of at most `most` evenly spread
    positions: (channels · taps, positions)."""
    reach = taps // 2 * dilation
    padded = np.pad(values, ((0, 0), (reach, reach)))
    positions = np.arange(0, values.shape[1], -(-values.shape[1] // most))
    seen = padded[:, np.arange(taps)[:, None] * dilation + positions]
    return seen.reshape(-1, len(positions))


# -------------------------------------------------------------------------------------------- methods


@dataclass(frozen=True, slots=True, eq=False)
class RoundedLevels:
    """Levels int8 (outputs, inputs), and scale and shift float64 (outputs,)."""

    levels: npt.NDArray[np.int8]
    scale: Matrix
    shift: Matrix

    @property
    def weights(self) -> Matrix:
        return self.levels * self.scale[:, None]

    def centred(self, target: Matrix, moments: Moments) -> RoundedLevels:
        """These levels, with the shift that makes the mean error of the layer 0."""
        return replace(self, shift=target @ moments.exact_mean - self.weights @ moments.rounded_mean)


def nearest(target: Matrix, moments: Moments | None = None) -> RoundedLevels:
    """Round each weight to its nearest level, as in the shipped variants."""
    levels, scale = quantised_weights(target[:, :, None])
    return RoundedLevels(levels[:, :, 0], scale.astype(np.float64), np.zeros(len(target)))


def gain_and_bias(target: Matrix, moments: Moments) -> RoundedLevels:
    """The nearest levels; for each output a scale and a shift that make up for rounding and clipping."""
    plain = nearest(target)
    wanted = ((target @ moments.cross) * plain.weights).sum(1)
    found = ((plain.weights @ moments.rounded) * plain.weights).sum(1)
    return replace(plain, scale=plain.scale * wanted / found).centred(target, moments)


def refitted(target: Matrix, moments: Moments) -> Matrix:
    """The best float weights on rounded inputs, in closed form. No rounded weights can have a smaller
    error."""
    hold = RIDGE * np.trace(moments.rounded) / len(moments.rounded_mean) * np.eye(len(moments.rounded_mean))
    return np.linalg.solve(moments.rounded + hold, (target @ (moments.cross + hold)).T).T


def refit(target: Matrix, moments: Moments) -> RoundedLevels:
    """The nearest levels of the refitted weights."""
    return nearest(refitted(target, moments)).centred(target, moments)


def feedback(target: Matrix, moments: Moments) -> RoundedLevels:
    """Refitted weights, rounded input by input; the weights of later inputs correct the error of each
    rounding.

    Frantar et al., GPTQ (2022), algorithm 1, the inputs of most power first.
    """
    return fed_back(refitted(target, moments), moments.rounded).centred(target, moments)


def separable_feedback(target: Matrix, moments: Moments) -> RoundedLevels:
    """Levels rounded as in `feedback`, but from data small enough to ship: covariances of channels and of
    taps. The weights are not refitted first, and there is no shift."""
    return fed_back(target, moments.separable())


def fed_back(weights: Matrix, covariance: Matrix) -> RoundedLevels:
    """Round `weights` input by input. The covariance of the inputs says how later weights correct each
    rounding. The shift is 0."""
    inputs = len(covariance)
    order = np.argsort(-np.diag(covariance), kind="stable")
    hold = RIDGE * np.trace(covariance) / inputs * np.eye(inputs)
    inverse = np.linalg.inv((covariance + hold)[np.ix_(order, order)])
    passed_on = np.linalg.cholesky(inverse).T
    scale = np.maximum(np.abs(weights).max(1), np.finfo(np.float32).tiny) / WEIGHT_LEVELS
    rest = (weights / scale[:, None])[:, order]
    levels = np.empty(rest.shape, np.int8)
    for first in range(0, inputs, COLUMNS_AT_ONCE):
        last = min(first + COLUMNS_AT_ONCE, inputs)
        wrong = np.empty((len(rest), last - first))
        for k in range(first, last):
            levels[:, k] = np.clip(np.round(rest[:, k]), -WEIGHT_LEVELS, WEIGHT_LEVELS)
            wrong[:, k - first] = (rest[:, k] - levels[:, k]) / passed_on[k, k]
            rest[:, k + 1 : last] -= np.outer(wrong[:, k - first], passed_on[k, k + 1 : last])
        rest[:, last:] -= wrong @ passed_on[first:last, last:]
    found = np.empty_like(levels)
    found[:, order] = levels
    return RoundedLevels(found, scale, np.zeros(len(weights)))


METHODS: Mapping[str, Callable[[Matrix, Moments], RoundedLevels]] = {
    "nearest": nearest,
    "gain_and_bias": gain_and_bias,
    "refit": refit,
    "separable_feedback": separable_feedback,
    "feedback": feedback,
}
