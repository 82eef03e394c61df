"""A block of the vocoder in NumPy: forward, backward, its error, and fewer taps in closed form.

A block is three residual steps of two convolutions. Given the statistics of its normalisations, which a
stream knows beforehand, it is made of convolutions, a factor and a summand for each channel, and Snake: `z −
cos z + 1`, whose factors are multiplied into the weights (see `passes.snake_in_the_modulation`). Forward and
backward pass are a page of matrix products.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from kokoro_lab.lab.research.residual_steps import Cut, Cuts, Step, Values
from kokoro_lab.lab.tuning.rounding import RIDGE

MARGIN = 64
"""Columns at both ends of a crop that are not compared: a block with eleven taps reads up to 60 columns
away."""
INSIDE = slice(MARGIN, -MARGIN)
CROP = 1024
LEAST_ERROR = 1e-12
"""The least error that is reported, so that an error of 0 has a value in decibels, too."""
_ONE = np.ones(1, np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The convolutions of a block, in the order in which they run.

    Parameters
    ----------
    weights : list of numpy.ndarray
        float32 (taps, channels out, channels in) each.
    biases : list of numpy.ndarray
        float32 (channels out,) each.
    dilations : tuple of int
    """

    weights: list[Values]
    biases: list[Values]
    dilations: tuple[int, ...]

    def forward(self, crop: Crop, tape: list[tuple[Values, Values]] | None = None) -> Values:
        """The block's output for the input `crop.x`, float32 (channels, columns). What `backward` needs is
        added to `tape`."""
        x = crop.x
        for step in range(0, len(self.weights), 2):
            inner = x
            for k in (step, step + 1):
                z = crop.scale[k][:, None] * inner + crop.shift[k][:, None]
                entered, slope = self.read(k, z - np.cos(z) + 1)
                if tape is not None:
                    tape.append((entered, (1 + np.sin(z)) * slope))
                inner = convolved(self.weights[k], entered, self.dilations[k]) + self.biases[k][:, None]
            x = x + inner
        return x

    def read(self, k: int, values: Values) -> tuple[Values, Values]:
        """What convolution `k` multiplies when Snake gives `values`, and the slope by which it follows
        them."""
        return values, _ONE

    def backward(
        self,
        crop: Crop,
        tape: Sequence[tuple[Values, Values]],
        wrong: Values,
        returned: list[Values] | None = None,
    ) -> tuple[list[Values], list[Values]]:
        """The gradients of weights and biases, from `wrong`, the gradient of the output of `forward`. The
        gradient of each convolution's output is added to `returned`, the last convolution first."""
        weights: list[Values] = [np.empty(0, np.float32)] * len(self.weights)
        biases = list(weights)
        for step in reversed(range(0, len(self.weights), 2)):
            inner = wrong
            for k in (step + 1, step):
                entered, slope = tape[k]
                if returned is not None:
                    returned.append(inner)
                biases[k] = inner.sum(1)
                weights[k], back = convolved_back(self.weights[k], entered, self.dilations[k], inner)
                inner = back * slope * crop.scale[k][:, None]
            wrong = wrong + inner
        return weights, biases

    def cuts(self, teacher: Block, steps: Sequence[Step]) -> Cuts:
        """The cuts (see `residual_steps`) with which the steps of `teacher`, the block that ships, get this
        block's weights."""
        found = {}
        for number, step in enumerate(steps):
            first, second = 2 * number, 2 * number + 1
            found[step.name] = (
                step,
                Cut(
                    self.weights[second].transpose(1, 2, 0),
                    self.biases[second] - teacher.biases[second],
                    np.arange(len(self.biases[first])),
                    (self.weights[first].transpose(1, 2, 0), self.biases[first]),
                ),
            )
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Crop:
    """A part of a block's input (`x`) and output (`y`) for one segment, float32 (channels, columns), and the
    factors (`scale`) and summands (`shift`) of its normalisations there, float32 (convolutions, channels); of
    parallel blocks float32 (blocks, convolutions, channels)."""

    x: Values
    y: Values
    scale: Values
    shift: Values


def convolved(weight: Values, x: Values, dilation: int) -> Values:
    """A convolution that keeps the length, as one product for each tap."""
    length, reach = x.shape[1], len(weight) // 2 * dilation
    padded = np.pad(x, ((0, 0), (reach, reach)))
    found: Values = weight[0] @ padded[:, :length]
    for tap in range(1, len(weight)):
        found += weight[tap] @ padded[:, tap * dilation : tap * dilation + length]
    return found


def convolved_back(weight: Values, x: Values, dilation: int, wrong: Values) -> tuple[Values, Values]:
    """The gradients of the weights and of the input of `convolved`."""
    length, reach = x.shape[1], len(weight) // 2 * dilation
    padded = np.pad(x, ((0, 0), (reach, reach)))
    back, found = np.zeros_like(padded), np.empty_like(weight)
    for tap in range(len(weight)):
        part = slice(tap * dilation, tap * dilation + length)
        found[tap] = wrong @ padded[:, part].T
        back[:, part] += weight[tap].T @ wrong
    return found, back[:, reach : reach + length]


def taps_of(x: Values, taps: int, dilation: int) -> Values:
    """The values that the weights of a convolution multiply, (taps · channels + 1, columns). The last row is
    1, for the bias."""
    length, reach = x.shape[1], taps // 2 * dilation
    padded = np.pad(x, ((0, 0), (reach, reach)))
    parts = [padded[:, tap * dilation : tap * dilation + length] for tap in range(taps)]
    return np.concatenate([*parts, np.ones((1, length), np.float32)])


class Forward(Protocol):
    """A block, or several that run in parallel."""

    def forward(self, crop: Crop, /) -> Values: ...


def error(block: Forward, crops: Sequence[Crop]) -> float:
    """Squared error of a block's output, divided by the power of what the block that ships adds to its
    input."""
    wrong = power = 0.0
    for crop in crops:
        wrong += float(np.square(block.forward(crop) - crop.y)[:, INSIDE].sum(dtype=np.float64))
        power += float(np.square(crop.y - crop.x)[:, INSIDE].sum(dtype=np.float64))
    return max(wrong / power, LEAST_ERROR)


def fitted(teacher: Block, crops: Sequence[Crop], taps: int) -> Block:
    """A block with fewer taps in closed form: one convolution after the other, each fitted by least squares
    to the values that the block that ships has after that convolution. Inputs are those of the fitted block,
    so that each convolution also corrects the ones before it."""
    weights: list[Values] = []
    biases: list[Values] = []
    states = [crop.x for crop in crops]  # of the fitted block
    exact = [crop.x for crop in crops]
    for step in range(0, len(teacher.weights), 2):
        inner, exact_inner = list(states), list(exact)
        for k in (step, step + 1):
            snakes, exact_snakes = (
                [_snake(crop, k, values) for crop, values in zip(crops, several, strict=True)]
                for several in (inner, exact_inner)
            )
            exact_inner = [
                convolved(teacher.weights[k], snake, teacher.dilations[k]) + teacher.biases[k][:, None]
                for snake in exact_snakes
            ]
            wanted = exact_inner
            if k == step + 1:
                exact = [before + more for before, more in zip(exact, exact_inner, strict=True)]
                wanted = [after - own for after, own in zip(exact, states, strict=True)]
            prior = middle(teacher.weights[k], taps)
            weight, bias = _least_squares(snakes, wanted, prior, teacher.dilations[k])
            weights.append(weight)
            biases.append(bias)
            inner = [convolved(weight, snake, teacher.dilations[k]) + bias[:, None] for snake in snakes]
        states = [before + more for before, more in zip(states, inner, strict=True)]
    return Block(weights, biases, teacher.dilations)


def middle(weight: Values, taps: int) -> Values:
    """The middle taps of weights (taps, channels out, channels in)."""
    first = (len(weight) - taps) // 2
    return np.ascontiguousarray(weight[first : first + taps])


def _snake(crop: Crop, k: int, values: Values) -> Values:
    z = crop.scale[k][:, None] * values + crop.shift[k][:, None]
    found: Values = z - np.cos(z) + 1
    return found


def _least_squares(
    inputs: Sequence[Values], wanted: Sequence[Values], prior: Values, dilation: int
) -> tuple[Values, Values]:
    """Weights and bias of a convolution, fitted by least squares so that `inputs` give `wanted`. In
    directions in which the inputs hardly vary, the weights stay near `prior`."""
    taps, outputs, channels = prior.shape
    size = taps * channels
    products, cross = np.zeros((size + 1, size + 1)), np.zeros((outputs, size + 1))
    for x, y in zip(inputs, wanted, strict=True):
        column = taps_of(x, taps, dilation)[:, MARGIN:-MARGIN]
        products += column @ column.T
        cross += y[:, MARGIN:-MARGIN] @ column.T
    held = np.append(prior.transpose(1, 0, 2).reshape(outputs, size), np.zeros((outputs, 1)), axis=1)
    ridge = RIDGE * np.trace(products) / len(products)
    products[np.diag_indices(size)] += ridge
    cross[:, :size] += ridge * held[:, :size]
    found = np.linalg.solve(products, cross.T).T.astype(np.float32)
    weight = found[:, :size].reshape(outputs, taps, channels).transpose(1, 0, 2)
    return np.ascontiguousarray(weight), found[:, size].copy()
