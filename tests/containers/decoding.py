"""Any of the formats back to samples, by FFmpeg's decoders, and how they compare with what went in."""

from __future__ import annotations

import io
from typing import NamedTuple

import av
import numpy as np
import soxr

from kokoro_lab.datatypes import Samples

SPOKEN_HZ = 24_000


class Heard(NamedTuple):
    """What a decoder made of a stream or a file."""

    samples: Samples
    rate_hz: int
    duration_s: float | None
    """As the container says, or as FFmpeg estimates."""


def speechlike(seconds: float, seed: int = 0) -> Samples:
    """Syllables of a gliding voice with hiss between them, from silence to silence; peak 0.5."""
    random = np.random.default_rng(seed)
    t = np.arange(round(seconds * SPOKEN_HZ)) / SPOKEN_HZ
    pitch_hz = 140 + 40 * np.sin(2 * np.pi * 0.7 * t) + 15 * np.sin(2 * np.pi * 3.1 * t)
    phase = 2 * np.pi * np.cumsum(pitch_hz) / SPOKEN_HZ
    voice = sum(np.sin(k * phase) / k for k in range(1, 30))
    syllables = np.sin(np.pi * 4 * t) ** 2
    edges = np.minimum(1, np.minimum(t, t[::-1]) / 0.02)
    sound = (voice * syllables + 0.03 * random.standard_normal(len(t)) * (1 - syllables)) * edges
    return (0.5 * sound / np.abs(sound).max()).astype(np.float32)


def decoded(data: bytes, kind: str, sample_rate_hz: int = SPOKEN_HZ) -> Heard:
    """What is heard of `data`; PCM, which says nothing of itself, is played at `sample_rate_hz`."""
    if kind == "pcm":
        pcm = np.frombuffer(data, "<i2").astype(np.float32) / np.float32(32768)
        return Heard(pcm, sample_rate_hz, None)
    with av.open(io.BytesIO(data)) as container:
        (stream,) = container.streams.audio
        blocks = [frame.to_ndarray()[0] for frame in container.decode(stream)]
        samples = np.concatenate(blocks) if blocks else np.zeros(0, np.float32)
        if samples.dtype == np.int16:
            samples = samples.astype(np.float32) / np.float32(32768)
        duration = None if container.duration is None else container.duration / av.time_base
        assert stream.channels == 1
        return Heard(samples, stream.rate, duration)


def at_rate(samples: Samples, rate_hz: int) -> Samples:
    """What went in, at the rate of what came out."""
    if rate_hz == SPOKEN_HZ:
        return samples
    resampled: Samples = soxr.resample(samples, SPOKEN_HZ, rate_hz, "VHQ")
    return resampled


def lag_of(candidate: Samples, reference: Samples) -> int:
    """By how many samples `candidate` is late."""
    size = 1 << (len(candidate) + len(reference)).bit_length()
    product = np.fft.rfft(candidate, size) * np.conj(np.fft.rfft(reference, size))
    at = int(np.argmax(np.fft.irfft(product, size)))
    return at if at < size // 2 else at - size


def correlation(candidate: Samples, reference: Samples) -> float:
    """1 for the same wave, however loud."""
    return float(candidate @ reference / np.sqrt((candidate @ candidate) * (reference @ reference)))


def level_db(candidate: Samples, reference: Samples) -> float:
    """How much louder `candidate` is."""
    return float(10 * np.log10((candidate @ candidate) / (reference @ reference)))
