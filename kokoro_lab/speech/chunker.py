"""Cuts a stream of samples into chunks of one size, each tagged with its place."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, AudioChunk, Samples
from kokoro_lab.engine_config import CHUNK_MAX_MS, CHUNK_MIN_MS
from kokoro_lab.errors import ParameterError
from kokoro_lab.typed import require_range, require_type

CHUNK_S = 0.050
CHUNK_MIN_S, CHUNK_MAX_S = CHUNK_MIN_MS / 1000, CHUNK_MAX_MS / 1000
PRIMER_S = 0.050
"""Silence sent right after the header, so that a player opens its device; it never counts as audio."""


class Chunker:
    """Cuts samples into chunks of `chunk_s` seconds; only the last one may be shorter.

    A chunk carries the id of the segment in which its first sample lies.

    Parameters
    ----------
    chunk_s : float
        Length of a chunk.
    start_samples : int
        Place in the stream of the first sample that is pushed. If it is inside a chunk, that chunk begins
        with silence.

    Attributes
    ----------
    held_samples : int
        Samples that wait for their chunk to be full.
    sent_samples : int
        Samples from the start of the stream to the end of the last chunk.

    Raises
    ------
    ParameterError
        `chunk_s` is no number, or not between 0.030 and 0.120 s.
    """

    def __init__(self, chunk_s: float = CHUNK_S, start_samples: int = 0) -> None:
        require_type("chunk_s", chunk_s, float, ParameterError)
        message = f"A chunk of {chunk_s} s is out of range."
        require_range("chunk_s", chunk_s, CHUNK_MIN_S, CHUNK_MAX_S, message)
        self._size = round(chunk_s * SAMPLE_RATE_HZ)
        self._segment_id = 0
        self._marks: deque[tuple[int, int]] = deque()
        self.enter(start_samples)

    def enter(self, start_samples: int) -> None:
        """Begin at another sample of the stream; only before anything has been pushed."""
        self._chunk_id, self.held_samples = divmod(start_samples, self._size)
        self._held: list[Samples] = [np.zeros(self.held_samples, np.float32)]
        self.sent_samples = self._chunk_id * self._size

    def mark(self, segment_id: int, at_sample: int) -> None:
        """Record that a segment begins `at_sample` samples after the start of the stream. Segments are
        recorded in order."""
        self._marks.append((at_sample, segment_id))

    def push(self, samples: Samples) -> Iterator[AudioChunk]:
        """Add samples; returns the chunks that these complete."""
        self._held.append(samples)
        self.held_samples += len(samples)
        if self.held_samples < self._size:
            return
        joined = np.concatenate(self._held)
        whole = len(joined) - len(joined) % self._size
        self._held = [joined[whole:]]
        self.held_samples = len(joined) - whole
        for at in range(0, whole, self._size):
            yield self._chunk(joined[at : at + self._size])

    def flush(self) -> Iterator[AudioChunk]:
        """If samples are left: the last chunk, of these; else no chunk."""
        rest = np.concatenate(self._held) if self._held else np.zeros(0, np.float32)
        self._held, self.held_samples = [], 0
        if len(rest):
            yield self._chunk(rest)

    def _chunk(self, samples: Samples) -> AudioChunk:
        while self._marks and self._marks[0][0] <= self.sent_samples:
            self._segment_id = self._marks.popleft()[1]
        chunk = AudioChunk(
            samples=samples,
            sample_rate_hz=SAMPLE_RATE_HZ,
            segment_id=self._segment_id,
            chunk_id=self._chunk_id,
            start_s=self.sent_samples / SAMPLE_RATE_HZ,
        )
        self.sent_samples += len(samples)
        self._chunk_id += 1
        return chunk
