"""Readings that are spoiled on purpose, for negative controls: what a dull or hasty speaker does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kokoro_lab.metrics.prosody import F0_A_FRAME, VOICED_HZ, ProsodyReading
from kokoro_lab.model.pauses import QUIET_ENERGY

Misreading = Callable[[ProsodyReading], ProsodyReading]


def in_monotone(reading: ProsodyReading, kept: float = 0.0) -> ProsodyReading:
    """Everything behind the share `kept` of the reading at its mean pitch."""
    f0_hz = reading.f0_hz.copy()
    rest = f0_hz[round(kept * len(f0_hz)) :]
    voiced = rest > VOICED_HZ
    if voiced.any():
        rest[voiced] = np.exp(np.log(rest[voiced]).mean())
    return reading._replace(f0_hz=f0_hz)


def unstressed(reading: ProsodyReading) -> ProsodyReading:
    """Every sound at the same energy."""
    spoken = reading.energy >= QUIET_ENERGY
    energy = np.where(spoken, reading.energy[spoken].mean() if spoken.any() else 0, reading.energy)
    return reading._replace(energy=energy.astype(np.float32))


def hasty(reading: ProsodyReading) -> ProsodyReading:
    """Every pause half as long: every other silent frame is left out."""
    silent = (reading.energy < QUIET_ENERGY).reshape(-1, F0_A_FRAME).all(1)
    kept = ~(silent & (np.cumsum(silent) % 2 == 1))
    ids = np.repeat(np.arange(len(reading.frames)), reading.frames)
    curves = np.repeat(kept, F0_A_FRAME)
    frames = np.bincount(ids[kept], minlength=len(reading.frames)).astype(np.int64)
    return ProsodyReading(frames, reading.f0_hz[curves], reading.energy[curves])
