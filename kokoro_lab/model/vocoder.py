"""From prosody to samples: the whole segment with its own statistics, or window by window with given ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kokoro_lab.config import WINDOW_FRAMES
from kokoro_lab.datatypes import Samples
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs import signatures
from kokoro_lab.graphs.adain import AdainLayers
from kokoro_lab.graphs.passes import INNER, KNOWN, SCALE, SHIFT
from kokoro_lab.model.prosody import Prosody, first_chunk_frame
from kokoro_lab.native.operators import Native
from kokoro_lab.sessions.guarded_session import GuardedSession, Runs
from kokoro_lab.sessions.providers import cpu_session, stage_session

Values = npt.NDArray[np.float32]
Around = Callable[[GuardedSession, Callable[[], Runs]], GuardedSession]
"""Given a session, and what makes another one for the same graph on the CPU, what runs in its place."""

FIRST_WINDOW_FRAMES = 11
"""Trunk frames of 12.5 ms: the first window of a stream is no longer, so that sound starts early. With those
around it that are decoded, 11 just fill the vectors of AVX-512: 12 take an eighth longer. Under 9, some first
chunks would wait for the second window: a margin and silence that is trimmed come before the first sound.

This is no setting: `Windows.first_chunk` says where the first chunk is likely to end, and there the first
window ends, before this limit. A higher one changed no time to first audio, a lower one made it longer."""
CONTEXT_FRAMES = 10
"""Trunk frames (12.5 ms) on either side of a window that are decoded and thrown away: as far as the
convolutions see. Measured against the whole: 0 frames 5 to 20 dB, 8 frames 96 to 106 dB, 10 or more
the 104 to 108 dB of rounding."""
INNER_CONTEXT_FRAMES = 2
"""As far as the second half of the convolutions sees: it works on this much context only."""
SILENT_CONTEXT_FRAMES = 4
"""Context on a side where there is silence, which is not decoded."""
LATER_WINDOW_FRAMES = 60
"""The first window of a segment that nobody waits for: there is speech in hand."""
CHUNK_FRAMES = 4
"""Of the second chunk of a stream, if it is as long as usual: 50 ms."""
GROWTH = 1.5
"""Each window may be this many times as long as the one before: by then there is sound to listen to."""


@dataclass(frozen=True, slots=True)
class Windows:
    """How a segment is cut for decoding, in trunk frames.

    Where a stream's first chunk is likely to be complete, at `first_chunk`, the first window ends, and the
    next one with the second chunk: that is listened to while a larger one is decoded.
    """

    first: int = FIRST_WINDOW_FRAMES
    size: int = WINDOW_FRAMES
    context: int = CONTEXT_FRAMES
    first_chunk: int | None = None

    @classmethod
    def of(cls, config: EngineConfig, energy: Values | None = None, *, urgent: bool) -> Windows:
        """As `config` has it; only of a segment that is `urgent` is the first one as small as it can be.

        By its `energy`, float32 (2T,) or (1, 2T), that is as small as the first chunk.
        """
        return cls(
            first=min(FIRST_WINDOW_FRAMES if urgent else LATER_WINDOW_FRAMES, config.window_frames),
            size=config.window_frames,
            first_chunk=first_chunk_frame(energy) if urgent and energy is not None else None,
        )

    def spans(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Half-open spans that cover `start` to `stop`, growing from `first` to `size`."""
        sizes = chain(self.opening(start), self._growing())
        while start < stop:
            end = min(stop, start + next(sizes))
            if stop - end < self.context:  # a rest that small costs more context than it is worth
                end = stop
            yield start, end
            start = end

    def opening(self, start: int) -> tuple[int, ...]:
        """The sizes of those windows from `start` on that are as small as they can be."""
        if self.first_chunk is None:
            return (self.first,)
        return min(self.first, max(1, self.first_chunk - start)), CHUNK_FRAMES

    def _growing(self) -> Iterator[int]:
        size = self.first
        while True:
            size = min(self.size, round(size * GROWTH))
            yield size

    def begin(self, audible: tuple[int, int], frame: int) -> int:
        """The last beginning of a window at or before `frame`; 0, the segment's, if there is none."""
        return max((start for start, _ in self.spans(*audible) if start <= frame), default=0)


UNDIVIDED = Windows(first=1 << 30)
"""All at once."""


class Vocoder:
    """From trunk and excitation to samples: a whole segment, or a window that is told about the whole.

    Attributes
    ----------
    layers : AdainLayers
        What turns statistics into the scale and shift that the windows take.
    """

    def __init__(self, folder: Path, config: EngineConfig, native: Native) -> None:
        self.layers = AdainLayers.load(folder / "layers.npz")
        graph = str(signatures.graph_path(folder, "vocoder"))
        self._session = stage_session("vocoder", graph, config, library=native.library)
        self._on_cpu = partial(cpu_session, graph, config, library=native.library)
        exact = signatures.graph_path(folder, "vocoder_exact")
        self._exact = stage_session("vocoder_exact", str(exact), config) if exact.exists() else None

    @property
    def sessions(self) -> tuple[GuardedSession, ...]:
        """Of the windows, and of the published model's vocoder where there is one."""
        return (self._session,) if self._exact is None else (self._session, self._exact)

    def through(self, around: Around) -> Vocoder:
        """The same vocoder, but for the session that its windows run in."""
        found = copy(self)
        found._session = around(self._session, self._on_cpu)
        return found

    def whole(self, prosody: Prosody) -> Samples:
        """All samples of a segment, normalised with its own statistics."""
        if self._exact is None:
            scale, shift = self.layers.style_alone(prosody.style)
            all_frames = (0, prosody.frames)
            return self._run(prosody, all_frames, all_frames, all_frames, scale, shift, known=False)
        (waveform,) = self._exact.run(
            [signatures.WAVEFORM],
            {
                signatures.TRUNK: prosody.trunk,
                signatures.EXCITATION: prosody.excitation,
                signatures.DECODER_STYLE: prosody.style[:, :128],
            },
        )
        return np.ascontiguousarray(waveform, np.float32).reshape(-1)

    def windows(
        self,
        prosody: Prosody,
        scale: Values,
        shift: Values,
        windows: Windows | None = None,
        *,
        audible: tuple[int, int] | None = None,
        begin: int = 0,
    ) -> Iterator[Samples]:
        """The samples of a segment, window by window, each decoded when it is asked for.

        Given the segment's true statistics they are those of `whole`, up to rounding (over 100 dB).

        Parameters
        ----------
        scale, shift : numpy.ndarray
            From `AdainLayers.scale_and_shift`.
        audible : tuple of int
            First and last trunk frame that are decoded; those around them are given as zeros. None
            decodes all.
        begin : int
            0, or the beginning of a window: those before it are left out.
        """
        windows = windows or Windows()
        first, last = audible = audible or (0, prosody.frames)
        if first and not begin:
            yield silent_frames(first)
        for span in windows.spans(first, last):
            if span[0] >= begin:
                yield self.window(prosody, scale, shift, span, audible, context=windows.context)
        if last < prosody.frames:
            yield silent_frames(prosody.frames - last)

    def window(
        self,
        prosody: Prosody,
        scale: Values,
        shift: Values,
        span: tuple[int, int],
        audible: tuple[int, int],
        *,
        context: int = CONTEXT_FRAMES,
    ) -> Samples:
        """The samples of one window of trunk frames; as `windows`."""
        start, stop = span
        before = SILENT_CONTEXT_FRAMES if start == audible[0] else context
        after = SILENT_CONTEXT_FRAMES if stop == audible[1] else context
        a, b = max(0, start - before), min(prosody.frames, stop + after)
        c, d = max(a, start - INNER_CONTEXT_FRAMES), min(b, stop + INNER_CONTEXT_FRAMES)
        samples = self._run(prosody, (a, b), (c, d), (start, stop), scale, shift, known=True)
        return samples[
            (start - c) * signatures.TRUNK_FRAME_SAMPLES : (stop - c) * signatures.TRUNK_FRAME_SAMPLES
        ]

    def _run(
        self,
        prosody: Prosody,
        outer: tuple[int, int],
        inner: tuple[int, int],
        asked: tuple[int, int],
        scale: Values,
        shift: Values,
        *,
        known: bool,
    ) -> Samples:
        """Samples of the trunk frames `inner`, seen from `outer`; only those of `asked` are right."""
        a, b = outer
        first, last = a * signatures.TRUNK_FRAME_SAMPLES, b * signatures.TRUNK_FRAME_SAMPLES
        (waveform,) = self._session.run(
            [signatures.WAVEFORM],
            {
                signatures.TRUNK: np.ascontiguousarray(prosody.trunk[:, :, a:b]),
                signatures.EXCITATION: np.ascontiguousarray(
                    prosody.excitation[:, first : last + signatures.STFT_SIZE_SAMPLES]
                ),
                SCALE: scale,
                SHIFT: shift,
                INNER: np.array([*inner, *asked]) - a,
                KNOWN: np.array(known),
            },
        )
        return np.ascontiguousarray(waveform, np.float32).reshape(-1)


def silent_frames(frames: int) -> Samples:
    """Of so many trunk frames, samples that are 0."""
    return np.zeros(frames * signatures.TRUNK_FRAME_SAMPLES, np.float32)
