"""A provider that is not there: Core ML by name, computed on the CPU, that breaks when it is told to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnxruntime as ort
from onnxruntime.capi.onnxruntime_pybind11_state import EPFail

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ProviderError
from kokoro_lab.sessions import providers
from kokoro_lab.sessions.provider_registry import Provider

NAME = "CoreMLExecutionProvider"
NEVER = 10**9


class BreakingSession:
    """A session on the CPU that raises, or gives not-a-number, from its `breaks_at`-th run on."""

    def __init__(self, session: ort.InferenceSession, breaks_at: int, error: Exception | None) -> None:
        self._session = session
        self.breaks_at = breaks_at
        self._error = error
        self.runs = 0

    def run(self, names: Sequence[str] | None, feed: Mapping[str, Any]) -> list[Any]:
        self.runs += 1
        if self.runs >= self.breaks_at and self._error is not None:
            raise self._error
        values: list[Any] = self._session.run(names, feed)
        return [v * np.float32("nan") for v in values] if self.runs >= self.breaks_at else values

    def get_provider_graph_assignment_info(self) -> list[SimpleNamespace]:
        return [
            SimpleNamespace(ep_name=NAME, get_nodes=lambda: ["Conv", "Mul"]),
            SimpleNamespace(ep_name="CPUExecutionProvider", get_nodes=lambda: ["LSTM"]),
        ]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


class FakeProvider:
    """Sessions that were made on it, and how they break."""

    def __init__(self) -> None:
        self.sessions: list[BreakingSession] = []
        self.breaks_at = NEVER
        self.at_load = False
        self.error: Exception | None = EPFail("the device was reset")
        self.cpu_sessions = 0

    def session(
        self, provider: Provider, model: bytes | str, config: EngineConfig, **options: Any
    ) -> BreakingSession:
        assert provider.full_name == NAME
        if self.at_load:
            raise ProviderError(f"{NAME} cannot run this model: it does not compile.", field="provider")
        made = BreakingSession(plain(model, config, **options), self.breaks_at, self.error)
        self.sessions.append(made)
        return made

    def on_cpu(self, *arguments: Any, **options: Any) -> ort.InferenceSession:
        self.cpu_sessions += 1
        return plain(*arguments, **options)


plain: Callable[..., ort.InferenceSession] = providers.cpu_session
