"""Trains a block of the vocoder on what the block that ships gives, on the CPU, in NumPy alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kokoro_lab.lab.research.residual_steps import Values
from kokoro_lab.lab.research.vocoder_block import MARGIN, Block, Crop, error

BATCH = 4
RATE, HALVED_AFTER = 0.02, 400
"""Size of a training step, as a share of the root mean square of a tensor; it falls with the root of the
number of steps, to a half after three times `HALVED_AFTER`."""
SMOOTHED = 0.98
"""Weights that are judged are a moving average of the trained ones."""
FIRST_BETA, SECOND_BETA = 0.9, 0.99


class Training:
    """Gradient descent (Adam, Kingma & Ba 2015) on a block, which can be stopped and continued.

    Parameters
    ----------
    block : Block
        Where training starts.
    crops, held_out : sequence of Crop
        What is trained on, and what it is judged by.
    """

    def __init__(self, block: Block, crops: Sequence[Crop], held_out: Sequence[Crop]) -> None:
        self._crops, self._held_out = crops, held_out
        self._start = block
        self._count = len(block.weights)
        tensors = [*block.weights, *block.biases]
        self._trained = [tensor.copy() for tensor in tensors]
        self._smooth = [tensor.copy() for tensor in tensors]
        self._first = [np.zeros_like(tensor) for tensor in tensors]
        self._second = [np.zeros_like(tensor) for tensor in tensors]
        self._size = [max(float(np.sqrt(np.square(t).mean())), 1e-4) for t in tensors]
        self.steps = 0
        self.compute_s = 0.0
        self._history: list[tuple[int, float, float]] = [(0, 0.0, error(block, held_out))]

    @property
    def block(self) -> Block:
        """The block as it is judged: a moving average of the trained weights."""
        return self._of(self._smooth)

    @property
    def history(self) -> pd.DataFrame:
        """A row for each time that it was judged: steps, compute_s (without judging), error_ratio and
        error_db on what is held out."""
        table = pd.DataFrame(self._history, columns=["steps", "compute_s", "error_ratio"])
        return table.assign(error_db=10 * np.log10(table.error_ratio))

    def run(self, compute_s: float, judge_every_s: float, say: Callable[[str], None] | None = None) -> None:
        """Train until `compute_s` of CPU time are used in all, those before a checkpoint included."""
        judged = self.compute_s
        while self.compute_s < compute_s:
            started = time.process_time()
            self._step()
            self.compute_s += time.process_time() - started
            if self.compute_s - judged >= judge_every_s or self.compute_s >= compute_s:
                judged = self.compute_s
                now = error(self.block, self._held_out)
                self._history.append((self.steps, self.compute_s, now))
                if say is not None:
                    say(f"{self.compute_s:.0f} s, {self.steps} steps: {10 * np.log10(now):.2f} dB")

    def save(self, path: Path) -> None:
        """Write everything that continuing needs."""
        arrays: dict[str, Any] = {"steps": self.steps, "compute_s": self.compute_s}
        for name, tensors in self._state().items():
            arrays |= {f"{name}_{k}": tensor for k, tensor in enumerate(tensors)}
        np.savez(path, **arrays, history=np.array(self._history))

    def restore(self, path: Path) -> None:
        """Continue from what `save` wrote.

        Raises
        ------
        ValueError
            The checkpoint is of a block with other shapes.
        """
        with np.load(path) as stored:
            for name, tensors in self._state().items():
                for k, tensor in enumerate(tensors):
                    if stored[f"{name}_{k}"].shape != tensor.shape:
                        raise ValueError(f"{path.name} is of a block with other shapes")
                    tensor[...] = stored[f"{name}_{k}"]
            self.steps, self.compute_s = int(stored["steps"]), float(stored["compute_s"])
            self._history = [(int(a), float(b), float(c)) for a, b, c in stored["history"]]

    def _state(self) -> dict[str, list[Values]]:
        return {
            "trained": self._trained,
            "smooth": self._smooth,
            "first": self._first,
            "second": self._second,
        }

    def _of(self, tensors: Sequence[Values]) -> Block:
        weights, biases = list(tensors[: self._count]), list(tensors[self._count :])
        return replace(self._start, weights=weights, biases=biases)

    def _step(self) -> None:
        random = np.random.default_rng(self.steps)  # so that a continued run sees the same crops
        block, totals = self._of(self._trained), [np.zeros_like(t) for t in self._trained]
        inside = slice(MARGIN, -MARGIN)
        for number in random.choice(len(self._crops), min(BATCH, len(self._crops)), replace=False):
            crop = self._crops[number]
            tape: list[tuple[Values, Values]] = []
            wrong = np.zeros_like(crop.y)
            wrong[:, inside] = (block.forward(crop, tape) - crop.y)[:, inside]
            for total, more in zip(
                totals, [g for s in block.backward(crop, tape, wrong) for g in s], strict=True
            ):
                total += more
        self.steps += 1
        rate = RATE / np.sqrt(1 + self.steps / HALVED_AFTER)
        first_part, second_part = 1 - FIRST_BETA**self.steps, 1 - SECOND_BETA**self.steps
        for k, gradient in enumerate(totals):
            self._first[k] += (1 - FIRST_BETA) * (gradient - self._first[k])
            self._second[k] += (1 - SECOND_BETA) * (gradient**2 - self._second[k])
            size = np.sqrt(self._second[k] / second_part) + 1e-12
            self._trained[k] -= rate * self._size[k] * (self._first[k] / first_part) / size
            self._smooth[k] += (1 - SMOOTHED) * (self._trained[k] - self._smooth[k])
