"""A trial: one text spoken once, with what a listener noticed.

Every system is measured by the same listener, from the request on, and by the same rule: speech begins with
the first sample that is loud enough. A header is no sample, and a primer is silence, so neither counts as
first audio. `play` applies a player's clock to the arrivals of chunks, and finds those that would have come
too late.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.dsp.trim import THRESHOLD_DBFS
from kokoro_lab.errors import SynthesisError
from kokoro_lab.lab.bench.memory import memory_figures
from kokoro_lab.playback.buffering import PreBuffer

SPEECH_LEVEL = 10 ** (THRESHOLD_DBFS / 20)
"""A sample of at least this magnitude is speech. This is the engine's own threshold, far above dither and
primer."""

NOT_MEASURED = float("nan")


PRE_BUFFER_S = 0.1


@dataclass(frozen=True, slots=True)
class Playout:
    """The playout of a stream: what a player would have noticed.

    Parameters
    ----------
    underruns : int
        Chunks that came too late for a player that begins one pre-buffer after the first chunk. After each,
        the player waits for the chunk and plays on.
    late_s : float
        Seconds of silence that the listener heard in all.
    longest_gap_s : float
        The most seconds by which a chunk came later than the length of the chunk before it.
    longest_silence_s : float
        The longest silence within the speech, in seconds.
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
        Sets the pre-buffer, and may learn from stream to stream; by default a fixed one of 100 ms.
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
    """For each chunk but the last, the seconds until the next one came, less its own length; below 0 if the
    stream runs ahead of a player."""
    gaps_s = (later - earlier for earlier, later in pairwise(arrivals_s))
    return [gap_s - length_s for gap_s, length_s in zip(gaps_s, lengths_s, strict=False)]


@dataclass(frozen=True, slots=True)
class Trial:
    """One uncached synthesis of a text that the system had not seen before.

    Parameters
    ----------
    system : str
        The system that spoke: `kokoro-lab`, `kokoro-lab http`, `kokoro-onnx fp32`, ...
    text_number : int
        Number of the text in the run, by which trials of different systems form pairs.
    characters : int
        Length of the text.
    streamed : bool
        Whether sound could arrive before the whole text was computed.
    ttfb_s : float
        Seconds from the request to the first byte, be it header or primer; not a number if the system sends
        no bytes.
    ttfa_s : float
        Seconds from the request to the arrival of the first sample of speech.
    wall_s : float
        Seconds from the request to the arrival of the last sample. The listener never makes a system wait, so
        this is the time that computing the text took, measured alike for every system.
    audio_s : float
        Seconds of audio from the first sample of speech to the last sample.
    rtf : float
        `wall_s / audio_s`.
    underruns, late_s, longest_gap_s
        See `Playout`.
    rss_start_mb, rss_peak_mb, rss_end_mb, rss_growth_mb : float
        See `memory.memory_figures`; not a number unless memory was sampled.
    """

    system: str
    text_number: int
    characters: int
    streamed: bool
    ttfb_s: float
    ttfa_s: float
    rtf: float
    audio_s: float
    wall_s: float
    underruns: int
    late_s: float
    longest_gap_s: float
    rss_start_mb: float = NOT_MEASURED
    rss_peak_mb: float = NOT_MEASURED
    rss_end_mb: float = NOT_MEASURED
    rss_growth_mb: float = NOT_MEASURED


@dataclass(eq=False, kw_only=True)
class Listener:
    """Receives one spoken text, and notes when everything arrived.

    Parameters
    ----------
    keep : bool
        Whether to keep what is heard, for `samples`.
    enough_s : float
        Seconds of speech after which the listener hangs up.
    wanted : callable
        Returns whether the system is needed by a request: then the listener hangs up, is `disturbed`, and the
        trial does not count.
    clock : callable
        Returns the time in seconds; a test passes its own clock.
    """

    keep: bool = False
    enough_s: float = math.inf
    wanted: Callable[[], bool] = lambda: False
    clock: Callable[[], float] = time.perf_counter
    disturbed: bool = field(default=False, init=False)
    _kept: list[Samples] = field(default_factory=list, init=False)
    _asked_s: float = field(default=NOT_MEASURED, init=False)
    _ttfb_s: float = field(default=NOT_MEASURED, init=False)
    _last_s: float = field(default=NOT_MEASURED, init=False)
    _arrivals_s: list[float] = field(default_factory=list, init=False)
    _lengths_s: list[float] = field(default_factory=list, init=False)

    def asks(self) -> None:
        """Record that the request is sent now."""
        self._asked_s = self.clock()

    def gets_bytes(self) -> None:
        """Record that bytes of any kind have come now. The first ones give the TTFB."""
        if not self._ttfb_s >= 0:
            self._ttfb_s = self.clock() - self._asked_s

    def hears(self, samples: Samples) -> None:
        """Take samples: float32, shape (n,), at 24 kHz. Silence before the first word is skipped."""
        arrived_s = self.clock() - self._asked_s
        if self.keep:
            self._kept.append(samples)
        speech = len(samples)
        if not self._arrivals_s:
            loud = np.abs(samples) >= SPEECH_LEVEL
            if not loud.any():
                return
            speech -= int(loud.argmax())
        self._last_s = arrived_s
        self._arrivals_s.append(arrived_s)
        self._lengths_s.append(speech / SAMPLE_RATE_HZ)

    @property
    def satisfied(self) -> bool:
        """Whether the listener has heard enough or is disturbed, so that the system can stop."""
        self.disturbed = self.disturbed or self.wanted()
        return self.disturbed or sum(self._lengths_s) >= self.enough_s

    @property
    def in_hand_s(self) -> float:
        """Seconds of speech that have come and that a player with a pre-buffer has not played yet."""
        if not self._arrivals_s:
            return 0.0
        played_s = self.clock() - self._asked_s - self._arrivals_s[0] - PRE_BUFFER_S
        return sum(self._lengths_s) - max(played_s, 0.0)

    @property
    def samples(self) -> Samples:
        """All samples that were received, silence included; empty unless `keep` was given."""
        return np.concatenate(self._kept) if self._kept else np.zeros(0, np.float32)

    def trial(
        self,
        system: str,
        text_number: int,
        characters: int,
        *,
        streamed: bool,
        memory: Sequence[float] | None = None,
    ) -> Trial:
        """The trial that was heard.

        Raises
        ------
        SynthesisError
            No speech came: a system that says nothing must not count as a fast one.
        """
        if not self._arrivals_s:
            raise SynthesisError(
                f"{system} was silent for text {text_number} ({characters} characters).",
                mend="Try another voice or variant; the benchmark has stopped.",
            )
        audio_s = sum(self._lengths_s)
        playout = play(self._arrivals_s, self._lengths_s)
        seen = {} if memory is None else memory_figures(memory)
        return Trial(
            system=system,
            text_number=text_number,
            characters=characters,
            streamed=streamed,
            ttfb_s=self._ttfb_s,
            ttfa_s=self._arrivals_s[0],
            rtf=self._last_s / audio_s,
            audio_s=audio_s,
            wall_s=self._last_s,
            underruns=playout.underruns,
            late_s=playout.late_s,
            longest_gap_s=playout.longest_gap_s,
            **seen,
        )
