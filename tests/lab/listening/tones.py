"""Pairs that need no model: two steady tones, or the same one twice."""

from __future__ import annotations

import numpy as np

from kokoro_lab.lab.listening import PassagePair

RATE_HZ = 24_000
REFERENCE_HZ, CANDIDATE_HZ = 440.0, 660.0


def tone(hz: float, *, seconds: float = 0.6, amplitude: float = 0.1) -> np.ndarray:
    time_s = np.arange(round(seconds * RATE_HZ)) / RATE_HZ
    return (amplitude * np.sin(2 * np.pi * hz * time_s)).astype(np.float32)


def pair(name: str = "tone", **candidate: float) -> PassagePair:
    """A reference of 440 Hz; a candidate of 660 Hz unless it is told otherwise."""
    options = {"hz": CANDIDATE_HZ, **candidate}
    return PassagePair(name, tone(REFERENCE_HZ), tone(**options), RATE_HZ)


def pairs(count: int = 2) -> list[PassagePair]:
    return [pair(f"passage {i + 1}", hz=CANDIDATE_HZ + 20 * i) for i in range(count)]


def pitch_hz(samples: np.ndarray) -> float:
    """The strongest frequency."""
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return float(np.argmax(spectrum) * RATE_HZ / len(samples))
