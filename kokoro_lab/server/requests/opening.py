"""Makes a stream of a request: from its beginning, or resumed; its text may still be being written."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

from flask import current_app

from kokoro_lab.containers import Encoder
from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Place
from kokoro_lab.errors import ParameterError
from kokoro_lab.server.requests.account import Account
from kokoro_lab.server.requests.resume import Resumption, digest_of, resumption_of, token_of
from kokoro_lab.server.requests.speech_events import POLL_S, SpeechEvents
from kokoro_lab.server.requests.speech_request import SpeechRequest
from kokoro_lab.server.requests.syntheses import Synthesis
from kokoro_lab.server.state import ServerState

KEEPALIVE_S = 5.0
"""Seconds without audio after which the client gets a keep-alive event."""


@dataclass(frozen=True, slots=True)
class LiveText:
    """The options of a text that is still being written.

    Parameters
    ----------
    max_wait_s : float
        Seconds without new text after which the text so far is spoken.
    """

    max_wait_s: float = math.inf


def synthesis_of(
    state: ServerState, account: Account, asked: SpeechRequest, transport: str, caller: str
) -> Synthesis:
    """The synthesis of a request, with an account that records the request's options and not its text.

    The voice's name is recorded only if such a voice exists, since a client may send anything there. `caller`
    identifies the client if the request does not name it.

    Raises
    ------
    VoiceError
        No voice has this name.
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
    return Synthesis(account, asked, utterance, asked.client or caller)


def open_stream(
    state: ServerState, synthesis: Synthesis, *, tells: bool, live: LiveText | None = None
) -> SpeechEvents:
    """Begin to speak a request, from its beginning or resumed.

    `tells` is whether the transport can report an error after the first byte. With `live`, the text of the
    request is its beginning, and more is written to `synthesis.live`.

    Raises
    ------
    TextError, VoiceError, LanguageError, LexiconError, ParameterError, Gone
        The request cannot be spoken or resumed, or asks for another chunk length than the stream had.
    """
    account, asked, utterance = synthesis.account, synthesis.asked, synthesis.utterance
    ephemeral = bool(account.asked["ephemeral"])
    # Where no token holds the length of chunks, it is the same in every mode, since ids count chunks
    tells_length = asked.resume is not None or not (ephemeral or asked.last_id is not None)
    profile = state.degrader.profile() if tells_length else state.degrader.usual_profile
    if asked.chunk_ms is not None:
        profile = profile.cut_by(asked.chunk_ms / 1000)

    def digest(chunk_s: float) -> str:
        written: tuple[object, ...] = (asked.kind, asked.sample_rate, asked.dither)
        if live is not None:  # its text still grows, so the token cannot hold its hash
            written = (*written, live)
        said = utterance if live is None else replace(utterance, text="")
        return digest_of(said, state.engine, chunk_s=chunk_s, written=written)

    from_ = Resumption(-1, None, int(time.time()), profile.chunk_s)
    if asked.last_id is not None:
        from_ = resumption_of(
            asked.last_id, asked.resume, digest, ttl_s=state.settings.resume_ttl_s, chunk_s=profile.chunk_s
        )
        if asked.chunk_ms is not None and from_.chunk_s != profile.chunk_s:
            raise _cut_otherwise(asked.chunk_ms, round(1000 * from_.chunk_s))
    chunk_s = from_.chunk_s
    account.streams(profile.cut_by(chunk_s))
    # Only PCM at the model's own rate with white dither has no memory: any other encoder needs all earlier
    # chunks
    plain = asked.kind in ("pcm", "wav") and asked.sample_rate == SAMPLE_RATE_HZ and asked.dither == "tpdf"
    place = from_.place if plain else None
    skipped = round(chunk_s * SAMPLE_RATE_HZ) * (from_.after + 1) if plain else 0
    how: dict[str, Any] = {
        "chunk_s": chunk_s,
        "cached": not ephemeral,
        "place": place,
        "heard_samples": skipped,
        "stop": synthesis.stop,
        "client": synthesis.caller,
    }
    if live is None:
        stream = state.engine.stream(utterance, **how)
        stream.begin()  # so that a text without words still gets an error status
    else:
        most_ahead = state.settings.max_input_chars
        synthesis.live = state.engine.session(
            utterance, max_wait_s=live.max_wait_s, most_ahead=most_ahead, **how
        )
        synthesis.live.append(utterance.text, wait=False)
        synthesis.live.appended = account.writes
        stream = synthesis.live.stream
    encoder = Encoder(
        "pcm" if skipped else asked.kind,  # the client has the header
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
        stall_s=POLL_S if live else current_app.config.get("KEEPALIVE_S", KEEPALIVE_S),
        # Who resumes has heard the beginning, and a live text comes at its writer's pace
        held_back_s=0.0 if live or asked.last_id is not None else state.degrader.held_back_s,
    )


def _cut_otherwise(asked_ms: int, begun_ms: int) -> ParameterError:
    """The error for a resumed stream with another chunk length: ids count chunks, so they would not fit."""
    return ParameterError(
        "A stream is resumed in chunks of the length that it began with.",
        field="chunk_ms",
        value=asked_ms,
        allowed=f"{begun_ms}",
        mend="Leave chunk_ms out, or ask for the whole speech anew.",
    )
