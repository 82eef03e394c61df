"""The humming engine, with words in the text that make it slow or make it fail."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import SynthesisError, VoiceError
from kokoro_lab.g2p.vocab import encode
from kokoro_lab.model.decoder import DecodedSegment, Decoder, SegmentRequest, WholeGraph
from kokoro_lab.speech.engine import Engine
from kokoro_lab.speech.parts import Parts
from kokoro_lab.weights.voices import Voice, VoiceCache, parts_of
from tests import tiny_voice

BOOM = encode("bˈum")
"""A segment with the word `boom` raises an error of no type of ours, which quotes a text."""
BANG = encode("bˈæŋ")
"""A segment with the word `bang` raises a SynthesisError."""
SLOW = encode("slˈO")
"""A segment with the word `slow` takes `SLOW_S`."""
SLOW_S = 0.5
SECRET = "xyzzy"


class Scripted:
    """Decodes with `decoder`, but for the words above. `gate`, if it is cleared, holds every segment."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self.gate = threading.Event()
        self.gate.set()
        self.decoded = 0

    @property
    def details(self) -> Mapping[str, str]:
        return self._decoder.details

    def predicts(self, voice: Voice) -> str | None:
        return self._decoder.predicts(voice)

    def decode(self, asked: SegmentRequest) -> DecodedSegment:
        ids = tuple(asked.token_ids)
        assert self.gate.wait(30)
        if _within(SLOW, ids):
            time.sleep(SLOW_S)
        if _within(BOOM, ids):
            raise RuntimeError(f"the text was {SECRET}")
        if _within(BANG, ids):
            raise SynthesisError("The samples are not finite.")
        self.decoded += 1
        return self._decoder.decode(asked)


def _within(word: tuple[int, ...], ids: tuple[int, ...]) -> bool:
    return any(ids[i : i + len(word)] == word for i in range(len(ids)))


def _voice(spec: str) -> Voice:
    """A voice that hums, also by the names that the server lists and their blends."""
    try:
        listed = [name for name, _ in parts_of(spec)]
    except VoiceError:
        return tiny_voice.voice(spec)
    return replace(tiny_voice.voice("hum"), name=spec, parts=tuple(listed))


def engine(path: Path) -> Engine:
    """An engine that hums, slows down and fails by the text."""
    config = EngineConfig(variant="fp32", threads=1, first_audio_ttl_s=0)
    decoder = WholeGraph(tiny_voice.build(path), config)
    found = Engine(Parts(Scripted(decoder), config, VoiceCache(_voice), "hum", lambda: decoder.placement))
    # Hundreds of applications warm it, and each would wait for half a minute of speech
    found.warm = partial(found.warm, text="Ready.")
    return found
