"""How much speech is held back before it is played, and again after the player ran dry."""

from __future__ import annotations

import math
from collections import deque

from kokoro_lab.playback.buffering import MOST_S, PreBuffer

DOUBLING = 2.0
"""After an underrun, so many times the wait that caused it is held back. On a line that holds everything up
for 0.2 to 0.4 s now and then, the first time may be heard, and no other one."""
PATIENCE_S = 1.0
"""Samples that wait for more are played after so long, though nothing came. Where more than that is always
held back, they wait for as long as that."""
HOPELESS_UNDERRUNS, HOPELESS_WITHIN_S = 5, 60.0
"""So many underruns in so long: the sender is slower than speech, and no pre-buffer mends that."""


class Hold:
    """Says when there is enough to begin, from how the samples came.

    `buffering.PreBuffer` learns from all streams what a start needs. Within a stream that ran dry, that is
    not enough: its target follows the latest delay, and the next one may be longer.

    Times are the player's: its clock stands still while it is paused, so that a sender that waits meanwhile
    is not taken for a late one.

    Parameters
    ----------
    pre_buffer : PreBuffer, optional
        What has been learnt so far.
    """

    def __init__(self, pre_buffer: PreBuffer | None = None) -> None:
        self._adaptive = True
        self._pre_buffer = pre_buffer or PreBuffer()
        self.begin_stream()

    def fix(self, held_s: float | None) -> None:
        """Hold back so much from now on, whatever happens; None learns again.

        Raises
        ------
        ParameterError
            Below 0, or not finite.
        """
        self._pre_buffer = PreBuffer() if held_s is None else PreBuffer.fixed(held_s)
        self._adaptive = held_s is None
        self._held_s = self._pre_buffer.target_s

    def begin_stream(self) -> None:
        """The next samples are the first of a new stream."""
        self._pre_buffer.begin_stream()
        self._held_s = self._pre_buffer.target_s
        self.underruns = 0
        self.silent_s = 0.0
        self._arrived_s: float | None = None
        self._waits_since_s: float | None = None
        self._dry_since_s: float | None = None
        self._late = False
        self._underruns_s: deque[float] = deque(maxlen=HOPELESS_UNDERRUNS)

    @property
    def held_s(self) -> float:
        """Seconds that are held back at the next start."""
        return self._held_s

    @property
    def hopeless(self) -> bool:
        """Whether it runs dry again and again."""
        times_s = self._underruns_s
        return len(times_s) == HOPELESS_UNDERRUNS and times_s[-1] - times_s[0] <= HOPELESS_WITHIN_S

    def arrived(self, at_s: float, length_s: float) -> None:
        """Samples came."""
        if self._arrived_s is not None:
            at_s = max(at_s, self._arrived_s)  # behind a pause, the sum may be rounded down
        gap_s = 0.0 if self._arrived_s is None else at_s - self._arrived_s
        self._arrived_s = at_s
        self._pre_buffer.arrived(at_s, length_s)
        self._held_s = max(self._held_s, self._pre_buffer.target_s)
        if self._waits_since_s is None:
            self._waits_since_s = at_s
        if self._dry_since_s is not None and not self._late:
            # Counted only now: if nothing more had come, it would have been the end of the stream
            self._late = True
            self.underruns += 1
            self._underruns_s.append(at_s)
            if self._adaptive:
                self._held_s = min(MOST_S, max(self._held_s, DOUBLING * gap_s))

    def enough(self, at_s: float, buffered_s: float) -> bool:
        """Whether what is there may be played."""
        waits_since_s = math.inf if self._waits_since_s is None else self._waits_since_s
        return buffered_s >= self._held_s or at_s - waits_since_s >= max(PATIENCE_S, self._held_s)

    def started(self, at_s: float) -> None:
        """The samples that waited are played."""
        if self._dry_since_s is not None:
            self.silent_s += at_s - self._dry_since_s
        self._dry_since_s, self._late = None, False

    def ran_dry(self, at_s: float) -> None:
        """There was nothing to play, though the stream had not ended."""
        self._dry_since_s = at_s
        self._waits_since_s = None
