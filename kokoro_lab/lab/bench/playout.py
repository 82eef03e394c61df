"""A player's clock: which chunks would have come too late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    arrivals_s: Sequence[float], lengths_s: Sequence[float], pre_buffer_s: float = PRE_BUFFER_S
) -> Playout:
    """Play chunks that arrive at `arrivals_s` and last `lengths_s`."""
    if not arrivals_s:
        return Playout(0, 0.0, 0.0)
    clock_s = arrivals_s[0] + pre_buffer_s
    underruns, late_s, longest_s, silence_s = 0, 0.0, 0.0, 0.0
    for i, (arrival_s, length_s) in enumerate(zip(arrivals_s, lengths_s, strict=True)):
        if arrival_s > clock_s:
            underruns += 1
            late_s += arrival_s - clock_s
            silence_s = max(silence_s, arrival_s - clock_s)
            clock_s = arrival_s
        clock_s += length_s
        if i:
            longest_s = max(longest_s, arrival_s - arrivals_s[i - 1] - lengths_s[i - 1])
    return Playout(underruns, late_s, longest_s, silence_s)
