"""The sentences of a plain text with their words, each read when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from kokoro_lab.datatypes import Fallback, Word
from kokoro_lab.g2p.protocol import OnFallback
from kokoro_lab.g2p.vocab import encode
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.segment import OPENING_COLUMNS, SpokenSentence, SpokenSentences, ended
from kokoro_lab.text.sentences import Sentence, Sentences

NotedReader = Callable[[AlignedText, bool, OnFallback], list[Word]]
"""Takes a sentence, whether it begins a line, and a function that is called for each fallback; returns its
words."""


class ReadSentences(SpokenSentences):
    """The sentences of a text with their words, without the first `skip` sentences.

    Parameters
    ----------
    read : callable
        Returns the words of a sentence.
    on_fallback : callable
        Called with the fallbacks of sentences that are spoken.
    found : Sentences
    skip : int
    """

    def __init__(self, read: NotedReader, on_fallback: OnFallback, found: Sentences, skip: int) -> None:
        self._read = read
        self._on_fallback = on_fallback
        self._found = found
        self._number = sum(1 for _ in islice(found, skip))
        self._entered = 0
        """Offset, in the original text, of the first word of the next sentence that has not been spoken."""
        self._noted: list[Fallback] = []
        """Fallbacks from the opening of the next sentence."""

    def __next__(self) -> SpokenSentence:
        while True:
            sentence = next(self._found)
            words = self._words(sentence)
            if words and (sentence.ends_line or sentence.ends_paragraph):
                words[-1] = ended(words[-1])
            self._number += 1
            if words:
                return spoken_sentence(words, sentence.ends_paragraph, self._number - 1, sentence.columns)

    def longer_than(self, columns: int) -> bool:
        return self._found.longer_than(columns)

    def opening(self) -> SpokenSentence | None:
        if not self._found.longer_than(OPENING_COLUMNS):
            return None
        begun = self._found.beginning(OPENING_COLUMNS)
        words = self._read(begun, self._found.begins_line, self._noted.append)
        return spoken_sentence(words, False, self._number, OPENING_COLUMNS) if words else None

    def enter(self, offset: int) -> None:
        self._entered = offset

    def _words(self, whole: Sentence) -> list[Word]:
        sentence = whole.text
        offset, self._entered = self._entered, 0
        if not offset:
            return self._read(sentence, whole.begins_line, self._on_fallback)
        noted: list[Fallback] = []
        words = self._read(sentence, whole.begins_line, noted.append)
        if any(word.start < offset < word.end for word in words):
            noted.clear()  # with more words in front, a sentence may read differently
            rest = sentence.cut(sentence.range_of(offset, offset)[0], len(sentence)).strip()
            words = self._read(rest, False, noted.append)
        told = [each for each in self._noted if each.start is None or each.start < offset]
        for fallback in told + [each for each in noted if each.start is not None and each.start >= offset]:
            self._on_fallback(fallback)
        return [word for word in words if word.start >= offset]


def spoken_sentence(words: Sequence[Word], ends_paragraph: bool, number: int, columns: int) -> SpokenSentence:
    """A sentence, or a part of one, with the token ids of its words."""
    ids = tuple(encode(word.phonemes) for word in words)
    return SpokenSentence(tuple(words), ids, ends_paragraph, number, columns)
