"""Server-sent events as a client reads them: the benchmarks' own reader, so that it is tested here too."""

from __future__ import annotations

from kokoro_lab.lab.bench.server_events import ServerEvent, audio_of, read_events

__all__ = ["ServerEvent", "audio_of", "read_events"]
