"""Mistral's realtime speech protocol, as a dialect of our live texts.

The client sends `session.update` {`session`}, `input_text.append` {`text`}, `input_text.flush` {optionally
`text`}, which ends a text, and `input_text.end`, which also ends the connection. The server sends
`session.created` and `session.updated` {`session`}, `speech.audio.delta` {`audio_data`}, `speech.audio.done`
{`usage`, `ignored`, `fallbacks`} for each text, and `error` {`error`}, which closes the connection.

As with Mistral, `pcm` is 32-bit floating point; the samples are those of our 16-bit PCM.
"""

from __future__ import annotations

import base64
from typing import Any, Literal

import numpy as np
from pydantic import StrictStr

from kokoro_lab.errors import ParameterError
from kokoro_lab.server.http.live_conversation import LiveConversation, Turn
from kokoro_lab.server.requests.json_body import StrictBody, model_of
from kokoro_lab.server.requests.speech_events import AudioBytes, Done

FULL_SCALE = 32_768


class MistralQuery(StrictBody):
    """The query parameters of the connection."""

    model: str | None = None


class MistralSession(StrictBody):
    """The fields that a `session.update` may change."""

    voice: StrictStr | None = None
    ref_audio: None = None
    response_format: Literal["pcm", "wav", "mp3", "flac", "opus"] | None = None
    streaming_mode: Literal["responsive", "long_form"] | None = None
    expressiveness: float | None = None


class MistralMessage(StrictBody):
    """A client's message."""

    type: Literal["session.update", "input_text.append", "input_text.flush", "input_text.end"]
    text: StrictStr | None = None
    session: MistralSession | None = None


class MistralConversation(LiveConversation):
    """Mistral's dialect: each `input_text.flush` ends a turn."""

    ending = "`input_text.end`"

    def _greet(self) -> None:
        model = model_of(self._query, MistralQuery).model
        voice = self._state.settings.voice
        self._fields: dict[str, Any] = {"voice": voice, "response_format": "wav", "model": model}
        self._tell_session("session.created")

    def _heed(self, said: dict[str, Any]) -> None:
        asked = model_of(said, MistralMessage)
        if asked.type == "session.update":
            if asked.session is None:
                raise ParameterError("`session.update` has a session.", field="session")
            self._update(asked.session.model_dump(exclude_none=True))
        elif asked.type == "input_text.end":
            if self._turns and not self._turns[-1].ended:
                self._write(self._turns[-1], "", end=True)
            self._leaving = True
        elif asked.text is None and asked.type == "input_text.append":
            raise ParameterError("`input_text.append` has a text.", field="text", allowed="a string")
        else:
            goes_on = bool(self._turns) and not self._turns[-1].ended
            turn = self._turns[-1] if goes_on else self._open_turn(None, dict(self._fields))
            self._write(turn, asked.text or "", end=asked.type == "input_text.flush")

    def _update(self, given: dict[str, Any]) -> None:
        ignored = {name for name in ("streaming_mode", "expressiveness") if given.pop(name, None) is not None}
        self._ignored += sorted(ignored - set(self._ignored))
        self._state.engine.voice(given.get("voice", self._fields["voice"]))
        self._fields.update(given)
        self._tell_session("session.updated")

    def _tell_session(self, kind: str) -> None:
        session = {
            "request_id": self._request_id,
            "model": self._fields["model"] or "kokoro",
            "voice": self._fields["voice"],
            "is_ref_audio": False,
            "streaming_mode": "responsive",
            "response_format": self._fields["response_format"],
            "expressiveness": 1.0,
        }
        self._say(type=kind, session=session)

    def _tell_audio(self, frame: AudioBytes) -> None:
        data = frame.data
        if self._turns[0].fields["response_format"] == "pcm":
            data = (np.frombuffer(data, "<i2").astype("<f4") / FULL_SCALE).tobytes()
        self._say(type="speech.audio.delta", audio_data=base64.b64encode(data).decode())

    def _tell_end(self, turn: Turn, done: Done | None = None, **notes: Any) -> None:
        names = ("prompt_tokens", "completion_tokens", "total_tokens")
        counted = dict(zip(names, done.usage.values() if done else (0, 0, 0), strict=True))
        self._say(type="speech.audio.done", usage=counted, **notes)

    def _tell_failure(self, described: dict[str, Any], status: int, code: int) -> None:
        self._say(type="error", error={"message": described["message"], "code": status})
