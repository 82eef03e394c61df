"""How a stream that broke is resumed.

The server stores nothing: synthesis is deterministic, so the client sends its request again, with a token and
the id of the last chunk that it has, and the rest is computed.

A token holds when the stream began, a hash of the request, the length of its chunks (a degrade mode may have
changed it since), and where the segment of the chunk begins, with what is needed to decode it from its
middle. It holds no text, is no secret, and is not signed: a forged token yields only speech that its maker
could have requested anyway.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from kokoro_lab._version import __version__
from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Place, Utterance
from kokoro_lab.errors import Gone, ParameterError

if TYPE_CHECKING:
    from kokoro_lab.speech.engine import Engine

TOKEN = re.compile(
    r"k2\.(?P<issued_s>[0-9]{1,12})\.(?P<digest>[0-9a-f]{32})\.(?P<frame_ms>[0-9]{2,3})"
    r"\.(?P<sentence>[0-9]{1,9})\.(?P<first>[0-9]{1,9})\.(?P<segment>[0-9]{1,9})\.(?P<start>[0-9]{1,12})"
    r"\.(?P<lead>[0-9]{1,9})\.(?P<opens>[01])"
)
FRAME_ID = re.compile(r"(?P<segment>[0-9]{1,9})\.(?P<chunk>[0-9]{1,9})")
AHEAD_S = 60
"""Seconds by which a token's time may lie in the future, since the clocks of two servers differ."""

ANEW = "Ask for the whole speech anew."


@dataclass(frozen=True, slots=True)
class Resumption:
    """Where a stream is resumed.

    Parameters
    ----------
    after : int
        The last chunk that the client has.
    place : Place or None
        The segment in which that chunk lies; None to compute from the beginning.
    issued_s : int
        When the stream began, in seconds since 1970.
    chunk_s : float
        Length of the stream's chunks, in seconds.
    """

    after: int
    place: Place | None
    issued_s: int
    chunk_s: float


def digest_of(utterance: Utterance, engine: Engine, *, chunk_s: float, written: tuple[object, ...]) -> str:
    """A hash of everything on which the bytes of a stream and its chunks depend; `written` describes the
    encoding."""
    lexicon = engine.front_end.lexicons.current().with_request(utterance.lexicon)
    served = (
        __version__,
        engine.config.variant,
        engine.model_sha256,
        engine.active_provider,
        sorted(engine.decoder.details.items()),
        engine.config.window_frames,  # cut in another way, samples round differently
        [about.get("sha256") for about in engine.conversion.get("graphs", {}).values()],
    )
    asked = (sorted(asdict(utterance).items()), lexicon.version, chunk_s, *written)
    return hashlib.sha256(repr((served, asked)).encode()).hexdigest()[:32]


def token_of(issued_s: int, digest: str, chunk_s: float, place: Place) -> str:
    """The token for a client that has chunks of the segment at `place`."""
    numbers = (
        place.sentence,
        place.first_segment_id,
        place.segment_id,
        place.start_samples,
        place.lead_samples,
        int(place.opens),
    )
    return ".".join(map(str, ("k2", issued_s, digest, round(1000 * chunk_s), *numbers)))


def resumption_of(
    last_id: str, token: str | None, digest: Callable[[float], str], *, ttl_s: float, chunk_s: float
) -> Resumption:
    """The resumption that `last_id` and `token` ask for, checked.

    Parameters
    ----------
    last_id : str
        `segment.chunk` of the last chunk that the client has.
    token : str, optional
        Without a token, everything before has to be computed again.
    digest : callable
        Returns the digest of the present request for a length of chunks.
    ttl_s : float
        Seconds after its beginning in which a stream may be resumed.
    chunk_s : float
        The length by which chunks are counted if there is no token.

    Raises
    ------
    ParameterError
        `last_id` is not of this form.
    Gone
        The token has expired or is malformed, or it was made for another request or by another version of the
        server.
    """
    now_s = int(time.time())
    frame = FRAME_ID.fullmatch(last_id)
    if frame is None:
        raise ParameterError(
            "The id of the last chunk cannot be read.",
            field="last_id",
            value=last_id[:40],
            allowed="segment.chunk, as in the `id:` of an event, such as 3.57",
        )
    after = int(frame["chunk"])
    if token is None:
        return Resumption(after, None, now_s, chunk_s)
    found = TOKEN.fullmatch(token)
    if found is None:
        raise Gone("This is no resume token.", field="resume", mend=ANEW)
    issued_s = int(found["issued_s"])
    if not now_s - ttl_s <= issued_s <= now_s + AHEAD_S:
        raise Gone(f"This stream began more than {ttl_s:g} s ago.", field="resume", mend=ANEW)
    chunk_s = int(found["frame_ms"]) / 1000
    if found["digest"] != digest(chunk_s):
        raise Gone(
            "This resume token is of another request, or the server has changed.",
            field="resume",
            mend="Send the very body of the first request; else ask for the whole speech anew.",
        )
    sentence, first, segment, start, lead = (
        int(found[name]) for name in ("sentence", "first", "segment", "start", "lead")
    )
    place = Place(sentence, first, segment, start, lead, opens=found["opens"] == "1")
    heard = (after + 1) * round(chunk_s * SAMPLE_RATE_HZ)
    if place.segment_id > int(frame["segment"]) or place.start_samples > heard:
        raise Gone("This resume token is of a later chunk than the last id.", field="resume", mend=ANEW)
    return Resumption(after, place, issued_s, chunk_s)
