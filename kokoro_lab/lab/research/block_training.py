"""Trains a block of the vocoder to give what the block that ships gives, on the CPU, with NumPy and SciPy.

A *block* is a group of layers with one name: six convolutions in three residual steps. A *crop* is a short
part of the signals at its input and output.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize

from kokoro_lab.lab.research.residual_steps import Values
from kokoro_lab.lab.research.vocoder_block import INSIDE, Block, Crop, error, taps_of

DAMPING = 1e-3
"""What is added to the diagonal of second moments before they are inverted, as a share of the diagonal's
mean."""
REMEMBERED = 20
"""How many of its last steps L-BFGS uses to estimate the curvature."""


class Training:
    """Quasi-Newton descent (L-BFGS, Liu & Nocedal 1989) on a block, which can be stopped and continued.

    Every step uses all crops and lowers their error. The weights are first transformed (by the factors of
    K-FAC, Martens & Grosse 2015) so that the error is about equally sensitive to all of them. Then few steps
    are enough. The block with the least error on the held-out crops is kept, so that no training ends worse
    than it began.

    Parameters
    ----------
    block : Block
        The block with which training starts.
    crops, held_out : sequence of Crop
        The crops on which the block is trained, and those by which it is judged.

    Attributes
    ----------
    block : Block
        The block with the least error on `held_out` so far.
    crops : sequence of Crop
    steps : int
        How often the error of all crops and its gradient were computed.
    compute_s : float
        CPU time of training, without judging.
    """

    def __init__(self, block: Block, crops: Sequence[Crop], held_out: Sequence[Crop]) -> None:
        self.crops, self._held_out = crops, held_out
        self.block = self._now = block
        self.steps = 0
        self.compute_s = 0.0
        self._history: list[tuple[int, float, float]] = [(0, 0.0, error(block, held_out))]

    @property
    def history(self) -> pd.DataFrame:
        """A row for each time that the block was judged: steps, compute_s (without judging), error_ratio and
        error_db of the best block so far on the held-out crops."""
        table = pd.DataFrame(self._history, columns=["steps", "compute_s", "error_ratio"])
        return table.assign(error_db=10 * np.log10(table.error_ratio))

    def run(self, compute_s: float, judge_every_s: float) -> None:
        """Train until `compute_s` seconds of CPU time are used, including those before a checkpoint, or until
        no step lowers the error any more. Judge the block every `judge_every_s` seconds."""
        if self.compute_s >= compute_s:
            return
        began, clock = self.compute_s, time.process_time()
        start, factors = self._now, self._factors()

        def block_at(values: np.ndarray) -> Block:
            ends = np.cumsum([len(out) * len(into) for out, into in factors])
            matrices = [
                out.T @ part.reshape(len(out), len(into)) @ into
                for part, (out, into) in zip(np.split(values, ends[:-1]), factors, strict=True)
            ]
            return moved(start, matrices)

        def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
            self.steps += 1
            found, gradients = self._loss(block_at(values))
            turned = [out @ g @ into.T for g, (out, into) in zip(gradients, factors, strict=True)]
            return found, np.concatenate([g.ravel() for g in turned])

        def judged(values: np.ndarray) -> None:
            nonlocal began, clock
            self.compute_s = began + time.process_time() - clock
            self._now = block_at(values)
            over = self.compute_s >= compute_s
            if over or self.compute_s - self._history[-1][1] >= judge_every_s:
                self._judge()
                began, clock = self.compute_s, time.process_time()
            if over:
                raise StopIteration

        size = sum(len(out) * len(into) for out, into in factors)
        options = {"maxcor": REMEMBERED, "ftol": 0.0, "gtol": 0.0, "maxiter": 10**6, "maxfun": 10**6}
        minimize(loss, np.zeros(size), jac=True, method="L-BFGS-B", callback=judged, options=options)
        if self._history[-1][1] < self.compute_s:
            self._judge()

    def save(self, path: Path) -> None:
        """Write what `restore` reads: the best block, the block as trained last, and the history."""
        arrays: dict[str, Any] = {"steps": self.steps, "compute_s": self.compute_s}
        for name, block in (("best", self.block), ("now", self._now)):
            arrays |= {f"{name}_{k}": tensor for k, tensor in enumerate([*block.weights, *block.biases])}
        np.savez(path, **arrays, history=np.array(self._history))

    def restore(self, path: Path) -> None:
        """Continue from the file that `save` wrote. L-BFGS begins again without the steps that it remembered.

        Raises
        ------
        ValueError
            The checkpoint is of a block with other shapes.
        """
        count = len(self.block.weights)
        shapes = [tensor.shape for tensor in (*self.block.weights, *self.block.biases)]
        with np.load(path) as stored:
            blocks = []
            for name in ("best", "now"):
                tensors = [stored[f"{name}_{k}"] for k in range(len(shapes))]
                if [tensor.shape for tensor in tensors] != shapes:
                    raise ValueError(f"{path.name} is of a block with other shapes")
                blocks.append(replace(self.block, weights=tensors[:count], biases=tensors[count:]))
            self.block, self._now = blocks
            self.steps, self.compute_s = int(stored["steps"]), float(stored["compute_s"])
            self._history = [(int(a), float(b), float(c)) for a, b, c in stored["history"]]

    def _judge(self) -> None:
        now, best = error(self._now, self._held_out), self._history[-1][2]
        if now < best:
            self.block = self._now
        self._history.append((self.steps, self.compute_s, min(now, best)))

    def _loss(self, block: Block) -> tuple[float, list[np.ndarray]]:
        """Half the mean squared error of a column, and its gradients, one matrix for each convolution:
        (channels out, taps · channels in + 1), the bias in the last column."""
        total, gradients = 0.0, [np.zeros(matrix_of(w, b).shape) for w, b in _pairs(block)]
        for crop in self.crops:
            tape: list[tuple[Values, Values]] = []
            wrong = np.zeros_like(crop.y)
            wrong[:, INSIDE] = (block.forward(crop, tape) - crop.y)[:, INSIDE]
            total += float(np.square(wrong).sum(dtype=np.float64)) / 2
            for sum_of, w, b in zip(gradients, *block.backward(crop, tape, wrong), strict=True):
                sum_of += matrix_of(w, b)
        columns = sum(crop.y[:, INSIDE].shape[1] for crop in self.crops)
        return total / columns, [g / columns for g in gradients]

    def _factors(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each convolution, the inverse Cholesky factors of the second moments of two signals: the
        gradient of its output for noise at the block's output, and its input. In the coordinates that these
        factors make, the curvature of the error is about 1 in all directions."""
        random, block = np.random.default_rng(self.steps), self._now
        moments = [[0.0, 0.0] for _ in block.weights]
        several = self.crops[:: max(1, len(self.crops) // 8)]
        for crop in several:
            tape: list[tuple[Values, Values]] = []
            block.forward(crop, tape)
            noise = random.normal(size=crop.y.shape).astype(np.float32)
            back: list[Values] = []
            block.backward(crop, tape, noise, back)
            for k, (sides, returned) in enumerate(zip(moments, reversed(back), strict=True)):
                entered = taps_of(tape[k][0], len(block.weights[k]), block.dilations[k])
                for side, values in enumerate((returned, entered)):
                    sides[side] += (values @ values.T).astype(np.float64) / (values.shape[1] * len(several))
        return [(_whitening(np.asarray(out)), _whitening(np.asarray(into))) for out, into in moments]


def _pairs(block: Block) -> list[tuple[Values, Values]]:
    return list(zip(block.weights, block.biases, strict=True))


def matrix_of(weight: Values, bias: Values) -> Values:
    """Weights and bias of a convolution as one matrix, which multiplies the columns that `taps_of` makes of
    the input."""
    return np.append(weight.transpose(1, 0, 2).reshape(len(bias), -1), bias[:, None], axis=1)


def moved(block: Block, matrices: Sequence[np.ndarray]) -> Block:
    """A block whose weights and biases are changed by `matrices`."""
    weights, biases = [], []
    for (weight, bias), matrix in zip(_pairs(block), matrices, strict=True):
        taps, outputs, inputs = weight.shape
        change = matrix[:, :-1].reshape(outputs, taps, inputs).transpose(1, 0, 2)
        weights.append(np.ascontiguousarray(weight + change, weight.dtype))
        biases.append((bias + matrix[:, -1]).astype(bias.dtype))
    return replace(block, weights=weights, biases=biases)


def _whitening(moments: np.ndarray) -> np.ndarray:
    damped = moments + DAMPING * np.trace(moments) / len(moments) * np.eye(len(moments))
    inverse: np.ndarray = np.linalg.inv(np.linalg.cholesky(damped))
    return inverse
