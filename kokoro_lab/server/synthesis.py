"""One request's turn: its slot, its place among those under way, and the events of its stream."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flask import current_app, g

from kokoro_lab.containers import Encoder
from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Place, Utterance
from kokoro_lab.errors import Interrupted, ParameterError
from kokoro_lab.server.account import Account
from kokoro_lab.server.live import Live
from kokoro_lab.server.resume import Resumption, digest_of, resumption_of, token_of
from kokoro_lab.server.sessions import RunningSynthesis
from kokoro_lab.server.slots import ClientLeft, Slot
from kokoro_lab.server.speech_events import SpeechEvents
from kokoro_lab.server.speech_request import SpeechRequest
from kokoro_lab.server.state import ServerState

if TYPE_CHECKING:
    from kokoro_lab.speech.stream import SpeechStream

KEEPALIVE_S = 5.0
"""When nothing has been ready for so long, the client is told that all is well."""


def account_of(state: ServerState, request_id: str, accepted_s: float) -> Account:
    """The books of a request that was accepted at `accepted_s`, by `time.perf_counter`."""
    return Account(request_id, state.figures, state.degrader.objectives.note, accepted_s=accepted_s)


def enter_request(
    state: ServerState, account: Account, asked: SpeechRequest, utterance: Utterance, transport: str
) -> None:
    """Put into the books what was asked, by which the request can be found and its text not be read.

    The name of a voice only once there is one of that name: a client may have put anything there.

    Raises
    ------
    VoiceError
        There is no such voice.
    """
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


class SynthesisTurn:
    """A slot, and an entry among the syntheses under way. Given back together, once.

    Parameters
    ----------
    state : ServerState
    account : Account
        Of the request; its id is the stream's, too.
    client : str or None
        Whose it is: what they asked for before is stopped.
    gone : callable
        Whether the client has left while the request waits for its slot.

    Raises
    ------
    ParameterError
        The client's name is none.
    Unavailable
        Nothing new is taken, or nothing any more while it waited.
    Interrupted
        It was stopped while it waited.
    werkzeug.exceptions.TooManyRequests, ClientLeft
        There is no slot, or nobody who waits for it.
    """

    def __init__(
        self, state: ServerState, account: Account, client: str | None, gone: Callable[[], bool]
    ) -> None:
        state.admission.check()
        self._state = state
        self._session: RunningSynthesis | None = None
        self.account = account
        self.live: Live = state.live.enter(account.request_id, client)
        # Headers, log and sessions call it as it can be stopped
        account.request_id = g.request_id = self.live.stream_id
        try:
            self._slot = self._wait(gone)
        except BaseException:
            state.live.leave(self.live)
            raise

    def begin(self, stream: SpeechStream, *, streamed: bool, tells: bool) -> RunningSynthesis:
        """Its stream is there: from now on it is seen, can be stopped by operators, and has its deadlines."""
        settings = self._state.settings
        self._session = RunningSynthesis(self.account, stream, self.live, streamed=streamed, tells=tells)
        self._state.sessions.begin(self._session)
        self._session.expire_after(settings.first_audio_deadline_s, settings.deadline_s)
        return self._session

    def release(self) -> None:
        """Free the slot, and whoever waits for that."""
        if self._session is not None:
            self._state.sessions.end(self._session)
        self._slot.release()
        self._state.live.leave(self.live)

    def _wait(self, gone: Callable[[], bool]) -> Slot:
        left_s = self._state.settings.first_audio_deadline_s - self.account.age_s
        try:
            return self._state.slots.take(left_s, lambda: self.live.stopped or self._refused() or gone())
        except ClientLeft:
            self._state.admission.check()
            if self.live.stopped:
                raise Interrupted("This synthesis was stopped while it waited for its turn.") from None
            raise
        finally:
            self.account.admitted()

    def _refused(self) -> bool:
        """Whether it had better ask elsewhere, or later, than wait here."""
        return bool(self._state.admission.reasons)


@dataclass(frozen=True, slots=True)
class OpenStream:
    """A stream that has begun, and what its transport needs to know of it.

    Parameters
    ----------
    digest : str or None
        Of the request, for tokens; None if nothing may be kept of it.
    """

    stream: SpeechStream
    session: RunningSynthesis
    encoder: Encoder
    events: SpeechEvents
    issued_s: int
    chunk_s: float
    digest: str | None

    def token(self, place: Place) -> str | None:
        """With which the client may come back for what is behind `place`."""
        if self.digest is None:
            return None
        return token_of(self.issued_s, self.digest, self.chunk_s, place)


def open_stream(
    state: ServerState, turn: SynthesisTurn, asked: SpeechRequest, utterance: Utterance, *, tells: bool
) -> OpenStream:
    """Begin to speak what was asked, from the beginning or from where it broke.

    `tells` is whether the transport has words for an error behind the first byte.

    Raises
    ------
    TextError, VoiceError, LanguageError, LexiconError, ParameterError, Gone
        It cannot be spoken, or not be gone on with; or it is to go on in other chunks than it began with.
    """
    account, live = turn.account, turn.live
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
        stop=live.stop,
    )
    stream.begin()  # so that a text without a word still gets an error's status
    encoder = Encoder(
        "pcm" if skipped else asked.kind,  # the client has the head
        asked.sample_rate,
        utterance.seed,
        skipped_samples=skipped,
        dither=asked.dither,
    )
    session = turn.begin(stream, streamed=True, tells=tells)

    def make_way() -> None:
        if mode.reserve_s is not None:
            state.sessions.make_way(session, mode.reserve_s)

    events = SpeechEvents(
        stream,
        encoder=encoder,
        account=account,
        stop=live.stop,
        words=asked.timestamps,
        after=from_.after,
        encode_all=not plain,
        stall_s=current_app.config.get("KEEPALIVE_S", KEEPALIVE_S),
        make_way=make_way,
    )
    kept = None if ephemeral else digest(chunk_s)
    return OpenStream(stream, session, encoder, events, from_.issued_s, chunk_s, kept)


def _cut_otherwise(asked_ms: int, begun_ms: int) -> ParameterError:
    """Ids count chunks: behind the last one that a client has, chunks of another length have no ids."""
    return ParameterError(
        "A stream is resumed in chunks of the length that it began with.",
        field="chunk_ms",
        value=asked_ms,
        allowed=f"{begun_ms}",
        mend="Leave chunk_ms out, or ask for the whole speech anew.",
    )
