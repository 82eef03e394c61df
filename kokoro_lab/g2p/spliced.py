"""Pieces with phonemes of their own, for a G2P that does not know of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from kokoro_lab.datatypes import Word
from kokoro_lab.g2p.english import OnFallback
from kokoro_lab.g2p.given import FixedReading
from kokoro_lab.text.aligned import AlignedText

Reads = Callable[[AlignedText, OnFallback], list[Word]]


class SplicedG2P:
    """`g2p` for what lies between the pieces that are given."""

    def __init__(self, g2p: Reads, language: str) -> None:
        self._g2p = g2p
        self._language = language

    def __call__(
        self, sentence: AlignedText, on_fallback: OnFallback, given: Sequence[FixedReading] = ()
    ) -> list[Word]:
        """Words in order; each of `given`, pieces of `sentence` in order, is one of them."""
        words: list[Word] = []
        for i, j, piece in _parts(len(sentence), given):
            if piece is not None:
                start, end = sentence.span(i, j)
                text = sentence.text[i:j]
                words.append(Word(text, start, end, piece.phonemes, self._language, "lexicon", False))
            elif sentence.text[i:j].strip():
                words += self._g2p(sentence.cut(i, j), on_fallback)
            if words and j < len(sentence):
                space = sentence.text[j - 1].isspace() or sentence.text[j].isspace()
                words[-1] = replace(words[-1], space_after=space)
        return words


def _parts(length: int, given: Sequence[FixedReading]) -> Iterator[tuple[int, int, FixedReading | None]]:
    at = 0
    for piece in given:
        if at < piece.start:
            yield at, piece.start, None
        yield piece.start, piece.end, piece
        at = piece.end
    if at < length:
        yield at, length, None
