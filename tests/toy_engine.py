"""An engine that needs no model, for processes that are started and ended often: it hums as long as a text.

`make_engine` and `fails_at_1_thread` are told to another process by their names.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, AudioChunk
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ProviderError

TONE_HZ = 200


@dataclass
class ToyStream:
    config: EngineConfig
    text: str
    primed: bool = False

    def __iter__(self) -> Iterator[AudioChunk]:
        if self.text == "die":
            os._exit(7)
        if self.text == "hang":
            time.sleep(60)
        if self.text == "refuse":
            raise ProviderError("The provider is lost.")
        count = len(self.text) * SAMPLE_RATE_HZ // 15
        samples = 0.2 * np.sin(2 * np.pi * TONE_HZ * np.arange(count) / SAMPLE_RATE_HZ).astype(np.float32)
        if self.config.memory_pattern:  # so that a candidate may sound otherwise
            samples = np.repeat(samples[::4], 4)[:count]
        chunk = self.config.chunk_ms * SAMPLE_RATE_HZ // 1000
        for number, start in enumerate(range(0, count, chunk)):
            yield AudioChunk(
                samples[start : start + chunk], SAMPLE_RATE_HZ, 0, number, start / SAMPLE_RATE_HZ
            )

    def close(self) -> None:
        pass


@dataclass
class ToyEngine:
    config: EngineConfig
    model_sha256: str = "5" * 64
    active_provider: str = "CPUExecutionProvider"
    conversion: Mapping[str, object] = field(default_factory=dict)

    decoder: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(details={}))

    def warm(self, voice: str, **spoken: str) -> None:
        pass

    def stream(self, text: str, **options: object) -> ToyStream:
        return ToyStream(self.config, text)


def make_engine(config: EngineConfig) -> ToyEngine:
    return ToyEngine(config)


def fails_at_1_thread(config: EngineConfig) -> ToyEngine:
    if config.threads == 1:
        raise ProviderError("One thread is not enough.")
    return ToyEngine(config)
