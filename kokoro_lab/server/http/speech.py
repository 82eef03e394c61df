"""`POST /v1/audio/speech`: speaks a text, as a stream or as a file."""

from __future__ import annotations

import base64
import json
import math
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from flask import Blueprint, Response, g, request
from werkzeug.exceptions import NotFound, TooManyRequests

from kokoro_lab.containers import FORMATS, Encoder, content_type
from kokoro_lab.datatypes import SynthesisReport
from kokoro_lab.errors import Interrupted
from kokoro_lab.server.http.delivery import (
    EventWriter,
    RawWriter,
    ResponseBody,
    in_slices,
    until_sent,
    warn_of_clipping,
)
from kokoro_lab.server.http.departure import ClientWatch, has_left
from kokoro_lab.server.http.errors import body_of
from kokoro_lab.server.http.guard import (
    REQUEST_ID,
    SEND_BUFFER_BYTES,
    caller,
    client_socket,
    require_key,
)
from kokoro_lab.server.openapi.document import Parameter, described_headers, documented, operation_id
from kokoro_lab.server.openapi.request_schema import CLIENT, anchored, limit
from kokoro_lab.server.openapi.schemas import SpeechEvent, Stopped, TimedSpeech
from kokoro_lab.server.requests.account import Account
from kokoro_lab.server.requests.opening import open_stream, synthesis_of
from kokoro_lab.server.requests.slots import ClientLeft
from kokoro_lab.server.requests.speech_events import by_stage, timed, usage_of
from kokoro_lab.server.requests.speech_request import SpeechRequest, read_speech_request
from kokoro_lab.server.requests.syntheses import Synthesis
from kokoro_lab.server.state import ServerState, server_state
from kokoro_lab.speech.captions import MEDIA_TYPES, captions_file

if TYPE_CHECKING:
    from kokoro_lab.speech.stream import SpeechStream

BASE64_SLICE_BYTES = 49_152
"""A multiple of 3, so that slices of base64 join to one."""

blueprint = Blueprint("speech", __name__)
blueprint.before_request(require_key)

_MEDIA = {content_type(kind, 24_000).partition(";")[0] for kind in FORMATS} | set(MEDIA_TYPES.values())


@blueprint.post("/v1/audio/speech")
@documented(
    body=SpeechRequest,
    refine=limit,
    answer=TimedSpeech,
    events=SpeechEvent,
    media=tuple(sorted(_MEDIA)),
    errors=(401, 409, 410, 429, 499, 500, 503, 504, 507),
    parameters=(Parameter("X-Kokoro-Client", {"type": "string", "pattern": anchored(CLIENT)}, "header"),),
    headers=described_headers("speech"),
    at_times=described_headers("at times"),
    links={
        "stop": {
            "operationId": operation_id("delete", "speech.stop"),
            "parameters": {"stream_id": "$response.header.X-Kokoro-Stream-Id"},
            "description": "While it is spoken",
        }
    },
)
def speak() -> Response:
    """Speak what the body asks for.

    The answer is audio of the format that is asked for; with `stream_format` sse, events that hold it; with
    `timestamps` and no events, JSON. A stream that broke is resumed with `resume` and `last_id`, or the
    header `Last-Event-ID`.
    """
    state = server_state()
    account = _account()
    asked = read_speech_request(request, state.settings, state.engine.config.variant)
    as_events = asked.stream_format == "sse"
    # HTTP/1.0 has no chunked bodies: a stream that breaks would look complete
    streamed = asked.stream and request.environ.get("SERVER_PROTOCOL") != "HTTP/1.0"
    streamed = (streamed or as_events) and not asked.as_json and not asked.captions
    transport = "events" if as_events else "stream" if streamed else "file"
    synthesis = synthesis_of(state, account, asked, transport, caller())
    synthesis.connection = connection = client_socket()
    state.syntheses.admit(synthesis, lambda: connection is not None and has_left(connection))
    try:
        return _streamed(state, synthesis) if streamed else _file(state, synthesis)
    except BaseException:
        synthesis.end()
        raise


@blueprint.delete("/v1/audio/speech/<stream_id:stream_id>")
@documented(
    answer=Stopped,
    errors=(401, 404),
    parameters=(Parameter("stream_id", {"type": "string", "pattern": anchored(REQUEST_ID)}),),
)
def stop(stream_id: str) -> dict[str, Any]:
    """Stop every synthesis with this id, and answer once their slots are free.

    If two requests came with one id, such as `a`, the second gets a number, `a.2`, and its `X-Request-Id`
    says so. Then `a` stops both requests, and `a.2` stops the second.
    """
    stopped = server_state().syntheses.stop(stream_id)
    if not stopped:
        raise NotFound("There is no synthesis with this id under way; it may have come to its end.")
    return {"id": stream_id, "object": "audio.speech", "cancelled": True, "stopped": stopped}


def _account() -> Account:
    """The account of this request, opened at the first call."""
    if "account" not in g:
        state = server_state()
        note = state.degrader.objectives.note
        g.account = Account(g.request_id, state.figures, note, accepted_s=g.accepted_s)
    account: Account = g.account
    return account


@blueprint.after_request
def _say_what_ran(answer: Response) -> Response:
    """Add headers with variant and provider, on errors too: an error report needs them."""
    engine = server_state().engine
    answer.headers["X-Kokoro-Variant"] = engine.config.variant
    answer.headers["X-Kokoro-Provider"] = engine.active_provider
    return answer


@blueprint.after_request
def _count(answer: Response) -> Response:
    """Count requests that were answered with an error. Spoken requests are counted when their speech ends."""
    if "error_code" in g and request.method != "DELETE":
        account = _account()
        account.close(account.interrupted() or g.outcome, g.error_code)
    return answer


def _streamed(state: ServerState, synthesis: Synthesis) -> Response:
    account = synthesis.account
    as_events = synthesis.asked.stream_format == "sse"
    # Before the answer begins, so that a text without words still gets an error status
    events = open_stream(state, synthesis, tells=as_events)
    writer: RawWriter | EventWriter = RawWriter(events.encoder)
    if as_events:
        describe = partial(body_of, request_id=g.request_id, client_names=g.client_names)
        writer = EventWriter(account.request_id, describe)
    connection = client_socket()
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    answer = Response(ResponseBody(events, writer))
    answer.headers["X-Kokoro-Chunk-Ms"] = str(account.asked["chunk_ms"])
    answer.headers["X-Kokoro-Pre-Buffer-Ms"] = str(account.asked["pre_buffer_ms"])
    answer.headers["X-Kokoro-First-Audio"] = "cache" if events.stream.primed else "computed"
    _describe(answer, synthesis, events.stream)
    return answer


def _file(state: ServerState, synthesis: Synthesis) -> Response:
    account, asked, utterance = synthesis.account, synthesis.asked, synthesis.utterance
    # Before the speech, so that none is computed for a format that is not available
    encoder = Encoder(asked.kind, asked.sample_rate, utterance.seed, streamed=False, dither=asked.dither)
    stream = state.engine.stream(
        utterance,
        streamed=False,
        cached=not account.asked["ephemeral"],
        longest_s=state.settings.max_file_s,
        stop=synthesis.stop,
        client=synthesis.caller,
    )
    state.syntheses.begin(synthesis, stream, streamed=False, tells=True)
    client = ClientWatch(client_socket(), synthesis.stop.set)
    try:
        with closing(encoder), client:
            for chunk in stream:  # each is freed once it is encoded
                encoder.push(chunk.samples)
            whole = encoder.finish()
    except Interrupted as error:
        if client.left and account.interruption is None:
            raise ClientLeft from error
        raise account.reason(error) from error
    report = stream.report
    account.chunk(report.audio_s, cached=not report.segments)
    account.finished(report)
    warn_of_clipping(account.request_id, encoder)
    account.close("completed")
    if asked.captions:
        said = utterance.text, utterance.input_format
        how = {"language": report.language, "code": utterance.code}
        whole = captions_file(asked.captions, *said, stream.timings, **how).encode()
    body, length = in_slices(whole), len(whole)
    if asked.as_json:
        body, length = _with_words(asked, stream, whole)
    sent = _sender(state, synthesis)
    answer = Response(until_sent(body, sent))
    answer.call_on_close(sent)  # a client that has left may never be sent the first slice
    answer.content_length = length
    answer.headers["X-Kokoro-RTF"] = f"{report.rtf:.4f}"
    answer.headers["X-Kokoro-TTFA-Ms"] = f"{1000 * (account.first_audio_s or 0):.1f}"
    _describe(answer, synthesis, report)
    return answer


def _sender(state: ServerState, synthesis: Synthesis) -> Callable[[], None]:
    """Take a sender, one of the server's few threads for finished files, and free the file's slot. Returns a
    function that frees the sender once the file is sent.

    If all senders are taken, the slot is kept until the file is sent, so that clients that receive slowly
    cannot occupy every thread.
    """
    try:
        sender = state.senders.take()
    except TooManyRequests:
        return synthesis.end
    synthesis.end()
    return sender.release


def _with_words(asked: SpeechRequest, stream: SpeechStream, whole: bytes) -> tuple[Iterator[bytes], int]:
    """A file and its word times as JSON: its slices, and their total length."""
    report = stream.report
    described = {
        "object": "audio.speech",
        "format": asked.kind,
        "sample_rate": asked.heard_hz,
        "duration_s": report.audio_s,
        **timed(stream.timings, stream.marks),
        "usage": usage_of(report),
        "audio": "",
    }
    head, tail = json.dumps(described).encode()[:-2], b'"}'
    coded = map(base64.b64encode, in_slices(whole, BASE64_SLICE_BYTES))
    return chain([head], coded, [tail]), len(head) + 4 * math.ceil(len(whole) / 3) + len(tail)


def _describe(answer: Response, synthesis: Synthesis, run: SpeechStream | SynthesisReport) -> None:
    """Set headers: the format, ignored fields, and the engine's choices and fallbacks; for a stream, only the
    ones made so far."""
    asked, account = synthesis.asked, synthesis.account
    ignored = asked.ignored
    if asked.chunk_ms is not None and not synthesis.streamed:
        ignored = (*ignored, "chunk_ms")
    headers = {
        "Content-Type": _content_type(asked),
        "Cache-Control": "no-store",
        "X-Accel-Buffering": "no",  # else nginx would collect a stream before passing it on
        "X-Sample-Rate": str(asked.heard_hz),
        "X-Kokoro-Stream-Id": account.request_id,
        "X-Kokoro-Voice": account.asked["voice"],
        "X-Kokoro-Streamed": str(synthesis.streamed).lower(),
        "X-Kokoro-Mode": account.asked["mode"],
        "X-Kokoro-Statistics": run.statistics,
        "X-Kokoro-Ignored": ", ".join(ignored),
        "X-Kokoro-Fallbacks": ", ".join(f"{stage}={n}" for stage, n in by_stage(run.fallbacks).items()),
    }
    answer.headers.update({name: value for name, value in headers.items() if value})


def _content_type(asked: SpeechRequest) -> str:
    if asked.as_json:
        return "application/json"
    if asked.stream_format == "sse":
        return "text/event-stream; charset=utf-8"
    if asked.captions:
        return f"{MEDIA_TYPES[asked.captions]}; charset=utf-8"
    return content_type(asked.kind, asked.heard_hz)
