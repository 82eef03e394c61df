"""Clients as people have them, against a server in its own process that hums."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.server.conftest import RunningServer, running


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """One for all clients."""
    with running(tmp_path_factory.mktemp("server")) as found:
        yield found


@pytest.fixture(scope="session")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that wants a key."""
    with running(tmp_path_factory.mktemp("locked"), api_key="sesame") as found:
        yield found
