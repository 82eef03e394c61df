"""The part of a stream that a listener has received, and its comparison with another, sample by sample."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kokoro_lab.containers.pcm import BYTES_A_SAMPLE
from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.errors import KokoroLabError, SynthesisError
from kokoro_lab.lab.bench.trial import SPEECH_LEVEL
from kokoro_lab.lab.results import NegativeControl

FULL_SCALE = 32_768


@dataclass(frozen=True, slots=True)
class ReceivedChunk:
    """One chunk of a stream.

    Parameters
    ----------
    id : str or None
        The chunk's id, `<segment>.<chunk>`, after which the stream may be resumed; None for raw audio.
    data : bytes
        Bytes of audio in the requested format.
    token : str or None
        The resume token, if it came with this chunk.
    """

    id: str | None
    data: bytes
    token: str | None = None


@dataclass(slots=True)
class ReceivedStream:
    """The part of a stream that one listener has received, and the id and token for resuming it.

    Parameters
    ----------
    pcm : bytearray
        The samples, of 16 bits at 24 kHz.
    arrivals_s, lengths_s : list of float
        When each chunk came, in seconds after `began_s`, and how long each chunk is.
    complete : bool
        Whether the stream came to its end.
    breaks : list of KokoroLabError
        The errors that broke the stream.
    recovered_s : list of float
        Seconds from a break to the next new chunk; breaks without a new chunk between them count as one.
    refusals : int
        How often the server was busy.
    repeated, reordered : int
        Number of chunks that the listener had already; number of chunks that had to wait for an earlier one.
    last_id, token : str or None
        The id of the last chunk, if chunks have ids, and the token to resume after it.
    began_s : float
        When the stream was asked for, by `time.perf_counter`.
    """

    pcm: bytearray = field(default_factory=bytearray)
    arrivals_s: list[float] = field(default_factory=list)
    lengths_s: list[float] = field(default_factory=list)
    complete: bool = False
    breaks: list[KokoroLabError] = field(default_factory=list)
    recovered_s: list[float] = field(default_factory=list)
    refusals: int = 0
    repeated: int = 0
    reordered: int = 0
    last_id: str | None = None
    token: str | None = None
    began_s: float = field(default_factory=time.perf_counter)

    def take(self, chunk: ReceivedChunk) -> None:
        """Add a chunk."""
        self.pcm += chunk.data
        self.lengths_s.append(len(chunk.data) / BYTES_A_SAMPLE / SAMPLE_RATE_HZ)
        self.last_id, self.token = chunk.id, chunk.token or self.token
        self.arrivals_s.append(time.perf_counter() - self.began_s)

    @property
    def back(self) -> dict[str, Any]:
        """The fields that, added to the request, ask for the rest of the stream."""
        found = {"last_id": self.last_id, "resume": self.token}
        return {name: value for name, value in found.items() if value is not None}

    @property
    def samples(self) -> int:
        return len(self.pcm) // BYTES_A_SAMPLE

    @property
    def audio_s(self) -> float:
        return sum(self.lengths_s)

    @property
    def ttfa_s(self) -> float:
        """Seconds from the request to the first chunk that holds speech; not a number if no chunk does."""
        loud = np.abs(samples_of(bytes(self.pcm))) >= SPEECH_LEVEL
        if not loud.any():
            return math.nan
        first_s = int(loud.argmax()) / SAMPLE_RATE_HZ
        ends_s = np.cumsum(self.lengths_s)
        return self.arrivals_s[int(np.searchsorted(ends_s, first_s, side="right"))]

    @property
    def rtf(self) -> float:
        """Seconds from the request to the last chunk, divided by the seconds of speech."""
        return self.arrivals_s[-1] / self.audio_s if self.arrivals_s else math.nan


def ids_of(chunk_id: str) -> tuple[int, int]:
    """The segment in which a chunk begins, and its number in the whole stream."""
    segment, _, number = chunk_id.partition(".")
    return int(segment), int(number)


def samples_of(pcm: bytes) -> Samples:
    """16-bit samples as float32, shape (n,), within ±1."""
    return np.frombuffer(pcm, "<i2").astype(np.float32) / np.float32(FULL_SCALE)


def to_the_end(chunks: Iterable[ReceivedChunk]) -> ReceivedStream:
    """Receive a stream to its end, without resuming.

    Raises
    ------
    SynthesisError
        The stream holds no speech.
    """
    heard = ReceivedStream()
    for chunk in chunks:
        heard.take(chunk)
    if math.isnan(heard.ttfa_s):
        raise SynthesisError("A stream came to its end without any speech.")
    heard.complete = True
    return heard


def differences(joined: bytes | bytearray, whole: bytes | bytearray) -> tuple[int, int]:
    """How many samples of `joined` and `whole` differ, up to the end of the shorter one, and how many
    `joined` lacks; this is negative if `joined` is longer."""
    ours, theirs = (np.frombuffer(bytes(pcm), "<i2") for pcm in (joined, whole))
    reach = min(len(ours), len(theirs))
    return int(np.count_nonzero(ours[:reach] != theirs[:reach])), len(theirs) - len(ours)


def comparison_controls(whole: ReceivedStream) -> list[NegativeControl]:
    """Negative controls: faults that `differences` must notice."""
    pcm, middle = bytes(whole.pcm), len(whole.arrivals_s) // 2
    chunk = round(whole.lengths_s[middle] * SAMPLE_RATE_HZ) * BYTES_A_SAMPLE
    at = round(sum(whole.lengths_s[:middle]) * SAMPLE_RATE_HZ) * BYTES_A_SAMPLE
    faults = {
        "a chunk lost": pcm[:at] + pcm[at + chunk :],
        "a chunk played twice": pcm[: at + chunk] + pcm[at:],
        "a sample off by one bit": pcm[:at] + bytes([pcm[at] ^ 1]) + pcm[at + 1 :],
        "a sample lost at the end": pcm[:-BYTES_A_SAMPLE],
    }
    return [NegativeControl(name, differences(faulty, pcm) != (0, 0)) for name, faulty in faults.items()]
