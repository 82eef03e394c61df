"""A player's clock over the arrivals of chunks: which would have come too late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from kokoro_lab.playback.buffering import PreBuffer

PRE_BUFFER_S = 0.1


@dataclass(frozen=True, slots=True)
class Playout:
    """What a player would have noticed.

    Parameters
    ----------
    underruns : int
        Chunks that came after the clock of a player that started at the first chunk plus the pre-buffer
        needed them; after each, the player waits for it and goes on.
    late_s : float
        Seconds of silence that the listener heard in all.
    longest_gap_s : float
        Longest time between two chunks beyond the length of the first of them.
    longest_silence_s : float
        The longest that the listener heard nothing for within the speech.
    """

    underruns: int
    late_s: float
    longest_gap_s: float
    longest_silence_s: float = 0.0


def play(
    arrivals_s: Sequence[float], lengths_s: Sequence[float], pre_buffer: PreBuffer | None = None
) -> Playout:
    """Play chunks that arrive at `arrivals_s` and last `lengths_s`.

    Parameters
    ----------
    pre_buffer : PreBuffer, optional
        Says what is held back, and may learn from stream to stream; a fixed one of 100 ms unless given.
    """
    pre_buffer = pre_buffer or PreBuffer.fixed(PRE_BUFFER_S)
    pre_buffer.begin_stream()
    silences_s: list[float] = []
    due_s = 0.0
    for arrival_s, length_s in zip(arrivals_s, lengths_s, strict=True):
        underruns = pre_buffer.underruns
        plays_s = pre_buffer.arrived(arrival_s, length_s)
        if pre_buffer.underruns > underruns:
            silences_s.append(plays_s - due_s)
        due_s = plays_s + length_s
    return Playout(
        underruns=len(silences_s),
        late_s=sum(silences_s),
        longest_gap_s=max([0.0, *gaps_beyond_chunks_s(arrivals_s, lengths_s)]),
        longest_silence_s=max(silences_s, default=0.0),
    )


def gaps_beyond_chunks_s(arrivals_s: Sequence[float], lengths_s: Sequence[float]) -> list[float]:
    """How much later than a chunk's length the next one came; below 0 where the stream runs ahead."""
    gaps_s = (later - earlier for earlier, later in pairwise(arrivals_s))
    return [gap_s - length_s for gap_s, length_s in zip(gaps_s, lengths_s, strict=False)]
