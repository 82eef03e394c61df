"""Live texts over a WebSocket, one after another, for the protocols of other vendors."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kokoro_lab.errors import TextError
from kokoro_lab.server.http.conversation import Conversation
from kokoro_lab.server.http.errors import RETRYABLE, status_of
from kokoro_lab.server.requests.opening import LiveText
from kokoro_lab.server.requests.speech_events import Done, SpeechEvents, by_stage
from kokoro_lab.server.requests.speech_request import SpeechRequest, speech_request_of

REFUSED, FAILED, TRY_LATER = 1008, 1011, 1013
"""Codes with which a connection is closed: by the client's fault, by ours, for lack of room."""
REASON_BYTES = 123
"""The longest reason that fits into the frame that closes a connection."""
MOST_TURNS = 5
"""The most texts of one connection that may be spoken or wait: the limit of ElevenLabs."""


@dataclass(eq=False)
class Turn:
    """One of the texts of a connection.

    Parameters
    ----------
    name : str or None
        The name that the client gave the text.
    fields : dict
        The fields of the request for the text.

    Attributes
    ----------
    waiting : deque of str or None
        Text to write once the turn is being spoken; None is a flush.
    waiting_chars : int
    has_words : bool
        Whether there is something to speak.
    flushed : bool
        Whether nothing was written after the last flush.
    ended : bool
        Whether the whole text is written.
    """

    name: str | None
    fields: dict[str, Any]
    waiting: deque[str | None] = field(default_factory=deque)
    waiting_chars: int = 0
    has_words: bool = False
    flushed: bool = True
    ended: bool = False


class LiveConversation(Conversation):
    """Speaks texts that are still being written, one after the other; an error ends the connection.

    A dialect calls `_open_turn`, `_write` and `_drop`, and sets `_leaving`.

    Parameters
    ----------
    *connection
        The parameters of `Conversation`.
    query : mapping of str to str
        The query parameters of the connection.
    """

    def __init__(self, *connection: Any, query: Mapping[str, str]) -> None:
        super().__init__(*connection)
        self._query = query
        self._turns: deque[Turn] = deque()
        self._leaving = False
        """Whether the connection is closed once all turns are over."""
        self._ignored: list[str] = []
        """Fields that the client sent, by its own names, and that have no effect."""
        self._notes: dict[str, Any] = {}

    # --------------------------------------------------------------------------- what a dialect defines

    def _greet(self) -> None:
        """Send the first message. Raises what `_heed` raises."""

    def _tell_end(self, turn: Turn, done: Done | None = None, **notes: Any) -> None:
        """Send that a turn is over; `done` is None if the turn was withdrawn or had no words.

        `notes` are the ignored fields and the fallbacks.
        """

    def _tell_failure(self, described: dict[str, Any], status: int, code: int) -> None:
        """Send an error in the dialect's own form. `described` is the error in OpenAI's shape, `status` its
        HTTP status, and `code` the code with which the connection is then closed."""

    # ----------------------------------------------------------------------------------------- turns

    def _open_turn(self, name: str | None, fields: dict[str, Any]) -> Turn:
        if self._leaving:
            raise TextError(f"Nothing is spoken after {self.ending}.", mend="Connect once more.")
        if len(self._turns) == MOST_TURNS:
            raise TextError(f"{MOST_TURNS} texts are still to be spoken.", mend="Wait for the end of one.")
        self._turns.append(Turn(name, fields))
        return self._turns[-1]

    def _write(self, turn: Turn, text: str, *, flush: bool = False, end: bool = False) -> None:
        """Write `text` to a turn."""
        if text:
            turn.waiting.append(text)
            turn.waiting_chars += len(text)
            if not text.isspace():
                turn.has_words, turn.flushed = True, False
        if flush and not turn.flushed:
            turn.waiting.append(None)
            turn.flushed = True
        turn.ended |= end
        if turn is self._turns[0] and self._synthesis is not None:
            self._hand_over()
        elif turn.waiting_chars > self._state.settings.max_input_chars:
            raise TextError(f"{turn.waiting_chars} characters wait for the texts before them to be spoken.")

    def _drop(self, turn: Turn) -> None:
        """Drop a turn that the client has withdrawn."""
        if turn is self._turns[0] and self._synthesis is not None:
            self._finish("cancelled")
        self._turns.remove(turn)
        self._tell_end(turn)

    def _hand_over(self) -> None:
        turn = self._turns[0]
        live = None if self._synthesis is None else self._synthesis.live
        assert live is not None
        while turn.waiting:
            text = turn.waiting.popleft()
            live.flush() if text is None else live.append(text, wait=False)
        turn.waiting_chars = 0
        if turn.ended:
            live.end()

    # -------------------------------------------------------------------------- the conversation's hooks

    def run(self) -> None:
        self._attempt(self._greet)
        super().run()

    def _go_on(self) -> None:
        while self._synthesis is None:
            turn = next((each for each in self._turns if each.has_words or each.ended), None)
            if turn is None:
                break
            self._turns.remove(turn)  # before turns that have no text yet
            self._turns.appendleft(turn)
            if turn.has_words:
                self._begin(turn.fields)
                self._hand_over()
            else:
                self._tell_end(self._turns.popleft())
        self._over |= self._leaving and not self._turns

    def _hear(self, message: str | bytes) -> None:
        self._heard_s = self._since_s = time.monotonic()
        super()._hear(message)

    def _read(self, fields: dict[str, Any]) -> tuple[SpeechRequest, LiveText | None, float]:
        settings, variant = self._state.settings, self._state.engine.config.variant
        return speech_request_of({"input": "", **fields}, settings, variant), LiveText(), self._credit

    def _idled(self) -> None:
        if self._turns:
            self._refuse(self._starved())

    def _tell_begun(self, asked: SpeechRequest, events: SpeechEvents) -> None:
        ignored = events.synthesis.account.asked["ignored"]
        ignored += self._ignored
        self._notes = {"ignored": ignored} if ignored else {}

    def _tell_done(self, done: Done) -> None:
        fallbacks = by_stage(done.report.fallbacks)
        notes = {**self._notes, **({"fallbacks": fallbacks} if fallbacks else {})}
        self._tell_end(self._turns.popleft(), done, **notes)

    def _refuse(self, error: Exception, *, ends: bool = True) -> None:
        """Send an error, which ends the connection here, and with it the text under way."""
        super()._refuse(error, ends=True)

    def _tell_error(self, error: Exception) -> None:
        described, status = self._described(error), status_of(error)
        code = TRY_LATER if status in RETRYABLE else REFUSED if status < 500 else FAILED
        self._tell_failure(described, status, code)
        self.closing = (code, described["message"].encode()[:REASON_BYTES].decode(errors="ignore"))
        self._over = True
        self._turns.clear()
