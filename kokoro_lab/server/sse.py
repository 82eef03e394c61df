"""Server-sent events, as OpenAI streams speech: `speech.audio.delta`, `speech.audio.done`, and an error.

Each delta has an `id:`, `segment.chunk`, behind which a client may go on, and that of a segment's first frame
the token that it needs for that (see `resume`).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from kokoro_lab.datatypes import Place
from kokoro_lab.server.speech_events import AudioBytes, Done, Event, KeepAlive, word_of


def frame_id(frame: AudioBytes) -> str:
    """What a client names to go on behind this frame."""
    return f"{frame.segment_id}.{frame.chunk_id}"


class EventWriter:
    """Events as the bytes of a `text/event-stream`.

    Parameters
    ----------
    stream_id : str
        Said in the first line, a comment, which also opens the connection of an impatient proxy.
    token : callable
        The resume token for a place; None if there is to be none.
    describe : callable
        An error in OpenAI's shape.
    """

    def __init__(
        self,
        stream_id: str,
        token: Callable[[Place], str | None],
        describe: Callable[[BaseException], dict[str, Any]],
    ) -> None:
        self._stream_id = stream_id
        self._token = token
        self._describe = describe

    def begin(self) -> bytes:
        return f": {self._stream_id}\n\n".encode()

    def write(self, event: Event) -> bytes:
        if isinstance(event, AudioBytes):
            fields = {"type": "speech.audio.delta", "audio": base64.b64encode(event.data).decode()}
            token = None if event.place is None else self._token(event.place)
            if token is not None:
                fields["resume"] = token
            return _event(fields, f"id: {frame_id(event)}\n")
        if isinstance(event, KeepAlive):
            return b": still computing\n\n"
        if isinstance(event, Done):
            return _event({"type": "speech.audio.done", "usage": event.usage})
        words = [word_of(timing) for timing in event.timings]
        return _event({"type": "speech.audio.words", "segment_id": event.segment_id, "words": words})

    def failed(self, error: BaseException) -> bytes | None:
        return _event(self._describe(error), "event: error\n")


def _event(fields: dict[str, Any], head: str = "") -> bytes:
    # JSON escapes line breaks, so the data is one line
    return f"{head}data: {json.dumps(fields, ensure_ascii=False)}\n\n".encode()
