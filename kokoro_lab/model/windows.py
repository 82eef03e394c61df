"""Plans the windows of a segment: which trunk frames are decoded together, and which of them early.

All lengths and places are in trunk frames of 12.5 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from kokoro_lab.config import WINDOW_FRAMES
from kokoro_lab.datatypes import Samples
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs.signatures import TRUNK_FRAME_SAMPLES
from kokoro_lab.model.prosody import Values, audible_frames, first_chunk_frame

Span = tuple[int, int]
"""First frame, and the frame after the last one."""

FIRST_WINDOW_FRAMES = 11
"""The longest first window of a stream, so that sound starts early. With its context, 11 frames just fill the
vectors of AVX-512; 12 take an eighth longer. With fewer than 9, some first chunks would wait for the second
window, because a margin and trimmed silence come before the first sound.

It cannot be set by the user: mostly, the first window ends earlier, where the first chunk is likely to end
(`WindowSizes.first_chunk`). A higher limit did not change the time to first audio, and a lower limit made it
longer."""
CONTEXT_FRAMES = 10
"""Frames on either side of a window that are decoded and thrown away: as far as the convolutions see. SNR
against the whole segment: 5 to 20 dB with 0 frames, 96 to 106 dB with 8, and with 10 or more 104 to 108 dB,
which is rounding."""
LATER_WINDOW_FRAMES = 60
"""The first window of a segment for which nobody waits, since the listener has unplayed speech."""
CHUNK_FRAMES = 4
"""Length of a stream's second chunk if chunks have the usual 50 ms."""
GROWTH = 1.5
"""Each window may be this many times as long as the one before, since the listener has more and more unplayed
speech."""
LEAST_FRAMES = 180
"""The shortest segment with early windows, 2.25 s. In a shorter one the trunk takes less time, and the early
windows would be a larger part. They lower PESQ by 0.02 in utterances of 2.25 s and more (114 by four voices),
by 0.04 from 2 s on (46), and by 0.10 from 1.75 s on (29)."""


@dataclass(frozen=True, slots=True)
class WindowPlan:
    """The windows of one segment. Frames before the first window and after the last one are silent, and not
    decoded.

    Parameters
    ----------
    frames : int
        Length of the segment.
    spans : tuple of (int, int)
        The span of each window, in order; each begins where the span before ends.
    early : int
        How many are decoded before the trunk of the whole segment has run; see `windowed_speech`.
    """

    frames: int
    spans: tuple[Span, ...]
    early: int = 0

    @property
    def audible(self) -> Span:
        """The span that all windows together cover."""
        return self.spans[0][0], self.spans[-1][1]

    @property
    def early_stop(self) -> int:
        """Where the last early window ends; 0 if there is none."""
        return self.spans[self.early - 1][1] if self.early else 0

    def begin(self, frame: int) -> int:
        """Where the last window at or before `frame` begins; 0, the segment's beginning, if there is none."""
        return max((start for start, _ in self.spans if start <= frame), default=0)

    def samples(self, decoded: Callable[[Span], Samples], begin: int = 0) -> Iterator[Samples]:
        """The samples of the segment, each window decoded when it is asked for. The silence before and after
        all windows comes with the first and the last of them: it takes no computing, and in a block of its
        own it would wait until other streams have computed.

        Parameters
        ----------
        decoded : callable
            Takes the span of a window, and returns the window's samples.
        begin : int
            0, or the beginning of a window: samples before it are left out.
        """
        first, last = self.audible
        for start, stop in self.spans:
            if start >= begin:
                before = first if start == first and not begin else 0
                yield amid_silence(decoded((start, stop)), before, self.frames - last if stop == last else 0)


@dataclass(frozen=True, slots=True)
class WindowSizes:
    """How long the windows of a segment are: at most `first`, then growing to `size`.

    The first window ends at `first_chunk`, where a stream's first chunk is likely to be complete. The next
    window ends with the second chunk, which is played while a larger window is decoded.
    """

    first: int = FIRST_WINDOW_FRAMES
    size: int = WINDOW_FRAMES
    first_chunk: int | None = None

    @classmethod
    def of(cls, config: EngineConfig, energy: Values | None = None, *, urgent: bool) -> WindowSizes:
        """The sizes that `config` sets.

        If the segment is `urgent`, because somebody waits for its first sound, the first window is as small
        as possible. It ends where the first chunk is likely to be complete, by `energy`: float32, one value
        for each trunk frame.
        """
        return cls(
            first=min(FIRST_WINDOW_FRAMES if urgent else LATER_WINDOW_FRAMES, config.window_frames),
            size=config.window_frames,
            first_chunk=first_chunk_frame(energy) if urgent and energy is not None else None,
        )

    def spans(self, start: int, stop: int) -> Iterator[Span]:
        """The windows that cover `start` to `stop`."""
        sizes = chain(self.opening(start), self._growing())
        while start < stop:
            end = min(stop, start + next(sizes))
            if stop - end < CONTEXT_FRAMES:  # a rest that small costs more context than it is worth
                end = stop
            yield start, end
            start = end

    def opening(self, start: int) -> tuple[int, ...]:
        """The sizes of the first windows from `start` on, as small as possible. If `first_chunk` is known,
        they are two, else one."""
        if self.first_chunk is None:
            return (self.first,)
        return min(self.first, max(1, self.first_chunk - start)), CHUNK_FRAMES

    def _growing(self) -> Iterator[int]:
        size = self.first
        while True:
            size = min(self.size, round(size * GROWTH))
            yield size


def window_plan(
    config: EngineConfig,
    energy: Values,
    *,
    urgent: bool,
    fixed: Callable[[int, int], Iterator[Span]] | None = None,
) -> WindowPlan:
    """The windows of a segment that is listened to.

    Parameters
    ----------
    config : EngineConfig
        Says how large windows are.
    energy : numpy.ndarray
        float32, one value for each trunk frame: the model's energy curve.
    urgent : bool
        Whether somebody waits for the first window.
    fixed : callable, optional
        Returns the spans between two frames, where all windows but the early ones have fixed sizes.
    """
    energy = energy.reshape(-1)
    sizes = WindowSizes.of(config, energy, urgent=urgent)
    first, last = audible_frames(energy)
    spans = tuple(sizes.spans(first, last))
    early = len(sizes.opening(first)) if urgent else 0
    if len(spans) <= early or len(energy) < LEAST_FRAMES:
        early = 0
    if fixed is not None:
        begun = spans[:early]
        spans = (*begun, *fixed(begun[-1][1] if begun else first, last))
    return WindowPlan(len(energy), spans, early)


def undivided(energy: Values) -> WindowPlan:
    """The plan of one window: the segment without the silence around it. `energy` as in `window_plan`."""
    return WindowPlan(energy.size, (audible_frames(energy.reshape(-1)),))


def amid_silence(samples: Samples, before: int, after: int = 0) -> Samples:
    """`samples`, with silence of as many trunk frames `before` and `after` them."""
    return np.pad(samples, (before * TRUNK_FRAME_SAMPLES, after * TRUNK_FRAME_SAMPLES))
