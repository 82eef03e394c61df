"""Clients as people have them, against a server in its own process that hums."""

from __future__ import annotations

from tests.server.conftest import engine, server

__all__ = ["engine", "server"]
