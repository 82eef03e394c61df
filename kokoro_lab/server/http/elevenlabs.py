"""ElevenLabs' WebSockets, `stream-input` and `multi-stream-input`, as a dialect of our live texts.

The client writes {`text`}; with `flush` the text so far is spoken, and {`text`: ""} ends it. On
`multi-stream-input`, each text is a context with an id. There, {`close_context`} ends a context, and an
empty text only shows that the client is still there. The server sends
{`audio`, `alignment`, `normalizedAlignment`} and, at the end, {`isFinal`} with the `ignored` fields and the
`fallbacks`. Contexts are spoken one after another. An error is sent as {`message`, `error`, `code`}, and
closes the connection.

Fields that set when ElevenLabs' model begins (`try_trigger_generation`, `chunk_length_schedule`) have no
effect: our speech begins as soon as the text allows.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from pydantic import AliasChoices, Field, StrictBool, StrictStr

from kokoro_lab.datatypes import WordTiming
from kokoro_lab.errors import ParameterError
from kokoro_lab.server.http.live_conversation import LiveConversation, Turn
from kokoro_lab.server.requests.json_body import StrictBody, model_of
from kokoro_lab.server.requests.speech_events import AudioBytes, Done, SpeechEvents, Words
from kokoro_lab.server.requests.speech_request import SpeechRequest

OutputFormat = Literal["mp3_44100_128", "opus_48000_64", "pcm_22050", "pcm_24000", "pcm_44100", "pcm_48000"]
"""The formats of ElevenLabs that we can encode: name, Hz, kbit/s."""
WITHOUT_EFFECT = {"optimize_streaming_latency", "apply_language_text_normalization", "seed", "sync_alignment"}
VoiceSetting = Literal["speed", "stability", "similarity_boost", "style", "use_speaker_boost"]
_BEHIND_A_WORD = re.compile(r"\W*")


class ConnectionQuery(StrictBody):
    """The query parameters of the connection."""

    model_id: str | None = None
    output_format: OutputFormat = "mp3_44100_128"
    language_code: str | None = None
    inactivity_timeout: int = Field(20, ge=1, le=180)
    auto_mode: bool = False
    enable_logging: bool = True
    enable_ssml_parsing: bool = False
    sync_alignment: bool = False
    optimize_streaming_latency: int | None = None
    apply_text_normalization: Literal["auto", "on"] = "auto"
    apply_language_text_normalization: bool | None = None
    seed: int | None = None


class ElevenLabsMessage(StrictBody):
    """A client's message. An API key in it is not read: the key belongs in the request's headers."""

    text: StrictStr | None = None
    context_id: StrictStr | None = None
    flush: StrictBool | None = None
    try_trigger_generation: StrictBool | None = None
    close_context: StrictBool | None = None
    close_socket: StrictBool | None = None
    voice_settings: dict[VoiceSetting, float | bool | None] | None = None
    generation_config: dict[Literal["chunk_length_schedule"], list[float] | None] | None = None
    generator_config: dict[Literal["chunk_length_schedule"], list[float] | None] | None = None
    pronunciation_dictionary_locators: list[Any] | None = Field(None, max_length=0)
    xi_api_key: StrictStr | None = Field(None, validation_alias=AliasChoices("xi_api_key", "xi-api-key"))
    authorization: StrictStr | None = None


class ElevenLabsConversation(LiveConversation):
    """ElevenLabs' dialect. Its parameters are these and those of `LiveConversation`.

    Parameters
    ----------
    voice : str
    several : bool
        Whether the client has contexts.
    """

    def __init__(self, *connection: Any, voice: str, several: bool, **address: Any) -> None:
        super().__init__(*connection, **address)
        self._voice = voice
        self._several = several
        self.ending = "`close_context`" if several else '{"text": ""}'

    # ------------------------------------------------------------------------------------- listening

    def _greet(self) -> None:
        asked = model_of(self._query, ConnectionQuery)
        kind, rate_hz = asked.output_format.split("_")[:2]
        if asked.enable_ssml_parsing:
            raise ParameterError(
                "SSML is not read while it is written.", field="enable_ssml_parsing", mend="Leave it out."
            )
        self._state.engine.voice(self._voice)
        self._idle_s = asked.inactivity_timeout
        self._flushes = asked.auto_mode
        self._ignored += sorted(WITHOUT_EFFECT & asked.model_fields_set)
        self._fields = {
            "voice": self._voice,
            "model": asked.model_id,
            "language": asked.language_code,
            "ephemeral": not asked.enable_logging,
            "timestamps": True,
            "response_format": kind,
            "sample_rate": int(rate_hz),
        }

    def _heed(self, said: dict[str, Any]) -> None:
        asked = model_of(said, ElevenLabsMessage)
        if not self._several and said.keys() & {"context_id", "close_context", "close_socket"}:
            raise ParameterError("There are no contexts here.", mend="Connect to multi-stream-input.")
        turns = [turn for turn in self._turns if asked.close_socket or turn.name == asked.context_id]
        if asked.close_context or asked.close_socket:
            for each in turns:
                self._close(each, socket=bool(asked.close_socket))
            self._leaving |= bool(asked.close_socket)
            return
        closes = asked.text == "" and not asked.flush and not self._several
        if asked.text is None and not asked.flush:
            raise ParameterError("A message has a text.", field="text", allowed="a string")
        turn = turns[-1] if turns and not turns[-1].ended else None
        if turn is None:
            words = (asked.text or "").strip()  # after the end, only words matter
            if not (words if self._leaving else asked.text or closes):
                return
            turn = self._open_turn(asked.context_id, self._fields | self._heard_settings(asked))
        elif asked.voice_settings and turn.fields | self._heard_settings(asked) != turn.fields:
            raise ParameterError("The first message alone sets a voice.", field="voice_settings")
        self._write(turn, asked.text or "", flush=asked.flush or self._flushes, end=closes)
        self._leaving |= closes

    def _heard_settings(self, asked: ElevenLabsMessage) -> dict[str, Any]:
        given = {name: value for name, value in (asked.voice_settings or {}).items() if value is not None}
        speed = {"speed": given.pop("speed")} if "speed" in given else {}
        self._ignored += sorted(given.keys() - set(self._ignored))
        return speed

    def _close(self, turn: Turn, *, socket: bool) -> None:
        """Close a context. As with ElevenLabs, flushed text is still spoken and other text is dropped. If the
        context is closed a second time, all of its text is dropped.

        The end of the `socket` does not count as closing a context again.
        """
        if not turn.flushed or (turn.ended and not socket):
            self._drop(turn)
        else:
            self._write(turn, "", end=True)

    # -------------------------------------------------------------------------------------- speaking

    def _tell_begun(self, asked: SpeechRequest, events: SpeechEvents) -> None:
        super()._tell_begun(asked, events)
        self._unaligned, self._aligned_chars, self._aligned_s = "", 0, 0.0

    def _hand_over(self) -> None:
        self._unaligned += "".join(text for text in self._turns[0].waiting if text)
        super()._hand_over()

    def _context(self, turn: Turn) -> dict[str, Any]:
        return {"contextId": turn.name} if self._several else {}

    def _tell(self, turn: Turn, audio: bytes | None, alignment: Any = None, **more: Any) -> None:
        coded, final = (None, True) if audio is None else (base64.b64encode(audio).decode(), None)
        both = {"alignment": alignment, "normalizedAlignment": alignment}
        self._say(audio=coded, isFinal=final, **both, **self._context(turn), **more)

    def _tell_audio(self, frame: AudioBytes) -> None:
        self._tell(self._turns[0], frame.data)

    def _tell_words(self, words: Words) -> None:
        alignment = alignment_of(
            self._unaligned, words.timings, first_char=self._aligned_chars, start_s=self._aligned_s
        )
        count = len(alignment["chars"])
        if not count:
            return
        self._unaligned = self._unaligned[count:]
        self._aligned_chars += count
        self._aligned_s += (alignment["charStartTimesMs"][-1] + alignment["charDurationsMs"][-1]) / 1000
        self._tell(self._turns[0], b"", alignment)

    def _tell_end(self, turn: Turn, done: Done | None = None, **notes: Any) -> None:
        self._tell(turn, None, **notes)

    def _tell_failure(self, described: dict[str, Any], status: int, code: int) -> None:
        context = self._context(self._turns[0]) if self._turns else {}
        self._say(message=described["message"], error=described["code"], code=code, **context)


def alignment_of(
    text: str, words: Sequence[WordTiming], *, first_char: int, start_s: float
) -> dict[str, list[Any]]:
    """When each character of a segment is heard, in ElevenLabs' words.

    Only the times of words are known. A word's characters share its time evenly. Characters between two words
    share the pause, and marks after the last word take no time. Times are counted from `start_s`, where the
    last message's alignment ends, so that alignments follow one another without a gap.

    Parameters
    ----------
    text : str
        The whole text from its character `first_char` on.
    words : sequence of WordTiming
        The words of one segment, at least one.
    first_char : int
    start_s : float

    Returns
    -------
    dict
        `chars`, `charStartTimesMs` and `charDurationsMs`, equally long.
    """
    heard: dict[tuple[int, int], list[float]] = {}
    for word in words:  # several words have the same place where one written word is said as several
        heard.setdefault((word.start, word.end), [word.start_s])[1:] = [word.end_s]
    places = [0, *(place - first_char for span in heard for place in span)]
    times_s = [start_s, *(second for span in heard.values() for second in span)]
    behind = _BEHIND_A_WORD.match(text, max(places))
    count = behind.end() if behind else len(text)
    bounds_s = np.interp(range(count + 1), np.maximum.accumulate(places), np.maximum.accumulate(times_s))
    bounds_ms = np.rint(1000 * (bounds_s - start_s)).astype(int)
    return {
        "chars": list(text[:count]),
        "charStartTimesMs": bounds_ms[:-1].tolist(),
        "charDurationsMs": np.diff(bounds_ms).tolist(),
    }
