"""Where speech goes: a clock that nobody hears, or a file. The sound card has a module of its own."""

from __future__ import annotations

import wave
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np

from kokoro_lab.audio import BYTES_A_SAMPLE, Pcm, pcm_bytes
from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.errors import PlaybackError
from kokoro_lab.playback.clock import Clock, RealClock

BLOCK_S = 0.010
BLOCK_SAMPLES = round(BLOCK_S * SAMPLE_RATE_HZ)
"""What is played at a time. A stop waits for one block, never for more."""
LEAD_S = 3 * BLOCK_S
"""What a sink takes before it is due, so that a busy machine is not heard. A stop throws it away; a pause
plays it, so that with the block under way it must stay below 50 ms."""


class Sink(Protocol):
    """What plays samples. One thread uses it; `unheard_samples` may be read by others.

    Attributes
    ----------
    real_time : bool
        Whether it plays at the pace of speech, so that nothing to play is a gap.
    """

    name: str
    real_time: bool

    def open(self) -> None:
        """Get ready; nothing if it is. Raises PlaybackError where that cannot be."""

    def play(self, pcm: Pcm) -> None:
        """Take a block, and return when there is room for another. Raises PlaybackError if it has died."""

    @property
    def unheard_samples(self) -> int:
        """Samples that were taken and have not been heard yet."""

    def drop(self) -> None:
        """Be silent at once: what was taken and not heard is thrown away."""

    def close(self) -> None:
        """Let go of the device or file. It may be opened again."""


class ClockedSink:
    """Plays to nobody, at the pace of speech.

    Parameters
    ----------
    clock : Clock, optional
        The machine's unless given.
    keep : bool
        Whether `heard` is kept.
    """

    name = "null"
    real_time = True

    def __init__(self, clock: Clock | None = None, *, keep: bool = False) -> None:
        self._clock = clock or RealClock()
        self._ends_s = -1.0
        self._kept: list[Pcm] | None = [] if keep else None

    def open(self) -> None:
        pass

    def play(self, pcm: Pcm) -> None:
        now_s = self._clock.now_s()
        self._ends_s = max(now_s, self._ends_s) + len(pcm) / SAMPLE_RATE_HZ
        if self._kept is not None:
            self._kept.append(pcm)
        self._clock.sleep(self._ends_s - LEAD_S - now_s)

    @property
    def unheard_samples(self) -> int:
        return max(0, round((self._ends_s - self._clock.now_s()) * SAMPLE_RATE_HZ))

    @property
    def heard(self) -> Pcm:
        """All that a listener has heard so far, without its gaps; int16, shape (n,)."""
        kept = np.concatenate([np.zeros(0, np.int16), *(self._kept or [])])
        return kept[: len(kept) - min(len(kept), self.unheard_samples)]

    def drop(self) -> None:
        if self._kept is not None:
            self._kept = [self.heard]
        self._ends_s = self._clock.now_s()

    def close(self) -> None:
        self.drop()


class WavSink:
    """Writes what it gets into a WAV file, as fast as it comes. The file is whole after each block.

    Parameters
    ----------
    path : Path
        Replaced when it is opened; everything that is played until it is closed goes there.
    """

    name = "file"
    real_time = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._raw: BinaryIO | None = None
        self._file: wave.Wave_write | None = None

    def open(self) -> None:
        if self._file is not None:
            return
        try:
            self._raw = self._path.open("wb")  # it stays open from block to block
        except OSError as error:
            raise PlaybackError(
                f"{self._path} cannot be written: {error.strerror or error}.",
                field="--output",
                value=str(self._path),
                allowed="a file in a folder that exists and may be written to",
            ) from error
        self._file = wave.open(self._raw, "wb")  # noqa: SIM115  # open for as long as the sink is
        self._file.setparams((1, BYTES_A_SAMPLE, SAMPLE_RATE_HZ, 0, "NONE", ""))

    def play(self, pcm: Pcm) -> None:
        self.open()
        assert self._file is not None
        try:
            self._file.writeframes(pcm_bytes(pcm))
        except OSError as error:
            raise PlaybackError(f"{self._path} takes no more: {error.strerror or error}.") from error

    @property
    def unheard_samples(self) -> int:
        return 0

    def drop(self) -> None:
        """Nothing: what is written is kept."""

    def close(self) -> None:
        file, raw, self._file, self._raw = self._file, self._raw, None, None
        if file is not None and raw is not None:
            with suppress(OSError), raw:
                file.close()
