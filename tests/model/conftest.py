"""What tests of the model share: our own operators, where they can be built."""

from __future__ import annotations

from pathlib import Path

import pytest

from kokoro_lab.config import EngineConfig
from kokoro_lab.model.native import native_operators


@pytest.fixture(scope="session")
def library() -> Path:
    built = native_operators(EngineConfig())
    if built.library is None:
        pytest.skip(f"our own operators cannot be built here: {built.reason}")
    return built.library
