"""A conversation over a WebSocket in any dialect: speaks one text at a time, and listens meanwhile.

In our dialect, a client gives credit: the number of binary messages that it is ready to take. Without credit,
sending waits.
Each dialect is a subclass: ours (`websocket_conversation`), ElevenLabs' and Mistral's.
"""

from __future__ import annotations

import json
import logging
import math
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from flask import current_app, g
from simple_websocket import ConnectionClosed, Server
from simple_websocket.ws import LocalProtocolError

from kokoro_lab.containers import Encoder
from kokoro_lab.errors import Interrupted, KokoroLabError, ParameterError, TextError
from kokoro_lab.net.watched_socket import WatchedSocket
from kokoro_lab.server.health.figures import Outcome
from kokoro_lab.server.health.lifecycle import STOPPING
from kokoro_lab.server.http.delivery import warn_of_clipping
from kokoro_lab.server.http.errors import body_of, code_of, log_failure, outcome_of
from kokoro_lab.server.http.guard import caller, max_body_bytes
from kokoro_lab.server.requests.account import Account
from kokoro_lab.server.requests.json_body import object_of
from kokoro_lab.server.requests.opening import KEEPALIVE_S, LiveText, open_stream, synthesis_of
from kokoro_lab.server.requests.slots import ClientLeft
from kokoro_lab.server.requests.speech_events import AudioBytes, Done, Event, SpeechEvents, Words
from kokoro_lab.server.requests.speech_request import SpeechRequest
from kokoro_lab.server.requests.syntheses import Synthesis
from kokoro_lab.server.state import ServerState

log = logging.getLogger(__name__)

POLL_S = 0.02
"""How often the connection is checked for messages while there is nothing to send."""
IDLE_S = 60.0
"""A connection is closed if no text was spoken over it for this time."""
NORMAL = 1000
"""The code with which a connection is closed at the regular end of its conversation."""


class Conversation:
    """One connection. Speaks one text at a time.

    Parameters
    ----------
    ws : simple_websocket.Server
        The connection.
    state : ServerState
        The server's state, with the engine and the queue.
    request_id : str
        Id for the log; the first synthesis has the same id.
    watched : WatchedSocket
        Tells whether the connection was cut.

    Attributes
    ----------
    closing : tuple of int and str
        Code and reason with which the connection is to be closed.
    """

    ending = "`end`"
    """The message that ends a live text, as errors name it."""

    def __init__(self, ws: Server, state: ServerState, request_id: str, watched: WatchedSocket) -> None:
        self._ws = ws
        self._state = state
        self._request_id = request_id
        self._watched = watched
        self._stall_s: float = current_app.config["STALL_S"]
        self._keepalive_s: float = current_app.config.get("KEEPALIVE_S", KEEPALIVE_S)
        self._idle_s = IDLE_S
        self._synthesis: Synthesis | None = None
        self._events: SpeechEvents | None = None
        self._credit = math.inf
        self._said_meanwhile: deque[str | bytes] = deque()
        self._meanwhile_chars = 0
        self._since_s = self._heard_s = time.monotonic()
        self._over = self._told_stopping = False
        self.closing = (NORMAL, "")

    # --------------------------------------------------------------------------- what a dialect defines

    def _heed(self, said: dict[str, Any]) -> None:
        """Carry out a client's message.

        Raises
        ------
        KokoroLabError, werkzeug.exceptions.HTTPException
            The message cannot be carried out; the client gets the error.
        """

    def _read(self, fields: dict[str, Any]) -> tuple[SpeechRequest, LiveText | None, float]:
        """Read the fields of a message that begins a text.

        Returns the request, the options of a live text (None for a whole text), and how many binary
        messages the client is ready to take (its credit).
        """
        raise NotImplementedError

    def _tell_audio(self, frame: AudioBytes) -> None:
        """Send a chunk of speech."""

    def _tell_done(self, done: Done) -> None:
        """Send that a text was spoken completely."""

    def _tell_error(self, error: Exception) -> None:
        """Send an error: a message could not be carried out, or speech failed."""

    def _tell_begun(self, asked: SpeechRequest, events: SpeechEvents) -> None:
        """Send that a text begins to be spoken."""

    def _tell_words(self, words: Words) -> None:
        """Send the times at which the words of a segment are heard."""

    def _tell_waiting(self) -> None:
        """Send that the connection is still alive: no audio has been ready for some seconds."""

    def _go_on(self) -> None:
        """Begin to speak a waiting text, if there is one. `run` calls it repeatedly."""

    def _withdraws(self, message: str | bytes) -> bool:
        """Whether a message that comes while a text waits for its slot withdraws the text; other messages are
        kept."""
        self._said_meanwhile.append(message)
        return False

    # ------------------------------------------------------------------------------ listening

    def run(self) -> None:
        """Listen and speak until the client is idle or gives no credit for too long, or the conversation is
        over.

        Raises
        ------
        simple_websocket.ConnectionClosed
            The client has gone, or its connection was cut.
        """
        while not self._over:
            if self._synthesis is not None and self._synthesis.stopped:
                self._refuse(Interrupted("This synthesis was stopped."), ends=True)
                continue  # the message may have ended the conversation
            if self._synthesis is None and STOPPING in self._state.admission.reasons:
                if not self._told_stopping:
                    self._attempt(self._state.admission.check)  # now, not only at the next request
                return
            self._attempt(self._go_on)
            speaking = self._events is not None and self._credit > 0
            message: str | bytes | None
            if self._said_meanwhile:
                message = self._said_meanwhile.popleft()
            else:
                message = self._ws.receive(timeout=0 if speaking else POLL_S)
            if message is not None:
                self._attempt(partial(self._hear, message))
                events = self._events
                if events is not None and self._credit > 0 and not self._over and events.ready(0):
                    self._speak_on()  # a client that sends much still hears speech meanwhile
            elif speaking:
                self._speak_on()
            elif self._waited_s() > (self._idle_s if self._events is None else self._stall_s):
                self._idled()
                return

    def end(self) -> None:
        """End the conversation: stop the speech under way."""
        if self._synthesis is not None:
            log.info("%s %s", self._request_id, "was cut off" if self._watched.cut else "left by the client")
            self._finish("cancelled")

    def _idled(self) -> None:
        """Handle a client that was idle for too long. If a text is being spoken, its speech ends with an
        error."""
        if self._events is not None:
            late = Interrupted(f"No credit came for {self._stall_s:g} s.", mend="Come back with `resume`.")
            self._refuse(late, ends=True)

    def _waited_s(self) -> float:
        return time.monotonic() - self._since_s

    def _attempt(self, act: Callable[[], None], *, ends: bool = False) -> None:
        """Carry `act` out; the client gets its error, whatever it is. A client that has gone gets none."""
        try:
            act()
        except ConnectionClosed:
            raise
        except Exception as error:
            self._refuse(error, ends=ends)

    def _hear(self, message: str | bytes) -> None:
        self._heed(control_of(message))

    def _given_up(self) -> bool:
        """Whether the client has given up the text that waits for its slot: the client has left, or has
        withdrawn the text.

        The client's other messages are kept for later: together at most as long as the longest message.
        """
        while self._ws.connected:
            try:
                message = self._ws.receive(timeout=0)
            except ConnectionClosed:
                return True
            if message is None:
                return False
            if self._withdraws(message):
                return True
            self._meanwhile_chars += len(message)
            if self._meanwhile_chars > max_body_bytes(self._state.settings):
                self._said_meanwhile.clear()
                raise TextError("Too much was written before this text could begin.", mend="Begin once more.")
        return True

    def _begin(self, fields: dict[str, Any]) -> None:
        account = Account(self._request_id, self._state.figures, self._state.degrader.objectives.note)
        try:
            asked, live, credit = self._read(fields)
            if self._synthesis is not None:
                self._finish("cancelled")
            self._credit, self._meanwhile_chars = credit, 0
            synthesis = synthesis_of(self._state, account, asked, "websocket", caller())
            synthesis.connection = self._watched
            try:
                self._state.syntheses.admit(synthesis, self._given_up)
            except ClientLeft:
                if not self._ws.connected:
                    raise
                raise Interrupted("You have stopped this synthesis while it waited for its turn.") from None
            self._synthesis = synthesis
            self._events = open_stream(self._state, synthesis, tells=True, live=live)
        except Exception as error:
            account.close(account.outcome_of(error), code_of(account.reason(error)))
            raise
        self._since_s = time.monotonic()  # it may have waited for its slot
        self._tell_begun(asked, self._events)
        account.first_byte()

    # ------------------------------------------------------------------------------- speaking

    def _speak_on(self) -> None:
        events = self._events
        assert events is not None
        synthesis = events.synthesis
        synthesis.account.taken()  # only with credit: without it, we wait for the client
        if not events.ready(POLL_S):
            starving_s = 0.0 if synthesis.live is None else synthesis.live.starving_s
            if min(starving_s, time.monotonic() - self._heard_s) > self._idle_s:
                self._refuse(self._starved(), ends=True)
            elif self._waited_s() > self._keepalive_s:
                self._since_s = time.monotonic()
                if not starving_s:  # else we wait for the writer
                    synthesis.account.stalled()
                self._tell_waiting()
            return
        try:
            event = next(events)
        except Exception as error:
            self._refuse(error, ends=True)
            return
        synthesis.sending = True
        self._attempt(partial(self._send, event, events.encoder), ends=True)
        synthesis.sending = False
        self._since_s = time.monotonic()

    def _starved(self) -> KokoroLabError:
        return Interrupted(
            f"No text came for {self._idle_s:g} s.", mend=f"Send {self.ending} after the last string."
        )

    def _send(self, event: Event, encoder: Encoder) -> None:
        if isinstance(event, AudioBytes):
            self._tell_audio(event)
        elif isinstance(event, Words):
            self._tell_words(event)
        elif isinstance(event, Done):
            warn_of_clipping(self._request_id, encoder)
            # Before the end is sent, or the client's next request might not find the slot free
            self._finish("completed")
            self._tell_done(event)
        elif self._synthesis is None or self._synthesis.live is None:  # else `_speak_on` sends it in its turn
            self._tell_waiting()

    def _say(self, **fields: Any) -> None:
        self._deliver(json.dumps(fields, ensure_ascii=False))

    def _deliver(self, message: str | bytes) -> None:
        """Send a message.

        Raises
        ------
        simple_websocket.ConnectionClosed
            The client has gone. Its own type tells that from an OSError of the engine.
        """
        try:
            self._ws.send(message)
        except (OSError, LocalProtocolError) as error:  # it is cut, or the client has just said goodbye
            raise ConnectionClosed from error

    def _described(self, error: Exception) -> dict[str, Any]:
        """An error in OpenAI's shape."""
        described: dict[str, Any] = body_of(error, self._request_id, g.get("client_names"))["error"]
        return described

    def _refuse(self, error: Exception, *, ends: bool = False) -> None:
        """Send an error. A synthesis under way ends if `ends` is set, or if its speech has not begun."""
        account = None if self._synthesis is None else self._synthesis.account
        outcome = outcome_of(error) if account is None else account.outcome_of(error)
        error = error if account is None else account.reason(error)
        self._told_stopping |= code_of(error) == STOPPING
        if outcome == "failed":
            log_failure(error, "failed", self._request_id)
        if account is not None and (ends or self._events is None):
            self._finish(outcome, code_of(error))
        self._tell_error(error)

    def _finish(self, outcome: Outcome, code: str | None = None) -> None:
        synthesis, events = self._synthesis, self._events
        self._synthesis = self._events = None
        try:
            if events is not None:
                events.close()
        finally:
            if synthesis is not None:
                synthesis.finish(outcome, code)


def control_of(message: str | bytes) -> dict[str, Any]:
    """Parse a client's message as a JSON object.

    Raises
    ------
    ParameterError
        The message is binary, or no JSON object.
    """
    if isinstance(message, bytes):
        raise ParameterError("A client speaks JSON here, in text messages.", allowed="a JSON object")
    return object_of(message, "The message")
