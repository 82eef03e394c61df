"""Find the ranges of what enters each layer, so that eight bits are spent on what occurs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs.quantise import Calibration, Range
from kokoro_lab.lab.tuning.material import one_voice_each
from kokoro_lab.lab.tuning.reporter import ActivationReporter

TAIL = 0.001
"""Share of an utterance's values of a channel that its range leaves out on either side: activations have
heavy tails, and a range for the rarest value wastes steps on all others."""
POSITIONS = 4000
"""At most this many positions of an utterance are looked at, evenly spread: enough for that share."""


def calibrate(
    texts: Sequence[str],
    voices: Sequence[str],
    *,
    tail: float = TAIL,
    config: EngineConfig | None = None,
    progress: bool = True,
) -> Calibration:
    """Let the float model speak every text, by each voice in turn, and keep the widest range of each channel.

    Returns
    -------
    Calibration
        For every layer that can run on integers.
    """
    report = ActivationReporter(config or EngineConfig())
    widest: dict[str, Range] = {}
    for token_ids, style in one_voice_each(texts, voices, what="calibrated", progress=progress):
        for layer, values in report(token_ids, style, 1.0):
            found = bulk_of(values, tail)
            widest[layer] = Range.widest([widest.get(layer, found), found])
    return Calibration(widest)


def bulk_of(values: npt.NDArray[np.float32], tail: float) -> Range:
    """Range of each channel, without the share `tail` at either end.

    Parameters
    ----------
    values : numpy.ndarray
        float32 (channels, positions).
    """
    spread = values[:, :: -(-values.shape[1] // POSITIONS)]
    left_out = int(tail * spread.shape[1])
    last = spread.shape[1] - 1 - left_out
    ordered = np.partition(spread, (left_out, last), axis=1)
    return Range(ordered[:, left_out].copy(), ordered[:, last].copy())
