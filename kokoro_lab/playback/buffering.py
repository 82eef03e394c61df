"""Chunk lengths and pre-buffers: how much speech a player holds back at the start and after it ran dry.

Pure functions of arrival times: no clock is read here, so the same arrivals give the same schedule.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, replace

from kokoro_lab.errors import ParameterError
from kokoro_lab.typed import require_choice

LEAST_HELD_S, MOST_HELD_S, LEAST_CHUNKS = 0.100, 0.150, 2
"""The pre-buffer that a player is advised to hold for a stream without history."""


@dataclass(frozen=True, slots=True)
class BufferProfile:
    """A chunk length and the pre-buffer that goes with it, under a name.

    Parameters
    ----------
    chunk_s : float
        Seconds of audio in a chunk.
    """

    name: str
    chunk_s: float

    @property
    def pre_buffer_s(self) -> float:
        """The pre-buffer that a player is advised to hold, in seconds: as long as the fewest chunks that last
        100 ms, two at least, but at most 150 ms long."""
        chunks = max(LEAST_CHUNKS, math.ceil(round(LEAST_HELD_S / self.chunk_s, 6)))
        return min(MOST_HELD_S, chunks * self.chunk_s)

    def cut_by(self, chunk_s: float) -> BufferProfile:
        """This profile with another length of chunks."""
        return replace(self, chunk_s=chunk_s)


STABLE = BufferProfile("stable", chunk_s=0.050)
"""The default profile."""
BENCHMARK = BufferProfile("benchmark", chunk_s=0.040)
SAFE = BufferProfile("safe", chunk_s=0.100)
"""Half as many messages and one and a half times the pre-buffer of `STABLE`: for slow machines and bad
lines."""
PROFILES = {profile.name: profile for profile in (STABLE, BENCHMARK, SAFE)}


def buffer_profile(name: str) -> BufferProfile:
    """The profile of that name.

    Raises
    ------
    ParameterError
        There is no profile of that name.
    """
    require_choice("profile", name, PROFILES, f"There is no buffer profile {name!r}.")
    return PROFILES[name]


LEAST_S, MOST_S = 0.050, 1.0
SPARE_S = 0.020
"""Seconds that are held back in addition to the need of the worst chunk so far."""
HALF_LIFE_S = 30.0
"""After this much audio without trouble, half of what was held back beyond the least is given up."""


class PreBuffer:
    """A pre-buffer that learns from the arrival of chunks, and says when each chunk is to be played.

    When a stream starts, a player holds back `target_s` seconds of speech. When the player has run dry, it
    waits for the next chunk; if that chunk is late by less than `target_s`, the player holds back what is
    missing. A chunk needs as much pre-buffer as it comes later than at the pace of speech, counted from the
    first chunk. (The jitter of RFC 3550 is another figure: an average of early and late chunks, made for a
    sender that keeps pace. Our sender computes in bursts, and early chunks cost nothing.) The target rises at
    once to what a chunk needed, and falls slowly while no chunk needs so much. The target is kept from stream
    to stream.

    Parameters
    ----------
    start_s : float
        Target of the first stream: 2 to 3 chunks, 100 to 150 ms.
    least_s, most_s : float
        Bounds of the target. The target is fixed if both equal `start_s`.

    Attributes
    ----------
    target_s : float
        Seconds to hold back at the next start.
    underruns : int
        Chunks so far that came after the player needed them.

    Raises
    ------
    ParameterError
        Not 0 ≤ least_s ≤ start_s ≤ most_s, or not finite.
    """

    def __init__(
        self, start_s: float = STABLE.pre_buffer_s, *, least_s: float = LEAST_S, most_s: float = MOST_S
    ) -> None:
        if not 0 <= least_s <= start_s <= most_s < math.inf:
            raise ParameterError(
                f"A pre-buffer of {start_s} s cannot lie between {least_s} and {most_s} s.",
                field="start_s",
                value=start_s,
                allowed="0 ≤ least_s ≤ start_s ≤ most_s, in seconds",
            )
        self._least_s, self._most_s = least_s, most_s
        self.target_s = start_s
        self._arrived_s = -math.inf
        self._pace_s: float | None = None
        self._held_s = 0.0
        self.underruns = 0

    @classmethod
    def fixed(cls, held_s: float) -> PreBuffer:
        """A pre-buffer of constant length, which does not learn."""
        return cls(held_s, least_s=held_s, most_s=held_s)

    @property
    def runs_out_s(self) -> float:
        """When all that arrived has been played, on the clock of the arrivals; before the first chunk, always
        over."""
        return -math.inf if self._pace_s is None else self._pace_s + self._held_s

    def begin_stream(self) -> None:
        """Forget the times of the last stream: the next chunk is the first of a new one."""
        self._pace_s = None
        self._arrived_s = -math.inf

    def arrived(self, at_s: float, length_s: float) -> float:
        """Record a chunk of `length_s` that arrived at `at_s`.

        Returns
        -------
        float
            When it is to be played, on the clock of the arrivals: at or after `at_s`.

        Raises
        ------
        ParameterError
            A time is not finite, a chunk arrives before the last one, or a chunk has no length.
        """
        self._check(at_s, length_s)
        self._arrived_s = at_s
        if self._pace_s is None:
            self._pace_s, self._held_s = at_s, self.target_s
        else:
            self._learn(at_s - self._pace_s, length_s)
            if at_s - self._pace_s > self._held_s:
                self.underruns += 1
                self._held_s = max(at_s - self._pace_s, self.target_s)
        plays_s = max(at_s, self._pace_s + self._held_s)  # the sum may be rounded down
        self._pace_s += length_s
        return plays_s

    def _learn(self, needed_s: float, length_s: float) -> None:
        wanted_s = needed_s + SPARE_S
        if wanted_s < self.target_s:
            beyond_s = (self.target_s - self._least_s) * 0.5 ** (length_s / HALF_LIFE_S)
            wanted_s = max(wanted_s, self._least_s + beyond_s)
        self.target_s = min(self._most_s, max(self._least_s, wanted_s))

    def _check(self, at_s: float, length_s: float) -> None:
        if not (math.isfinite(at_s) and at_s >= self._arrived_s):
            raise ParameterError(
                f"A chunk cannot arrive at {at_s} s, before the last one.",
                field="at_s",
                value=at_s,
                allowed=f"{self._arrived_s} s or later",
                mend="Call begin_stream before the first chunk of another stream.",
            )
        if not 0 < length_s < math.inf:
            raise ParameterError(
                f"A chunk cannot last {length_s} s.", field="length_s", value=length_s, allowed="above 0"
            )


DOUBLING = 2.0
"""After an underrun, the pre-buffer grows to the wait that caused the underrun, multiplied by this. On a line
that stalls for 0.2 to 0.4 s now and then, only the first stall is heard."""
PATIENCE_S = 1.0
"""Seconds after which samples that wait for the pre-buffer to fill are played all the same; if the pre-buffer
is longer than this, its length counts."""
HOPELESS_UNDERRUNS, HOPELESS_WITHIN_S = 5, 60.0
"""With this many underruns within this time, the sender is slower than speech, and no pre-buffer helps."""


class Hold:
    """Decides when enough samples are there to begin playing, by the times at which they have come so far.

    `buffering.PreBuffer` learns from all streams how much speech to hold back at a start. In a stream that
    ran dry this is not enough, because that amount follows the last delay, and the next delay may be longer.

    Times are on the player's clock, which stands still while the player is paused, so that a sender that
    waits meanwhile does not count as late.

    Attributes
    ----------
    held_s : float
        Seconds that are held back at the next start.
    """

    def __init__(self) -> None:
        self._adaptive = True
        self._pre_buffer = PreBuffer()
        self.begin_stream()

    def fix(self, held_s: float | None) -> None:
        """Hold back a fixed time from now on; None returns to learning.

        Raises
        ------
        ParameterError
            `held_s` is below 0, or not finite.
        """
        self._pre_buffer = PreBuffer() if held_s is None else PreBuffer.fixed(held_s)
        self._adaptive = held_s is None
        self.held_s = self._pre_buffer.target_s

    def begin_stream(self) -> None:
        """Reset all that was counted: the next samples are the first of a new stream."""
        self._pre_buffer.begin_stream()
        self.held_s = self._pre_buffer.target_s
        self.underruns = 0
        self.silent_s = 0.0
        self._arrived_s: float | None = None
        self._waits_since_s: float | None = None
        self._dry_since_s: float | None = None
        self._late = False
        self._underruns_s: deque[float] = deque(maxlen=HOPELESS_UNDERRUNS)

    @property
    def hopeless(self) -> bool:
        """Whether the stream keeps running dry."""
        times_s = self._underruns_s
        return len(times_s) == HOPELESS_UNDERRUNS and times_s[-1] - times_s[0] <= HOPELESS_WITHIN_S

    def arrived(self, at_s: float, length_s: float) -> None:
        """Record that samples arrived."""
        if self._arrived_s is not None:
            at_s = max(at_s, self._arrived_s)  # after a pause, the sum may be rounded down
        gap_s = 0.0 if self._arrived_s is None else at_s - self._arrived_s
        self._arrived_s = at_s
        self._pre_buffer.arrived(at_s, length_s)
        self.held_s = max(self.held_s, self._pre_buffer.target_s)
        if self._waits_since_s is None:
            self._waits_since_s = at_s
        if self._dry_since_s is not None and not self._late:
            # Counted only now, because without further samples it would have been the end of the stream
            self._late = True
            self.underruns += 1
            self._underruns_s.append(at_s)
            if self._adaptive:
                self.held_s = min(MOST_S, max(self.held_s, DOUBLING * gap_s))

    def enough(self, at_s: float, buffered_s: float) -> bool:
        """Whether the samples so far may be played."""
        waits_since_s = math.inf if self._waits_since_s is None else self._waits_since_s
        return buffered_s >= self.held_s or at_s - waits_since_s >= max(PATIENCE_S, self.held_s)

    def started(self, at_s: float) -> None:
        """Record that the waiting samples are played from now on."""
        if self._dry_since_s is not None:
            self.silent_s += at_s - self._dry_since_s
        self._dry_since_s, self._late = None, False

    def ran_dry(self, at_s: float) -> None:
        """Record that the buffer is empty, and the stream has not ended."""
        self._dry_since_s = at_s
        self._waits_since_s = None
