"""Pieces of a sentence whose phonemes are known beforehand, put among misaki's tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import regex


@dataclass(frozen=True, slots=True)
class FixedReading:
    """`text[start:end]` of a sentence is said so. Neither end is white space."""

    start: int
    end: int
    phonemes: str


def insert(tokens: Iterable[Any], text: str, given: Iterable[FixedReading]) -> list[Any]:
    """misaki's tokens of `text` with one token for each of `given`, which are in order.

    The tagger has seen the sentence as it is written. A token of which only a part is given keeps its tag
    on what is left of it.
    """
    result: list[Any] = []
    waiting = iter(given)
    piece = next(waiting, None)
    at = 0
    for token in tokens:
        start, stop = at, at + len(token.text)
        at = stop + len(token.whitespace)
        while piece and piece.start < stop:
            if start < piece.start:
                result.append(_part(token, text, start, piece.start))
            if start <= piece.start:
                spoken = _part(token, text, piece.start, piece.end)
                spoken.phonemes = piece.phonemes
                spoken._.rating = 5  # misaki's own best mark
                result.append(spoken)
            start = piece.end
            if piece.end > stop:
                break
            piece = next(waiting, None)
        if start < stop:
            result.append(_part(token, text, start, stop) if start > stop - len(token.text) else token)
    return result


def pieces(text: str, given: Iterable[FixedReading]) -> Iterator[tuple[int, int, FixedReading | None]]:
    """Ranges of `text` without its white space: each of `given`, and what lies between, word by word."""
    at = 0
    for piece in given:
        yield from _words(text, at, piece.start)
        yield piece.start, piece.end, piece
        at = piece.end
    yield from _words(text, at, len(text))


def _words(text: str, start: int, stop: int) -> Iterator[tuple[int, int, None]]:
    for match in regex.finditer(r"\S+", text, pos=start, endpos=stop):
        yield *match.span(), None


def _part(token: Any, text: str, start: int, stop: int) -> Any:
    space = " " if text[stop : stop + 1].isspace() else ""
    return replace(token, text=text[start:stop], whitespace=space, _=type(token._)(token._))
