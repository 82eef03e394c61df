"""The sound card, through PortAudio."""

from __future__ import annotations

import time
from types import ModuleType
from typing import Any

from kokoro_lab.audio import Pcm, pcm_bytes
from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.errors import PlaybackError
from kokoro_lab.playback.sinks import BLOCK_SAMPLES, LEAD_S

INSTALL = "pip install 'kokoro-lab[play]'; on Linux also PortAudio: apt install libportaudio2."


def portaudio() -> ModuleType:
    """The library `sounddevice`, which is an extra: a server and a notebook need none.

    Raises
    ------
    PlaybackError
        It, or the PortAudio that it calls, is not installed.
    """
    try:
        import sounddevice
    except (ImportError, OSError) as error:  # OSError: it is there, and finds no PortAudio
        raise PlaybackError(
            f"The sound card needs sounddevice and PortAudio: {error}.", field="sink", mend=INSTALL
        ) from error
    return sounddevice  # type: ignore[no-any-return, unused-ignore]  # no types, and an extra: it may be absent


class SoundCard:
    """Blocks are written and not fetched by a callback, so that no Python runs where the sound is made.

    Where nothing is written, PortAudio plays silence: a pause is no writing, and loses and repeats nothing.

    Parameters
    ----------
    device : int or str, optional
        As `python -m sounddevice` lists them; the system's own choice unless given.
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
            if stream is not None:  # it was opened, and does not start: it is tried again with every stream
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
        """From the latency that PortAudio states: some milliseconds too many rather than too few."""
        return max(0, round((self._ends_s - time.monotonic()) * SAMPLE_RATE_HZ))

    def drop(self) -> None:
        if self._stream is None:
            return
        self._ends_s = 0.0
        try:
            self._stream.abort()  # unlike stop, does not wait for what is buffered
            self._stream.start()
        except portaudio().PortAudioError:
            self.close()  # the next stream opens it anew, and says what is wrong with it

    def close(self) -> None:
        stream, self._stream, self._ends_s = self._stream, None, 0.0
        if stream is not None:
            stream.abort(ignore_errors=True)
            stream.close(ignore_errors=True)
