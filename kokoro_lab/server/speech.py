"""`POST /v1/audio/speech`: a text in, its speech out, streamed or as a file."""

from __future__ import annotations

import base64
import json
import socket
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from flask import Blueprint, Response, g, request
from werkzeug.exceptions import NotFound

from kokoro_lab.containers import Encoder, content_type
from kokoro_lab.datatypes import Clip, Fallback, Utterance
from kokoro_lab.server.delivery import (
    Delivery,
    RawWriter,
    Writer,
    in_pieces,
    log_report,
)
from kokoro_lab.server.errors import body_of
from kokoro_lab.server.figures import Outcome
from kokoro_lab.server.guard import SEND_BUFFER_BYTES, client_socket, require_key
from kokoro_lab.server.speech_events import usage_of, word_of
from kokoro_lab.server.speech_request import SpeechRequest, read_speech_request
from kokoro_lab.server.sse import EventWriter
from kokoro_lab.server.state import server_state
from kokoro_lab.server.synthesis import Turn, log_request, open_stream

blueprint = Blueprint("speech", __name__)
blueprint.before_request(require_key)

_OUTCOMES: Mapping[int, Outcome] = {409: "cancelled", 429: "rejected"}


@blueprint.post("/v1/audio/speech")
def speak() -> Response:
    """Speak what the body asks for."""
    state = server_state()
    asked = read_speech_request(request, state.settings, state.engine.config.variant)
    utterance = asked.utterance(state.settings.voice)
    # HTTP/1.0 has no chunks: there, a stream that breaks would look like one that is finished
    streamed = asked.stream and request.environ.get("SERVER_PROTOCOL") != "HTTP/1.0"
    streamed = (streamed or asked.stream_format == "sse") and not asked.as_json
    client = request.headers.get("X-Kokoro-Client") if asked.client is None else asked.client
    turn = Turn(state, g.request_id, client)
    try:
        log_request(g.request_id, asked, utterance, "streamed" if streamed else "whole")
        answer = _streamed(asked, utterance, turn) if streamed else _file(asked, utterance, turn)
        _describe(answer, asked, utterance, streamed)
        answer.headers["X-Kokoro-Stream-Id"] = turn.live.stream_id
    except BaseException:
        turn.release()
        raise
    return answer


@blueprint.delete("/v1/audio/speech/<stream_id>")
def stop(stream_id: str) -> dict[str, Any]:
    """Stop the synthesis with this id, and answer once its slot is free."""
    live = server_state().live.find(stream_id)
    if live is None:
        raise NotFound("There is no synthesis with this id under way; it may have come to its end.")
    live.cancel()
    return {"id": stream_id, "object": "audio.speech", "cancelled": True}


@blueprint.after_request
def _say_what_ran(answer: Response) -> Response:
    """On errors too: which variant and provider failed is half of what one needs to know."""
    engine = server_state().engine
    answer.headers["X-Kokoro-Variant"] = engine.config.variant
    answer.headers["X-Kokoro-Provider"] = engine.active_provider
    return answer


@blueprint.after_request
def _count(answer: Response) -> Response:
    """Outcomes of requests that were answered with an error. Others are counted where they end."""
    if answer.status_code >= 400:
        figures = server_state().figures
        if answer.status_code >= 500:
            figures.count("failed")
        else:
            figures.count(_OUTCOMES.get(answer.status_code, "invalid"))
    return answer


def _streamed(asked: SpeechRequest, utterance: Utterance, turn: Turn) -> Response:
    state = server_state()
    opened = open_stream(state, asked, utterance, turn.live.stop, accepted_s=g.accepted_s)
    writer: Writer
    if asked.stream_format == "sse":
        describe = partial(body_of, request_id=g.request_id, client_names=g.client_names)
        writer = EventWriter(turn.live.stream_id, opened.token, describe)
    else:
        writer = RawWriter(opened.encoder)
    connection = turn.live.connection = client_socket()
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    delivery = Delivery(
        opened.events,
        writer=writer,
        encoder=opened.encoder,
        figures=state.figures,
        accepted_s=g.accepted_s,
        request_id=g.request_id,
        live=turn.live,
        on_close=turn.release,
    )
    answer = Response(delivery)
    _describe_run(answer, opened.stream.statistics, opened.stream.fallbacks)
    return answer


def _file(asked: SpeechRequest, utterance: Utterance, turn: Turn) -> Response:
    state = server_state()
    # Before the speech, lest it be computed for a format that cannot be had
    encoder = Encoder(asked.kind, asked.sample_rate, utterance.seed, streamed=False)
    with closing(encoder):
        clip = state.engine.synthesize(utterance, stop=turn.live.stop)
        whole = encoder.run(clip.samples)
    turn.release()  # what is left is sending
    ttfa_s = time.perf_counter() - g.accepted_s
    state.figures.first_audio(ttfa_s, streamed=False)
    state.figures.synthesised(clip.report.rtf)
    state.figures.count("completed")
    log_report(g.request_id, clip.report, ttfa_s, encoder)
    if asked.as_json:
        whole = _with_words(asked, clip, whole)
    answer = Response(in_pieces(whole))
    answer.content_length = len(whole)
    _describe_run(answer, clip.report.statistics, clip.report.fallbacks)
    return answer


def _with_words(asked: SpeechRequest, clip: Clip, whole: bytes) -> bytes:
    """A file and when its words are heard, as JSON."""
    return json.dumps(
        {
            "object": "audio.speech",
            "format": asked.kind,
            "sample_rate": asked.heard_hz,
            "duration_s": clip.duration_s,
            "words": [word_of(timing) for timing in clip.timings],
            "usage": usage_of(clip.report),
            "audio": base64.b64encode(whole).decode(),
        }
    ).encode()


def _describe_run(answer: Response, statistics: str, fallbacks: Sequence[Fallback]) -> None:
    """What the engine chose and what it had to substitute; of a stream, as far as it has come."""
    answer.headers["X-Kokoro-Statistics"] = statistics
    if fallbacks:
        stages = Counter(fallback.stage for fallback in fallbacks)
        answer.headers["X-Kokoro-Fallbacks"] = ", ".join(f"{s}={n}" for s, n in sorted(stages.items()))


def _describe(answer: Response, asked: SpeechRequest, utterance: Utterance, streamed: bool) -> None:
    """Say in headers what is being sent, and what was not heeded."""
    answer.headers["Content-Type"] = _content_type(asked)
    answer.headers["Cache-Control"] = "no-store"
    answer.headers["X-Accel-Buffering"] = "no"  # nginx would collect a stream before passing it on
    answer.headers["X-Sample-Rate"] = str(asked.heard_hz)
    answer.headers["X-Kokoro-Voice"] = server_state().engine.voice(utterance.voice).name
    answer.headers["X-Kokoro-Streamed"] = str(streamed).lower()
    if asked.ignored:
        answer.headers["X-Kokoro-Ignored"] = ", ".join(asked.ignored)


def _content_type(asked: SpeechRequest) -> str:
    if asked.as_json:
        return "application/json"
    if asked.stream_format == "sse":
        return "text/event-stream; charset=utf-8"
    return content_type(asked.kind, asked.heard_hz)
