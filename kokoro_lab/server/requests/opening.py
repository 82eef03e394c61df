"""How a request becomes a stream: from its beginning, or from where it broke."""

from __future__ import annotations

import time
from functools import partial

from flask import current_app

from kokoro_lab.containers import Encoder
from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Place
from kokoro_lab.errors import ParameterError
from kokoro_lab.server.requests.account import Account
from kokoro_lab.server.requests.resume import Resumption, digest_of, resumption_of, token_of
from kokoro_lab.server.requests.speech_events import KEEPALIVE_S, SpeechEvents
from kokoro_lab.server.requests.speech_request import SpeechRequest
from kokoro_lab.server.requests.syntheses import Synthesis
from kokoro_lab.server.state import ServerState


def synthesis_of(state: ServerState, account: Account, asked: SpeechRequest, transport: str) -> Synthesis:
    """The synthesis of a request. Its books say what was asked: by that it is found, and its text not read.

    The name of a voice only once there is one of that name: a client may have put anything there.

    Raises
    ------
    VoiceError
        There is no such voice.
    """
    utterance = asked.utterance(state.settings.voice)
    account.asks(
        utterance.text,
        ignored=list(asked.ignored),
        ephemeral=asked.ephemeral or state.settings.ephemeral,
        format=asked.kind,
        transport=transport,
        streamed=transport != "file",
        resumed=asked.last_id is not None,
        voice=None,
        variant=state.engine.config.variant,
        provider_path=f"{state.engine.config.provider} → {state.engine.active_provider}",
        mode=state.degrader.mode.name,
    )
    account.asked["voice"] = state.engine.voice(utterance.voice).name
    return Synthesis(account, asked, utterance)


def open_stream(state: ServerState, synthesis: Synthesis, *, tells: bool) -> SpeechEvents:
    """Begin to speak what was asked, from the beginning or from where it broke.

    `tells` is whether the transport has words for an error behind the first byte.

    Raises
    ------
    TextError, VoiceError, LanguageError, LexiconError, ParameterError, Gone
        It cannot be spoken, or not be gone on with; or it is to go on in other chunks than it began with.
    """
    account, asked, utterance = synthesis.account, synthesis.asked, synthesis.utterance
    mode, profile = state.degrader.mode, state.degrader.profile()
    if asked.chunk_ms is not None:
        profile = profile.cut_by(asked.chunk_ms / 1000)
    ephemeral = bool(account.asked["ephemeral"])

    def digest(chunk_s: float) -> str:
        written = (asked.kind, asked.sample_rate, asked.dither)
        return digest_of(utterance, state.engine, chunk_s=chunk_s, written=written)

    from_ = Resumption(-1, None, int(time.time()), profile.chunk_s)
    if asked.last_id is not None:
        from_ = resumption_of(
            asked.last_id, asked.resume, digest, ttl_s=state.settings.resume_ttl_s, chunk_s=profile.chunk_s
        )
        if asked.chunk_ms is not None and from_.chunk_s != profile.chunk_s:
            raise _cut_otherwise(asked.chunk_ms, round(1000 * from_.chunk_s))
    chunk_s = from_.chunk_s
    account.streams(profile.cut_by(chunk_s))
    # Only PCM at the model's own rate, with white noise, has no memory: any other encoder must hear all that
    # came before
    plain = asked.kind in ("pcm", "wav") and asked.sample_rate == SAMPLE_RATE_HZ and asked.dither == "tpdf"
    place = from_.place if plain else None
    skipped = round(chunk_s * SAMPLE_RATE_HZ) * (from_.after + 1) if plain else 0
    stream = state.engine.stream(
        utterance,
        chunk_s=chunk_s,
        cached=not ephemeral,
        place=place,
        heard_samples=skipped,
        stop=synthesis.stop,
    )
    stream.begin()  # so that a text without a word still gets an error's status
    encoder = Encoder(
        "pcm" if skipped else asked.kind,  # the client has the head
        asked.sample_rate,
        utterance.seed,
        skipped_samples=skipped,
        dither=asked.dither,
    )
    state.syntheses.begin(synthesis, stream, streamed=True, tells=tells)
    request_digest = None if ephemeral else digest(chunk_s)

    def token(place: Place) -> str | None:
        if request_digest is None:
            return None
        return token_of(from_.issued_s, request_digest, chunk_s, place)

    return SpeechEvents(
        synthesis,
        stream,
        encoder,
        token,
        words=asked.timestamps,
        after=from_.after,
        encode_all=not plain,
        stall_s=current_app.config.get("KEEPALIVE_S", KEEPALIVE_S),
        make_way=partial(state.syntheses.make_way, synthesis, mode.reserve_s),
    )


def _cut_otherwise(asked_ms: int, begun_ms: int) -> ParameterError:
    """Ids count chunks: behind the last one that a client has, chunks of another length have no ids."""
    return ParameterError(
        "A stream is resumed in chunks of the length that it began with.",
        field="chunk_ms",
        value=asked_ms,
        allowed=f"{begun_ms}",
        mend="Leave chunk_ms out, or ask for the whole speech anew.",
    )
