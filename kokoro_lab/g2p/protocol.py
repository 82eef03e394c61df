"""The protocol of every G2P: a sentence in, words with phonemes out, some of them fixed beforehand.

Every part of a sentence is spoken, or reported through `on_fallback` with its place (`known_or_told`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from kokoro_lab.datatypes import Fallback, Word
from kokoro_lab.g2p.vocab import known
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
        """Words in order, with offsets into the original.

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


def known_or_told(
    said: str, by: str, place: tuple[int, int], on_fallback: OnFallback, *, sounds: bool = True
) -> str:
    """The symbols of `said` that the model knows; what is lost or read by another means is reported.

    Parameters
    ----------
    said : str
        Phonemes; empty if there is no reading.
    by : str
        Name of the other means; empty if the usual one read it.
    place : tuple of int
        Start and end in the original.
    sounds : bool
        Whether it is a loss if nothing is said.
    """
    kept, lost = known(said)
    if sounds and not said:
        on_fallback(Fallback("g2p", "not spoken: no sound is known for it", *place))
    elif by and said:
        on_fallback(Fallback("g2p", f"read by {by}", *place))
    if lost:
        on_fallback(Fallback("g2p", f"symbols outside the vocabulary: {lost!r}", *place))
    return kept


class SplicedG2P:
    """A G2P that knows no fixed readings, used for the text between them."""

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
