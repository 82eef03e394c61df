"""Reads the sentences of a document (SSML or Markdown) with its languages, breaks and styles."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice, pairwise, repeat, tee
from operator import attrgetter
from typing import TypeVar

from kokoro_lab.datatypes import PLAIN, Segment, Word
from kokoro_lab.g2p.read_sentences import spoken_sentence
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.segment import SpokenSentence, ended, ends_with_pause
from kokoro_lab.text.sentences import Sentence, marked_sentence, sentences
from kokoro_lab.text.ssml import Break, SsmlDocument

T = TypeVar("T")

SentenceReader = Callable[[AlignedText], list[Word]]
"""Takes a sentence and returns its words."""


def spoken(document: SsmlDocument, language: str, read: SentenceReader) -> Iterator[SpokenSentence]:
    """The document's sentences after G2P, lazily. A break ends a sentence, and no segment goes across it.

    Parameters
    ----------
    language : str
        The language of text for which the document names none.
    read : callable
        Returns the words of a sentence; no word may lie on both sides of a break.
    """
    breaks = deque(document.breaks)
    found = sentences_of(document, language)
    for sentence, following in _with_next(found) if breaks else zip(found, repeat(None)):
        words = read(sentence.text)
        if words and (sentence.ends_line or sentence.ends_paragraph):
            words[-1] = ended(words[-1])
        part: list[Word] = []
        for word in words:
            asked_s = _due(breaks, word.start)
            # `none` removes a pause; where there is no pause, ending the segment would only spoil the phrase
            if part and (asked_s or (asked_s == 0 and ends_with_pause(part[-1]))):
                yield spoken_sentence(part, True, 0, sentence.columns)
                part = []
            part.append(word)
        at_break = bool(breaks) and following is not None and breaks[0].offset <= following.text.starts[0]
        if part:
            yield spoken_sentence(part, sentence.ends_paragraph or at_break, 0, sentence.columns)


def styled(segments: Iterable[Segment], document: SsmlDocument) -> Iterator[Segment]:
    """The segments with their words' styles, and with the silence that the document asks for around each."""
    breaks = deque(document.breaks)
    asked_s = None
    before = -1
    for segment, following in _with_next(iter(segments)) if breaks else zip(segments, repeat(None)):
        asked_s = _due(breaks, segment.words[0].start, -1) if before < 0 else asked_s
        turn = document.turns.at(segment.start, segment.end)
        styles = tuple(document.styles.at(word.start, word.end) for word in segment.words)
        before = segment.words[-1].start
        behind_s = _due(breaks, following.words[0].start if following else sys.maxsize, before)
        yield replace(
            segment,
            styles=styles if any(style != PLAIN for style in styles) else (),
            **({} if turn is None else turn._asdict()),
            break_before_s=asked_s,
            break_after_s=behind_s,
        )
        asked_s = behind_s


def straddled(document: SsmlDocument, spans: Iterable[tuple[int, int]]) -> bool:
    """Whether a break of the document lies inside of any of `spans`, which are ranges of the original
    text."""
    return any(_breaks(document, start + 1, end) for start, end in spans)


def parts(document: SsmlDocument, sentence: AlignedText) -> Iterator[AlignedText]:
    """The parts of a sentence between breaks."""
    starts = sentence.starts
    inside = _breaks(document, starts[0], starts[-1] + 1)
    cuts = sorted({bisect_left(starts, each.offset) for each in inside} | {0, len(sentence)})
    for start, stop in pairwise(cuts):
        part = sentence.cut(start, stop).strip()
        if len(part):
            yield part


def sentences_of(document: SsmlDocument, language: str) -> Iterator[Sentence]:
    """The document's sentences, in which the borders that it marks are kept."""
    for passage in document.passages:
        if passage.marked:
            found = list(marked_sentence(passage.text))
        else:
            tongue = document.languages.at(*passage.text.span(0, len(passage.text)))
            base = passage.turn.language if passage.turn else language
            found = list(sentences(passage.text, tongue or base))
        yield from (sentence._replace(ends_paragraph=False) for sentence in found[:-1])
        for sentence in found[-1:]:
            yield sentence._replace(ends_line=True, ends_paragraph=passage.ends != "sentence")


def _with_next(found: Iterator[T]) -> Iterator[tuple[T, T | None]]:
    now, later = tee(found)
    return zip(now, chain(islice(later, 1, None), (None,)), strict=False)


def _breaks(document: SsmlDocument, start: int, stop: int) -> tuple[Break, ...]:
    """The breaks from one offset up to another."""
    first, last = (bisect_left(document.breaks, each, key=attrgetter("offset")) for each in (start, stop))
    return document.breaks[first:last]


def _due(breaks: deque[Break], start: int, after: int = -1) -> float | None:
    """Remove from `breaks` those up to the offset `start`, and return the sum of their seconds; None if there
    are none.

    A break of strength `none` can only remove an existing pause, so it counts only after the offset `after`.
    """
    due: list[float] = []
    while breaks and breaks[0].offset <= start:
        each = breaks.popleft()
        if each.duration_s or each.offset > after:
            due.append(each.duration_s)
    return sum(due) if due else None
