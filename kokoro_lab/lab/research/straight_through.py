"""Trains the integers of parallel blocks together, so that the mean of their outputs nears the float model's.

Float weights (*latent* ones) are rounded to integers for each computation of the error; its gradient is
applied to them as if they had not been rounded. They are moved by Adam (Kingma & Ba 2015), in units of their
own levels, since a level is what a step must be small against.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pandas as pd

from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.research.block_training import matrix_of, moved
from kokoro_lab.lab.research.parallel_blocks import Integers, ParallelBlocks, Tape
from kokoro_lab.lab.research.residual_steps import Values
from kokoro_lab.lab.research.vocoder_block import INSIDE, Crop, error

RATE = 0.003
"""How far a weight moves in the first step, in levels. Steps get shorter along half a cosine."""
BIAS_LEVELS = 64
"""How far a bias moves meanwhile, as a multiple of what a weight moves: about the size of an input."""
MEAN_DECAY, SQUARE_DECAY = 0.9, 0.99
SPREAD = 0.49
"""Training starts at weights that are spread by so many levels around the integers, evenly. So from the first
step on, a few weights change their integers. If all began at their integers, none would change for many
steps, and then all at once; if all began at the float weights, those between two integers would change in the
first step (the error rises from −39 to −8 dB)."""
CROPS_AT_ONCE = 3
JUDGED_BY = 6
"""One in so many crops trains nothing, but judges the training."""
JUDGEMENTS = 8


class StraightThrough:
    """A training. Of the integers that it judges, those with the least error are kept, so that none ends
    worse than it began on the crops that judge.

    Parameters
    ----------
    start : Integers
        The integers with which training starts.
    crops : sequence of Crop
        The last ones of them judge, the others train.

    Attributes
    ----------
    start, best, last : Integers
        The integers at the start, those with the least error so far, and those at the end.
    compute_s : float
        CPU time of training, without judging.
    """

    def __init__(self, start: Integers, crops: Sequence[Crop]) -> None:
        judging = max(1, len(crops) // JUDGED_BY)
        self._crops, self._judges = crops[:-judging], crops[-judging:]
        self.start = self.best = self.last = start
        self.compute_s = 0.0
        self._history = [(0, 0.0, error(start.rounded(start.latent), self._judges))]

    @property
    def history(self) -> pd.DataFrame:
        """A row for each time that the integers were judged: steps, compute_s, and their error_db then."""
        table = pd.DataFrame(self._history, columns=["steps", "compute_s", "error_ratio"])
        return table.assign(error_db=10 * np.log10(table.error_ratio)).drop(columns="error_ratio")

    def run(self, steps: int, rate: float = RATE, seed: int = 0) -> None:
        """Take `steps` steps, each by the gradient of `CROPS_AT_ONCE` crops that are drawn anew."""
        random, clock = np.random.default_rng(seed), time.process_time()
        units = self._units()
        spread = [SPREAD * unit * random.uniform(-1, 1, unit.shape) for unit in units]
        for values in spread:
            values[:, -1] = 0
        latent = _moved(self.start.latent, spread)
        means = [np.zeros_like(unit) for unit in units]
        squares = [np.zeros_like(unit) for unit in units]
        for step in tqdm(range(1, steps + 1), desc="trained", disable=None):
            drawn = random.permutation(len(self._crops))[:CROPS_AT_ONCE]
            length = rate * (1 + np.cos(np.pi * (step - 1) / steps)) / 2
            changes = []
            gradients = self._gradients(latent, [self._crops[number] for number in drawn])
            for unit, mean, square, gradient in zip(units, means, squares, gradients, strict=True):
                mean += (1 - MEAN_DECAY) * (gradient - mean)
                square += (1 - SQUARE_DECAY) * (gradient**2 - square)
                size = np.sqrt(square / (1 - SQUARE_DECAY**step)) + np.finfo(np.float32).tiny
                changes.append(-length * unit * mean / (1 - MEAN_DECAY**step) / size)
            latent = _moved(latent, changes)
            if step == steps or step * JUDGEMENTS // steps > (step - 1) * JUDGEMENTS // steps:
                self.compute_s += time.process_time() - clock
                found = error(self.start.rounded(latent), self._judges)
                self.last = self.start.nearest(latent)
                if found < min(before for *_, before in self._history):
                    self.best = self.last
                self._history.append((step, self.compute_s, found))
                clock = time.process_time()

    def _units(self) -> list[Values]:
        """How far each weight and bias of each convolution moves, relative to the others, as matrices like
        those of `matrix_of`: a level; 0 for a convolution in float, which stays."""
        units = []
        for block, names in zip(self.start.latent.blocks, self.start.names, strict=True):
            for weight, bias, name in zip(block.weights, block.biases, names, strict=True):
                unit = np.zeros_like(matrix_of(weight, bias))
                if (layer := self.start.layers.get(name)) is not None:
                    unit += layer.scale[:, None]
                    unit[:, -1] *= BIAS_LEVELS
                units.append(unit)
        return units

    def _gradients(self, latent: ParallelBlocks, crops: Sequence[Crop]) -> list[Values]:
        """The gradients of half the mean squared error of a column, one matrix for each convolution."""
        rounded = self.start.rounded(latent)
        columns, total = sum(crop.y[:, INSIDE].shape[1] for crop in crops), []
        for crop in crops:
            tapes: list[Tape] = []
            wrong = np.zeros_like(crop.y)
            wrong[:, INSIDE] = (rounded.forward(crop, tapes) - crop.y)[:, INSIDE] / columns
            found = rounded.backward(crop, tapes, wrong)
            total.append([matrix_of(w, b) for own in found for w, b in zip(*own, strict=True)])
        return [np.sum(several, axis=0) for several in zip(*total, strict=True)]


def _moved(blocks: ParallelBlocks, changes: Sequence[np.ndarray]) -> ParallelBlocks:
    left = iter(changes)
    return ParallelBlocks(tuple(moved(block, [next(left) for _ in block.weights]) for block in blocks.blocks))
