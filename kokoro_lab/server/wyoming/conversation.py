"""What is said over one connection of Wyoming: events come, speech goes.

| the client says | and hears |
|---|---|
| `describe` | `info` |
| `ping` | `pong` |
| `synthesize` {`text`, `voice`, `text_format`} | `audio-start`, `audio-chunk`…, `audio-stop` |
| `synthesize-start`, `synthesize-chunk` {`text`}…, `synthesize-stop` | the same, and `synthesize-stopped` |
| what cannot be done | `error` {`text`, `code`}, and the end of the connection |

A text that comes in chunks is live: its first words are spoken while the next ones are written. For servers
that know no chunks, Home Assistant sends all of it once more, by `synthesize` before `synthesize-stop`: that
is not spoken. Any other event is left unanswered, as the protocol wants it.

While a text is spoken, the next event waits, and a client that has left is noticed.
"""

from __future__ import annotations

import logging
import select
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from uuid import uuid4

from flask import current_app

from kokoro_lab.config import INPUT_FORMATS
from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.errors import Interrupted, LanguageError, ParameterError
from kokoro_lab.net.watched_socket import WatchedSocket
from kokoro_lab.server.health.figures import Outcome
from kokoro_lab.server.health.lifecycle import STOPPING
from kokoro_lab.server.http.errors import body_of, code_of, log_failure, outcome_of
from kokoro_lab.server.http.guard import SEND_BUFFER_BYTES, has_left, max_body_bytes
from kokoro_lab.server.requests.account import Account
from kokoro_lab.server.requests.slots import ClientLeft
from kokoro_lab.server.requests.speech_events import (
    AudioBytes,
    Done,
    LiveText,
    SpeechEvents,
    open_stream,
    synthesis_of,
)
from kokoro_lab.server.requests.speech_request import speech_request_of
from kokoro_lab.server.requests.syntheses import Synthesis
from kokoro_lab.server.state import ServerState
from kokoro_lab.server.wyoming.events import event_bytes, info, taken_event
from kokoro_lab.text.language import understood, why_not_read
from kokoro_lab.weights.voices import LANGUAGE_OF_PREFIX, reading_voices

log = logging.getLogger(__name__)

POLL_S = 0.01
"""How long the client's words wait while there is nothing to send."""
IDLE_S = 60.0
"""A client that says nothing for so long is not waited for any more."""
LOOK_S = 0.5
"""How soon a connection over which nothing is spoken notices that the server stops."""
LEAVING_S = 2.0
"""For which a client may still send. Closed at once, it might never read the error."""
READ_BYTES = 65_536
PCM = {"rate": SAMPLE_RATE_HZ, "width": 2, "channels": 1}


class WyomingConversation:
    """One connection. Speaks one text at a time.

    Parameters
    ----------
    connection : socket.socket
        Closed by whoever made it.
    state : ServerState
        Who speaks.
    """

    def __init__(self, connection: socket.socket, state: ServerState) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        self._connection = connection
        self._watched = WatchedSocket(connection, current_app.config["STALL_S"])
        self._readable = select.poll()
        self._readable.register(connection, select.POLLIN)
        self._state = state
        self._most_bytes = max_body_bytes(state.settings)
        self._held = bytearray()
        self._account: Account | None = None
        self._synthesis: Synthesis | None = None
        self._events: SpeechEvents | None = None
        self._writing = self._sounds = False
        self._since_s = time.monotonic()

    def run(self) -> None:
        """Listen and speak until the client goes, is silent for too long, or is told of an error."""
        try:
            self._talk()
        except Exception as error:
            self._refuse(error)
        finally:
            self._watched.shutdown()

    def _talk(self) -> None:
        while True:
            event = taken_event(self._held, self._most_bytes) if self._listens else None
            if event is not None:
                self._obey(*event)
            elif self._events is not None:
                self._hear(0.0)
                self._speak_on(self._events)
            elif STOPPING in self._state.admission.reasons or time.monotonic() - self._since_s > IDLE_S:
                return
            else:
                self._hear(LOOK_S)

    # ------------------------------------------------------------------------------ listening

    @property
    def _listens(self) -> bool:
        """Whether it takes the next event now."""
        live = None if self._synthesis is None else self._synthesis.live
        return self._events is None or (self._writing and live is not None and not live.is_full)

    def _hear(self, wait_s: float) -> None:
        """Take what the client has sent, if it is listened to.

        Raises
        ------
        ClientLeft
        """
        if not self._readable.poll(1000 * wait_s):
            return
        listens = self._listens
        try:
            data = self._connection.recv(READ_BYTES) if listens else self._connection.recv(1, socket.MSG_PEEK)
        except OSError:
            data = b""
        if not data:
            raise ClientLeft
        if listens:
            self._held += data
            self._since_s = time.monotonic()

    def _obey(self, kind: str, data: dict[str, Any]) -> None:
        live = None if self._synthesis is None else self._synthesis.live
        if kind == "describe":
            self._say("info", info())
        elif kind == "ping":
            self._say("pong", {"text": data.get("text")})
        elif kind == "synthesize" and live is None:
            self._begin(data, _text_of(data), None)
        elif kind == "synthesize-start":
            if live is not None:
                raise ParameterError(
                    "A text is being written.",
                    field="type",
                    value=kind,
                    mend="Send synthesize-stop first.",
                )
            self._begin(data, "", LiveText())
            self._writing = True
        elif kind in ("synthesize-chunk", "synthesize-stop"):
            if live is None:
                raise ParameterError(
                    "No text is being written.", field="type", value=kind, mend="Send synthesize-start first."
                )
            if kind == "synthesize-chunk":
                live.append(_text_of(data))
            else:
                live.end()
                self._writing = False

    def _begin(self, data: dict[str, Any], text: str, live: LiveText | None) -> None:
        state = self._state
        self._account = account = Account(uuid4().hex, state.figures, state.degrader.objectives.note)
        fields = {"input": text, "response_format": "pcm", **_format_of(data), **self._voice_of(data)}
        asked = speech_request_of(fields, state.settings, state.engine.config.variant)
        synthesis = synthesis_of(state, account, asked, "wyoming")
        synthesis.connection = self._watched
        state.syntheses.admit(synthesis, lambda: has_left(self._connection))
        self._synthesis = synthesis
        self._events = open_stream(state, synthesis, tells=True, live=live)

    def _voice_of(self, data: dict[str, Any]) -> dict[str, Any]:
        """The voice that is named; of a language alone, the server's own if it reads that, else the first."""
        said = data.get("voice") or {}
        if not isinstance(said, dict):
            raise ParameterError("voice is no object.", field="voice", allowed="name, language, speaker")
        named, tag = said.get("speaker") or said.get("name"), said.get("language")
        if named or not tag:
            return {"voice": named}
        language, own = understood(str(tag))[0], self._state.settings.voice
        if self._state.engine.voice(own).language == language:
            return {"voice": own, "language": tag}
        for voice in reading_voices():
            if LANGUAGE_OF_PREFIX[voice[0]] == language:
                return {"voice": voice, "language": tag}
        raise LanguageError(f"No voice reads {tag} here: {why_not_read(language)}.", field="voice")

    # ------------------------------------------------------------------------------- speaking

    def _speak_on(self, events: SpeechEvents) -> None:
        synthesis = events.synthesis
        synthesis.account.taken()
        if not events.ready(POLL_S):
            if synthesis.live is not None and synthesis.live.starving_s > IDLE_S:
                raise Interrupted(
                    f"No text came for {IDLE_S:g} s.", mend="Send synthesize-stop behind the last one."
                )
            return
        event = next(events)
        synthesis.sending = True
        if isinstance(event, AudioBytes):
            if not self._sounds:
                self._say("audio-start", {**PCM, "timestamp": 0})
                self._sounds = True
            self._say("audio-chunk", {**PCM, "timestamp": round(1000 * event.start_s)}, event.data)
            synthesis.account.first_byte()
        elif isinstance(event, Done):
            sounds = self._sounds
            self._finish("completed")  # before the client knows, who may ask for the next one at once
            if sounds:
                self._say("audio-stop", {"timestamp": None})
            if synthesis.live is not None:
                self._say("synthesize-stopped", {})
        synthesis.sending = False

    def _say(self, kind: str, data: Mapping[str, Any], payload: bytes = b"") -> None:
        try:
            self._watched.send(event_bytes(kind, data, payload))
        except OSError:
            raise ClientLeft from None

    def _refuse(self, error: Exception) -> None:
        """Tell of an error, and end the connection: who waits for sound would wait for ever."""
        account = self._account
        outcome = outcome_of(error) if account is None else account.outcome_of(error)
        error = error if account is None else account.reason(error)
        request_id = uuid4().hex if account is None else account.request_id
        if outcome == "failed":
            log_failure(error, "failed", request_id)
        self._finish(outcome, code_of(error))
        if not isinstance(error, ClientLeft):
            say_error(self._connection, error, request_id)

    def _finish(self, outcome: Outcome, code: str | None = None) -> None:
        events, synthesis, account = self._events, self._synthesis, self._account
        self._events = self._synthesis = self._account = None
        self._writing = self._sounds = False
        self._since_s = time.monotonic()
        try:
            if events is not None:
                events.close()
        finally:
            if synthesis is not None:
                synthesis.finish(outcome, code)
            elif account is not None:
                account.close(outcome, code)


def say_error(connection: socket.socket, error: Exception, request_id: str) -> None:
    """Tell of an error, and await the client's end of the connection for a moment."""
    said = body_of(error, request_id)["error"]
    log.info("%s was told %s", request_id, said["code"])
    with suppress(OSError):
        connection.settimeout(LEAVING_S)
        connection.sendall(event_bytes("error", {"text": said["message"], "code": said["code"]}))
        connection.shutdown(socket.SHUT_WR)
        until_s = time.monotonic() + LEAVING_S
        while time.monotonic() < until_s and connection.recv(READ_BYTES):
            pass


def _text_of(data: dict[str, Any]) -> str:
    text = data.get("text")
    if not isinstance(text, str):
        raise ParameterError("There is no text.", field="text", allowed="a string")
    return text


def _format_of(data: dict[str, Any]) -> dict[str, Any]:
    found = data.get("text_format") or "text"
    if found not in INPUT_FORMATS:
        raise ParameterError(
            "There is no such text_format.", field="text_format", allowed=", ".join(INPUT_FORMATS)
        )
    return {"input_format": found}
