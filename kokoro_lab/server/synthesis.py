"""One request's turn: its slot, its place among those under way, and the events of its stream."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flask import current_app

from kokoro_lab.buffering import buffer_profile
from kokoro_lab.containers import Encoder
from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Place, Utterance
from kokoro_lab.server.live import Live
from kokoro_lab.server.resume import Resumption, digest_of, resumption_of, token_of
from kokoro_lab.server.speech_events import SpeechEvents
from kokoro_lab.server.speech_request import SpeechRequest
from kokoro_lab.server.state import ServerState, Slot

if TYPE_CHECKING:
    from kokoro_lab.speech_stream import SpeechStream

log = logging.getLogger(__name__)

KEEPALIVE_S = 5.0
"""When nothing has been ready for so long, the client is told that all is well."""


class Turn:
    """A slot, and an entry among the syntheses under way. Given back together, once.

    Raises
    ------
    ParameterError
        The client's name is none.
    werkzeug.exceptions.TooManyRequests
        There is no slot.
    """

    def __init__(self, state: ServerState, stream_id: str, client: str | None) -> None:
        self._state = state
        self.live: Live = state.live.enter(stream_id, client)
        try:
            self._slot: Slot = state.slots.take()
        except BaseException:
            state.live.leave(self.live)
            raise

    def release(self) -> None:
        """Free the slot, and whoever waits for that."""
        self._slot.release()
        self._state.live.leave(self.live)


@dataclass(frozen=True, slots=True)
class Opened:
    """A stream that has begun, and what its transport needs to know of it."""

    stream: SpeechStream
    encoder: Encoder
    events: SpeechEvents
    resumed: bool
    issued_s: int
    digest: str

    def token(self, place: Place) -> str:
        """With which the client may come back for what is behind `place`."""
        return token_of(self.issued_s, self.digest, place)


def open_stream(
    state: ServerState,
    asked: SpeechRequest,
    utterance: Utterance,
    stop: threading.Event,
    *,
    accepted_s: float,
) -> Opened:
    """Begin to speak what was asked, from the beginning or from where it broke.

    Raises
    ------
    TextError, VoiceError, LanguageError, LexiconError, ParameterError, Gone
        It cannot be spoken, or not be gone on with.
    """
    frame_s = buffer_profile(state.settings.buffer_profile).chunk_s
    digest = digest_of(
        utterance, state.engine, frame_s=frame_s, kind=asked.kind, sample_rate_hz=asked.sample_rate
    )
    from_ = Resumption(-1, None, int(time.time()))
    if asked.last_id is not None:
        from_ = resumption_of(
            asked.last_id,
            asked.resume,
            digest,
            ttl_s=state.settings.resume_ttl_s,
            frame_samples=round(frame_s * SAMPLE_RATE_HZ),
        )
    # Only PCM at the model's own rate has no memory: any other encoder must hear all that came before
    plain = asked.kind in ("pcm", "wav") and asked.sample_rate == SAMPLE_RATE_HZ
    place = from_.place if plain else None
    stream = state.engine.stream(utterance, frame_s=frame_s, place=place, stop=stop)
    stream.begin()  # so that a text without a word still gets an error's status
    skipped = round(frame_s * SAMPLE_RATE_HZ) * (from_.after + 1) if plain else 0
    encoder = Encoder(
        "pcm" if skipped else asked.kind,  # the client has the head
        asked.sample_rate,
        utterance.seed,
        skipped_samples=skipped,
    )
    events = SpeechEvents(
        stream,
        encoder=encoder,
        figures=state.figures,
        accepted_s=accepted_s,
        stop=stop,
        words=asked.timestamps,
        after=from_.after,
        encode_all=not plain,
        stall_s=current_app.config.get("KEEPALIVE_S", KEEPALIVE_S),
    )
    return Opened(stream, encoder, events, asked.last_id is not None, from_.issued_s, digest)


def log_request(request_id: str, asked: SpeechRequest, utterance: Utterance, how: str) -> None:
    """One line by which a request can be found again, and its text cannot be read."""
    digest = hashlib.sha256(utterance.text.encode()).hexdigest()[:12]
    log.info(
        "%s asks for %d characters (sha256 %s), %s, %s",
        request_id,
        len(utterance.text),
        digest,
        asked.kind,
        how,
    )
