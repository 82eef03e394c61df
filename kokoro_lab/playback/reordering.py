"""Puts chunks into the order of their ids, for a client whose connection may deliver them out of order."""

from __future__ import annotations

from typing import Generic, TypeVar

from kokoro_lab.errors import ParameterError, SynthesisError

MOST_CHUNKS = 16
"""How many chunks are held while an earlier one is missing: 0.8 s of speech with chunks of 50 ms."""
WAIT_S = 1.0
"""Seconds to wait for an earlier chunk before it is asked for again."""

Chunk = TypeVar("Chunk")


class ChunkMissing(SynthesisError):
    """A chunk is missing, and later ones have come.

    Parameters
    ----------
    chunk_id : int
        Id of the missing chunk.
    why : str
        Why the wait for the missing chunk was ended.
    """

    code = "chunk_missing"

    def __init__(self, chunk_id: int, why: str) -> None:
        super().__init__(
            f"Chunk {chunk_id} is missing.",
            field="chunk_id",
            value=chunk_id,
            mend=f"{why}. Resume behind the last chunk that was given out, or give this one up.",
        )
        self.chunk_id = chunk_id


class Reorderer(Generic[Chunk]):
    """Holds chunks that came too early, and gives out each after all earlier ones.

    No clock is read here: the same arrivals give the same order and the same errors.

    Parameters
    ----------
    due : int
        The first chunk that is to be given out; later than 0 where a stream is resumed.
    most_chunks : int
        How many chunks may be held; 0 never waits for a missing one.
    wait_s : float
        How long to wait for a missing chunk after the first later one has come.

    Attributes
    ----------
    repeated : int
        Chunks that came again, and were thrown away.
    reordered : int
        Chunks that had to be held.
    """

    def __init__(self, due: int = 0, *, most_chunks: int = MOST_CHUNKS, wait_s: float = WAIT_S) -> None:
        if due < 0 or most_chunks < 0 or not wait_s >= 0:
            raise ParameterError(
                "A reorderer waits for some chunks, or for none.",
                field="most_chunks",
                value=f"due={due}, most_chunks={most_chunks}, wait_s={wait_s}",
                allowed="0 or more of each",
            )
        self._due = due
        self._most_chunks, self._wait_s = most_chunks, wait_s
        self._held: dict[int, tuple[int, Chunk]] = {}
        self._since_s = 0.0
        self._segment_id = 0
        self.repeated = 0
        self.reordered = 0

    @property
    def held(self) -> int:
        """The number of chunks that are held because an earlier one is missing."""
        return len(self._held)

    def push(self, segment_id: int, chunk_id: int, chunk: Chunk, at_s: float) -> list[Chunk]:
        """Take a chunk that came at `at_s`, on any clock; returns the chunks that are due now, in order.

        Raises
        ------
        ChunkMissing
            More than `most_chunks` are held, or the wait was longer than `wait_s`. The chunks stay held: see
            `give_up`.
        SynthesisError
            The ids of segments decrease.
        """
        if chunk_id < self._due or chunk_id in self._held:
            self.repeated += 1
            return []
        if not self._held:
            self._since_s = at_s
        self._held[chunk_id] = (segment_id, chunk)
        self.reordered += chunk_id > self._due
        ready = self._ready(at_s)
        if len(self._held) > self._most_chunks:
            raise ChunkMissing(self._due, f"{len(self._held)} later ones have come meanwhile")
        if self._held and at_s - self._since_s > self._wait_s:
            raise ChunkMissing(self._due, f"It has been waited for {at_s - self._since_s:.2f} s")
        return ready

    def finish(self) -> None:
        """End the stream.

        Raises
        ------
        ChunkMissing
            Chunks are still held.
        """
        if self._held:
            raise ChunkMissing(self._due, "The stream is over")

    def give_up(self, at_s: float) -> tuple[range, list[Chunk]]:
        """End the wait: returns the missing chunks and those after them that are due now.

        A player reports the gap, and fills it with silence or leaves it out.
        """
        after = min(self._held, default=self._due)
        gap, self._due = range(self._due, after), after
        return gap, self._ready(at_s)

    def _ready(self, at_s: float) -> list[Chunk]:
        ready = []
        while self._due in self._held:
            segment_id, chunk = self._held.pop(self._due)
            if segment_id < self._segment_id:
                raise SynthesisError(
                    f"Chunk {self._due} is of segment {segment_id}, the one before of {self._segment_id}.",
                    field="segment_id",
                    value=segment_id,
                )
            self._segment_id = segment_id
            self._due += 1
            ready.append(chunk)
        if ready:
            self._since_s = at_s  # the chunks still held wait for another missing one
        return ready
