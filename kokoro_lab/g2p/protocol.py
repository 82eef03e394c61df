"""What every G2P is, whatever it reads with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kokoro_lab.datatypes import Word
from kokoro_lab.g2p.english import OnFallback
from kokoro_lab.g2p.given import FixedReading
from kokoro_lab.text.aligned import AlignedText


class SentenceG2P(Protocol):
    """Reads sentences of one language, or parts of them. Thread-safe."""

    def __call__(
        self, sentence: AlignedText, on_fallback: OnFallback, given: Sequence[FixedReading] = ()
    ) -> list[Word]:
        """Words in order, with offsets into the original.

        Parameters
        ----------
        sentence : AlignedText
            Normalised.
        on_fallback : callable
            Hears of every word or mark that could not be read as it should, with its place.
        given : sequence of FixedReading
            Pieces of `sentence`, in order, each of which is one word with these phonemes.
        """
        ...
