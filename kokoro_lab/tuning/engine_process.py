"""An engine in a process of its own: fresh sessions, fresh memory, and nothing that it breaks breaks us."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

import psutil

from kokoro_lab.bench.memory import sampled_memory
from kokoro_lab.bench.timing import InProcess
from kokoro_lab.bench.trial import Listener, Trial
from kokoro_lab.datatypes import Samples
from kokoro_lab.engine import Engine, load_engine
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import KokoroLabError, TuningError

START_S = 180.0
"""In which an engine must be loaded and warm."""
SPEAK_S = 120.0
"""In which a text must be spoken; what takes longer is no configuration for anybody."""

MakeEngine = Callable[[EngineConfig], Engine]


def real_engine(config: EngineConfig) -> Engine:
    """An engine on the real weights, configured as said and not otherwise."""
    return load_engine(config=config)


@dataclass(frozen=True, slots=True, eq=False)
class Spoken:
    """One text, as it was spoken: what a listener noticed, memory included, and what was heard."""

    trial: Trial
    samples: Samples


class EngineProcess:
    """An engine in a process of its own, for a `with` block, at the end of which the process is ended.

    Parameters
    ----------
    name : str
        What its trials are called.
    config : EngineConfig
    voice : str
    make_engine : callable
        Of a module that the process can import.

    Attributes
    ----------
    facts : dict
        Model, provider and threads, as the engine says.

    Raises
    ------
    TuningError
        From the `with` on: the engine refuses the configuration, is too slow, or its process died.
    """

    def __init__(
        self, name: str, config: EngineConfig, voice: str, make_engine: MakeEngine = real_engine
    ) -> None:
        self.facts: dict[str, Any] = {}
        self._name = name
        self._answers = True
        # A fork would take threads' locks and ONNX Runtime's state along
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._theirs = theirs
        self._process = context.Process(
            target=_serve, args=(theirs, name, config, voice, make_engine), name=f"tune-{name}", daemon=True
        )

    def __enter__(self) -> EngineProcess:
        self._process.start()
        self._theirs.close()
        try:
            self.facts = self._answer(START_S, "be ready")
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    @property
    def alive(self) -> bool:
        """Whether it can be asked for more: not once it has refused something, or let us wait too long."""
        return self._answers and self._process.is_alive()

    def speak(self, number: int, text: str) -> Spoken:
        """Stream text `number`, timed where it is spoken; nothing is taken from a cache."""
        if not self._answers:
            raise TuningError(f"{self._name} speaks no more.")
        try:
            self._ours.send((number, text))
        except OSError as error:
            raise self._died() from error
        spoken: Spoken = self._answer(SPEAK_S, f"speak text {number}")
        return spoken

    def _answer(self, limit_s: float, what: str) -> Any:
        try:
            if not self._ours.poll(limit_s):
                # What it says later would pass for the answer to the next text
                self._answers = False
                raise TuningError(f"{self._name} took more than {limit_s:.0f} s to {what}.")
            answer = self._ours.recv()
        except (EOFError, OSError) as error:
            raise self._died() from error
        if isinstance(answer, str):
            self._answers = False  # it ends, which takes it a moment
            raise TuningError(answer)
        return answer

    def _died(self) -> TuningError:
        self._process.join(1)
        return TuningError(f"The process of {self._name} died with exit code {self._process.exitcode}.")

    def _end(self) -> None:
        self._ours.close()  # which it notices when it next waits for a text
        self._process.join(2)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()


def _serve(asked: Connection, name: str, config: EngineConfig, voice: str, make_engine: MakeEngine) -> None:
    """What the process does: load, warm, then speak each text that it is sent. A string is a refusal."""
    try:
        speaker = InProcess(make_engine(config), voice, cached=False)
        speaker.warm()
        asked.send(speaker.facts())
        while True:
            number, text = asked.recv()
            listener = Listener(keep=True)
            with sampled_memory(psutil.Process()) as memory:
                listener.asks()
                speaker.speak(text, listener)
            trial = listener.trial(name, number, len(text), streamed=True, memory=memory)
            asked.send(Spoken(trial, listener.samples))
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        sys.exit(0)  # nobody asks any more
    except KokoroLabError as error:
        asked.send(str(error))
    except Exception as error:  # whatever a provider raises is told to who asked
        asked.send(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
