"""The audio formats: names, media types and file endings by which clients ask for them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kokoro_lab.errors import ParameterError

Format = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]
"""OpenAI's names, in OpenAI's order. Ogg Opus is `opus`, ADTS is `aac`, 16 bit without a header is `pcm`."""


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one format.

    Parameters
    ----------
    media_types : tuple of str
        Media types that a client may send in `Accept`. The first one is the `Content-Type` of an answer.
    suffixes : tuple of str
        Endings of files, with the dot.
    """

    media_types: tuple[str, ...]
    suffixes: tuple[str, ...]


FORMATS: dict[Format, Names] = {
    "mp3": Names(("audio/mpeg", "audio/mp3"), (".mp3",)),
    # audio/opus is what RFC 7587 calls Opus in RTP; browsers and RFC 7845 know a file as Ogg
    "opus": Names(("audio/ogg", "audio/opus"), (".opus", ".ogg")),
    "aac": Names(("audio/aac", "audio/aacp", "audio/x-aac"), (".aac",)),
    "flac": Names(("audio/flac", "audio/x-flac"), (".flac",)),
    "wav": Names(("audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"), (".wav",)),
    "pcm": Names(("audio/pcm",), (".pcm",)),
}
_OF_SUFFIX = {suffix: kind for kind, names in FORMATS.items() for suffix in names.suffixes}

OPUS_HZ = 48_000
"""The rate that every Opus decoder gives, whatever the rate of the input."""


def decoded_hz(kind: Format, sample_rate_hz: int) -> int:
    """The sample rate that a decoder gives where `sample_rate_hz` was asked for."""
    return OPUS_HZ if kind == "opus" else sample_rate_hz


def content_type(kind: Format, sample_rate_hz: int) -> str:
    """The media type of an answer. PCM has no header, so its media type also states the sample rate and the
    number of channels."""
    media_type = FORMATS[kind].media_types[0]
    return f"{media_type};rate={sample_rate_hz};channels=1" if kind == "pcm" else media_type


def named_format(name: object) -> object:
    """The format that a client means by `name`, which may be an ending of files, too: `ogg` is `opus`. Any
    other name is returned as it is."""
    return _OF_SUFFIX.get(f".{name}", name) if isinstance(name, str) else name


def format_of(path: str | os.PathLike[str]) -> Format:
    """The format that the ending of a file's name asks for, in capitals or not.

    Raises
    ------
    ParameterError
        The name has none of the endings of `FORMATS`.
    """
    path = Path(path)
    kind = _OF_SUFFIX.get(path.suffix.lower())
    if kind is None:
        raise ParameterError(
            f"The ending of {path.name or path} names no format.",
            field="path",
            value=str(path),
            allowed="a name that ends in " + ", ".join(_OF_SUFFIX),
        )
    return kind
