"""Compressed formats by FFmpeg's encoders and muxers, through PyAV."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import ModuleType
from typing import Any, BinaryIO

import numpy as np

from kokoro_lab.containers.formats import Format
from kokoro_lab.dsp.block import Samples
from kokoro_lab.dsp.dither import Pcm
from kokoro_lab.errors import INSTALL_AGAIN, FormatUnavailable

WIDE_HZ = 32_000
"""From this sample rate on, a higher bit rate is used."""

FLAC_BLOCKS_A_SECOND = 40
"""FLAC blocks of 25 ms, so that a stream's audio is sent as soon as it is ready. Blocks of 50 ms would save 1
% of the bytes."""


@dataclass(frozen=True, slots=True)
class Codec:
    """The encoder, muxer and options of one format.

    Parameters
    ----------
    encoder, muxer : str
        FFmpeg's names.
    sample_format : str
        The kind of samples that the encoder takes. `s16` is the dithered PCM of a WAV file. All others are
        float, and need no dither, since the codec's own error is far larger than that of rounding to 16 bits.
    lag_samples : int
        By how many samples (at the rate of coding) decoded speech is late, if the file does not tell the
        decoder.
    held_frames : int
        How many frames must have begun after the frame of a sample before the encoder gives out the bytes of
        that sample.
    bit_rate_bps, wide_bit_rate_bps : int
        Bit rates below `WIDE_HZ`, and from there on; 0 if the bit rate follows the signal.
    coded_hz : int, optional
        The only sample rate of the format; None if the format takes the requested rate.
    gain : float
        Factor for the samples, so that decoded speech is as loud as the input.
    options, muxer_options : mapping
        Options of FFmpeg's encoder and muxer.
    """

    encoder: str
    muxer: str
    sample_format: str
    lag_samples: int
    held_frames: int
    bit_rate_bps: int = 0
    wide_bit_rate_bps: int = 0
    coded_hz: int | None = None
    gain: float = 1.0
    options: Mapping[str, str] = field(default_factory=dict)
    muxer_options: Mapping[str, str] = field(default_factory=dict)

    @property
    def dithered(self) -> bool:
        """Whether the codec takes 16-bit samples, to which dither is added."""
        return self.sample_format == "s16"

    def bit_rate_at(self, sample_rate_hz: int) -> int:
        """Bits per second, nominally; 0 where they follow the signal."""
        return self.wide_bit_rate_bps if sample_rate_hz >= WIDE_HZ else self.bit_rate_bps


CODECS: dict[Format, Codec] = {
    "mp3": Codec(
        "libmp3lame",
        "mp3",
        "fltp",
        lag_samples=1105,  # 576 of the encoder, 529 of any decoder
        held_frames=2,
        bit_rate_bps=96_000,
        wide_bit_rate_bps=128_000,
        gain=1 / 0.95,  # LAME's presets of constant bit rate scale by 0.95, for fear of decoders that clip
        # A reservoir would let a frame wait for bits that later ones leave over: 24 ms
        options={"reservoir": "0"},
        muxer_options={"id3v2_version": "0"},
    ),
    "opus": Codec(
        "libopus",
        "ogg",
        "flt",
        lag_samples=156,  # 6.5 ms, which the header tells every decoder to leave out
        held_frames=2,  # the muxer holds one back, as only the last page may be marked as such
        bit_rate_bps=64_000,
        coded_hz=24_000,  # taken as it is by libopus, which spares the resampler's 38 ms
        options={"application": "audio", "frame_duration": "20"},
        muxer_options={"page_duration": "20000"},  # microseconds: a page for each frame, instead of a second
    ),
    "aac": Codec(
        "aac",
        "adts",
        "fltp",
        lag_samples=1024,
        held_frames=2,
        bit_rate_bps=96_000,
        wide_bit_rate_bps=128_000,
    ),
    "flac": Codec(
        "flac",
        "flac",
        "s16",
        lag_samples=0,
        held_frames=1,
        muxer_options={"metadata_header_padding": "0"},  # else 8 kB of zeros come first
    ),
}


class CodedWriter:
    """Writes samples into `sink`, coded.

    Parameters
    ----------
    codec : Codec
        One of `CODECS`.
    sample_rate_hz : int
        Sample rate of coding.
    sink : binary file
        The file that is written. If it is seekable, lengths are put into its head at the end.

    Raises
    ------
    FormatUnavailable
        The installed libraries do not have the encoder.
    """

    def __init__(self, codec: Codec, sample_rate_hz: int, sink: BinaryIO) -> None:
        self._codec = codec
        self._time_base = Fraction(1, sample_rate_hz)
        self._taken = 0
        self._av = _libraries(codec)
        options = {**codec.muxer_options, "fflags": "+bitexact", "flush_packets": "1"}
        if codec.muxer == "mp3" and not sink.seekable():
            options["write_xing"] = "0"  # a frame of zeros, to be filled with lengths at the end
        self._container = self._av.open(sink, "w", format=codec.muxer, options=options)
        self._stream = self._container.add_stream(
            codec.encoder,
            rate=sample_rate_hz,
            options=dict(codec.options) | _block_size(codec, sample_rate_hz),
            layout="mono",
            format=codec.sample_format,
            bit_rate=codec.bit_rate_at(sample_rate_hz),
            time_base=self._time_base,
        )
        self._container.start_encoding()

    @property
    def delay_samples(self) -> int:
        """The most samples that must follow a sample before its bytes have been written."""
        held: int = self._codec.held_frames * self._stream.codec_context.frame_size
        return self._codec.lag_samples + held

    def write(self, samples: Samples | Pcm) -> None:
        """Take samples of the codec's kind: int16, or float32 within ±1; shape (n,)."""
        if not len(samples):  # to the encoder, an empty frame is the end
            return
        if not self._codec.dithered:
            samples = samples * np.float32(self._codec.gain)
        frame = self._av.AudioFrame.from_ndarray(
            np.ascontiguousarray(samples[np.newaxis]), format=self._codec.sample_format, layout="mono"
        )
        frame.sample_rate = self._time_base.denominator
        frame.time_base = self._time_base
        frame.pts = self._taken
        self._taken += len(samples)
        self._container.mux(self._stream.encode(frame))

    def finish(self) -> None:
        """Write what the encoder holds, and the end of the file."""
        if self._taken:  # an encoder that has heard nothing has nothing to flush
            self._container.mux(self._stream.encode(None))
        self.close()

    def close(self) -> None:
        """Free the encoder, which holds megabytes: PyAV's container and stream refer to each other, so Python
        would not free them soon."""
        self._container.close()


def _libraries(codec: Codec) -> ModuleType:
    """PyAV, if it can encode by `codec`. PyAV is loaded here and not earlier, because WAV and PCM do not need
    it."""
    try:
        import av

        av.Codec(codec.encoder, "w")
    except (ImportError, ValueError) as error:  # an unknown codec is a ValueError
        raise FormatUnavailable(
            f"The encoder {codec.encoder} cannot be used: {error}.",
            field="response_format",
            value=codec.muxer,
            allowed="wav, pcm, and what the installed FFmpeg libraries encode",
            mend=f"The PyAV of kokoro-lab has it. {INSTALL_AGAIN}",
        ) from error
    return av


def _block_size(codec: Codec, sample_rate_hz: int) -> dict[str, Any]:
    """The block size for FLAC, which has no fixed frame size."""
    return {"frame_size": str(sample_rate_hz // FLAC_BLOCKS_A_SECOND)} if codec.encoder == "flac" else {}
