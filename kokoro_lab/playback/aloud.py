"""Speech that is heard as it is made: one stream of a deck of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kokoro_lab.datatypes import Samples
from kokoro_lab.dsp import Dither
from kokoro_lab.playback.deck import Deck, running
from kokoro_lab.playback.sinks import Sink
from kokoro_lab.playback.stream import PlayerStatus, StreamOver
from kokoro_lab.playback.system_player import PLAYERS


class Aloud:
    """One stream that is heard. Made by `aloud`.

    Parameters
    ----------
    deck : Deck
        Running.
    dither : Dither
        Fresh: the same samples are heard as a file holds that is written with its like.
    """

    def __init__(self, deck: Deck, dither: Dither) -> None:
        self._deck = deck
        self._dither = dither
        self._stream = deck.begin()

    def push(self, samples: Samples) -> None:
        """Play these behind the last ones, waiting where there is plenty; float32, shape (n,), at 24 kHz."""
        try:
            self._deck.feed(self._stream, self._dither.push(samples))
        except StreamOver:
            self._deck.require_played(self._stream)  # says why

    def finish(self) -> PlayerStatus:
        """Nothing more comes: wait until the last sample was heard.

        Raises
        ------
        PlaybackError
            It could not be played to its end.
        """
        self._deck.end(self._stream)
        self._deck.require_played(self._stream)
        return self._deck.status()


@contextmanager
def aloud(sink: Sink, dither: Dither, players: Sequence[str] = PLAYERS) -> Iterator[Aloud]:
    """Inside, what is pushed is heard; who leaves before `finish` cuts it off.

    Parameters
    ----------
    sink : Sink
    dither : Dither
        As `Aloud`.
    players : sequence of str
        The system's players, for where the sink dies, or does not open.

    Raises
    ------
    PlaybackError
        Neither does the sink open, nor is there another player.
    """
    deck = Deck(sink, players=players)
    deck.open()
    with running(deck):
        yield Aloud(deck, dither)
