"""The last level: letter by letter, from a table. Nothing here can wait or fail."""

from __future__ import annotations

import unicodedata

from kokoro_lab.datatypes import Fallback, Word
from kokoro_lab.g2p.english import OnFallback
from kokoro_lab.g2p.espeak_sentence import MARKS, letter_names
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.spans import is_read


class LetterG2P:
    """Spells. The table is made when it is loaded.

    Parameters
    ----------
    language : str
        A canonical tag.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self._names = letter_names(language)

    def __call__(self, sentence: AlignedText, on_fallback: OnFallback) -> list[Word]:
        words: list[Word] = []
        at = 0
        for text in sentence.text.split():
            i = sentence.text.index(text, at)
            at = i + len(text)
            start, end = sentence.span(i, at)
            phonemes = " ".join(filter(None, map(self._name, text))) + MARKS.get(text[-1], "")
            if phonemes:
                words.append(Word(text, start, end, phonemes, self.language, "characters"))
            if any(is_read(c) and not self._name(c) for c in text):
                on_fallback(Fallback("g2p", "not spoken: no sound is known for it", start, end))
        return words

    def _name(self, character: str) -> str:
        base = unicodedata.normalize("NFKD", character)[:1].lower()
        if base.isdecimal():
            base = str(unicodedata.decimal(base))
        return self._names.get(character) or self._names.get(base, "")
