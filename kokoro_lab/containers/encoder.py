"""Encodes samples as the bytes of one answer, or as a file in the format that its name's ending asks for."""

from __future__ import annotations

import io
import logging
import os
from pathlib import Path
from typing import BinaryIO

import numpy as np

from kokoro_lab.containers.coded import CODECS, CodedWriter
from kokoro_lab.containers.formats import FORMATS, Format, decoded_hz, format_of
from kokoro_lab.containers.pcm import Pcm, pcm_bytes, wav_header, write_whole
from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Clip, Samples
from kokoro_lab.dsp import Dither, Dithering, Processor, Resampler, ditherer, in_runs, silence
from kokoro_lab.dsp.resample import require_offered_rate
from kokoro_lab.errors import ParameterError
from kokoro_lab.typed import require_choice, require_type


class PcmWriter:
    """Writes 16-bit samples, with or without a WAV header."""

    delay_samples = 0

    def __init__(self, sample_rate_hz: int, sink: BinaryIO, *, header: bool) -> None:
        self._sample_rate_hz = sample_rate_hz
        self._sink = sink
        self._header = header
        self._data_bytes = 0
        if header:
            sink.write(wav_header(sample_rate_hz))

    def write(self, samples: Samples | Pcm) -> None:
        """Take int16 samples."""
        self._data_bytes += self._sink.write(pcm_bytes(samples.astype(np.int16, copy=False)))

    def finish(self) -> None:
        """If the sink can seek, put the sizes into the header."""
        if self._header and self._sink.seekable():
            self._sink.seek(0)
            self._sink.write(wav_header(self._sample_rate_hz, data_bytes=self._data_bytes))

    def close(self) -> None: ...


class _Passing(io.BytesIO):
    """A file for the muxer that keeps bytes only until they are taken; earlier bytes cannot be changed."""

    def seekable(self) -> bool:
        return False

    def take(self) -> bytes:
        """The bytes that were written since the last call."""
        ready = self.getvalue()
        self.seek(0)
        self.truncate()
        return ready


class _FullScale(Processor[np.float32]):
    """Clips floats to ±1 and counts the clipped samples, as `Dither` does for 16 bit."""

    def __init__(self) -> None:
        self.clipped_samples = 0

    def _push(self, block: Samples) -> Samples:
        within: Samples = np.clip(block, np.float32(-1), np.float32(1))
        self.clipped_samples += int(np.count_nonzero(within != block))
        return within


def dithered(kind: Format) -> bool:
    """Whether the format holds samples of 16 bit, and so dither."""
    return kind not in CODECS or CODECS[kind].dithered


class Encoder:
    """Samples in, one valid stream or file out. How the samples are cut into blocks does not matter.

    A file has the bytes of the stream, except that its lengths are put into the head where the format has a
    place for them: the sizes of WAV, the number of samples and the MD5 of FLAC and, in a frame of its own
    before the first one, the tag with which LAME states the lengths of an MP3. Opus states its length at the
    end; AAC (ADTS) and PCM state none.

    Parameters
    ----------
    kind : {"mp3", "opus", "aac", "flac", "wav", "pcm"}
        The format.
    sample_rate_hz : int
        One of `dsp.RATES_HZ`. Opus is decoded at 48 kHz, whatever is asked for.
    seed : int
        Seed of the dither of WAV, PCM and FLAC, which hold the same samples.
    streamed : bool
        Whether bytes are given out as soon as they are ready. If not, `finish` gives out all of them.
    from_hz : int
        The rate of the pushed samples; one of `dsp.RATES_HZ`.
    skipped_samples : int
        Number of samples in the stream before the first one that is pushed, for the dither.
    dither : {"tpdf", "shaped"}
        Whether the noise of WAV, PCM and FLAC is white, or moved to where it is heard least; the other
        formats are made of floats and have none. With shaped noise, `skipped_samples` must be 0.

    Raises
    ------
    ParameterError
        The format is unknown, or a rate is not one of `dsp.RATES_HZ`.
    FormatUnavailable
        The installed libraries cannot encode it.

    Attributes
    ----------
    sample_rate_hz : int
        The rate of the samples that a decoder gives back, in Hz.
    """

    def __init__(
        self,
        kind: Format,
        sample_rate_hz: int = SAMPLE_RATE_HZ,
        seed: int = 0,
        *,
        streamed: bool = True,
        from_hz: int = SAMPLE_RATE_HZ,
        skipped_samples: int = 0,
        dither: Dithering = "tpdf",
    ) -> None:
        require_choice("response_format", kind, FORMATS, f"The format {kind!r} is not offered.")
        require_offered_rate(sample_rate_hz)
        require_type("dither", dither, Dithering, ParameterError)
        codec = CODECS.get(kind)
        coded_hz = codec.coded_hz if codec and codec.coded_hz else sample_rate_hz
        self.kind = kind
        self.sample_rate_hz = decoded_hz(kind, sample_rate_hz)
        self._coded_hz = coded_hz
        self._resampler = Resampler(from_hz, coded_hz)
        self._quantiser: Dither | _FullScale = (
            ditherer(dither, coded_hz, seed, skipped_samples) if dithered(kind) else _FullScale()
        )
        self._sink = _Passing() if streamed else io.BytesIO()
        self._writer: CodedWriter | PcmWriter = (
            CodedWriter(codec, coded_hz, self._sink)
            if codec
            else PcmWriter(coded_hz, self._sink, header=kind == "wav")
        )
        self._written = 0
        self._ended = False

    def prime(self, silence_s: float) -> bytes:
        """The head, and silence before the speech, for a player to open its device.

        If a codec holds back bytes of the silence, they come with the first `push`.

        Raises
        ------
        RuntimeError
            The method is called after `push`.
        """
        if self._written:
            raise RuntimeError("the speech has begun; the primer comes before it")
        return self.still(silence_s)

    def still(self, silence_s: float) -> bytes:
        """Encode silence that is not part of the speech. A stream sends it while the next speech is not
        ready."""
        still = silence(silence_s, self._coded_hz)
        # Bare zeros, not dithered: the dither, and so the PCM of the speech, is that of an unprimed stream
        self._writer.write(still if isinstance(self._quantiser, _FullScale) else still.astype(np.int16))
        return self._ready()

    def push(self, samples: Samples) -> bytes:
        """The bytes that are ready with `samples`, perhaps none.

        Parameters
        ----------
        samples : numpy.ndarray
            float32, shape (n,). Samples beyond ±1 are clipped and counted.

        Raises
        ------
        ParameterError, SynthesisError
            As `dsp.Processor.push`: not float32, not mono, not finite.
        RuntimeError
            The method is called after `finish`.
        """
        self._write(self._resampler.push(samples))
        return self._ready()

    def finish(self) -> bytes:
        """The remaining bytes; for a file, all of its bytes. The encoder cannot be used afterwards."""
        self._write(self._resampler.flush())
        self._writer.finish()
        self._ended = True
        return self._sink.getvalue()

    def run(self, samples: Samples) -> bytes:
        """Push everything and finish."""
        # In blocks, so that little memory is needed besides the samples
        return b"".join([*map(self.push, in_runs([samples])), self.finish()])

    def close(self) -> None:
        """Free what an unfinished encoder holds. After `finish` this does nothing, since `finish` has freed
        it."""
        self._writer.close()

    @property
    def clipped_samples(self) -> int:
        """Samples that were beyond full scale."""
        return self._quantiser.clipped_samples

    @property
    def delay_s(self) -> float:
        """Seconds of speech that, at the most, must follow a sample before its bytes come out; the lag of the
        resampler is not included."""
        return self._writer.delay_samples / self._coded_hz

    @property
    def audible(self) -> bool:
        """Whether the bytes given out hold a first sample of speech, and not just head and primer."""
        return self._ended or self._written > self._writer.delay_samples

    def _write(self, samples: Samples) -> None:
        self._written += len(samples)
        self._writer.write(self._quantiser.push(samples))

    def _ready(self) -> bytes:
        return self._sink.take() if isinstance(self._sink, _Passing) else b""


log = logging.getLogger(__name__)


def write_file(
    path: str | os.PathLike[str],
    samples: Samples,
    sample_rate_hz: int = SAMPLE_RATE_HZ,
    seed: int = 0,
    *,
    from_hz: int = SAMPLE_RATE_HZ,
    dither: Dithering = "tpdf",
) -> Path:
    """Write a file of speech.

    Parameters
    ----------
    path : str or os.PathLike
        Must end in one of the suffixes of `FORMATS`; a file that is there is replaced. The folder must exist.
    samples : numpy.ndarray
        float32, shape (n,). Samples beyond ±1 are clipped, and a warning is logged.
    sample_rate_hz, seed, from_hz, dither
        As `Encoder`.

    Returns
    -------
    pathlib.Path
        `path`.

    Raises
    ------
    ParameterError
        The path has another ending, a rate is not one of `dsp.RATES_HZ`, or the file cannot be written.
    FormatUnavailable
        The installed libraries cannot encode it.
    SynthesisError
        A sample is not finite; a file that was there stays as it was.
    """
    kind = format_of(path)
    encoder = Encoder(kind, sample_rate_hz, seed, streamed=False, from_hz=from_hz, dither=dither)
    return write_encoded(path, encoder, samples)


def write_encoded(path: str | os.PathLike[str], encoder: Encoder, samples: Samples) -> Path:
    """Encode `samples` with `encoder`, which must be new and not `streamed`, and write the file; see
    `write_file`."""
    content = encoder.run(samples)
    if encoder.clipped_samples:
        log.warning("%d of %d samples were clipped", encoder.clipped_samples, len(samples))
    return write_whole(Path(path), content)


def save(clip: Clip, path: str | os.PathLike[str], *, dither: Dithering = "tpdf") -> Path:
    """Write a clip in the format that the ending of the name asks for, dithered with its own seed.

    Parameters
    ----------
    clip : Clip
        A clip that `engine.synthesize` returned.
    path, dither
        As `write_file`.

    Returns
    -------
    pathlib.Path
        `path`.

    Raises
    ------
    ParameterError, FormatUnavailable, SynthesisError
        As `write_file`.
    """
    rate_hz = clip.sample_rate_hz
    return write_file(path, clip.samples, rate_hz, clip.seed, from_hz=rate_hz, dither=dither)
