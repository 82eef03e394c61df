"""Plays our own speech while it is computed: one stream on a deck of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kokoro_lab.datatypes import Samples
from kokoro_lab.dsp import Dither
from kokoro_lab.playback.deck import Deck, running
from kokoro_lab.playback.sinks import Sink
from kokoro_lab.playback.stream import PlayerStatus, StreamOver


class Aloud:
    """One stream that is played. Made by `aloud`.

    Parameters
    ----------
    deck : Deck
        The player, already started (see `deck.running`).
    dither : Dither
        A dither that has rounded no samples yet. The samples that are heard then equal those of a file that
        is written with another new dither of the same kind.
    """

    def __init__(self, deck: Deck, dither: Dither) -> None:
        self._deck = deck
        self._dither = dither
        self._stream = deck.begin()

    def push(self, samples: Samples) -> None:
        """Play further samples, float32, shape (n,), at 24 kHz; waits while plenty are still to be played."""
        try:
            self._deck.feed(self._stream, self._dither.push(samples))
        except StreamOver:
            self._deck.require_played(self._stream)  # says why

    def finish(self) -> PlayerStatus:
        """End the stream, and wait until the last sample was heard.

        Raises
        ------
        PlaybackError
            The stream could not be played to its end.
        """
        self._deck.end(self._stream)
        self._deck.require_played(self._stream)
        return self._deck.status()


@contextmanager
def aloud(sink: Sink, dither: Dither) -> Iterator[Aloud]:
    """A context in which pushed samples are played. If the sink fails or does not open, the system's player
    plays them. Leaving it before `finish` cuts the sound off.

    Parameters
    ----------
    sink : Sink
    dither : Dither
        As `Aloud`.

    Raises
    ------
    PlaybackError
        The sink does not open, and there is no other player.
    """
    deck = Deck(sink)
    deck.open()
    with running(deck):
        yield Aloud(deck, dither)
