"""Where each stage of an engine runs, and which graph it runs there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kokoro_lab.datatypes import Fallback
from kokoro_lab.engine_config import WHOLE_MODEL
from kokoro_lab.sessions.guarded_session import GuardedSession
from kokoro_lab.sessions.provider_registry import CPU

SPEAKING_STAGES = ("vocoder", WHOLE_MODEL)
"""Which make the samples, nearly all of the work: an engine is active on the provider of the one it has."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where an engine runs at this moment.

    Parameters
    ----------
    requested : str
        As the configuration says it.
    because : str
        Why the provider is what it is.
    stages : mapping
        Stage → ONNX Runtime's name of the provider that runs it now.
    nodes : mapping
        Stage → how many nodes of its graph that provider takes, and of how many, where it is not the CPU: a
        provider may have a stage by name and leave nearly all of it to the CPU.
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
        """Read off the sessions of an engine."""
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
        """Of the stage that makes the samples."""
        return next((self.stages[s] for s in SPEAKING_STAGES if s in self.stages), CPU.full_name)

    def figures(self) -> dict[str, Any]:
        """For `/status` and reports."""
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
