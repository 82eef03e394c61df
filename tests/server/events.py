"""Server-sent events as a client reads them: the benchmarks' own reader, so that it is tested here too."""

from __future__ import annotations

from collections.abc import Iterable

from kokoro_lab.lab.bench.client import ServerEvent, read_events

__all__ = ["ServerEvent", "audio_of", "read_events"]


def audio_of(events: Iterable[ServerEvent]) -> bytes:
    """The audio of all deltas, joined."""
    return b"".join(event.audio for event in events if event.kind == "speech.audio.delta")
