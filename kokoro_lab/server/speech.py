"""`POST /v1/audio/speech`: a text in, its speech out, streamed or as a file."""

from __future__ import annotations

import logging
import socket
from collections import Counter
from collections.abc import Sequence
from contextlib import closing

from flask import Blueprint, Response, g, request

from kokoro_lab.containers import FORMATS, Encoder, content_type
from kokoro_lab.datatypes import Fallback, Utterance
from kokoro_lab.server.account import Account
from kokoro_lab.server.delivery import Delivery, in_pieces, warn_of_clipping
from kokoro_lab.server.figures import Outcome
from kokoro_lab.server.guard import SEND_BUFFER_BYTES, client_socket, has_left, require_key
from kokoro_lab.server.openapi import documented
from kokoro_lab.server.sessions import Session
from kokoro_lab.server.slots import ClientLeft, Slot
from kokoro_lab.server.speech_request import SpeechRequest, read_speech_request
from kokoro_lab.server.state import server_state

log = logging.getLogger(__name__)

blueprint = Blueprint("speech", __name__)
blueprint.before_request(require_key)


@blueprint.post("/v1/audio/speech")
@documented(
    body=SpeechRequest,
    media=tuple(sorted({content_type(kind, 24_000).partition(";")[0] for kind in FORMATS})),
    errors=(401, 409, 429, 499, 500, 503, 504),
)
def speak() -> Response:
    """Speak what the body asks for."""
    state = server_state()
    account = _account()
    asked = read_speech_request(request, state.settings, state.engine.config.variant)
    utterance = asked.utterance(state.settings.voice)
    # HTTP/1.0 has no chunks: there, a stream that breaks would look like one that is finished
    streamed = asked.stream and request.environ.get("SERVER_PROTOCOL") != "HTTP/1.0"
    account.asks(
        utterance.text,
        ephemeral=asked.ephemeral or state.settings.ephemeral,
        format=asked.kind,
        streamed=streamed,
        voice=utterance.voice,
        variant=state.engine.config.variant,
        mode=state.degrader.mode.name,
    )
    slot = _turn(account)
    try:
        answer = _streamed(asked, utterance, slot) if streamed else _file(asked, utterance, slot)
        _describe(answer, asked, utterance, streamed)
    except BaseException:
        slot.release()
        raise
    return answer


def _account() -> Account:
    """The books of this request, opened at the first call."""
    if "account" not in g:
        state = server_state()
        g.account = Account(
            g.request_id, state.figures, state.degrader.objectives.note, accepted_s=g.accepted_s
        )
    account: Account = g.account
    return account


def _turn(account: Account) -> Slot:
    """A slot: at once, or when it is this request's turn."""
    state = server_state()
    connection = client_socket()
    left_s = state.settings.first_audio_deadline_s - account.age_s
    try:
        return state.slots.take(left_s, lambda: connection is not None and has_left(connection))
    finally:
        account.admitted()


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
        account = _account()
        account.close(account.interrupted() or _outcome(answer.status_code), g.get("error_code"))
    return answer


def _outcome(status: int) -> Outcome:
    if status == ClientLeft.code:
        return "cancelled"
    if status >= 500:
        return "failed"
    return "rejected" if status == 429 else "invalid"


def _streamed(asked: SpeechRequest, utterance: Utterance, slot: Slot) -> Response:
    state = server_state()
    account = _account()
    mode, profile = state.degrader.mode, state.degrader.profile()
    account.streams(profile)
    stream = state.engine.stream(utterance, frame_s=profile.chunk_s, cached=not account.asked["ephemeral"])
    # Before the answer begins, so that a text without a word still gets an error's status
    stream.begin()
    connection = client_socket()
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    session = Session(account, stream, connection, streamed=True)

    def make_way() -> None:
        if mode.reserve_s is not None:
            state.sessions.make_way(session, mode.reserve_s)

    def on_close() -> None:
        state.sessions.end(session)
        slot.release()

    delivery = Delivery(
        session,
        encoder=Encoder(asked.kind, asked.sample_rate, utterance.seed),
        make_way=make_way,
        on_close=on_close,
    )
    state.sessions.begin(session)
    session.expire_after(state.settings.first_audio_deadline_s, state.settings.deadline_s)
    answer = Response(delivery)
    answer.headers["X-Kokoro-Chunk-Ms"] = str(account.asked["chunk_ms"])
    answer.headers["X-Kokoro-Pre-Buffer-Ms"] = str(account.asked["pre_buffer_ms"])
    _describe_run(answer, stream.statistics, stream.fallbacks)
    return answer


def _file(asked: SpeechRequest, utterance: Utterance, slot: Slot) -> Response:
    state = server_state()
    account = _account()
    # Before the speech, lest it be computed for a format that cannot be had
    encoder = Encoder(asked.kind, asked.sample_rate, utterance.seed, streamed=False)
    stream = state.engine.stream(utterance, streamed=False, cached=not account.asked["ephemeral"])
    session = Session(account, stream, client_socket(), streamed=False)
    state.sessions.begin(session)
    session.expire_after(state.settings.first_audio_deadline_s, state.settings.deadline_s)
    try:
        with closing(encoder):
            clip = session.stream.joined()
            whole = encoder.run(clip.samples)
    finally:
        state.sessions.end(session)
        slot.release()  # what is left is sending
    account.chunk(clip.duration_s)
    account.finished(clip.report)
    warn_of_clipping(account.request_id, encoder)
    account.close("completed")
    answer = Response(in_pieces(whole))
    answer.content_length = len(whole)
    answer.headers["X-Kokoro-RTF"] = f"{clip.report.rtf:.4f}"
    answer.headers["X-Kokoro-TTFA-Ms"] = f"{1000 * (account.first_audio_s or 0):.1f}"
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
    answer.headers["X-Kokoro-Mode"] = str(_account().asked["mode"])
    if asked.ignored:
        answer.headers["X-Kokoro-Ignored"] = ", ".join(asked.ignored)
