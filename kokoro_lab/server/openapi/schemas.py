"""Models of the server's answers: `/openapi.json` is made from them, and tests check answers by them."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Json

from kokoro_lab.config import VARIANTS
from kokoro_lab.containers import Format
from kokoro_lab.datatypes import MarkTiming, WordTiming
from kokoro_lab.playback.buffering import PROFILES
from kokoro_lab.server.requests.json_body import StrictBody


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = BeforeValidator(_whole)
"""Takes `24.0` for `24`: JSON knows one kind of number, and some clients write every one with a point."""


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, str) and NUMBER.fullmatch(value) else value


Number = BeforeValidator(_number)
"""Takes `"1.0"` for `1.0`: what comes out of a form is text. This validator stands last in an annotation, so
that it runs first."""
NUMBER = re.compile(r"(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,9})?")

Warmth = Literal["warming", "ok", "failed"]


def one_line(schema: dict[str, Any]) -> None:
    """Join the lines of each field's description, which is a docstring in the code."""
    for field in schema["properties"].values():
        if "description" in field:
            field["description"] = field["description"].replace("\n", " ")


class _Described(BaseModel):
    """The base of models whose fields are described by docstrings."""

    model_config = ConfigDict(use_attribute_docstrings=True, json_schema_extra=one_line)


class Answer(_Described):
    """The base of answers that may have further fields besides those that are described here."""

    model_config = ConfigDict(extra="allow")


class ErrorDetail(BaseModel):
    """What is wrong: in words, by OpenAI's kind of error, by the field at fault, and by a code to test
    for."""

    message: str
    type: Literal["invalid_request_error", "rate_limit_error", "server_error"]
    param: str | None
    code: str


class ErrorBody(BaseModel):
    """The body of every answer with a status of 400 or more."""

    error: ErrorDetail


class Percentiles(BaseModel):
    """Median and 95th percentile of the last values, by nearest rank; null where there are no values."""

    p50: float | None
    p95: float | None
    count: int


class Health(Answer):
    """How far the server has come in its start: HTTP 200 and `ok` once the engine has spoken its first words,
    else 503."""

    status: Warmth
    stage: str | None = None
    """Stage under way: imports, weights, graphs (loading), voice, text, model (warm-up)"""
    stages_s: dict[str, float]
    """Seconds that each stage took"""
    version: str
    variant: str
    active_provider: str | None = None
    """The provider that computes, once it is known"""
    reason: str | None = None
    """Why the warm-up failed"""


class Requests(BaseModel):
    """How requests for speech ended."""

    total: int
    completed: int
    failed: int
    expired: int
    cancelled: int
    rejected: int
    invalid: int


class DegradeRule(BaseModel):
    """A degrade mode: what turns it on, what it changes, and when it ends."""

    mode: str
    trigger: str
    changes: str
    way_back: str


class Degraded(Answer):
    """The degrade mode, why it is on and what it changes; and the table by which the server chooses it."""

    mode: Literal["normal", "reduce-ttfa", "avoid-underrun", "stability-first"]
    because: str
    changes: str
    since_s: float
    lighter_after_s: float | None
    """Seconds until the mode may end at the earliest; null if it does not end by itself"""
    setting: str
    chunk_ms: int
    pre_buffer_ms: int
    held_back_ms: int
    """Milliseconds for which the server holds the first sound of a stream back, so that no gap follows it"""
    admitted: int
    table: list[DegradeRule]


class Objective(BaseModel):
    """A service level objective that is missed now."""

    objective: str
    value: float
    limit: float
    count: int
    remedy: str


class Objectives(BaseModel):
    """The limits of the 95th percentiles (`KOKORO_SLO_…`), and the limits that recent requests exceeded."""

    limits: dict[str, float]
    warnings: list[Objective]


class Faults(Answer):
    """Faults that are injected on purpose: by which scenario, and how many have been injected."""

    scenario: str | None
    struck: int


class Running(Answer):
    """A request that is being answered."""

    request_id: str
    age_s: float
    characters: int | None
    streamed: bool
    speaking: bool
    chunks: int
    segments: int
    underruns: int
    fill: dict[str, float]
    """Segments prepared ahead, samples that do not fill a chunk yet, and seconds of speech that a
    listener in real time has not heard yet"""
    waited_s: float
    """Seconds that the request waited while other syntheses computed"""


class Computing(_Described):
    """How many syntheses compute or wait for the cores, and how much computing speech costs."""

    computing: int
    """Windows, or whole segments, that are computed now"""
    waiting: int
    """Windows, or whole segments, that wait to be computed"""
    wait_s: Percentiles
    """Seconds that a stream's window waits before it is computed"""
    utilisation: float
    """Share of the last minute in which something was computed"""
    load: float
    """Seconds of computing that all listeners together need in a second"""
    capacity: float
    """The load that listeners may need together; a listener who would need more waits"""
    costs: dict[str, float]
    """Seconds of computing for a second of speech, by voice; the empty name: all voices"""


class WarmUpState(BaseModel):
    """Stages of the warm-up, and languages that are loaded in the background."""

    state: Warmth
    stage: str | None
    stages_s: dict[str, float]
    languages: dict[str, str]
    reason: str | None


class Watched(_Described):
    """The watchdog, which keeps memory under its limit, and what it has done so far."""

    state: Literal["off", "ok", "cleaning", "refusing"]
    """What the watchdog did at its last check"""
    limit_mb: float
    """Resident memory that the process may have; 0: no limit"""
    warm_mb: float | None
    """Resident memory of the worker when it was warm"""
    peak_mb: float
    cleanups: int
    freed_mb: float
    actions: dict[str, int]
    """How many times each kind of memory was freed"""


class Worker(_Described):
    """The process that speaks. After a crash, another process takes its place."""

    pid: int
    number: int
    """How many worker processes this server has had, with this one"""


class ConnectionsState(_Described):
    """Connections that are open. Only connections that are being served occupy a thread of the pool."""

    most: int
    """Most open connections; for a further one, the server closes the connection that was silent longest"""
    open: int
    idle: int
    """Connections that have sent nothing of their next request"""
    reading: int
    """Connections whose request has arrived in part"""
    leaving: int
    """Connections that got their last answer and are not closed yet"""
    served: int
    """Connections whose request is answered, or waits for a thread, including that of this request"""
    threads: int
    """Threads of the pool"""
    held_bytes: int
    """Bytes of requests that are not answered yet"""
    most_held_bytes: int
    """Limit of `held_bytes`. If it is exceeded, the server closes the one of these connections that was
    silent longest"""
    accepted: int
    closed: dict[str, int]
    """Connections that the server has closed, by reason"""


class Memory(_Described):
    """Memory of the server's process, in MiB."""

    rss_mb: float
    arena_limit_mb: int
    """Limit of the memory that ONNX Runtime allocates; 0: no limit"""
    available_mb: float
    """Memory of the machine that is available to programs"""
    watchdog: Watched


class PlacementState(_Described):
    """Where each stage of the model runs now, and which providers were given up, and why."""

    requested: str
    active: str
    because: str
    stages: dict[str, str]
    nodes: dict[str, str]
    """For each stage that does not run on the CPU: how many of its graph's nodes the provider takes, such as
    `12 of 340`"""
    fallbacks: list[str]


class Status(Answer):
    """What runs, and how the last requests went. Names of figures in seconds end in `_s`."""

    status: Warmth
    uptime_s: float
    worker: Worker
    refuses: list[str]
    """Why new requests are refused: server_stopping, memory_short; empty if they are admitted"""
    warm_up_s: float | None
    warm_up: WarmUpState
    variant: Literal[VARIANTS]  # type: ignore[valid-type]
    model_sha256: str
    requested_provider: str
    active_provider: str
    placement: PlacementState
    threads: int
    voices: int
    connections: ConnectionsState | None
    """Null if another WSGI server than ours runs the application"""
    voices_not_offered: dict[str, str]
    """Voices that `/voices` leaves out, and why their own language cannot be read here. They speak if
    `language` names another language"""
    active: int
    """Syntheses under way"""
    waiting: int
    """Requests in the queue"""
    concurrency: int
    queue: int
    computing: Computing
    buffer_profile: Literal[tuple(PROFILES)]  # type: ignore[valid-type]
    ephemeral: bool
    sessions: list[Running]
    requests: Requests
    window: int
    """How many of the last values of each kind the figures below cover"""
    ttfa_s: Percentiles
    """Streams: seconds from the accepted request to the first sample of speech, if it was computed and not
    taken from the cache"""
    ttfa_file_s: Percentiles
    """Files: seconds from the accepted request to the first computed sample of speech"""
    ttfb_s: Percentiles
    """Streams: seconds from the accepted request to the first byte, which may belong to a header"""
    rtf: Percentiles
    """Seconds of computing for a second of speech"""
    chunk_gap_s: Percentiles
    """Seconds between two chunks, less the length of the first"""
    underruns: int
    streams_with_underruns: int
    degrade: Degraded
    slo: Objectives
    faults: Faults | None
    """Faults injected on purpose; null if no fault can be injected"""
    lexicon: dict[str, Any]
    first_audio_cache: dict[str, float]
    phoneme_cache: dict[str, float | None]
    languages_loaded: list[str]
    primer: dict[str, float]
    memory_rss_mb: float
    memory: Memory
    versions: dict[str, str]
    math: dict[str, str]
    """How exactly the engine computes, and how it treats denormals (numbers nearly 0)"""
    toolchain: dict[str, Any]
    """Compiler and runtime, and files of fitted parameters with their digests"""
    conversion: dict[str, Any]
    """How the graphs were made; empty for published weights"""


class Voice(BaseModel):
    """A voice as OpenWebUI lists it."""

    id: str
    name: str
    language: str
    gender: str


class Voices(BaseModel):
    """The voices that can read texts of their own language."""

    voices: list[Voice]


class VoiceNames(BaseModel):
    """The names of the voices that can read texts of their own language."""

    voices: list[str]


class Model(BaseModel):
    """A name that `model` may have, in OpenAI's shape."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class Models(BaseModel):
    """OpenAI's list of models."""

    object: Literal["list"]
    data: list[Model]


class ModelName(BaseModel):
    """A name that `model` may have."""

    id: str


class ModelNames(BaseModel):
    """The models as OpenWebUI lists them."""

    models: list[ModelName]


class SessionStatus(BaseModel):
    """The model that is loaded, and the requests that are being served."""

    variant: str
    requested_provider: str
    active_provider: str
    details: dict[str, str]
    active: int
    waiting: int
    concurrency: int
    running: list[Running]


class ResetRequest(StrictBody):
    """The request to stop. Without an id, all requests are stopped and the figures are reset."""

    request_id: str | None = None


class Reset(BaseModel):
    """The ids of the requests that were stopped, and whether the figures were reset."""

    stopped: list[str]
    figures_reset: bool


class Cleared(BaseModel):
    """How many entries each cache had before it was emptied."""

    cleared: dict[str, int]


class Description(Answer):
    """An OpenAPI document."""

    openapi: str
    info: dict[str, Any]
    paths: dict[str, Any]
    components: dict[str, Any]


class MemoryDetails(BaseModel):
    """The process's memory in bytes, and the number of objects of each of the commonest Python types."""

    process: dict[str, int]
    objects: dict[str, int]


class TimedWord(WordTiming):
    """When a word is heard: offsets into the text, seconds from the start of the speech.

    Punctuation is no word. One written word that is said as several words, such as `$100`, gives several
    entries with the same offsets.
    """


class TimedMark(MarkTiming):
    """When a `mark` of SSML is reached: its offset in the text, seconds from the start of the speech."""


class Usage(BaseModel):
    """`input_tokens`: the phonemes that the model read; `output_tokens`: frames of 25 ms that it spoke."""

    input_tokens: int
    output_tokens: int
    total_tokens: int


class TimedSpeech(_Described):
    """A whole file and when its words are heard: the answer to `timestamps` without events."""

    object: Literal["audio.speech"]
    format: Format
    sample_rate: int
    duration_s: float
    words: list[TimedWord]
    marks: list[TimedMark] = []
    """The `mark` elements of SSML, if the text has any"""
    usage: Usage
    audio: str = Field(json_schema_extra={"contentEncoding": "base64"})


class SpeechDelta(_Described):
    """A chunk of the audio."""

    type: Literal["speech.audio.delta"]
    audio: str = Field(json_schema_extra={"contentEncoding": "base64"})
    resume: str | None = None
    """In a segment's first chunk: the token with which a client can resume the stream"""


class SpeechWords(_Described):
    """When the words of a segment are heard, if `timestamps` were asked for."""

    type: Literal["speech.audio.words"]
    segment_id: int
    words: list[TimedWord]
    marks: list[TimedMark] = []
    """The `mark` elements of SSML, if the text has any"""


class SpeechDone(BaseModel):
    """The end of the speech: all of it was sent."""

    type: Literal["speech.audio.done"]
    usage: Usage


class SpeechEvent(_Described):
    """One server-sent event. Without an `event:` it is of the kind that SSE calls `message`."""

    event: Literal["message", "error"] = "message"
    id: str | None = None
    """Of a delta: its segment and its chunk, such as `0.3`. A client that resumes sends it as `last_id`"""
    data: Json[SpeechDelta | SpeechWords | SpeechDone | ErrorBody]


class Stopped(_Described):
    """The answer to `DELETE /v1/audio/speech/{stream_id}`: the id, and the syntheses that were stopped."""

    id: str
    object: Literal["audio.speech"]
    cancelled: bool
    stopped: list[str]
    """Ids of the syntheses that were stopped: more than one if several requests had the same id"""
