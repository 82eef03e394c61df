"""The body of `POST /v1/audio/speech`: OpenAI's fields, ours, and Raycast's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from flask import Request, g
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictStr, ValidationError

from kokoro_lab.config import SPEED_MAX, SPEED_MIN, VARIANTS, Settings
from kokoro_lab.containers import FORMATS, Format, decoded_hz, dithered, named_format
from kokoro_lab.datatypes import Utterance
from kokoro_lab.dsp import Dithering
from kokoro_lab.engine_config import CHUNK_MAX_MS, CHUNK_MIN_MS
from kokoro_lab.errors import ParameterError, TextError
from kokoro_lab.g2p.lexicon_entries import request_entries
from kokoro_lab.server.openapi.request_schema import ALIASES, OUR_PREFIX, describe, describe_id
from kokoro_lab.server.openapi.schemas import Number, Whole
from kokoro_lab.server.requests.json_body import json_object
from kokoro_lab.speech.captions import CaptionFormat

GENERAL_MODELS = ("kokoro", "tts-1", "tts-1-hd", "gpt-4o-mini-tts")
"""Names of models that stand for the served variant, as `/v1/models` lists them. A name that is neither of
these nor a variant is accepted, too, and reported as ignored."""

DEFAULT_FORMAT: Format = "mp3"
"""OpenAI's default. OpenWebUI relies on it: it names no format and stores the answer as `.mp3`."""

_SHOWN_CHARACTERS = 40
_OUT_OF_RANGE = ("greater_than_equal", "less_than_equal")
_NEVER_SHOWN = ("input", "instructions")


class VoiceId(BaseModel):
    """A voice as an object with an `id`, as OpenAI's clients may send it."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=describe_id)

    id: Annotated[str, Field(strict=True, min_length=1)]


class SpeechRequest(BaseModel):
    """The body of `POST /v1/audio/speech`. A field that is not here is an error, as it is at OpenAI's."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra=describe, use_attribute_docstrings=True
    )

    input: StrictStr
    """The text to speak. Also called `text`"""
    input_format: Literal["text", "ssml", "markdown", "marked"] = "text"
    """What `input` is: plain text, a subset of SSML, Markdown, or plain text with inline marks such as
    `[pause:1s]`"""
    code: Literal["skip", "name", "read"] = "skip"
    """How blocks of code in Markdown are read. `skip`: not at all; `name`: only the name of their language;
    `read`: completely"""
    emoji: Literal["name", "skip"] = "name"
    """`name`: emoji are spoken by their names; `skip`: they are left out"""
    model: StrictStr | None = None
    """Any name. If it is the name of a variant, such as `fp32` or `kokoro-fp32`, the server must serve that
    variant. If it is not in `/v1/models`, it has no effect, and `X-Kokoro-Ignored` has `model`"""
    voice: str | VoiceId | None = None
    """The name of a voice, the name of an OpenAI voice, or a blend such as `af_bella(2)+af_sky(1)`. Default:
    the voice that the server is set to"""
    response_format: Annotated[Format | CaptionFormat | None, BeforeValidator(named_format)] = None
    """Format of the answer. `ogg` means opus; `srt` and `vtt` are captions without sound. Default: the format
    that the header `Accept` asks for, else mp3; with events, pcm. Also called `format`"""
    speed: Annotated[float, Field(strict=True, ge=SPEED_MIN, le=SPEED_MAX, allow_inf_nan=False), Number] = 1.0
    """Factor by which speech is faster than usual"""
    instructions: StrictStr | None = None
    """Has no effect: the model cannot be told how to speak. `X-Kokoro-Ignored` names it"""
    stream_format: Literal["audio", "sse"] = "audio"
    """`audio`: the answer is the audio itself; `sse`: the answer is server-sent events that hold the audio"""
    stream: StrictBool = True
    """true: the server sends audio while it computes it; false: it sends a whole file of known length"""
    language: StrictStr | None = None
    """Language of the text, such as `en-gb`. Default: the language of the voice. Also called `lang`,
    `lang_code`"""
    detect_languages: Literal["auto", "scripts", "off"] = "auto"
    """Which words of other languages are read in their own language. `auto`: all that are found; `scripts`:
    only those in another script; `off`: none"""
    sample_rate: Annotated[Literal[22_050, 24_000, 44_100, 48_000], Whole, Number] = 24_000
    """Sample rate of the audio, in Hz. Opus always has 48000"""
    dither: Dithering = "tpdf"
    """Noise that hides the rounding of samples to 16 bits. `tpdf`: white noise; `shaped`: noise at
    frequencies at which people hear it less"""
    chunk_ms: Annotated[int, Field(strict=True, ge=CHUNK_MIN_MS, le=CHUNK_MAX_MS), Whole] | None = None
    """Length of a stream's chunks, in milliseconds. Default: the length that the server uses now (50 ms,
    unless its settings or its degrade mode say otherwise)"""
    ephemeral: StrictBool = False
    """true: the server keeps nothing of this request: no first audio and no phonemes in its caches, no hash
    of the text in its log, and no token with which a client could resume"""

    timestamps: StrictBool = False
    """true: the answer says when each word is heard. Without events the answer is then JSON"""
    client: StrictStr | None = None
    """A name by which the client calls itself. A later request with the same name stops this one"""
    resume: StrictStr | None = None
    """To resume a stream that broke: the last token that the client received (`resume` of an event)"""
    last_id: StrictStr | None = None
    """To resume a stream that broke: the id of the last event that the client received. Also taken from the
    header `Last-Event-ID`"""

    lexicon: list[Any] | dict[str, Any] | None = None
    """How words of this request are pronounced: a list of lexicon entries, or an object with words and their
    phonemes. Up to 100 words and 8 kB"""

    @property
    def voice_name(self) -> str | None:
        """The name of the requested voice, in whichever form it was sent."""
        return self.voice.id if isinstance(self.voice, VoiceId) else self.voice

    @property
    def kind(self) -> Format:
        """The format of the sound; WAV for captions, which are sent without sound."""
        return "wav" if self.captions else self.response_format or DEFAULT_FORMAT  # type: ignore[return-value]

    @property
    def captions(self) -> CaptionFormat | None:
        """The format of the captions, if they are asked for."""
        return self.response_format if self.response_format in ("srt", "vtt") else None

    @property
    def heard_hz(self) -> int:
        """The sample rate after decoding."""
        return decoded_hz(self.kind, self.sample_rate)

    @property
    def as_json(self) -> bool:
        """Whether the answer is JSON with a whole file and its words."""
        return self.timestamps and self.stream_format == "audio"

    @property
    def ignored(self) -> tuple[str, ...]:
        """Fields that were given and have no effect."""
        given = {
            "model": bool(self.model) and _variant(self.model) is None and self.model not in GENERAL_MODELS,
            "instructions": bool(self.instructions),
            "code": self.code != "skip" and self.input_format != "markdown",
            "dither": self.dither != "tpdf" and not dithered(self.kind),
            "sample_rate": "sample_rate" in self.model_fields_set and self.sample_rate != self.heard_hz,
        }
        return tuple(name for name, ignored in given.items() if ignored)

    def utterance(self, default_voice: str) -> Utterance:
        """The utterance for the engine."""
        return Utterance(
            self.input,
            voice=self.voice_name or default_voice,
            speed=self.speed,
            language=self.language,
            input_format=self.input_format,
            code=self.code,
            emoji=self.emoji,
            lexicon=request_entries(self.lexicon),
            detect_languages=self.detect_languages,
        )


def read_speech_request(request: Request, settings: Settings, variant: str) -> SpeechRequest:
    """The validated body of `request`, its format settled.

    Parameters
    ----------
    request : flask.Request
        A request whose length has been checked.
    settings : Settings
        Settings with the limit of the text's length.
    variant : str
        The variant that is served.

    Raises
    ------
    ParameterError, TextError
        The body is no JSON object or does not validate; `field` is the name that the client used.
    werkzeug.exceptions.UnsupportedMediaType, werkzeug.exceptions.RequestTimeout
        The body is of another type, or does not arrive.
    """
    asked = speech_request_of(json_object(request), settings, variant)
    found = {}
    if asked.last_id is None and request.headers.get("Last-Event-ID"):
        found["last_id"] = request.headers["Last-Event-ID"]
    if asked.client is None and "X-Kokoro-Client" in request.headers:
        found["client"] = request.headers["X-Kokoro-Client"]
    if asked.response_format is None:
        found["response_format"] = "pcm" if asked.stream_format == "sse" else _accepted_format(request)
    asked = asked.model_copy(update=found)
    _check_transport(asked)
    return asked


def speech_request_of(payload: dict[str, Any], settings: Settings, variant: str) -> SpeechRequest:
    """Validate the request in `payload`, from any transport. Its format may still be undecided.

    Raises
    ------
    ParameterError, TextError
        The payload does not validate. The answer names the field as the client did (`text` for `input`): see
        `errors.body_of`.
    """
    # Some clients send every field, null for those that were not set
    known = {*SpeechRequest.model_fields, *ALIASES} - {"input", "text"}  # one of these is required
    payload = {name: value for name, value in payload.items() if value is not None or name not in known}
    names = {ours: alias for alias, ours in ALIASES.items() if alias in payload}
    g.client_names = names
    for alias, ours in ALIASES.items():
        if alias in payload and (ours in payload or names[ours] != alias):
            ours = ours if ours in payload else names[ours]
            raise ParameterError(
                f"{alias!r} and {ours!r} are the same field; send one of them.", field=alias, value=alias
            )
    try:
        asked = SpeechRequest.model_validate({ALIASES.get(name, name): v for name, v in payload.items()})
    except ValidationError as error:
        raise _readable(error, names) from None  # pydantic's own words quote the values
    if len(asked.input) > settings.max_input_chars:
        raise TextError(
            f"The text has {len(asked.input)} characters.",
            field="input",
            value=len(asked.input),
            allowed=f"up to {settings.max_input_chars}",
            mend="Send it in parts.",
        )
    if (other := _variant(asked.model)) not in (None, variant):
        raise ParameterError(
            f"The variant {other!r} is not the one served here.",
            field="model",
            value=asked.model,
            allowed=f"{variant}, or a name that leaves the choice open: {', '.join(GENERAL_MODELS)}",
            mend=f"Serve it with `kokoro-lab serve --variant {other}`.",
        )
    return asked


def _variant(model: str | None) -> str | None:
    """The variant in a model's name, with or without `kokoro-` before it; None if it names none."""
    name = (model or "").strip().lower().removeprefix(OUR_PREFIX)
    return name if name in VARIANTS else None


def _check_transport(asked: SpeechRequest) -> None:
    """Refuse fields that exclude each other, rather than ignore one."""
    events = asked.stream_format == "sse"
    if asked.captions and (events or asked.timestamps):
        raise ParameterError(
            "Captions are sent as a text file.",
            field="response_format",
            value=asked.captions,
            allowed="with stream_format audio, without timestamps",
        )
    if events and not asked.stream:
        raise ParameterError(
            "Events are always streamed.",
            field="stream",
            value=False,
            allowed="true with stream_format sse",
            mend="With stream_format audio, timestamps come in one JSON answer.",
        )
    if asked.as_json and asked.stream and "stream" in asked.model_fields_set:
        raise ParameterError(
            "A stream of audio has no room for timestamps.",
            field="timestamps",
            value=True,
            allowed="with stream_format sse, or with stream false for one JSON answer",
        )
    if not events and (asked.resume is not None or asked.last_id is not None):
        raise ParameterError(
            "Raw audio has no ids by which it could be resumed.",
            field="resume" if asked.resume is not None else "last_id",
            value=asked.last_id or "a token",
            allowed="with stream_format sse, or over the WebSocket",
        )
    require_last_id(asked)


def require_last_id(asked: SpeechRequest) -> None:
    """Refuse a resume token without the id of the last chunk.

    Raises
    ------
    ParameterError
        The request has a token and no id.
    """
    if asked.resume is not None and asked.last_id is None:
        raise ParameterError(
            "Resuming needs the id of the last chunk.",
            field="last_id",
            allowed="the id of the last event, in last_id or the header Last-Event-ID",
        )


def _accepted_format(request: Request) -> Format:
    """The format that `Accept` prefers. A client that accepts everything, or nothing that we have, gets the
    default."""
    # Without parameters, since `audio/pcm;rate=24000` would match nothing
    ranges = [(name.partition(";")[0].strip(), quality) for name, quality in request.accept_mimetypes]

    def liking(kind: Format) -> tuple[float, int]:
        # A more specific range has precedence (RFC 9110, 12.5.1): `audio/mpeg;q=0, audio/*` accepts all but
        # MP3
        said = [(_closeness(name, kind), quality) for name, quality in ranges]
        closeness, quality = max(said, default=(0, 0.0))
        return (quality, closeness) if closeness else (0.0, 0)

    likings = {kind: liking(kind) for kind in (DEFAULT_FORMAT, *FORMATS)}
    best = max(likings, key=lambda kind: likings[kind])  # the first of those that are preferred equally
    return best if likings[best][0] > 0 else DEFAULT_FORMAT


def _closeness(media_range: str, kind: Format) -> int:
    """How closely a range of media types names a format: 3 by name, 0 not at all."""
    if media_range in FORMATS[kind].media_types:
        return 3
    return {"audio/*": 2, "*/*": 1}.get(media_range, 0)


def _range_of(field: str) -> str:
    """The least and the greatest allowed value of a number, for an error message."""
    schema = SpeechRequest.model_json_schema()["properties"][field]
    (number,) = [kind for kind in (schema, *schema.get("anyOf", ())) if "minimum" in kind]
    return f"{number['minimum']:g} to {number['maximum']:g}"


def _readable(error: ValidationError, names: Mapping[str, str]) -> ParameterError:
    """The first validation error in plain words, with the client's names of fields."""
    first = error.errors(include_url=False)[0]
    ours = str(first["loc"][0])
    field = names.get(ours, ours)[:_SHOWN_CHARACTERS]
    value = "" if ours in _NEVER_SHOWN else repr(first["input"])[:_SHOWN_CHARACTERS]
    if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
        known = [*SpeechRequest.model_fields, *ALIASES]
        return ParameterError(
            f"There is no field {field!r}.", field=field, value=field, allowed=", ".join(known)
        )
    if first["type"] == "missing" and len(first["loc"]) == 1:
        return ParameterError(f"The field {field!r} is missing.", field=field)
    if ours == "voice":
        return ParameterError(
            "The voice cannot be read.",
            field=field,
            value=value,
            allowed='a name such as "af_heart", or {"id": "af_heart"}',
        )
    if first["type"] == "literal_error":
        allowed = first["ctx"]["expected"].replace(" or ", ", ").replace("'", "")
        return ParameterError(f"{field} {value} is not offered.", field=field, value=value, allowed=allowed)
    message = _range_of(ours) if first["type"] in _OUT_OF_RANGE else first["msg"]
    message = message.removeprefix("Input should be ")
    return ParameterError(
        f"{field}{value and f' {value}'} is not valid.", field=field, value=value, allowed=message
    )
