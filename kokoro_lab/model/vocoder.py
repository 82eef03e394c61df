"""From prosody to samples: the whole segment with its own statistics, or window by window with given ones.

*Prosody* here is all that the earlier stages have computed: durations, pitch, energy, the trunk's features,
and the excitation (the source signal of the voice). The *statistics* are the mean and the variance by which
the vocoder normalises each channel over a segment: the exact ones are known only once the whole segment is
computed, predicted ones earlier.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from pathlib import Path

import numpy as np

from kokoro_lab.datatypes import Samples
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs import signatures
from kokoro_lab.graphs.adain import AdainLayers
from kokoro_lab.graphs.signatures import INNER, KNOWN, SCALE, SHIFT
from kokoro_lab.model.prosody import Prosody, Values
from kokoro_lab.model.windows import CONTEXT_FRAMES, Span, WindowPlan
from kokoro_lab.native.operators import Native
from kokoro_lab.sessions.guarded_session import GuardedSession, Runs
from kokoro_lab.sessions.providers import cpu_session, stage_session

Around = Callable[[GuardedSession, Callable[[], Runs]], GuardedSession]
"""Takes a session and a function that makes one for the same graph on the CPU; returns the session to use."""

INNER_CONTEXT_FRAMES = 2
"""The convolutions after the second upsampling see at most this many trunk frames on either side of a
sample."""
SILENT_CONTEXT_FRAMES = 4
"""Context, in trunk frames, on the side of a window where there is silence, which is not decoded."""


class WindowVocoder(ABC):
    """From trunk, excitation and given statistics to the samples of one window after the other.

    Attributes
    ----------
    layers : AdainLayers
        Turns statistics into the scale and shift that the windows take.
    fixed_spans : callable or None
        Takes two frames, and returns the windows that cover the frames between them. None if windows may have
        any size.
    """

    layers: AdainLayers
    fixed_spans: Callable[[int, int], Iterator[Span]] | None = None

    @abstractmethod
    def decoding(
        self, prosody: Prosody, scale: Values, shift: Values, audible: Span
    ) -> Callable[[Span], Samples]:
        """A function that decodes single windows of a segment.

        Parameters
        ----------
        scale, shift : numpy.ndarray
            From `AdainLayers.scale_and_shift`.
        audible : tuple of int
            First and last trunk frame that are decoded at all; the frames outside are silent.
        """

    def windows(
        self, prosody: Prosody, scale: Values, shift: Values, plan: WindowPlan, begin: int = 0
    ) -> Iterator[Samples]:
        """The samples of a segment, window by window; see `WindowPlan.samples`.

        Given the segment's exact statistics the samples are those of `Vocoder.whole`, up to rounding: SNR
        above 100 dB.
        """
        return plan.samples(self.decoding(prosody, scale, shift, plan.audible), begin)


class Vocoder(WindowVocoder):
    """Decodes trunk and excitation to samples: a whole segment, or a window with given statistics."""

    def __init__(self, folder: Path, config: EngineConfig, native: Native) -> None:
        self.layers = AdainLayers.load(folder / "layers.npz")
        graph = str(signatures.graph_path(folder, "vocoder"))
        self._session = stage_session("vocoder", graph, config, library=native.library)
        self._on_cpu = partial(cpu_session, graph, config, library=native.library)
        exact = signatures.graph_path(folder, "vocoder_exact")
        self._exact = stage_session("vocoder_exact", str(exact), config) if exact.exists() else None

    @property
    def sessions(self) -> tuple[GuardedSession, ...]:
        """The session of the windows and, where there is one, of the published model's vocoder."""
        return (self._session,) if self._exact is None else (self._session, self._exact)

    def through(self, around: Around) -> Vocoder:
        """A vocoder like this one, with another session for its windows."""
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

    def decoding(
        self, prosody: Prosody, scale: Values, shift: Values, audible: Span
    ) -> Callable[[Span], Samples]:
        return partial(self._window, prosody, scale, shift, audible)

    def _window(self, prosody: Prosody, scale: Values, shift: Values, audible: Span, span: Span) -> Samples:
        start, stop = span
        before = SILENT_CONTEXT_FRAMES if start == audible[0] else CONTEXT_FRAMES
        after = SILENT_CONTEXT_FRAMES if stop == audible[1] else CONTEXT_FRAMES
        a, b = max(0, start - before), min(prosody.frames, stop + after)
        c, d = max(a, start - INNER_CONTEXT_FRAMES), min(b, stop + INNER_CONTEXT_FRAMES)
        samples = self._run(prosody, (a, b), (c, d), span, scale, shift, known=True)
        return samples[
            (start - c) * signatures.TRUNK_FRAME_SAMPLES : (stop - c) * signatures.TRUNK_FRAME_SAMPLES
        ]

    def _run(
        self,
        prosody: Prosody,
        outer: Span,
        inner: Span,
        asked: Span,
        scale: Values,
        shift: Values,
        *,
        known: bool,
    ) -> Samples:
        """Samples of the trunk frames `inner`, decoded with the context `outer`; only the samples of the
        frames `asked` are right."""
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
