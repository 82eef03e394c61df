"""Least squares on recorded activations: second moments that tell the best weights and their error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.lab.research.residual_steps import Step, Values
from kokoro_lab.lab.tuning.comparison import Spoken
from kokoro_lab.lab.tuning.reporter import ActivationReporter
from kokoro_lab.lab.tuning.rounding import RIDGE, columns

Matrix = npt.NDArray[np.floating[Any]]

POSITIONS = 600
"""The most positions (columns of an activation) that are used of a segment. 24 texts then have 14,000
positions, to fit 3,072 inputs at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Regression:
    """Second moments of the inputs of a linear map, and of the outputs that it should give.

    Parameters
    ----------
    taps : int
        The number of inputs is channels · taps.
    mean, wanted_mean : numpy.ndarray
        (inputs,) and (outputs,).
    inputs, cross : numpy.ndarray
        Covariances (inputs, inputs), and (outputs, inputs) of the outputs with the inputs.
    power : float
        Variance of the outputs, summed over them.
    """

    taps: int
    mean: Matrix
    wanted_mean: Matrix
    inputs: Matrix
    cross: Matrix
    power: float

    def of(self, chosen: npt.NDArray[np.int64]) -> Regression:
        """The same regression with only the chosen inputs."""
        return replace(
            self,
            mean=self.mean[chosen],
            inputs=self.inputs[np.ix_(chosen, chosen)],
            cross=self.cross[:, chosen],
        )

    def fitted(self, prior: Matrix) -> Matrix:
        """The weights (outputs, inputs) with the least error. In directions in which the inputs hardly vary,
        they stay near `prior`."""
        held = self.inputs.astype(np.float64)
        ridge = RIDGE * float(np.trace(held)) / len(held)
        held[np.diag_indices_from(held)] += ridge
        found: Matrix = np.linalg.solve(held, (self.cross + ridge * prior).T).T
        return found

    def shift(self, weights: Matrix) -> Values:
        """The summand for each output with which `weights` have a mean error of 0."""
        shift: Values = (self.wanted_mean - weights @ self.mean).astype(np.float32)
        return shift

    def error(self, weights: Matrix, shift: Values) -> float:
        """Mean squared error with `weights` and `shift`, divided by the outputs' variance."""
        off = self.wanted_mean - weights @ self.mean - shift
        spread = (
            self.power
            - 2 * np.vdot(self.cross, weights)
            + np.vdot(weights @ self.inputs, weights)
            + float(off @ off)
        )
        return float(spread / self.power)


class RegressionSum:
    """Adds up the moments of a `Regression`, segment by segment."""

    def __init__(self, taps: int) -> None:
        self._taps, self._count = taps, 0
        self._sums: list[Matrix] = []

    def add(self, inputs: Values, wanted: Values) -> None:
        """Add columns of inputs (inputs, positions) and of outputs (outputs, positions)."""
        self._count += inputs.shape[1]
        found = [
            inputs.sum(1, np.float64),
            wanted.sum(1, np.float64),
            inputs @ inputs.T,
            wanted @ inputs.T,
            np.square(wanted, dtype=np.float64).sum(1),
        ]
        if not self._sums:
            self._sums = found
            return
        for total, more in zip(self._sums, found, strict=True):
            total += more

    def moments(self) -> Regression:
        mean, wanted_mean, inputs, cross, squares = (total / self._count for total in self._sums)
        return Regression(
            self._taps,
            mean,
            wanted_mean,
            inputs - np.outer(mean, mean).astype(inputs.dtype),
            cross - np.outer(wanted_mean, mean).astype(cross.dtype),
            float((squares - wanted_mean**2).sum()),
        )


@dataclass(frozen=True, slots=True, eq=False)
class StepMoments:
    """The moments of a residual step's output, together with the inputs of its second convolution (`inner`),
    and with the inputs of the middle tap of its first one (`outer`)."""

    inner: Regression
    outer: Regression


def recorded(
    steps: Mapping[str, Step], segments: Iterable[Spoken], config: EngineConfig
) -> dict[str, StepMoments]:
    """Record the moments of every step while the float model speaks the segments."""
    report = ActivationReporter(config)
    sums = {
        name: (RegressionSum(step.second_weight.shape[2]), RegressionSum(1)) for name, step in steps.items()
    }
    places = {step.first: name for name, step in steps.items()}
    places |= {step.second: name for name, step in steps.items()}
    for token_ids, style in segments:
        begun: dict[str, Values] = {}
        for layer, values in report(token_ids, style, 1.0):
            name = places.get(layer)
            if name is None:
                continue
            step = steps[name]
            if layer == step.first:
                begun[name] = columns(values, 1, 1, POSITIONS)
                continue
            inner = columns(values, step.second_weight.shape[2], 1, POSITIONS)
            wanted = step.second_weight.reshape(len(step.second_weight), -1) @ inner
            sums[name][0].add(inner, wanted)
            sums[name][1].add(begun.pop(name), wanted)
    return {name: StepMoments(*(total.moments() for total in both)) for name, both in sums.items()}
