"""Server-sent events as a client reads them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event: its `id:`, its `event:` and its data."""

    id: str | None
    name: str | None
    data: dict[str, Any]

    @property
    def audio(self) -> bytes:
        """The bytes of a delta."""
        return base64.b64decode(self.data["audio"])

    @property
    def kind(self) -> str:
        """`speech.audio.delta`, `speech.audio.done`, `error`, ..."""
        return str(self.data.get("type", self.name))


def read_events(lines: Iterable[str]) -> Iterator[ServerEvent]:
    """Events out of lines, by the rules of the HTML standard that matter here; comments are left out."""
    fields: dict[str, str] = {}
    for line in lines:
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
        elif fields:
            yield ServerEvent(fields.get("id"), fields.get("event"), json.loads(fields["data"]))
            fields = {}


def audio_of(events: Iterable[ServerEvent]) -> bytes:
    """The audio of all deltas, joined."""
    return b"".join(event.audio for event in events if event.kind == "speech.audio.delta")
