"""Signals whose right answers are known: something like speech, and the worst that a limiter can meet."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from scipy.signal import butter, lfilter

from kokoro_lab.dsp import Processor

Samples = npt.NDArray[np.float32]

RATE_HZ = 24_000


def speech_like(
    duration_s: float, level_dbfs: float = -20.0, seed: int = 0, rate_hz: int = RATE_HZ
) -> Samples:
    """Syllables of a gliding harmonic buzz and of hiss, and pauses, with speech's range of levels."""
    rng = np.random.default_rng(seed)
    count = round(duration_s * rate_hz)
    out = np.zeros(count)
    at = 0
    while at < count:
        length = min(round(rng.uniform(0.08, 0.3) * rate_hz), count - at)
        t = np.arange(length) / rate_hz
        kind = rng.random()
        if kind < 0.7:
            f0 = rng.uniform(90, 240) * (1 + 0.1 * t)
            voice = sum(np.cos(2 * np.pi * k * f0 * t + k * k) / k for k in range(1, 25))
            sound = rng.uniform(0.3, 1.0) * voice
        elif kind < 0.9:
            sound = rng.uniform(0.05, 0.2) * lfilter(*butter(2, 0.3, "high"), rng.standard_normal(length))
        else:
            sound = 1e-5 * rng.standard_normal(length)
        out[at : at + length] = sound * np.hanning(length + 2)[1:-1]
        at += length
    out *= 10 ** (level_dbfs / 20) / np.sqrt(np.mean(out**2))
    return out.astype(np.float32)


def tone(frequency_hz: float, amplitude: float, duration_s: float, degrees: float = 0.0) -> Samples:
    t = np.arange(round(duration_s * RATE_HZ)) / RATE_HZ
    return (amplitude * np.sin(2 * np.pi * frequency_hz * t + np.radians(degrees))).astype(np.float32)


def noise(amplitude: float, duration_s: float, seed: int = 0) -> Samples:
    rng = np.random.default_rng(seed)
    return (amplitude * rng.standard_normal(round(duration_s * RATE_HZ))).astype(np.float32)


def torture(amplitude: float, duration_s: float = 0.5) -> dict[str, Samples]:
    """What has broken limiters: peaks between samples, clicks, edges, noise, and all of it at once."""
    rng = np.random.default_rng(7)
    count = round(duration_s * RATE_HZ)
    n = np.arange(count)
    hiss = rng.standard_normal(count)
    clicks = np.where(n % 2999 == 1500, 1.0, 0.0)
    jumps = np.repeat(10 ** rng.uniform(-2, 1, count // 40 + 1), 40)[:count]
    square = np.sign(np.sin(2 * np.pi * 110 * n / RATE_HZ + 0.1))
    signals = {
        "fs/4 at 45 degrees": np.sin(np.pi / 2 * n + np.pi / 4),
        "fs/6 at 60 degrees": np.sin(np.pi / 3 * n + np.pi / 3),
        "square, low": square,
        "square, high": np.sign(np.sin(2 * np.pi * 3000 * n / RATE_HZ + 0.1)),
        "clicks": clicks,
        "clicks of two samples": clicks + np.roll(clicks, 1),
        "clicks of two samples, up and down": clicks - np.roll(clicks, 1),
        "noise": hiss,
        "random signs": np.sign(hiss),
        "sparse noise": hiss * (rng.random(count) < 0.01),
        "noise that jumps in level": jumps * hiss / 3,
        "silence, then a square": np.where(n < count // 2, 0.0, square),
        "half the rate, turned in phase": np.where(n < count // 2, 1, -1) * (-1.0) ** n,
    }
    return {name: (amplitude * signal).astype(np.float32) for name, signal in signals.items()}


@st.composite
def partitions(draw: st.DrawFn, count: int) -> list[slice]:
    """Ways to cut `count` samples into blocks, empty ones and runs of single samples among them."""
    cuts = draw(st.lists(st.integers(0, count), max_size=30))
    single_from = draw(st.integers(0, count))
    single_to = min(count, single_from + draw(st.integers(0, 40)))
    edges = sorted([0, *cuts, *range(single_from, single_to), count])
    return [slice(start, end) for start, end in pairwise(edges)]


def in_blocks(processor: Processor[np.float32], samples: Samples, blocks: list[slice]) -> Samples:
    return np.concatenate([*[processor.push(samples[block]) for block in blocks], processor.flush()])


def silence_speech_silence(floor_dbfs: float = -85.0) -> Samples:
    """Kokoro's shape: 300 ms of floor, speech with a pause of 200 ms in it, 500 ms of floor."""
    parts = [
        np.zeros(7200, np.float32),
        speech_like(0.4, seed=1),
        np.zeros(4800, np.float32),
        speech_like(0.3, seed=2),
        np.zeros(12_000, np.float32),
    ]
    samples = np.concatenate(parts)
    return samples + noise(10 ** (floor_dbfs / 20), len(samples) / RATE_HZ, seed=9)
