"""Sinks and their clocks: speech is played by the sound card, into a file, or silently at its own pace."""

from __future__ import annotations

import time
import wave
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, Literal, cast

import numpy as np

from kokoro_lab.containers.pcm import BYTES_A_SAMPLE, Pcm, pcm_bytes
from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.errors import KokoroLabError, PlaybackError
from kokoro_lab.extras import imported


class Clock:
    """A monotonic clock in seconds, which does not jump when the date is set."""

    def now_s(self) -> float:
        return time.monotonic()

    def sleep(self, duration_s: float) -> None:
        time.sleep(max(0.0, duration_s))


class VirtualClock(Clock):
    """A virtual clock that sleeping moves at once: ten minutes of speech are played in seconds."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def now_s(self) -> float:
        return self._now_s

    def sleep(self, duration_s: float) -> None:
        self._now_s += max(0.0, duration_s)


BLOCK_S = 0.010
BLOCK_SAMPLES = round(BLOCK_S * SAMPLE_RATE_HZ)
"""Samples that are played at a time. A stop waits for at most one block."""
LEAD_S = 3 * BLOCK_S
"""Seconds of samples that a sink takes ahead, so that a busy machine makes no gap. A stop drops these
samples. After a pause they are still played, so together with the block under way they must last less than 50
ms."""


class Sink:
    """The base of sinks, which play samples. One thread uses a sink; others may read `unheard_samples`.

    Attributes
    ----------
    real_time : bool
        Whether the sink plays at the pace of speech, so that missing samples are a gap.
    """

    name: str
    real_time: bool

    def open(self) -> None:
        """Open the device or file, unless it is open. Raises PlaybackError if it cannot be opened."""

    def play(self, pcm: Pcm) -> None:
        """Take a block, and return when there is room for another. Raises PlaybackError if the device has
        failed."""

    @property
    def unheard_samples(self) -> int:
        """Samples that were taken and not heard yet: none, unless the sink plays at the pace of speech."""
        return 0

    def drop(self) -> None:
        """Fall silent at once: samples that were taken and not heard are dropped."""

    def close(self) -> None:
        """Close the device or file. It may be opened again."""


class ClockedSink(Sink):
    """A sink without sound, which takes samples at the pace of speech.

    Parameters
    ----------
    clock : Clock, optional
        The clock, by default the machine's.
    keep : bool
        Whether to keep the samples, for `heard`.
    """

    name = "null"
    real_time = True

    def __init__(self, clock: Clock | None = None, *, keep: bool = False) -> None:
        self._clock = clock or Clock()
        self._ends_s = -1.0
        self._kept: list[Pcm] | None = [] if keep else None

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
        """All samples that a listener would have heard so far, without gaps; int16, shape (n,)."""
        kept = np.concatenate([np.zeros(0, np.int16), *(self._kept or [])])
        return kept[: len(kept) - min(len(kept), self.unheard_samples)]

    def drop(self) -> None:
        if self._kept is not None:
            self._kept = [self.heard]
        self._ends_s = self._clock.now_s()

    def close(self) -> None:
        self.drop()


class WavSink(Sink):
    """Writes samples into a WAV file as fast as they come. The file is valid after each block, and written
    samples stay: `drop` does nothing.

    Parameters
    ----------
    path : Path
        The file. It is replaced by the first block after the sink was opened, so that a stream that cannot be
        played leaves it as it was, and gets everything that is played until the sink is closed.
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
        new = not self._path.exists()
        self._opened("ab").close()  # only to see that it can be written
        if new:
            self._path.resolve().unlink(missing_ok=True)

    def _opened(self, mode: Literal["ab", "wb"]) -> BinaryIO:
        try:
            return self._path.open(mode)
        except OSError as error:
            raise PlaybackError(
                f"{self._path} cannot be written: {error.strerror or error}.",
                field="--output",
                value=str(self._path),
                allowed="a file in a folder that exists and may be written to",
            ) from error

    def play(self, pcm: Pcm) -> None:
        if self._file is None:
            self._raw = self._opened("wb")  # it stays open from block to block
            self._file = wave.open(self._raw, "wb")  # noqa: SIM115  # open for as long as the sink is
            self._file.setparams((1, BYTES_A_SAMPLE, SAMPLE_RATE_HZ, 0, "NONE", ""))
        try:
            self._file.writeframes(pcm_bytes(pcm))
        except OSError as error:
            raise PlaybackError(f"{self._path} takes no more: {error.strerror or error}.") from error

    def close(self) -> None:
        file, raw, self._file, self._raw = self._file, self._raw, None, None
        if file is not None and raw is not None:
            with suppress(OSError), raw:
                file.close()


INSTALL = "pip install 'kokoro-lab[play]'; on Linux also PortAudio: apt install libportaudio2."


def portaudio() -> ModuleType:
    """The library `sounddevice` of the extra `play`, which a server and a notebook do not need.

    Raises
    ------
    PlaybackError
        `sounddevice`, or the PortAudio library that it calls, is not installed.
    """
    try:
        sounddevice = imported("sounddevice", extra="play")
    except (ImportError, OSError) as error:  # OSError: it is installed, but finds no PortAudio
        why = error.message if isinstance(error, KokoroLabError) else str(error)
        raise PlaybackError(
            f"The sound card needs sounddevice and PortAudio: {why.rstrip('.')}.", field="sink", mend=INSTALL
        ) from error
    return cast(ModuleType, sounddevice)


class SoundCard(Sink):
    """Plays through PortAudio. Blocks are written, not fetched by a callback, so that no Python runs in the
    audio thread.

    PortAudio plays silence while nothing is written, so a pause just stops writing, and neither loses nor
    repeats samples.

    Parameters
    ----------
    device : int or str, optional
        A number or name that `python -m sounddevice` lists; the system's own choice unless given.
    """

    name = "sound card"
    real_time = True

    def __init__(self, device: int | str | None = None) -> None:
        self._device = device
        self._stream: Any = None
        self._ends_s = 0.0

    def open(self) -> None:
        if self._stream is not None:
            return
        library = portaudio()
        stream = None
        try:
            stream = library.RawOutputStream(
                samplerate=SAMPLE_RATE_HZ,
                channels=1,
                dtype="int16",
                blocksize=BLOCK_SAMPLES,
                latency=LEAD_S,
                device=self._device,
            )
            stream.start()
        except (library.PortAudioError, ValueError) as error:
            if stream is not None:  # it opened and does not start: it is tried again with every stream
                stream.close(ignore_errors=True)
            raise PlaybackError(
                f"The sound card does not open: {error}.",
                field="device",
                value=self._device,
                mend="`python -m sounddevice` lists what there is.",
            ) from error
        self._stream = stream

    def play(self, pcm: Pcm) -> None:
        try:
            self._stream.write(pcm_bytes(pcm))
        except portaudio().PortAudioError as error:
            raise PlaybackError(f"The sound card has gone: {error}.", field="device") from error
        self._ends_s = time.monotonic() + self._stream.latency

    @property
    def unheard_samples(self) -> int:
        """Samples that were taken and not heard yet, estimated from PortAudio's latency: some milliseconds
        too many rather than too few."""
        return max(0, round((self._ends_s - time.monotonic()) * SAMPLE_RATE_HZ))

    def drop(self) -> None:
        if self._stream is None:
            return
        self._ends_s = 0.0
        try:
            self._stream.abort()  # unlike stop, does not wait for buffered samples
            self._stream.start()
        except portaudio().PortAudioError:
            self.close()  # the next stream opens it again, and reports what is wrong

    def close(self) -> None:
        stream, self._stream, self._ends_s = self._stream, None, 0.0
        if stream is not None:
            stream.abort(ignore_errors=True)
            stream.close(ignore_errors=True)
