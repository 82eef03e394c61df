"""Speech into files, whole or not at all. The ending of the name says in which format."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from kokoro_lab.audio import write_whole
from kokoro_lab.containers.encoder import Encoder
from kokoro_lab.containers.formats import format_of
from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Clip, Samples
from kokoro_lab.dsp import Dithering

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
        Must end in one of the suffixes of `FORMATS`; a file that is there is replaced. Its folder must exist.
    samples : numpy.ndarray
        float32, shape (n,). What is beyond ±1 is clipped, and logged as a warning.
    sample_rate_hz, seed, from_hz, dither
        As `Encoder`.

    Returns
    -------
    pathlib.Path
        `path`.

    Raises
    ------
    ParameterError
        Another ending or rate, or the file cannot be written.
    FormatUnavailable
        The installed libraries cannot encode it.
    SynthesisError
        A sample is not finite; a file that was there stays as it was.
    """
    kind = format_of(path)
    encoder = Encoder(kind, sample_rate_hz, seed, streamed=False, from_hz=from_hz, dither=dither)
    return write_encoded(path, encoder, samples)


def write_encoded(path: str | os.PathLike[str], encoder: Encoder, samples: Samples) -> Path:
    """Write what `encoder`, which is fresh and not `streamed`, makes of `samples`; as `write_file`."""
    content = encoder.run(samples)
    if encoder.clipped_samples:
        log.warning("%d of %d samples were clipped", encoder.clipped_samples, len(samples))
    return write_whole(Path(path), content)


def save(clip: Clip, path: str | os.PathLike[str], *, dither: Dithering = "tpdf") -> Path:
    """Write a clip in the format that the ending of the name asks for, dithered with its own seed.

    Parameters
    ----------
    clip : Clip
        What `engine.synthesize` gave.
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
