"""The sessions of stages: each runs on its provider until that fails, then on the CPU.

A provider is *lost* when ONNX Runtime raises from a session that is not the CPU's, or gives values that are
not finite, and the CPU then does what was asked. If the CPU fails as well, the input was wrong: the CPU's
exception is raised, and the provider is not lost. One loss is enough: what failed once is likely to fail
again, and each attempt would cost a listener the time of a window. A crash of the process cannot be caught
here.

A *stage* is one of the graphs of the model: prosody, trunk, excitation, vocoder; or the whole model.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

import numpy as np
from onnxruntime.capi import onnxruntime_pybind11_state as runtime

from kokoro_lab.datatypes import Fallback
from kokoro_lab.engine_config import WHOLE_MODEL
from kokoro_lab.errors import KokoroLabError, OutOfMemory, ProviderError
from kokoro_lab.scheduling.stopwatch import heard
from kokoro_lab.sessions.provider_registry import CPU, PROVIDER_STAGE, first_line

log = logging.getLogger(__name__)

RAISED: tuple[type[Exception], ...] = (
    *(kind for kind in vars(runtime).values() if isinstance(kind, type) and issubclass(kind, Exception)),
    RuntimeError,
)
"""Exceptions of ONNX Runtime: one for each status code, without a common base; and RuntimeError, for other
errors of a provider's library."""


class Runs(Protocol):
    """The methods of a session that a stage uses. ONNX Runtime's session has them; so may a vocoder of fixed
    windows."""

    def run(self, names: Sequence[str] | None, feed: Mapping[str, Any]) -> list[Any]:
        """Compute outputs: those in `names`, in this order, or all if it is None. `feed` holds the inputs by
        their names."""


class GuardedSession:
    """Runs one stage. Thread-safe, as sessions are.

    Parameters
    ----------
    stage : str
        Name of the stage; its graph has the same name.
    session : Runs
        The session on `provider`.
    provider : str
        ONNX Runtime's name of the provider.
    spare : callable, optional
        Makes the session that takes over when the provider is lost: called at most once, and only then. None
        if the session itself is on the CPU.
    nodes : tuple of int, optional
        How many nodes of the graph the provider takes, and of how many; the CPU takes the others.
    because : str
        Why this provider was chosen.
    fallbacks : tuple of Fallback
        Providers that were given up when the session was made.

    Attributes
    ----------
    active_provider : str
        Where the stage runs now.
    nodes : tuple of int or None
        How many nodes `active_provider` takes, and of how many; None for the CPU, which takes all.
    fallbacks : tuple of Fallback
        The changes of provider when the session was made and since, each with its reason.
    """

    def __init__(
        self,
        stage: str,
        session: Runs,
        provider: str = CPU.full_name,
        *,
        spare: Callable[[], Runs] | None = None,
        nodes: tuple[int, int] | None = None,
        because: str = "",
        fallbacks: tuple[Fallback, ...] = (),
    ) -> None:
        self.stage = stage
        self.because = because
        self._session = session
        self.active_provider = provider
        self.nodes = nodes
        self._make_spare = spare
        self._spare: Runs | None = None
        self.fallbacks = fallbacks
        self._numbers = count(1)
        self._lock = threading.Lock()

    def run(self, names: Sequence[str] | None, feed: Mapping[str, Any]) -> list[Any]:
        """Compute outputs, as `Runs.run` says; on the CPU if the provider is lost.

        Raises
        ------
        ProviderError
            The provider was lost, and no session could be made on the CPU.
        OutOfMemory
            The CPU's session runs out of memory.
        """
        with heard(self.stage):
            return self._run(names, feed)

    def _run(self, names: Sequence[str] | None, feed: Mapping[str, Any]) -> list[Any]:
        if self._make_spare is None or self.active_provider == CPU.full_name:
            return self._session.run(names, feed)
        number = next(self._numbers)
        try:
            values = self._session.run(names, feed)
        except RAISED as error:
            values = self._spare_session(error).run(names, feed)
            self._lose(number, first_line(error))
            return values
        if _finite(values):
            return values
        again = self._spare_session(None).run(names, feed)
        if _finite(again):
            self._lose(number, "it gave values that are not finite")
        return again

    def _spare_session(self, error: Exception | None) -> Runs:
        with self._lock:  # two threads may find the provider lost at once, but only one spare session is made
            if self._spare is None:
                assert self._make_spare is not None
                try:
                    self._spare = self._make_spare()
                except OutOfMemory:  # nothing is wrong with the weights
                    raise
                except (KokoroLabError, OSError, RuntimeError) as failed:
                    raise ProviderError(
                        f"{self.active_provider} was lost while it ran the {self.stage}, and the CPU "
                        f"cannot take over: {first_line(failed)}",
                        field="provider",
                        value=self.active_provider,
                        mend="`kokoro-lab doctor` checks the weights; provider='cpu' does without it.",
                    ) from (error or failed)
            return self._spare

    def _lose(self, number: int, why: str) -> None:
        with self._lock:
            if self.active_provider == CPU.full_name:
                return
            lost = Fallback(
                PROVIDER_STAGE,
                f"{self.stage}: {CPU.full_name} instead of {self.active_provider}, "
                f"lost in run {number}: {why}",
            )
            assert self._spare is not None
            self.fallbacks = (*self.fallbacks, lost)
            self._session, self.active_provider, self.nodes = self._spare, CPU.full_name, None
        log.warning("%s", lost.reason)

    def __getattr__(self, name: str) -> Any:
        """All other attributes (inputs, outputs, the profiler) are passed on from the session in use."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._session, name)


def _finite(values: Sequence[Any]) -> bool:
    return all(
        np.isfinite(value).all()
        for value in values
        if isinstance(value, np.ndarray) and np.issubdtype(value.dtype, np.floating)
    )


SPEAKING_STAGES = ("vocoder", WHOLE_MODEL)
"""The stages that make the samples. They do nearly all of the work. An engine has one of these stages, and
the provider of that stage is the engine's active provider."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where an engine runs at this moment.

    Parameters
    ----------
    requested : str
        The provider in the configuration.
    because : str
        Why this provider runs the stages.
    stages : mapping
        Stage → ONNX Runtime's name of the provider that runs it now.
    nodes : mapping
        Stage → how many nodes of its graph the provider takes, and how many there are; without stages on the
        CPU. A provider may run a stage by name and leave nearly all of its nodes to the CPU.
    fallbacks : tuple of Fallback
        Providers that could not be loaded or were lost, each with the stage and the reason.
    """

    requested: str
    because: str
    stages: Mapping[str, str]
    nodes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    fallbacks: tuple[Fallback, ...] = ()

    @classmethod
    def of(cls, requested: str, sessions: Iterable[GuardedSession]) -> Placement:
        """The placement of an engine's sessions."""
        sessions = list(sessions)
        fallbacks = [fallback for session in sessions for fallback in session.fallbacks]
        return cls(
            requested,
            next((session.because for session in sessions if session.stage in SPEAKING_STAGES), ""),
            {session.stage: session.active_provider for session in sessions},
            {session.stage: session.nodes for session in sessions if session.nodes is not None},
            tuple(dict.fromkeys(fallbacks)),
        )

    @property
    def active_provider(self) -> str:
        """The provider of the stage that makes the samples."""
        return next((self.stages[s] for s in SPEAKING_STAGES if s in self.stages), CPU.full_name)

    def figures(self) -> dict[str, Any]:
        """The placement as plain data, for `/status` and reports."""
        return {
            "requested": self.requested,
            "active": self.active_provider,
            "because": self.because,
            "stages": dict(self.stages),
            "nodes": {stage: f"{taken} of {every}" for stage, (taken, every) in self.nodes.items()},
            "fallbacks": [fallback.reason for fallback in self.fallbacks],
        }

    def __str__(self) -> str:
        return ", ".join(f"{stage}: {provider}" for stage, provider in self.stages.items())
