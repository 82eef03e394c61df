"""Plays speech from a pipe: standard input once, or a FIFO again and again."""

from __future__ import annotations

import logging
import os
import stat
import threading
from pathlib import Path
from typing import BinaryIO

from kokoro_lab.errors import KokoroLabError, ParameterError
from kokoro_lab.playback.deck import Deck
from kokoro_lab.playback.pcm_input import PcmInput
from kokoro_lab.playback.stream import StreamOver
from kokoro_lab.scheduling.priority import enter_playback

log = logging.getLogger(__name__)

FRAGMENT_BYTES = 16_384
"""The most bytes that are read at a time; fewer if fewer have arrived."""
IDLE_S = 0.050
"""Seconds between two checks whether a FIFO has a writer."""


def play_pipe(deck: Deck, source: BinaryIO, begins: bytes = b"", *, drain: bool = False) -> bool:
    """Play bare PCM or WAV to the end of the pipe, and wait until the last sample was heard.

    A writer that is far ahead has to wait.

    Parameters
    ----------
    source : file
        Unbuffered, so that bytes are played as they come.
    begins : bytes
        The bytes that were read already.
    drain : bool
        Whether the rest is read and dropped if the stream is stopped or cannot be played. Otherwise the pipe
        is closed on the writer.

    Returns
    -------
    bool
        Whether all of it was played; False if it was stopped.

    Raises
    ------
    ParameterError
        The pipe holds WAV that cannot be played.
    PlaybackError
        No player on this machine can play the stream.
    """
    enter_playback(deck.qos)
    pcm_input = PcmInput()
    stream: int | None = None
    fragment = begins or source.read(FRAGMENT_BYTES)
    try:
        while fragment:
            pcm = pcm_input.push(fragment)
            if len(pcm):
                stream = stream or deck.begin()
                deck.feed(stream, pcm)
            fragment = source.read(FRAGMENT_BYTES)
    except StreamOver:
        pass
    finally:
        while fragment and drain:
            fragment = source.read(FRAGMENT_BYTES)
        if stream:
            deck.end(stream)
    if pcm_input.torn_bytes:
        log.warning("The pipe ended within a sample: %d bytes were left over.", pcm_input.torn_bytes)
    return stream is None or deck.require_played(stream)


def make_fifo(path: Path) -> Path:
    """The FIFO at `path`. If there is no file at `path`, a FIFO is made that only its owner may use.

    Raises
    ------
    ParameterError
        Something else is there, or it cannot be made.
    """
    try:
        if not path.exists():
            os.mkfifo(path, 0o600)
    except OSError as error:
        raise ParameterError(
            f"{path} cannot be made: {error.strerror or error}.", field="--pipe", value=str(path)
        ) from error
    if not stat.S_ISFIFO(path.stat().st_mode):
        raise ParameterError(
            f"{path} is no FIFO.", field="--pipe", value=str(path), allowed="a FIFO, or - for standard input"
        )
    return path


def play_fifo(deck: Deck, path: Path, until: threading.Event) -> None:
    """Play what writers put into a FIFO, one after another, until `until` is set.

    Each writer is a stream, and waits for the one before; writers that overlap make one stream. Run it in a
    daemon thread: while a writer is connected and writes nothing, the function cannot be ended.
    """
    # Held open from writer to writer, or bytes written in between would be lost
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(handle, True)
    with os.fdopen(handle, "rb", buffering=0) as source:
        while not until.is_set():
            begins = source.read(FRAGMENT_BYTES)
            if not begins:  # nobody has it open for writing
                until.wait(IDLE_S)
                continue
            try:
                play_pipe(deck, source, begins, drain=True)
            except KokoroLabError as error:
                log.warning("%s", error)
