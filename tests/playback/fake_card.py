"""A sound card for machines without one."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest


class FakeError(Exception):
    """What PortAudio raises."""


class FakeStream:
    """A sound card that is as fast as it is asked to be."""

    latency = 0.012
    dies = False

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.written = b""
        self.calls: list[str] = []

    def write(self, content: bytes) -> None:
        if self.dies:
            raise FakeError("device unplugged")
        self.written += content

    def __getattr__(self, name: str) -> Any:
        return lambda **_: self.calls.append(name)


def fake_sounddevice(monkeypatch: pytest.MonkeyPatch) -> list[FakeStream]:
    """Put a `sounddevice` in the place of any that is installed; gives the streams that are opened on it."""
    opened: list[FakeStream] = []

    def open_stream(**options: Any) -> FakeStream:
        if options["device"] == "none":
            raise ValueError("No output device matching 'none'")
        opened.append(FakeStream(**options))
        return opened[-1]

    fake = SimpleNamespace(RawOutputStream=open_stream, PortAudioError=FakeError)
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    return opened
