"""Speech from a pipe: standard input once, or a FIFO again and again."""

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
from kokoro_lab.playback.status import StreamOver

log = logging.getLogger(__name__)

PIECE_BYTES = 16_384
"""The most that is read at a time; less where less is there."""


def play_pipe(deck: Deck, source: BinaryIO) -> bool:
    """Play bare PCM or WAV to the end of the pipe, and wait until the last sample was heard.

    The writer is made to wait where it is far ahead.

    Parameters
    ----------
    source : file
        Unbuffered, so that what comes is played and not collected.

    Returns
    -------
    bool
        Whether all of it was played; False if it was stopped.

    Raises
    ------
    ParameterError
        It is WAV that cannot be played.
    PlaybackError
        There is nothing to play it with.
    """
    pcm_input = PcmInput()
    stream: int | None = None
    try:
        while piece := source.read(PIECE_BYTES):
            pcm = pcm_input.push(piece)
            if len(pcm):
                stream = stream or deck.begin()
                deck.feed(stream, pcm)
    except StreamOver:
        return False
    finally:
        if stream:
            deck.end(stream)
    if pcm_input.torn_bytes:
        log.warning("The pipe ended within a sample: %d bytes were left over.", pcm_input.torn_bytes)
    return stream is None or deck.require_played(stream)


def make_fifo(path: Path) -> Path:
    """The FIFO at `path`, made if nothing is there, for its owner alone.

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
    """Play what one writer after another puts into a FIFO; each of them is a stream, and waits its turn.

    It returns after `until` is set and a writer has come or gone: a thread of this is a daemon.
    """
    while not until.is_set():
        try:
            with path.open("rb", buffering=0) as source:
                play_pipe(deck, source)
        except KokoroLabError as error:
            log.warning("%s", error)
        except OSError as error:
            log.warning("The pipe %s cannot be read any more: %s", path, error)
            return
