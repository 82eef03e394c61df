"""Decoders that are wrong in one way, and engines that speak with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.errors import (
    SynthesisError,
)
from kokoro_lab.model.decoder import DecodedSegment, SegmentRequest, WholeGraph
from kokoro_lab.speech.engine import Engine
from kokoro_lab.weights.voices import Voice, VoiceCache
from tests import tiny_voice

PARAGRAPH = (
    "The kettle is on, and the window is open. Nobody is in. A letter lies on the table, "
    "addressed to somebody who left years ago; who wrote it, we shall never know."
)


def tone_hz(samples: Samples) -> float:
    """The strongest frequency."""
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples)), 1 << 16))
    return float(np.argmax(spectrum)) * SAMPLE_RATE_HZ / (1 << 16)


class Whole:
    """A decoder that knows no statistics in advance."""

    def predicts(self, voice: Voice) -> str:
        return "a test"


class Silent(Whole):
    """A decoder that gives nothing but silence."""

    def decode(self, asked: SegmentRequest) -> DecodedSegment:
        frames = np.full(len(asked.token_ids) + 2, 2)
        return DecodedSegment(frames, iter((np.zeros(int(frames.sum()) * 600, np.float32),)))


class Broken(Whole):
    """A decoder that fails at its `at`-th segment, or gives not-a-number there."""

    def __init__(self, inner: WholeGraph, at: int) -> None:
        self._inner, self._at, self._calls = inner, at, 0

    def decode(self, asked: SegmentRequest) -> DecodedSegment:
        self._calls += 1
        if self._calls == self._at:
            raise SynthesisError("The model broke.")
        return self._inner.decode(asked)


class Counting(Whole):
    """A decoder that keeps what it was asked for."""

    details: Mapping[str, str] = {}

    def __init__(self, inner: WholeGraph) -> None:
        self._inner = inner
        self.asked: list[tuple[tuple[int, ...], float]] = []
        self.styles: list[float] = []

    def decode(self, asked: SegmentRequest) -> DecodedSegment:
        self.asked.append((tuple(asked.token_ids), asked.speed))
        self.styles.append(float(asked.style[0, 0]))
        return self._inner.decode(asked)


def with_decoder(
    engine: Engine, decoder: object, voices: Callable[[str], Voice] = tiny_voice.voice
) -> Engine:
    parts = replace(engine.parts, decoder=decoder, voices=VoiceCache(voices))  # type: ignore[arg-type]
    return Engine(parts)
