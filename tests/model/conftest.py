"""What tests of the model share: our own operators, where they can be built, and a provider that breaks."""

from __future__ import annotations

from pathlib import Path

import onnxruntime as ort
import pytest

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.model import providers
from kokoro_lab.model.native import native_operators
from tests.model.fake_provider import NAME, FakeProvider


@pytest.fixture(scope="session")
def library() -> Path:
    built = native_operators(EngineConfig())
    if built.library is None:
        pytest.skip(f"our own operators cannot be built here: {built.reason}")
    return built.library


@pytest.fixture
def coreml(monkeypatch: pytest.MonkeyPatch) -> FakeProvider:
    """Core ML seems to be here, and each session on it does as the test says."""
    fake = FakeProvider()
    monkeypatch.setattr(ort, "get_available_providers", lambda: [NAME, "CPUExecutionProvider"])
    monkeypatch.setattr(providers, "provider_session", fake.session)
    monkeypatch.setattr(providers, "cpu_session", fake.on_cpu)
    return fake
