"""An engine in a process of its own: what it takes to start, and what it speaks when it is told to.

ONNX Runtime's arena is one a process, resident memory can only be told apart by process, and a cold start is
the start of one.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import psutil

from kokoro_lab.bench.configurations import Configuration
from kokoro_lab.bench.memory import MB, sampled_memory
from kokoro_lab.bench.timing import InProcess
from kokoro_lab.bench.trial import Listener, Trial
from kokoro_lab.datatypes import Samples
from kokoro_lab.engine import Engine, load_engine
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import KokoroLabError
from kokoro_lab.model.providers import recorded_options
from kokoro_lab.scheduling import keep_collector_off

PATIENCE_S = 600.0
"""For one answer, in which missing weights may be fetched: one that hangs must not hang the others."""
GOODBYE_S = 10.0
COLD_TEXT = "Good morning. This is the first thing that anybody hears."

Load = Callable[[EngineConfig], Engine]


class Unavailable(KokoroLabError):
    """A configuration cannot be measured here: its provider is missing, or it failed."""

    code = "configuration_unavailable"


@dataclass(frozen=True, slots=True)
class Start:
    """A cold start.

    Parameters
    ----------
    configuration : str
    process_s : float
        From the start of the process to an engine that could speak, imports and all.
    load_s : float
        Of that, `load_engine`.
    first_ttfa_s : float
        From the first request to its first sample of speech: G2P and whatever is lazy are loaded in it.
    loaded_mb : float
        Resident memory before it speaks.
    facts : dict
        What was made: variant, providers, threads, session options.
    """

    configuration: str
    process_s: float
    load_s: float
    first_ttfa_s: float
    loaded_mb: float
    facts: dict[str, Any]


def load(config: EngineConfig) -> Engine:
    """An engine on the real weights."""
    return load_engine(config=config)


class Apart:
    """A configuration's engine in a process of its own. Started by being made; `close` ends it.

    Parameters
    ----------
    configuration : Configuration
    voice : str
        Who speaks.
    load : callable
        Makes the engine; importable by its name, since another process calls it.

    Attributes
    ----------
    start : Start

    Raises
    ------
    Unavailable
        It cannot be loaded, or could not speak its first text; says why.
    """

    def __init__(self, configuration: Configuration, voice: str, load: Load = load) -> None:
        self.name = configuration.name
        # Not forked: a child would inherit threads' locks, and Core ML refuses forked processes
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=_speak_when_told, args=(theirs, configuration.config, voice, load), daemon=True
        )
        begun_s = time.perf_counter()
        self._process.start()
        theirs.close()
        try:
            load_s, loaded_mb, facts = self._answer()
            process_s = time.perf_counter() - begun_s
            trial, _ = self.speak(COLD_TEXT, 0)
        except BaseException:
            self.close()
            raise
        self.start = Start(self.name, process_s, load_s, trial.ttfa_s, loaded_mb, facts)

    def warm(self, text: str) -> None:
        """Speak `text` while nobody times it: what is lazy is loaded, and memory is taken, with it."""
        self._answer_to((text, None))

    def speak(self, text: str, number: int) -> tuple[Trial, Samples]:
        """Stream `text`, uncached: what a listener there noticed, and what it heard.

        Raises
        ------
        Unavailable
            It could not, or its process has ended.
        """
        trial, samples = self._answer_to((text, number))
        return trial, samples

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join(GOODBYE_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _answer_to(self, asked: tuple[str, int | None]) -> Any:
        with suppress(OSError):  # it ended since it last spoke: what it said of that, and how, is still there
            self._connection.send(asked)
        return self._answer()

    def _answer(self) -> Any:
        try:
            if not self._connection.poll(PATIENCE_S):
                raise Unavailable(f"{self.name} did not answer within {PATIENCE_S:.0f} s.")
            what, answer = self._connection.recv()
        except (EOFError, ConnectionError):
            self._process.join(GOODBYE_S)
            raise Unavailable(
                f"The process of {self.name} ended with code {self._process.exitcode}."
            ) from None
        if what == "failed":
            raise Unavailable(answer)
        return answer


def _speak_when_told(connection: Connection, config: EngineConfig, voice: str, load: Load) -> None:
    """The other process: loads, says what that took, and answers until the connection ends."""
    with suppress(EOFError, BrokenPipeError, ConnectionError), connection:
        try:
            begun_s = time.perf_counter()
            engine = load(config)
            load_s = time.perf_counter() - begun_s
            speaker = InProcess(engine, voice, cached=False)
            loaded_mb = speaker.process.memory_info().rss / MB
            session = recorded_options(config) | dict(engine.decoder.details)
            connection.send(("loaded", (load_s, loaded_mb, {**speaker.facts(), "session": session})))
            while True:
                text, number = connection.recv()
                if number is None:
                    engine.warm(voice, text=text)
                    keep_collector_off()  # as the server does
                connection.send(("done", None if number is None else _spoken(speaker, text, number)))
        except (EOFError, ConnectionError):
            raise
        except Exception as error:  # whatever a provider raises: the row says so, and the others go on
            known = isinstance(error, KokoroLabError)
            connection.send(("failed", str(error) if known else f"{type(error).__name__}: {error}"))


def _spoken(speaker: InProcess, text: str, number: int) -> tuple[Trial, Samples]:
    listener = Listener(keep=True)
    with sampled_memory(psutil.Process()) as memory:
        listener.asks()
        speaker.speak(text, listener)
    trial = listener.trial(speaker.name, number, len(text), streamed=True, memory=memory)
    return trial, listener.samples
