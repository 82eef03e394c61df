"""What is said over a WebSocket, at the client's pace: control in JSON, audio in binary messages.

The client says `speak` {the fields of a request, `credit`}, `resume` {the same, `last_id`, `resume`},
`credit` {`frames`} and `cancel`. The server says `started` {`id`, `format`, `sample_rate`, `chunk_ms`,
`pre_buffer_ms`}, `segment` {`segment_id`, `start_s`, `resume`}, `words` {`segment_id`, `words`}, `keepalive`,
`done` {`usage`} and `error` {`error`}. Where a field has no effect or something was substituted, `started`
has `ignored` and `fallbacks`, and `done` has `fallbacks`.

With `live`, the text of a `speak` is a beginning, and the client goes on with `append` {`text`}, `flush`
(what is there is spoken now) and `end`; how it cuts the text changes no sample. With `max_wait_ms` the server
flushes by itself when no text has come for so long.

A binary message costs one credit (see `messages_of`); without any, sending waits, and computing with it. A
`speak` while another is under way takes its place. One who was cut off comes back, with `resume`.
"""

from __future__ import annotations

import json
import logging
import math
import struct
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

from flask import current_app, g
from simple_websocket import ConnectionClosed, Server
from werkzeug.exceptions import HTTPException

from kokoro_lab.containers import Encoder
from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.errors import Interrupted, KokoroLabError, ParameterError, Unavailable
from kokoro_lab.net.watched_socket import WatchedSocket
from kokoro_lab.server.health.figures import Outcome
from kokoro_lab.server.health.lifecycle import STOPPING
from kokoro_lab.server.http.delivery import warn_of_clipping
from kokoro_lab.server.http.errors import body_of, code_of, log_failure, outcome_of
from kokoro_lab.server.requests.account import Account
from kokoro_lab.server.requests.json_body import object_of
from kokoro_lab.server.requests.slots import ClientLeft
from kokoro_lab.server.requests.speech_events import (
    KEEPALIVE_S,
    AudioBytes,
    Done,
    Event,
    LiveText,
    SpeechEvents,
    Words,
    by_stage,
    open_stream,
    synthesis_of,
    timed,
)
from kokoro_lab.server.requests.speech_request import SpeechRequest, require_last_id, speech_request_of
from kokoro_lab.server.requests.syntheses import Synthesis
from kokoro_lab.server.state import ServerState

log = logging.getLogger(__name__)

CREDIT = 40
"""Binary messages that a client which says nothing of credit can take: 2 s of speech at least."""
CREDIT_MAX = 100_000
POLL_S = 0.02
"""How long the client's words wait while there is nothing to send."""
IDLE_S = 60.0
"""A connection over which nothing is spoken is closed after so long."""

WRITING = ("append", "flush", "end")
"""What a client says of a text that is still being written."""
FRAME_VERSION = 1
MORE = 1
HEAD = struct.Struct("<BBHIII")
MESSAGE_BYTES = 16_384
"""The longest message: small enough that a stop is heeded between two of them."""


class WebSocketConversation:
    """One connection. Speaks one text at a time.

    Parameters
    ----------
    ws : simple_websocket.Server
        The connection.
    state : ServerState
        Who speaks.
    request_id : str
        For the log; the first synthesis is called so, too.
    watched : WatchedSocket
        Tells whether it was cut.
    """

    def __init__(self, ws: Server, state: ServerState, request_id: str, watched: WatchedSocket) -> None:
        self._ws = ws
        self._state = state
        self._request_id = request_id
        self._watched = watched
        self._stall_s: float = current_app.config["STALL_S"]
        self._keepalive_s: float = current_app.config.get("KEEPALIVE_S", KEEPALIVE_S)
        self._synthesis: Synthesis | None = None
        self._events: SpeechEvents | None = None
        self._credit = 0
        self._said_meanwhile: deque[str | bytes] = deque()
        self._since_s = time.monotonic()

    def run(self) -> None:
        """Listen and speak until the client is idle for too long or grants nothing.

        Raises
        ------
        simple_websocket.ConnectionClosed, OSError
            The client has gone, or was cut.
        """
        while True:
            if self._synthesis is not None and self._synthesis.stopped:
                self._refuse(Interrupted("This synthesis was stopped."), ends=True)
            if self._synthesis is None and STOPPING in self._state.admission.reasons:
                self._part()
                return
            speaking = self._events is not None and self._credit > 0
            message: str | bytes | None
            if self._said_meanwhile:
                message = self._said_meanwhile.popleft()
            else:
                message = self._ws.receive(timeout=0 if speaking else POLL_S)
            if message is not None:
                self._obey(message)
            elif speaking:
                self._speak_on()
            elif self._waited_s() > (IDLE_S if self._events is None else self._stall_s):
                if self._events is not None:
                    self._refuse(
                        Interrupted(
                            f"No credit came for {self._stall_s:g} s.", mend="Come back with `resume`."
                        ),
                        ends=True,
                    )
                return

    def end(self) -> None:
        """The connection is over: what was being spoken is stopped."""
        if self._synthesis is not None:
            log.info("%s %s", self._request_id, "was cut off" if self._watched.cut else "left by the client")
            self._finish("cancelled")

    def _part(self) -> None:
        """This server stops, and nothing is being spoken: say so rather than wait for the next request."""
        try:
            self._state.admission.check()
        except Unavailable as stopping:
            self._refuse(stopping)

    def _waited_s(self) -> float:
        return time.monotonic() - self._since_s

    # ------------------------------------------------------------------------------ listening

    def _obey(self, message: str | bytes) -> None:
        try:
            said = _control(message)
            kind = said.pop("type", None)
            if kind in ("speak", "resume"):
                self._since_s = time.monotonic()
                self._begin(said, resumed=kind == "resume")
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
        except (KokoroLabError, HTTPException) as error:
            self._refuse(error)

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

    def _given_up(self) -> bool:
        """Whether the client does not want any more what waits for its slot.

        It has left, has cancelled it, or has said what takes its place. What else it says is kept for later.
        """
        while self._ws.connected:
            try:
                message = self._ws.receive(timeout=0)
            except ConnectionClosed:
                return True
            if message is None:
                return False
            kind = _kind_of(message)
            if kind != "cancel":
                self._said_meanwhile.append(message)
            if kind in ("cancel", "speak", "resume"):
                # What was written to the one that is given up is of no other
                kept = [each for each in self._said_meanwhile if _kind_of(each) not in WRITING]
                self._said_meanwhile = deque(kept)
                return True
        return True

    def _cancel(self) -> None:
        if self._synthesis is not None:
            self._refuse(Interrupted("You have stopped this synthesis."), ends=True)

    def _begin(self, fields: dict[str, Any], *, resumed: bool) -> None:
        account = Account(self._request_id, self._state.figures, self._state.degrader.objectives.note)
        try:
            credit = _credit(fields.pop("credit", CREDIT), "credit")
            live = _live(fields)
            asked = self._asked(fields, resumed)
            if self._synthesis is not None:
                self._finish("cancelled")
            self._credit = credit
            synthesis = synthesis_of(self._state, account, asked, "websocket")
            synthesis.connection = self._watched
            try:
                self._state.syntheses.admit(synthesis, self._given_up)
            except ClientLeft:
                if not self._ws.connected:
                    raise
                raise Interrupted("You have stopped this synthesis while it waited for its turn.") from None
            self._synthesis = synthesis
            self._events = events = open_stream(self._state, synthesis, tells=True, live=live)
        except Exception as error:
            account.close(account.outcome_of(error), code_of(account.reason(error)))
            raise
        self._since_s = time.monotonic()  # it may have waited for its slot
        told = {"ignored": asked.ignored, "fallbacks": by_stage(events.stream.fallbacks)}
        self._say(
            "started",
            id=account.request_id,
            format=asked.kind,
            sample_rate=asked.heard_hz,
            chunk_ms=account.asked["chunk_ms"],
            pre_buffer_ms=account.asked["pre_buffer_ms"],
            **{name: value for name, value in told.items() if value},
        )
        account.first_byte()

    def _asked(self, fields: dict[str, Any], resumed: bool) -> SpeechRequest:
        for name in ("stream", "stream_format"):
            if name in fields:
                raise ParameterError(
                    f"A WebSocket has no {name}.", field=name, mend="Leave it out: audio comes in frames."
                )
        asked = speech_request_of(fields, self._state.settings, self._state.engine.config.variant)
        require_last_id(asked)
        if resumed and asked.last_id is None:
            raise ParameterError(
                "A stream goes on behind a frame, and none is named.",
                field="last_id",
                allowed="segment.chunk of the last frame, such as 3.57",
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

    def _speak_on(self) -> None:
        events = self._events
        assert events is not None
        synthesis = events.synthesis
        synthesis.account.taken()  # not before: without credit, it is the client that makes us wait
        if not events.ready(POLL_S):
            if synthesis.live is not None and synthesis.live.starving_s > IDLE_S:
                silent = Interrupted(
                    f"No text came for {IDLE_S:g} s.", mend="Send `end` behind the last one."
                )
                self._refuse(silent, ends=True)
            elif self._waited_s() > self._keepalive_s:
                self._since_s = time.monotonic()
                synthesis.account.stalled()
                self._say("keepalive")
            return
        try:
            event = next(events)
        except Exception as error:
            self._refuse(error, ends=True)
            return
        synthesis.sending = True
        self._send(event, events.encoder)
        synthesis.sending = False
        self._since_s = time.monotonic()

    def _send(self, event: Event, encoder: Encoder) -> None:
        if isinstance(event, AudioBytes):
            if event.place is not None:
                start_s = event.place.start_samples / SAMPLE_RATE_HZ
                resume = {} if event.token is None else {"resume": event.token}
                self._say("segment", segment_id=event.segment_id, start_s=start_s, **resume)
            for message in messages_of(event):
                self._ws.send(message)
                self._credit -= 1
        elif isinstance(event, Words):
            self._say("words", segment_id=event.segment_id, **timed(event.timings, event.marks))
        elif isinstance(event, Done):
            warn_of_clipping(self._request_id, encoder)
            # Before it is said, or the client's next request might not find the slot free
            self._finish("completed")
            fallbacks = by_stage(event.report.fallbacks)
            self._say("done", usage=event.usage, **({"fallbacks": fallbacks} if fallbacks else {}))
        elif self._synthesis is None or self._synthesis.live is None:  # else `_speak_on` says it in its time
            self._say("keepalive")

    def _say(self, kind: str, **fields: Any) -> None:
        self._ws.send(json.dumps({"type": kind, **fields}, ensure_ascii=False))

    def _refuse(self, error: Exception, *, ends: bool = False) -> None:
        """Tell of an error. What was being spoken ends with it if it `ends`, or if it did not begin."""
        account = None if self._synthesis is None else self._synthesis.account
        outcome = outcome_of(error) if account is None else account.outcome_of(error)
        error = error if account is None else account.reason(error)
        if outcome == "failed":
            log_failure(error, "failed", self._request_id)
        if account is not None and (ends or self._events is None):
            self._finish(outcome, code_of(error))
        self._say("error", **body_of(error, self._request_id, g.get("client_names")))

    def _finish(self, outcome: Outcome, code: str | None = None) -> None:
        synthesis, events = self._synthesis, self._events
        self._synthesis = self._events = None
        try:
            if events is not None:
                events.close()
        finally:
            if synthesis is not None:
                synthesis.finish(outcome, code)


def messages_of(frame: AudioBytes) -> Iterator[bytes]:
    """The binary messages, `MESSAGE_BYTES` at most each, that a frame is sent as: a head, then audio.

    | bytes | what (little-endian) |
    |---|---|
    | 0 | version, 1 |
    | 1 | flags: 1 where more of this chunk follows in the next message |
    | 2–3 | length of the head, 16: skip so many, and later versions can be read |
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


def _control(message: str | bytes) -> dict[str, Any]:
    if isinstance(message, bytes):
        raise ParameterError("A client speaks JSON here, in text messages.", allowed="a JSON object")
    return object_of(message, "The message")


def _live(fields: dict[str, Any]) -> LiveText | None:
    """What a message says of a text that is still being written; takes it out of its fields."""
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
    """What a message says that may be none."""
    try:
        return str(_control(message).get("type"))
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
