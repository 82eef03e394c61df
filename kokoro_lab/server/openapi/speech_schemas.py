"""What is answered to who asks for speech, beside the audio itself: words in time, events, a stop."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field, Json

from kokoro_lab.containers import Format
from kokoro_lab.server.openapi.schemas import ErrorBody


class TimedWord(BaseModel):
    """When a word is heard: offsets into the text, seconds from the start of the speech.

    Marks are no words. What is said as several words, such as `$100`, gives several with the same offsets.
    """

    text: str
    start: int
    end: int
    start_s: float
    end_s: float
    phonemes: str
    segment_id: int


class Usage(BaseModel):
    """Phoneme ids that the model read, and frames of 25 ms that it spoke."""

    input_tokens: int
    output_tokens: int
    total_tokens: int


class TimedSpeech(BaseModel):
    """A whole file and when its words are heard: the answer to `timestamps` without events."""

    object: Literal["audio.speech"]
    format: Format
    sample_rate: int
    duration_s: float
    words: list[TimedWord]
    usage: Usage
    audio: str = Field(json_schema_extra={"contentEncoding": "base64"})


class SpeechDelta(BaseModel):
    """A piece of the audio."""

    type: Literal["speech.audio.delta"]
    audio: str = Field(json_schema_extra={"contentEncoding": "base64"})
    resume: str | None = Field(None, description="With the first frame of a segment: the token to go on with")


class SpeechWords(BaseModel):
    """When the words of a segment are heard, if `timestamps` were asked for."""

    type: Literal["speech.audio.words"]
    segment_id: int
    words: list[TimedWord]


class SpeechDone(BaseModel):
    """The end: nothing is missing."""

    type: Literal["speech.audio.done"]
    usage: Usage


class SpeechEvent(BaseModel):
    """One server-sent event. Without an `event:` it is of the kind that SSE calls `message`."""

    event: Literal["message", "error"] = "message"
    id: str | None = Field(None, description="`segment.chunk` of a delta, for `last_id`")
    data: Json[SpeechDelta | SpeechWords | SpeechDone | ErrorBody]


class Stopped(BaseModel):
    """What was stopped by its id."""

    id: str
    object: Literal["audio.speech"]
    cancelled: bool
    stopped: list[str] = Field(
        description="Ids of the syntheses that were: more than one may have been given it"
    )
