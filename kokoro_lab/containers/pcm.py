"""PCM and WAV: samples as bytes, in files and on the wire."""

from __future__ import annotations

import os
import struct
from errno import ENOSPC
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile

from kokoro_lab.containers.plain_json import whole_file
from kokoro_lab.errors import ParameterError
from kokoro_lab.typed import require_range

Samples = npt.NDArray[np.float32]
Pcm = npt.NDArray[np.int16]

BYTES_A_SAMPLE = 2
WAV_HEADER_BYTES = 44
UNKNOWN_BYTES = 0xFFFF_FFFF
"""The size in the header of a WAV stream that means "until the connection closes", as in OpenAI's streams."""

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


def wav_header(sample_rate_hz: int, data_bytes: int | None = None) -> bytes:
    """The 44 bytes before 16-bit mono PCM in a WAV file or stream.

    Parameters
    ----------
    sample_rate_hz : int
        1 or more.
    data_bytes : int, optional
        How many bytes of PCM follow; None if that is not known yet.

    Raises
    ------
    ParameterError
        A size that does not fit into WAV (4 GiB, two days of speech), or no whole number of samples.
    """
    require_range("sample_rate", sample_rate_hz, 1, message=f"{sample_rate_hz} Hz cannot be.")
    if data_bytes is None:
        riff_bytes = data_bytes = UNKNOWN_BYTES
    elif 0 <= data_bytes < UNKNOWN_BYTES - _AFTER_RIFF_SIZE and data_bytes % BYTES_A_SAMPLE == 0:
        riff_bytes = _AFTER_RIFF_SIZE + data_bytes
    else:
        raise ParameterError(
            f"{data_bytes} bytes of PCM do not make a WAV file.",
            field="data_bytes",
            value=data_bytes,
            allowed=f"a multiple of {BYTES_A_SAMPLE}, less than 4 GiB",
        )
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF",
        riff_bytes,
        b"WAVE",
        b"fmt ",
        16,  # bytes of the format chunk that follow
        _PCM_FORMAT,
        1,  # channel
        sample_rate_hz,
        sample_rate_hz * BYTES_A_SAMPLE,
        BYTES_A_SAMPLE,
        8 * BYTES_A_SAMPLE,
        b"data",
        data_bytes,
    )


def write_whole(path: Path, content: bytes) -> Path:
    """Write a file, whole or not at all; one that is there is replaced.

    Raises
    ------
    ParameterError
        The folder does not exist or the file cannot be written.
    """
    try:
        with whole_file(path) as making:
            making.write_bytes(content)
    except OSError as error:
        raise ParameterError(
            f"{path} cannot be written: {error.strerror or error}.",
            field="path",
            value=str(path),
            allowed=None if error.errno == ENOSPC else "a file in a folder that exists and may be written to",
            mend=None if path.parent.exists() else f"Make the folder first: mkdir -p {path.parent}",
        ) from error
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
        so what `containers.write_file` wrote comes back 0.0003 dB softer.
    sample_rate_hz : int

    Raises
    ------
    ParameterError
        The file does not exist, or is no sound file.
    """
    try:
        samples, sample_rate_hz = soundfile.read(os.fspath(path), dtype="float32")
    except (OSError, soundfile.LibsndfileError) as error:
        raise ParameterError(
            f"{path} cannot be read as sound: {error}", field="path", value=str(path), allowed="a WAV file"
        ) from error
    return samples, int(sample_rate_hz)
