"""`POST /v1/audio/speech`: a text in, its speech out, streamed or as a file."""

from __future__ import annotations

import hashlib
import logging
import socket
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing

from flask import Blueprint, Response, g, request

from kokoro_lab.buffering import buffer_profile
from kokoro_lab.containers import Encoder, content_type
from kokoro_lab.datatypes import Fallback, Utterance
from kokoro_lab.server.delivery import Delivery, in_pieces, log_report
from kokoro_lab.server.guard import SEND_BUFFER_BYTES, client_socket, require_key
from kokoro_lab.server.speech_request import SpeechRequest, read_speech_request
from kokoro_lab.server.state import Slot, server_state

log = logging.getLogger(__name__)

blueprint = Blueprint("speech", __name__)
blueprint.before_request(require_key)


@blueprint.post("/v1/audio/speech")
def speak() -> Response:
    """Speak what the body asks for."""
    state = server_state()
    asked = read_speech_request(request, state.settings, state.engine.config.variant)
    utterance = asked.utterance(state.settings.voice)
    # HTTP/1.0 has no chunks: there, a stream that breaks would look like one that is finished
    streamed = asked.stream and request.environ.get("SERVER_PROTOCOL") != "HTTP/1.0"
    slot = state.slots.take()
    try:
        _log_request(asked, utterance, streamed)
        answer = _streamed(asked, utterance, slot) if streamed else _file(asked, utterance, slot)
        _describe(answer, asked, utterance, streamed)
    except BaseException:
        slot.release()
        raise
    return answer


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
            figures.count("rejected" if answer.status_code == 429 else "invalid")
    return answer


def _streamed(asked: SpeechRequest, utterance: Utterance, slot: Slot) -> Response:
    state = server_state()
    chunk_s = buffer_profile(state.settings.buffer_profile).chunk_s
    stream = state.engine.stream(utterance, frame_s=chunk_s)
    # Before the answer begins, so that a text without a word still gets an error's status
    stream.begin()
    connection = client_socket()
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    delivery = Delivery(
        stream,
        encoder=Encoder(asked.kind, asked.sample_rate, utterance.seed),
        figures=state.figures,
        accepted_s=g.accepted_s,
        request_id=g.request_id,
        connection=connection,
        on_close=slot.release,
    )
    answer = Response(delivery)
    _describe_run(answer, stream.statistics, stream.fallbacks)
    return answer


def _file(asked: SpeechRequest, utterance: Utterance, slot: Slot) -> Response:
    state = server_state()
    # Before the speech, lest it be computed for a format that cannot be had
    encoder = Encoder(asked.kind, asked.sample_rate, utterance.seed, streamed=False)
    with closing(encoder):
        clip = state.engine.synthesize(utterance)
        whole = encoder.run(clip.samples)
    slot.release()  # what is left is sending
    ttfa_s = time.perf_counter() - g.accepted_s
    state.figures.first_audio(ttfa_s, streamed=False)
    state.figures.synthesised(clip.report.rtf)
    state.figures.count("completed")
    log_report(g.request_id, clip.report, ttfa_s, encoder)
    answer = Response(in_pieces(whole))
    answer.content_length = len(whole)
    _describe_run(answer, clip.report.statistics, clip.report.fallbacks)
    return answer


def _describe_run(answer: Response, statistics: str, fallbacks: Sequence[Fallback]) -> None:
    """What the engine chose and what it had to substitute; of a stream, as far as it has come."""
    answer.headers["X-Kokoro-Statistics"] = statistics
    if fallbacks:
        stages = Counter(fallback.stage for fallback in fallbacks)
        answer.headers["X-Kokoro-Fallbacks"] = ", ".join(f"{s}={n}" for s, n in sorted(stages.items()))


def _describe(answer: Response, asked: SpeechRequest, utterance: Utterance, streamed: bool) -> None:
    """Say in headers what is being sent, and what was not heeded."""
    answer.headers["Content-Type"] = content_type(asked.kind, asked.heard_hz)
    answer.headers["Cache-Control"] = "no-store"
    answer.headers["X-Accel-Buffering"] = "no"  # nginx would collect a stream before passing it on
    answer.headers["X-Sample-Rate"] = str(asked.heard_hz)
    answer.headers["X-Kokoro-Voice"] = server_state().engine.voice(utterance.voice).name
    answer.headers["X-Kokoro-Streamed"] = str(streamed).lower()
    if asked.ignored:
        answer.headers["X-Kokoro-Ignored"] = ", ".join(asked.ignored)


def _log_request(asked: SpeechRequest, utterance: Utterance, streamed: bool) -> None:
    """One line by which a request can be found again, and its text cannot be read."""
    digest = hashlib.sha256(utterance.text.encode()).hexdigest()[:12]
    log.info(
        "%s asks for %d characters (sha256 %s), %s, %s",
        g.request_id,
        len(utterance.text),
        digest,
        asked.kind,
        "streamed" if streamed else "whole",
    )
