"""Turns bytes from a pipe or socket, cut anywhere, into samples that can be played."""

from __future__ import annotations

import struct

import numpy as np

from kokoro_lab.containers.pcm import BYTES_A_SAMPLE, Pcm
from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.errors import ParameterError

WAV_HEAD_BYTES = 4096
"""A stream that begins like WAV is refused if its samples do not begin within this many bytes."""
_BITS = 8 * BYTES_A_SAMPLE
_PCM, _EXTENSIBLE = 1, 0xFFFE
_OTHERS = {b"OggS": "Opus", b"fLaC": "FLAC", b"ID3": "MP3", b'{"error"': "an error in JSON"}
_MEND = 'Ask for it so: {"response_format": "pcm"}, without a sample_rate.'


def require_format(sample_rate_hz: int, channels: int, bits: int) -> None:
    """Refuse other formats than 16-bit mono at 24 kHz, which would be played as noise.

    Raises
    ------
    ParameterError
        The rate, the channels or the bits differ from that format.
    """
    if (sample_rate_hz, channels, bits) != (SAMPLE_RATE_HZ, 1, _BITS):
        raise ParameterError(
            f"Speech of {sample_rate_hz} Hz with {channels} channels and {bits} bits cannot be played here.",
            field="format",
            value=f"{sample_rate_hz} Hz, {channels} channels, {bits} bits",
            allowed=f"signed 16-bit PCM, mono, {SAMPLE_RATE_HZ} Hz, bare or in WAV",
            mend=_MEND,
        )


def require_samples(data: bytes) -> None:
    """Refuse bytes that begin like a compressed format: a server that is not asked for PCM sends MP3.

    Speech begins near silence, and no quiet sample looks like one of these formats. MP3 and AAC (ADTS) begin
    with 11 or 12 ones, then version and layer: ISO 11172-3, 2.4.1.3, and ISO 13818-7, 6.2.

    Raises
    ------
    ParameterError
        The bytes begin like a compressed format.
    """
    name = next((name for begins, name in _OTHERS.items() if data.startswith(begins)), None)
    if name is None and len(data) >= 3 and data[0] == 0xFF:
        layer_3 = data[1] & 0xE6 == 0xE2 and data[1] & 0x18 != 0x08
        if layer_3 and 0 < data[2] >> 4 < 15 and data[2] & 0x0C != 0x0C:
            name = "MP3"
        elif data[1] & 0xF6 == 0xF0 and data[2] & 0x3C < 13 << 2:
            name = "AAC"
    if name is not None:
        raise ParameterError(
            f"This begins like {name}, which cannot be played here.",
            field="format",
            value=name,
            allowed=f"signed 16-bit PCM, mono, {SAMPLE_RATE_HZ} Hz, bare or in WAV",
            mend=_MEND,
        )


class PcmInput:
    """One stream of bytes: bare s16le PCM, or WAV with its length known or not.

    A fragment may end within a sample or within the WAV header; the next one brings the rest.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._begun = False
        self._left_bytes: int | None = None

    @property
    def torn_bytes(self) -> int:
        """The bytes of an incomplete sample."""
        return len(self._rest)

    def push(self, fragment: bytes) -> Pcm:
        """The samples that `fragment` completes.

        Returns
        -------
        numpy.ndarray
            int16, shape (n,); n may be 0.

        Raises
        ------
        ParameterError
            WAV that is not 16-bit mono at 24 kHz, or broken; or a compressed format.
        """
        data = self._rest + fragment
        if not self._begun:
            begins = self._samples_begin(data)
            if begins is None:
                self._rest = data
                return np.zeros(0, np.int16)
            self._begun, data = True, data[begins:]
        if self._left_bytes is not None:
            data = data[: self._left_bytes]  # RIFF chunks behind the data chunk hold no samples
        whole = len(data) - len(data) % BYTES_A_SAMPLE
        if self._left_bytes is not None:
            self._left_bytes -= whole
        self._rest = data[whole:]
        return np.frombuffer(data[:whole], "<i2").astype(np.int16)

    def _samples_begin(self, data: bytes) -> int | None:
        """Where the samples begin in `data`; None if the header is incomplete."""
        if not data.startswith(b"RIFF"[: len(data)]):
            require_samples(data)
            return 0
        at = 12
        while len(data) >= at + 8:
            name, size = struct.unpack_from("<4sI", data, at)
            if name == b"data":
                if size < 0xFFFF_FFFF - WAV_HEAD_BYTES and size:
                    self._left_bytes = size
                return at + 8
            if name == b"fmt " and len(data) >= at + 24:
                kind, channels, rate_hz, _, _, bits = struct.unpack_from("<HHIIHH", data, at + 8)
                require_format(rate_hz, channels, bits if kind in (_PCM, _EXTENSIBLE) else 0)
            at += 8 + size + size % 2
        if len(data) > WAV_HEAD_BYTES:
            raise ParameterError(
                "This begins like WAV, but no samples follow.", field="format", allowed="WAV, or bare PCM"
            )
        return None
