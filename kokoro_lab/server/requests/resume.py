"""How a stream that broke goes on. Nothing is stored: synthesis is deterministic, so the client brings its
request again, with the id of the last frame it has and a token, and the rest is computed.

A token says when the stream began, which request it was (as a hash), how long its frames are, since a degrade
mode may cut them otherwise by now, and where the segment begins in which the frame lies, with what it takes
to decode it from its middle. It holds no text, is no secret, and is not signed: who forges one asks for
speech that they could have asked for plainly.
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
"""How far a token may be from the future: clocks of two servers differ."""

ANEW = "Ask for the whole speech anew."


@dataclass(frozen=True, slots=True)
class Resumption:
    """Where a stream goes on.

    Parameters
    ----------
    after : int
        The last chunk that the client has.
    place : Place or None
        The segment that it lies in; None to compute from the beginning.
    issued_s : int
        When the stream began, in seconds since 1970.
    chunk_s : float
        Length of its chunks.
    """

    after: int
    place: Place | None
    issued_s: int
    chunk_s: float


def digest_of(utterance: Utterance, engine: Engine, *, chunk_s: float, written: tuple[object, ...]) -> str:
    """A hash of all that the bytes of a stream and their cut into frames depend on; `written` is how samples
    become bytes."""
    lexicon = engine.front_end.lexicons.current().with_request(utterance.lexicon)
    served = (
        __version__,
        engine.config.variant,
        engine.model_sha256,
        engine.active_provider,
        sorted(engine.decoder.details.items()),
        engine.config.window_frames,  # cut otherwise, they round otherwise
        [about.get("sha256") for about in engine.conversion.get("graphs", {}).values()],
    )
    asked = (sorted(asdict(utterance).items()), lexicon.version, chunk_s, *written)
    return hashlib.sha256(repr((served, asked)).encode()).hexdigest()[:32]


def token_of(issued_s: int, digest: str, chunk_s: float, place: Place) -> str:
    """The token for a client that holds frames of the segment at `place`."""
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
    """What `last_id` and `token` say, checked.

    Parameters
    ----------
    last_id : str
        `segment.chunk` of the last frame that the client has.
    token : str, optional
        Without one, everything before has to be computed again.
    digest : callable
        Of the request that came with them, by the length of a frame.
    ttl_s : float
        How long a stream may be taken up again after it began.
    chunk_s : float
        Length of a chunk as they are cut now; it counts where there is no token to say otherwise.

    Raises
    ------
    ParameterError
        `last_id` is not of this form.
    Gone
        The token has expired, is none, or is another request's or another server's.
    """
    now_s = int(time.time())
    frame = FRAME_ID.fullmatch(last_id)
    if frame is None:
        raise ParameterError(
            "The id of the last frame cannot be read.",
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
            "This resume token is of another request, or the server speaks otherwise now.",
            field="resume",
            mend="Send the very body of the first request; else ask for the whole speech anew.",
        )
    sentence, first, segment, start, lead = (
        int(found[name]) for name in ("sentence", "first", "segment", "start", "lead")
    )
    place = Place(sentence, first, segment, start, lead, opens=found["opens"] == "1")
    heard = (after + 1) * round(chunk_s * SAMPLE_RATE_HZ)
    if place.segment_id > int(frame["segment"]) or place.start_samples > heard:
        raise Gone("This resume token is of a later frame than the last id.", field="resume", mend=ANEW)
    return Resumption(after, place, issued_s, chunk_s)
