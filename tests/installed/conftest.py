"""The installed command, for tests that look at what users get."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.installed.command import Installed, Served


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    """In an empty folder."""
    return Installed(tmp_path)


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`kokoro-lab serve` as it comes, on the real weights; one for all tests that only ask it something."""
    with Installed(tmp_path_factory.mktemp("served")).serving() as server:
        yield server
