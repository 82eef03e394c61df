"""Whole sentences by eSpeak NG: the G2P of Spanish, French, Italian, Portuguese and Hindi.

misaki's `EspeakG2P` gives one string for a sentence, and only the first if phonemizer makes several of
it. Here a sentence is given clause by clause, so that words still run together where they do (`les
amis`), and each word gets its own phonemes back.
"""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

import regex

from kokoro_lab.datatypes import Fallback, Word
from kokoro_lab.g2p.english import OnFallback
from kokoro_lab.g2p.espeak import PIECE_LETTERS, EspeakEnglish, leave_no_library, pieces
from kokoro_lab.g2p.shared_lock import SharedLock
from kokoro_lab.g2p.vocab import known, symbols
from kokoro_lab.text.aligned import AlignedText

log = logging.getLogger(__name__)

ESPEAK_VOICES = {
    "en-us": "en-us",
    "en-gb": "en-gb",
    "es": "es",
    "fr": "fr-fr",
    "it": "it",
    "pt-br": "pt-br",
    "hi": "hi",
    "ja": "ja",
}
MARKS = {c: c for c in ';:,.!?—…"()“”'} | dict(
    zip("।॥–[]{}、，。！？：；（）「」『』", "..—()(),,.!?:;()“”“”", strict=True)
)
"""What a mark is to the model. Others are silent."""

_TOKEN = regex.compile(
    r"""
      (?P<word> [\p{L}\p{N}][\p{L}\p{M}\p{N}\u200c\u200d]*
                (?: ['-] [\p{L}\p{N}][\p{L}\p{M}\p{N}\u200c\u200d]* )* '? )
    | (?P<symbol> [\p{S}&@\#%*/\\§] )
    | (?P<mark> \S )
    """,
    regex.VERBOSE,
)
_SPACE = regex.compile(r"\s(?!\s*[;:,.!?…)”।])")
"""French has a space before its marks that nobody hears."""


class _Token(NamedTuple):
    start: int
    end: int
    text: str
    kind: str
    space_after: bool


class EspeakG2P:
    """Words of one sentence, each with its phonemes in Kokoro's symbols. Thread-safe.

    Parameters
    ----------
    language : str
        A canonical tag, one of `ESPEAK_VOICES`.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self._lock = SharedLock()  # an instance holds the state of the phrase in hand
        self._english = self._convert = None
        if language.startswith("en"):
            self._english = EspeakEnglish(british=language == "en-gb")
        else:
            from misaki.espeak import EspeakG2P as MisakiEspeak

            leave_no_library()
            misaki = MisakiEspeak(ESPEAK_VOICES[language])
            self._backend, self._convert = misaki.backend, misaki.e2m

    def __call__(self, sentence: AlignedText, on_fallback: OnFallback) -> list[Word]:
        """Words and marks in order, with offsets into the original.

        Every word of `sentence` is spoken, or reported through `on_fallback` with its place.
        """
        tokens = _tokens(sentence.text)
        spoken = self._phonemes(tokens)
        words: list[Word] = []
        for token, raw in zip(tokens, spoken, strict=True):
            start, end = sentence.span(token.start, token.end)
            phonemes, source = self._settled(token, raw, start, end, on_fallback)
            if phonemes:
                text = sentence.text[token.start : token.end]
                words.append(Word(text, start, end, phonemes, self.language, source, token.space_after))
            elif words and token.space_after and not words[-1].space_after:
                last = words[-1]
                words[-1] = Word(
                    last.text, last.start, last.end, last.phonemes, last.language, last.source, True
                )
        return words

    def _settled(
        self, token: _Token, phonemes: str, start: int, end: int, on_fallback: OnFallback
    ) -> tuple[str, str]:
        """What to say for one token, and which level says it."""
        if token.kind == "mark":
            return phonemes, "espeak"
        source = "espeak"
        kept, lost = known(phonemes)
        if not any(c.isalpha() for c in kept):
            kept, source = self._spelt(token.text), "characters"
            reason = f"read by {source}" if kept else "not spoken: no sound is known for it"
            on_fallback(Fallback("g2p", reason, start, end))
            return kept, source
        if lost:
            on_fallback(Fallback("g2p", f"symbols outside the vocabulary: {lost!r}", start, end))
        if _foreign(token.text, self.language):
            on_fallback(Fallback("g2p", "another script than this language's: named by espeak", start, end))
        return kept, source

    def _phonemes(self, tokens: Sequence[_Token]) -> list[str]:
        """Of each token; clause by clause."""
        result = [MARKS.get(token.text, "") if token.kind == "mark" else "" for token in tokens]
        clause: list[int] = []
        for k, token in enumerate(tokens):
            if token.kind == "word":
                clause.append(k)
                continue
            self._fill(result, tokens, clause)
            clause = []
            if token.kind == "symbol":
                self._fill(result, tokens, [k])
        self._fill(result, tokens, clause)
        return result

    def _fill(self, result: list[str], tokens: Sequence[_Token], clause: Sequence[int]) -> None:
        if not clause:
            return
        long = any(len(tokens[k].text) > PIECE_LETTERS for k in clause)
        spoken = [] if long else self._say(" ".join(tokens[k].text for k in clause)).split()
        if len(spoken) != len(clause):  # or eSpeak made one word of two, or two of one
            spoken = ["".join(map(self._word, pieces(tokens[k].text))) for k in clause]
        for k, phonemes in zip(clause, spoken, strict=True):
            result[k] = phonemes

    def _spelt(self, text: str) -> str:
        """Character by character, each by the name that eSpeak has for it."""
        names = (known(self._word(c))[0] for c in text if unicodedata.category(c)[0] in "LNS")
        return " ".join(filter(None, names))

    def _word(self, text: str) -> str:
        return "".join(self._say(text).split())

    def _say(self, text: str) -> str:
        if self._english is not None:
            return " ".join(self._english(word) or "" for word in text.split())
        with self._lock:
            said = self._backend.phonemize([text])
        phonemes = " ".join(part.strip() for part in said)
        for old, new in self._convert or ():
            phonemes = phonemes.replace(old, new)
        return _composed(phonemes.replace("^", "").replace("-", ""))


def _composed(phonemes: str) -> str:
    """In the symbols that the model has, where eSpeak writes one sound otherwise.

    Of a vowel whose shade the model does not know, the vowel.
    """
    table = symbols()
    return "".join(
        c if c in table or c.isspace() else known(unicodedata.normalize("NFD", c))[0] or c
        for c in phonemes
        if c in table or not unicodedata.combining(c)
    )


def _tokens(text: str) -> list[_Token]:
    found = []
    for match in _TOKEN.finditer(text):
        space = bool(_SPACE.match(text, match.end()))
        found.append(_Token(match.start(), match.end(), match.group(), match.lastgroup or "mark", space))
    return found


def _foreign(text: str, language: str) -> bool:
    """Whether letters of a script that the language is not written in are in it."""
    script = {"hi": "DEVANAGARI", "ja": "CJK HIRAGANA KATAKANA"}.get(language, "LATIN").split()
    return any(
        unicodedata.category(c)[0] == "L" and unicodedata.name(c, "").split(" ")[0] not in script
        for c in text
    )


def letter_names(language: str) -> dict[str, str]:
    """How the letters and digits of a language's script are called, in phonemes."""
    speak: Any = EspeakG2P(language)
    devanagari = "".join(map(chr, range(0x905, 0x93A)))
    characters = "abcdefghijklmnopqrstuvwxyz0123456789" + (devanagari if language == "hi" else "")
    return {c: speak._spelt(c) for c in characters}
