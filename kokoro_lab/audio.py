"""PCM and WAV: samples as bytes, in files and on the wire."""

from __future__ import annotations

import logging
import os
import secrets
import struct
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile

from kokoro_lab.dsp import Dither, require_finite
from kokoro_lab.errors import ParameterError

__all__ = ["pcm_bytes", "read_wav", "require_finite", "wav_bytes", "wav_header", "write_wav", "write_whole"]

log = logging.getLogger(__name__)

Samples = npt.NDArray[np.float32]
Pcm = npt.NDArray[np.int16]

BYTES_A_SAMPLE = 2
WAV_HEADER_BYTES = 44
UNKNOWN_BYTES = 0xFFFF_FFFF
"""The size that stands for "until the connection closes", as OpenAI streams WAV."""

_AFTER_RIFF_SIZE = WAV_HEADER_BYTES - 8
_PCM_FORMAT = 1


def pcm_bytes(pcm: Pcm) -> bytes:
    """Signed 16-bit samples as little-endian bytes, on any machine.

    Parameters
    ----------
    pcm : numpy.ndarray
        int16, shape (n,); from `dsp.Dither`.
    """
    return pcm.astype("<i2").tobytes()


def wav_header(sample_rate_hz: int, channels: int = 1, data_bytes: int | None = None) -> bytes:
    """The 44 bytes before 16-bit PCM in a WAV file or stream.

    Parameters
    ----------
    sample_rate_hz : int
        1 or more.
    channels : int
        1 or more.
    data_bytes : int, optional
        How many bytes of PCM follow; None if that is not known yet.

    Raises
    ------
    ParameterError
        A size that does not fit into WAV (4 GiB, two days of speech), or no whole number of samples.
    """
    frame_bytes = channels * BYTES_A_SAMPLE
    if sample_rate_hz < 1 or channels < 1:
        raise ParameterError(
            f"{channels} channels at {sample_rate_hz} Hz cannot be.",
            field="sample_rate",
            value=sample_rate_hz,
            allowed="1 or more",
        )
    if data_bytes is None:
        riff_bytes = data_bytes = UNKNOWN_BYTES
    elif 0 <= data_bytes < UNKNOWN_BYTES - _AFTER_RIFF_SIZE and data_bytes % frame_bytes == 0:
        riff_bytes = _AFTER_RIFF_SIZE + data_bytes
    else:
        raise ParameterError(
            f"{data_bytes} bytes of PCM do not make a WAV file.",
            field="data_bytes",
            value=data_bytes,
            allowed=f"a multiple of {frame_bytes}, less than 4 GiB",
        )
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF",
        riff_bytes,
        b"WAVE",
        b"fmt ",
        16,  # bytes of the format chunk that follow
        _PCM_FORMAT,
        channels,
        sample_rate_hz,
        sample_rate_hz * frame_bytes,
        frame_bytes,
        8 * BYTES_A_SAMPLE,
        b"data",
        data_bytes,
    )


def wav_bytes(samples: Samples, sample_rate_hz: int, seed: int = 0) -> bytes:
    """A whole 16-bit mono WAV file, dithered.

    Parameters
    ----------
    samples : numpy.ndarray
        float32, shape (n,). What is beyond ±1 is clipped, and logged as a warning.
    sample_rate_hz : int
        1 or more.
    seed : int
        Of the dither: the same seed gives the same bytes.

    Raises
    ------
    ParameterError
        Not float32, not mono, or too long for WAV.
    SynthesisError
        A sample is not finite.
    """
    dither = Dither(seed)
    data = pcm_bytes(dither.run(samples))
    if dither.clipped_samples:
        log.warning("%d of %d samples were clipped to 16 bit", dither.clipped_samples, len(samples))
    return wav_header(sample_rate_hz, data_bytes=len(data)) + data


def write_wav(path: str | os.PathLike[str], samples: Samples, sample_rate_hz: int, seed: int = 0) -> Path:
    """Write a 16-bit mono WAV file, whole or not at all.

    Parameters
    ----------
    path : str or os.PathLike
        The file; one that is there is replaced. Its folder must exist.
    samples, sample_rate_hz, seed
        As `wav_bytes`.

    Returns
    -------
    pathlib.Path
        `path`.

    Raises
    ------
    ParameterError
        The folder does not exist or the file cannot be written; else as `wav_bytes`.
    SynthesisError
        A sample is not finite; a file that was there stays as it was.
    """
    return write_whole(Path(path), wav_bytes(samples, sample_rate_hz, seed))


def write_whole(path: Path, content: bytes) -> Path:
    """Write a file, whole or not at all; one that is there is replaced.

    Raises
    ------
    ParameterError
        The folder does not exist or the file cannot be written.
    """
    # beside the target, because only within one file system is replacing atomic
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    except OSError as error:
        raise ParameterError(
            f"{path} cannot be written: {error.strerror or error}.",
            field="path",
            value=str(path),
            allowed="a file in a folder that exists and may be written to",
            mend=None if path.parent.exists() else f"Make the folder first: mkdir -p {path.parent}",
        ) from error
    finally:
        with suppress(OSError):
            part.unlink()
    return path


def read_wav(path: str | os.PathLike[str]) -> tuple[Samples, int]:
    """Read a sound file.

    Parameters
    ----------
    path : str or os.PathLike
        WAV, or anything else that libsndfile reads; streamed WAV of unknown length as well.

    Returns
    -------
    samples : numpy.ndarray
        float32, shape (n,) for one channel, (n, channels) for more. 16-bit samples are divided by 32768,
        so what `write_wav` wrote comes back 0.0003 dB softer.
    sample_rate_hz : int

    Raises
    ------
    ParameterError
        There is no such file, or it is no sound file.
    """
    try:
        samples, sample_rate_hz = soundfile.read(os.fspath(path), dtype="float32")
    except (OSError, soundfile.LibsndfileError) as error:
        raise ParameterError(
            f"{path} cannot be read as sound: {error}", field="path", value=str(path), allowed="a WAV file"
        ) from error
    return samples, int(sample_rate_hz)
