"""Our own WebSocket protocol: control messages in JSON, audio in binary messages, at the client's pace.

The client sends `speak` {the fields of a request, `credit`}, `resume` {the same, `last_id`, `resume`},
`credit` {`frames`} and `cancel`. The server sends `started` {`id`, `format`, `sample_rate`, `chunk_ms`,
`pre_buffer_ms`}, `segment` {`segment_id`, `start_s`, `resume`}, `words` {`segment_id`, `words`}, `keepalive`,
`done` {`usage`} and `error` {`error`, `ended`: whether the speech ended with it}. Where a field has no effect
or something was substituted, `started` has `ignored` and `fallbacks`, and `done` has `fallbacks`.

With `live`, the text of a `speak` is a beginning; the client continues with `append` {`text`}, `flush` (speak
the text so far now) and `end`. How the client divides the text among its messages changes no sample. With
`max_wait_ms`, the server flushes by itself after this time without new text.

A binary message costs one credit (see `messages_of`); without credit, sending waits, and so does computing. A
`speak` while another is under way replaces it. A client whose connection broke reconnects and sends `resume`.
"""

from __future__ import annotations

import math
import struct
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.errors import Interrupted, ParameterError
from kokoro_lab.server.http.conversation import Conversation, control_of
from kokoro_lab.server.requests.opening import LiveText
from kokoro_lab.server.requests.speech_events import AudioBytes, Done, SpeechEvents, Words, by_stage, timed
from kokoro_lab.server.requests.speech_request import SpeechRequest, require_last_id, speech_request_of

CREDIT = 40
"""The credit of a client that states none, in binary messages: at least 2 s of speech."""
CREDIT_MAX = 100_000

WRITING = ("append", "flush", "end")
"""Kinds of messages about a text that is still being written."""
FRAME_VERSION = 1
MORE = 1
HEAD = struct.Struct("<BBHIII")
MESSAGE_BYTES = 16_384
"""The longest message in bytes: so short that the server soon reads a `cancel` between two messages."""


class WebSocketConversation(Conversation):
    """Our own dialect: credit, chunks with a header, whole and live texts, and resuming."""

    # ------------------------------------------------------------------------------ listening

    def _heed(self, said: dict[str, Any]) -> None:
        kind = said.get("type")
        if kind in ("speak", "resume"):
            self._since_s = time.monotonic()
            self._begin(said)
        elif kind == "credit":
            self._since_s = time.monotonic()
            self._credit = min(CREDIT_MAX, self._credit + _credit(said.get("frames"), "frames"))
        elif kind == "cancel":
            self._cancel()
        elif kind in WRITING:
            self._write(kind, said)
        else:
            raise ParameterError(
                "There is no such message.",
                field="type",
                value=str(kind)[:40],
                allowed="speak, resume, append, flush, end, credit, cancel",
            )

    def _write(self, kind: str, said: dict[str, Any]) -> None:
        live = None if self._synthesis is None else self._synthesis.live
        if live is None:
            raise ParameterError(
                f"No live text is under way, so there is nothing to {kind}.",
                field="type",
                value=kind,
                mend='Send `speak` with "live": true.',
            )
        if kind == "flush":
            live.flush()
        elif kind == "end":
            live.end()
        elif isinstance(said.get("text"), str):
            live.append(said["text"], wait=False)
        else:
            raise ParameterError("`append` has a text.", field="text", allowed="a string")

    def _withdraws(self, message: str | bytes) -> bool:
        kind = _kind_of(message)
        if kind != "cancel":
            self._said_meanwhile.append(message)
        if kind not in ("cancel", "speak", "resume"):
            return False
        # Text written to the stream that is replaced belongs to no other
        kept = [each for each in self._said_meanwhile if _kind_of(each) not in WRITING]
        self._said_meanwhile = deque(kept)
        return True

    def _cancel(self) -> None:
        if self._synthesis is not None:
            self._refuse(Interrupted("You have stopped this synthesis."), ends=True)

    def _read(self, fields: dict[str, Any]) -> tuple[SpeechRequest, LiveText | None, float]:
        resumed = fields.pop("type") == "resume"
        credit = _credit(fields.pop("credit", CREDIT), "credit")
        live = _live(fields)
        return self._asked(fields, resumed), live, credit

    def _asked(self, fields: dict[str, Any], resumed: bool) -> SpeechRequest:
        for name in ("stream", "stream_format"):
            if name in fields:
                raise ParameterError(
                    f"A WebSocket has no {name}.", field=name, mend="Leave it out: audio comes in chunks."
                )
        asked = speech_request_of(fields, self._state.settings, self._state.engine.config.variant)
        require_last_id(asked)
        if resumed and asked.last_id is None:
            raise ParameterError(
                "Resuming needs the id of the last chunk.",
                field="last_id",
                allowed="segment.chunk of the last chunk, such as 3.57",
            )
        if asked.captions:
            raise ParameterError(
                "A WebSocket has no captions.",
                field="response_format",
                value=asked.captions,
                mend="Ask for timestamps.",
            )
        if asked.response_format is None:
            asked = asked.model_copy(update={"response_format": "pcm"})
        return asked

    # ------------------------------------------------------------------------------- speaking

    def _tell_begun(self, asked: SpeechRequest, events: SpeechEvents) -> None:
        account = events.synthesis.account
        told = {"ignored": asked.ignored, "fallbacks": by_stage(events.stream.fallbacks)}
        self._say(
            type="started",
            id=account.request_id,
            format=asked.kind,
            sample_rate=asked.heard_hz,
            chunk_ms=account.asked["chunk_ms"],
            pre_buffer_ms=account.asked["pre_buffer_ms"],
            **{name: value for name, value in told.items() if value},
        )

    def _tell_audio(self, frame: AudioBytes) -> None:
        if frame.place is not None:
            start_s = frame.place.start_samples / SAMPLE_RATE_HZ
            resume = {} if frame.token is None else {"resume": frame.token}
            self._say(type="segment", segment_id=frame.segment_id, start_s=start_s, **resume)
        for message in messages_of(frame):
            self._deliver(message)
            self._credit -= 1

    def _tell_words(self, words: Words) -> None:
        self._say(type="words", segment_id=words.segment_id, **timed(words.timings, words.marks))

    def _tell_waiting(self) -> None:
        self._say(type="keepalive")

    def _tell_done(self, done: Done) -> None:
        fallbacks = by_stage(done.report.fallbacks)
        self._say(type="done", usage=done.usage, **({"fallbacks": fallbacks} if fallbacks else {}))

    def _tell_error(self, error: Exception) -> None:
        self._say(type="error", ended=self._synthesis is None, error=self._described(error))


def messages_of(frame: AudioBytes) -> Iterator[bytes]:
    """The binary messages of a chunk, each at most `MESSAGE_BYTES`: a header, then audio.

    | bytes | what (little-endian) |
    |---|---|
    | 0 | version, 1 |
    | 1 | flags: 1 where more of this chunk follows in the next message |
    | 2–3 | length of the head in bytes, 16: skip this many, and later versions can be read |
    | 4–7 | segment id |
    | 8–11 | chunk id, counts up by one |
    | 12–15 | when the chunk is heard, in ms from the start of the stream |
    """
    room = MESSAGE_BYTES - HEAD.size
    for at in range(0, len(frame.data), room):
        flags = MORE if at + room < len(frame.data) else 0
        head = HEAD.pack(
            FRAME_VERSION, flags, HEAD.size, frame.segment_id, frame.chunk_id, round(1000 * frame.start_s)
        )
        yield head + frame.data[at : at + room]


def _live(fields: dict[str, Any]) -> LiveText | None:
    """The options of a live text in a message, which are removed from its fields."""
    live, max_wait_ms = fields.pop("live", False), fields.pop("max_wait_ms", None)
    if not isinstance(live, bool):
        raise ParameterError(
            "live is true or false.", field="live", value=str(live)[:40], allowed="true, false"
        )
    if max_wait_ms is not None and not (live and type(max_wait_ms) is int and 1 <= max_wait_ms <= 60_000):
        raise ParameterError(
            "max_wait_ms is how long the writer of a live text may pause.",
            field="max_wait_ms",
            value=str(max_wait_ms)[:40],
            allowed="1 to 60000, with live",
        )
    if not live:
        return None
    fields.setdefault("input", "")
    return LiveText(math.inf if max_wait_ms is None else max_wait_ms / 1000)


def _kind_of(message: str | bytes) -> str | None:
    """The kind of a message that may be malformed."""
    try:
        return str(control_of(message).get("type"))
    except ParameterError:
        return None  # it is refused when its turn comes


def _credit(value: object, field: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= CREDIT_MAX:
        raise ParameterError(
            f"{field} is a number of messages.",
            field=field,
            value=str(value)[:40],
            allowed=f"1 to {CREDIT_MAX}",
        )
    return value
