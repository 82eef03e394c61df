"""An engine in a process of its own: with fresh sessions and memory, and without harm to us if it crashes.

ONNX Runtime has one arena for each process, resident memory is known only for a whole process, and a cold
start is the start of a process.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Literal, NamedTuple

from kokoro_lab.datatypes import Samples
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import KokoroLabError
from kokoro_lab.lab.bench.memory import INTERVAL_S, resident_mb
from kokoro_lab.lab.bench.timing import InProcess, spoken
from kokoro_lab.lab.bench.trial import Listener, Trial
from kokoro_lab.scheduling.priority import keep_collector_off
from kokoro_lab.sessions.providers import recorded_options
from kokoro_lab.speech.engine import Engine, load_engine

START_S = 600.0
"""Time limit in seconds for loading, and again for the first speech: weights may be fetched, and a provider
may compile."""
SPEAK_S = 120.0
"""Time limit in seconds for a text; a configuration that takes longer is of no use."""
GOODBYE_S = 10.0

MakeEngine = Callable[[EngineConfig], Engine]


class EngineFailed(KokoroLabError):
    """The engine in the other process cannot be loaded or does not speak, or its process has ended."""

    code = "engine_failed"


class EngineTrial(NamedTuple):
    """One text as the other process spoke it: what a listener in that process noticed, that process's memory,
    and the samples."""

    trial: Trial
    samples: Samples


def real_engine(config: EngineConfig) -> Engine:
    """An engine on the real weights with exactly this configuration."""
    return load_engine(config=config)


class EngineProcess:
    """An engine in a process of its own, for a `with` block, at the end of which the process is ended.

    Parameters
    ----------
    name : str
        The name of the process in the table of trials.
    config : EngineConfig
    voice : str
        The voice that speaks.
    make_engine : callable
        A function in a module that the process can import.

    Attributes
    ----------
    loaded : dict of str to float
        Set when the `with` block begins: process_s, from the start of the process to an engine that can
        speak, imports included; load_s, the part of it that making the engine took; loaded_mb, resident
        memory at that time.
    facts : dict
        From the `with` on: variant, model, providers, threads, session options.

    Raises
    ------
    EngineFailed
        From the `with` on: the engine refuses the configuration, is too slow, or its process died.
    """

    def __init__(
        self,
        name: str,
        config: EngineConfig,
        voice: str,
        make_engine: MakeEngine = real_engine,
    ) -> None:
        self.name = name
        self.facts: dict[str, Any] = {}
        self.loaded: dict[str, float] = {}
        self._answers = True
        # Not forked: a child would inherit threads' locks, and Core ML refuses forked processes
        context = multiprocessing.get_context("spawn")
        self._ours, self._theirs = context.Pipe()
        self._process = context.Process(
            target=_serve,
            args=(self._theirs, name, config, voice, make_engine),
            name=f"engine-{name}",
            daemon=True,
        )

    def __enter__(self) -> EngineProcess:
        begun_s = time.perf_counter()
        self._process.start()
        self._theirs.close()
        try:
            measured, self.facts = self._answer(START_S, "be ready")
            self.loaded = {"process_s": time.perf_counter() - begun_s, **measured}
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """Whether the process can speak further texts; False after an error or a time-out."""
        return self._answers and self._process.is_alive()

    def warm(self, text: str | None = None) -> None:
        """Speak without timing, so that lazy parts are loaded and memory is allocated.

        Parameters
        ----------
        text : str, optional
            What to say; the engine's own choice unless given.
        """
        self._ask(("warm", text), START_S, "be warm")

    def speak(self, number: int, text: str) -> EngineTrial:
        """Stream text `number`, and time it in the process that speaks; nothing comes from a cache."""
        spoken: EngineTrial = self._ask((number, text), SPEAK_S, f"speak text {number}")
        return spoken

    def close(self) -> None:
        """End the process, at once if it does not answer. May be called again."""
        self._ours.close()  # the process notices that when it next waits for a text
        if self._answers:
            self._process.join(GOODBYE_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _ask(self, what: tuple[int | Literal["warm"], str | None], limit_s: float, task: str) -> Any:
        if not self._answers:
            raise EngineFailed(f"{self.name} speaks no more.")
        with suppress(OSError):  # it has ended; its last message can still be read
            self._ours.send(what)
        return self._answer(limit_s, task)

    def _answer(self, limit_s: float, task: str) -> Any:
        try:
            if not self._ours.poll(limit_s):
                # A late message would be taken for the answer to the next text
                self._answers = False
                raise EngineFailed(f"{self.name} took more than {limit_s:.0f} s to {task}.")
            kind, answer = self._ours.recv()
        except (EOFError, OSError) as error:
            self._process.join(GOODBYE_S)
            raise EngineFailed(
                f"The process of {self.name} ended with code {self._process.exitcode}."
            ) from error
        if kind == "failed":
            self._answers = False  # the process is about to end
            raise EngineFailed(answer)
        return answer


def _serve(
    connection: Connection, name: str, config: EngineConfig, voice: str, make_engine: MakeEngine
) -> None:
    """The process's main function: loads the engine, reports how long that took and how much memory it needs,
    then speaks each text that it is sent until the connection ends."""
    with suppress(EOFError, BrokenPipeError, ConnectionError, KeyboardInterrupt), connection:
        try:
            begun_s = time.perf_counter()
            engine = make_engine(config)
            load_s = time.perf_counter() - begun_s
            speaker = InProcess(engine, voice, cached=False, name=name)
            loaded_mb = resident_mb(speaker.process)
            session = recorded_options(config) | dict(engine.decoder.details)
            measured = {"load_s": load_s, "loaded_mb": loaded_mb}
            connection.send(("loaded", (measured, {**speaker.facts(), "session": session})))
            while True:
                number, text = connection.recv()
                if number == "warm":
                    engine.warm(voice, **({} if text is None else {"text": text}))
                    keep_collector_off()  # as the server does
                    connection.send(("warm", None))
                else:
                    listener = Listener(keep=True)
                    trial = spoken(speaker, number, text, listener, memory_interval_s=INTERVAL_S)
                    connection.send(("spoken", EngineTrial(trial, listener.samples)))
        except (EOFError, ConnectionError):
            raise
        except Exception as error:  # any exception of a provider is reported to the caller
            first = str(error).partition("\n")[0]
            known = isinstance(error, KokoroLabError)
            connection.send(("failed", str(error) if known else f"{type(error).__name__}: {first}"))
