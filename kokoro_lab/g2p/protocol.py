"""The protocol that every G2P follows: it takes a sentence, and returns its words with phonemes.

A caller may fix the phonemes of some words beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from kokoro_lab.datatypes import Fallback, Word
from kokoro_lab.text.aligned import AlignedText

OnFallback = Callable[[Fallback], None]
"""Called for each word or mark that was read by a fallback."""


@dataclass(frozen=True, slots=True)
class FixedReading:
    """The phonemes of `text[start:end]` of a sentence, fixed beforehand. Neither end is white space."""

    start: int
    end: int
    phonemes: str


Readings = Sequence[FixedReading]
"""The fixed readings of one sentence, in order."""


class SentenceG2P(Protocol):
    """Reads sentences of one language, or parts of them. Thread-safe."""

    def __call__(self, sentence: AlignedText, on_fallback: OnFallback, given: Readings = ()) -> list[Word]:
        """Words in order, with offsets into the original text (the text before it was normalised).

        Parameters
        ----------
        sentence : AlignedText
            Normalised.
        on_fallback : callable
            Called for every word or mark that was read by a fallback, with its place.
        given : sequence of FixedReading
            Spans of `sentence`, in order, each of which is one word with these phonemes.
        """
        ...


class SplicedG2P:
    """Adds fixed readings to a G2P that takes none. That G2P reads the text between them."""

    def __init__(self, g2p: Callable[[AlignedText, OnFallback], list[Word]], language: str) -> None:
        self._g2p = g2p
        self._language = language

    def __call__(self, sentence: AlignedText, on_fallback: OnFallback, given: Readings = ()) -> list[Word]:
        """Words in order. Each of `given`, which are spans of `sentence` in order, becomes one word."""
        words: list[Word] = []
        for i, j, fixed in parts(len(sentence), given):
            if fixed is not None:
                start, end = sentence.span(i, j)
                text = sentence.text[i:j]
                words.append(Word(text, start, end, fixed.phonemes, self._language, "lexicon", False))
            elif sentence.text[i:j].strip():
                words += self._g2p(sentence.cut(i, j), on_fallback)
            if words and j < len(sentence):
                last, following = sentence.text[j - 1], sentence.text[j]
                apart = self._language == "zh" and last.isalnum() and following.isalnum()
                words[-1] = replace(words[-1], space_after=apart or last.isspace() or following.isspace())
        return words


def parts(length: int, given: Readings) -> Iterator[tuple[int, int, FixedReading | None]]:
    """Ranges of a text of `length`: each of `given`, and the ranges between them."""
    at = 0
    for fixed in given:
        if at < fixed.start:
            yield at, fixed.start, None
        yield fixed.start, fixed.end, fixed
        at = fixed.end
    if at < length:
        yield at, length, None
