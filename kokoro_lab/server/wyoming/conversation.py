"""A conversation over one Wyoming connection: events in, speech out.

| the client says | and hears |
|---|---|
| `describe` | `info` |
| `ping` | `pong` |
| `synthesize` {`text`, `voice`, `text_format`} | `audio-start`, `audio-chunk`…, `audio-stop` |
| `synthesize-start`, `synthesize-chunk` {`text`}…, `synthesize-stop` | the same, and `synthesize-stopped` |
| what cannot be done | `error` {`text`, `code`}, and the end of the connection |

A text that comes in chunks is live: its first words are spoken while the next ones are written. For servers
that do not know chunks, Home Assistant sends the whole text again, by `synthesize` before `synthesize-stop`:
that is spoken only if no chunk had words. Other events are ignored: a server need not know all events of the
protocol.

While a text is spoken, the next event waits, and a client that has left is noticed.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from flask import current_app

from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.errors import Interrupted, LanguageError, ParameterError
from kokoro_lab.net.watched_socket import WatchedSocket
from kokoro_lab.server.health.figures import Outcome
from kokoro_lab.server.health.lifecycle import STOPPING
from kokoro_lab.server.http.departure import has_left
from kokoro_lab.server.http.errors import body_of, code_of, log_failure
from kokoro_lab.server.http.guard import SEND_BUFFER_BYTES, max_body_bytes
from kokoro_lab.server.requests.account import Account
from kokoro_lab.server.requests.opening import LiveText, open_stream, synthesis_of
from kokoro_lab.server.requests.slots import ClientLeft
from kokoro_lab.server.requests.speech_events import AudioBytes, Done, SpeechEvents
from kokoro_lab.server.requests.speech_request import speech_request_of
from kokoro_lab.server.requests.syntheses import Synthesis
from kokoro_lab.server.state import ServerState
from kokoro_lab.server.wyoming.events import event_bytes, info, taken_event
from kokoro_lab.text.language import understood, why_not_read
from kokoro_lab.weights.voices import LANGUAGE_OF_PREFIX, reading_voices

if TYPE_CHECKING:
    from kokoro_lab.speech.live import LiveSpeech

POLL_S = 0.01
"""How often the connection is checked for events while there is nothing to send."""
IDLE_S = 60.0
"""Seconds of a client's silence after which the connection is closed."""
LOOK_S = 0.5
"""Seconds between two checks whether the server stops, while nothing is spoken over the connection."""
LEAVING_S = 2.0
"""Seconds in which a client may still send after an error. If the connection were closed at once, it might
never read the error."""
READ_BYTES = 65_536
PCM = {"rate": SAMPLE_RATE_HZ, "width": 2, "channels": 1}
WRITING = ("synthesize-start", "synthesize-chunk", "synthesize-stop")


class WyomingConversation:
    """One connection. Speaks one text at a time.

    Parameters
    ----------
    connection : socket.socket
        The caller closes it.
    state : ServerState
        The server's state, with the engine and the queue.
    """

    def __init__(self, connection: socket.socket, state: ServerState) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        self._connection, self._state = connection, state
        self._watched = WatchedSocket(connection, current_app.config["STALL_S"])
        self._held = bytearray()
        self._account: Account | None = None
        self._synthesis: Synthesis | None = None
        self._events: SpeechEvents | None = None
        self._writing = self._sounds = False
        self._whole: str | None = None
        """The whole text that a client sent besides the chunks of a live text; None once a chunk has
        words."""
        self._since_s = time.monotonic()

    def run(self) -> None:
        """Listen and speak until the client goes, is silent for too long, or is told of an error."""
        most_bytes = max_body_bytes(self._state.settings)
        try:
            while not self._is_over:
                event = taken_event(self._held, most_bytes) if self._listens else None
                if event is not None:
                    self._obey(*event)
                elif self._events is None:
                    self._hear(LOOK_S)
                else:
                    self._hear(0.0)
                    self._speak_on(self._events)
        except ClientLeft:
            self._finish("cancelled")
        except Exception as error:
            self._refuse(error)
        finally:
            self._watched.shutdown()

    @property
    def _is_over(self) -> bool:
        """Whether nothing is being spoken and nothing will be: the server stops, or the client has
        finished."""
        stopping = STOPPING in self._state.admission.reasons
        return self._events is None and (stopping or time.monotonic() - self._since_s > IDLE_S)

    # ------------------------------------------------------------------------------ listening

    @property
    def _listens(self) -> bool:
        """Whether the client's next event is read now; while a whole text is spoken, it waits."""
        live = self._live
        return self._events is None or (self._writing and live is not None and not live.is_full)

    @property
    def _live(self) -> LiveSpeech | None:
        return None if self._synthesis is None else self._synthesis.live

    def _hear(self, wait_s: float) -> None:
        """Read what the client has sent, unless its next event must wait until a text is spoken.

        Raises
        ------
        ClientLeft
        """
        if not self._listens:
            if has_left(self._connection):
                raise ClientLeft
        elif select.select([self._connection], [], [], wait_s)[0]:
            with suppress(OSError):
                if data := self._connection.recv(READ_BYTES):
                    self._held += data
                    self._since_s = time.monotonic()
                    return
            raise ClientLeft

    def _obey(self, kind: str, data: dict[str, Any]) -> None:
        live = self._live
        if kind in WRITING and (live is None) != (kind == "synthesize-start"):
            raise ParameterError(
                f"{kind} has no place here.", field="type", allowed=f"{', '.join(WRITING)}, in this order"
            )
        if kind == "describe":
            self._say("info", info())
        elif kind == "ping":
            self._say("pong", {"text": data.get("text")})
        elif kind == "synthesize" and live is None:
            self._begin(data, _text_of(data), None)
        elif kind == "synthesize-start":
            self._begin(data, "", LiveText())
            self._writing, self._whole = True, ""
        elif kind == "synthesize" and self._whole is not None:
            self._whole = _text_of(data)
        elif kind == "synthesize-chunk" and live is not None:
            live.append(text := _text_of(data))
            self._whole = None if text.strip() else self._whole
        elif kind == "synthesize-stop" and live is not None:
            if self._whole:
                live.append(self._whole)
            live.end()
            self._writing = False

    def _begin(self, data: dict[str, Any], text: str, live: LiveText | None) -> None:
        state = self._state
        self._account = account = self._new_account()
        kind = data.get("text_format") or "text"
        fields = {"input": text, "input_format": kind, "response_format": "pcm", **self._voice_of(data)}
        asked = speech_request_of(fields, state.settings, state.engine.config.variant)
        synthesis = synthesis_of(state, account, asked, "wyoming", str(self._connection.getpeername()[:1]))
        synthesis.connection = self._watched
        state.syntheses.admit(synthesis, lambda: has_left(self._connection))
        self._synthesis = synthesis
        self._events = open_stream(state, synthesis, tells=True, live=live)

    def _voice_of(self, data: dict[str, Any]) -> dict[str, Any]:
        """The named voice. If only a language is named: the server's default voice if it reads that language,
        else the first voice that does."""
        said = data.get("voice") or {}
        if not isinstance(said, dict):
            raise ParameterError("voice is no object.", field="voice", allowed="name, language, speaker")
        tag = said.get("language")
        if (named := said.get("speaker") or said.get("name")) or not tag:
            return {"voice": named}
        language, own = understood(str(tag))[0], self._state.settings.voice
        found = [name for name in reading_voices() if LANGUAGE_OF_PREFIX[name[0]] == language]
        if self._state.engine.voice(own).language == language:
            found = [own]
        if not found:
            raise LanguageError(f"No voice reads {tag} here: {why_not_read(language)}.", field="voice")
        return {"voice": found[0], "language": tag}

    # ------------------------------------------------------------------------------- speaking

    def _speak_on(self, events: SpeechEvents) -> None:
        account, live = events.synthesis.account, self._live
        account.taken()
        if not events.ready(POLL_S):
            if live is not None and live.starving_s > IDLE_S:
                silent = f"No text came for {IDLE_S:g} s."
                raise Interrupted(silent, mend="Send synthesize-stop after the last chunk of text.")
            return
        event = next(events)
        if isinstance(event, AudioBytes):
            if not self._sounds:
                self._say("audio-start", {**PCM, "timestamp": 0})
                self._sounds = True
            self._say("audio-chunk", {**PCM, "timestamp": round(1000 * event.start_s)}, event.data)
            account.first_byte()
        elif isinstance(event, Done):
            self._finish("completed")  # before the client knows, because it may ask for the next text at once
            self._say("audio-stop", {})
            if live is not None:
                self._say("synthesize-stopped", {})

    def _say(self, kind: str, data: Mapping[str, Any], payload: bytes = b"") -> None:
        try:
            self._watched.send(event_bytes(kind, data, payload))
        except OSError:
            raise ClientLeft from None

    def _refuse(self, error: Exception) -> None:
        """Send an error and end the connection: a client waiting for sound would wait for ever."""
        self._account = account = self._account or self._new_account()
        outcome, error = account.outcome_of(error), account.reason(error)
        if outcome == "failed":
            log_failure(error, "failed", account.request_id)
        self._finish(outcome, code_of(error))
        say_error(self._connection, error, account.request_id)

    def _finish(self, outcome: Outcome, code: str | None = None) -> None:
        events, synthesis, account = self._events, self._synthesis, self._account
        self._events = self._synthesis = self._account = None
        self._writing = self._sounds = False
        self._since_s = time.monotonic()
        try:
            if events is not None:
                events.close()
        finally:
            if account is not None:
                account.close(outcome, code)
            if synthesis is not None:
                synthesis.end()

    def _new_account(self) -> Account:
        return Account(uuid4().hex, self._state.figures, self._state.degrader.objectives.note)


def say_error(connection: socket.socket, error: Exception, request_id: str) -> None:
    """Send an error, and wait a moment for the client to close."""
    said = body_of(error, request_id)["error"]
    with suppress(OSError):
        connection.settimeout(LEAVING_S)
        connection.sendall(event_bytes("error", {"text": said["message"], "code": said["code"]}))
        connection.shutdown(socket.SHUT_WR)
        until_s = time.monotonic() + LEAVING_S
        while time.monotonic() < until_s and connection.recv(READ_BYTES):
            pass


def _text_of(data: dict[str, Any]) -> str:
    if isinstance(text := data.get("text"), str):
        return text
    raise ParameterError("There is no text.", field="text", allowed="a string")
