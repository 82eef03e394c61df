"""Reads English with misaki's dictionaries and rules. Any thread may call it, and it never raises.

Differences from misaki 0.9.4: its rules work without spaCy (`dictionary`, `english_numbers`,
`english_words`). Every token has its place in the original text. Words that the dictionaries do not have are
read by eSpeak or, if eSpeak fails, by the names of their characters.
"""

from __future__ import annotations

import logging
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import regex

from kokoro_lab.config import Source, settings
from kokoro_lab.datatypes import Fallback, Word
from kokoro_lab.g2p.dictionary import Dictionary
from kokoro_lab.g2p.english_numbers import CURRENCIES
from kokoro_lab.g2p.english_words import UNKNOWN, EnglishToken, read
from kokoro_lab.g2p.espeak import EspeakEnglish, plainer
from kokoro_lab.g2p.heteronyms import Heteronyms
from kokoro_lab.g2p.protocol import FixedReading, OnFallback, Readings, parts
from kokoro_lab.g2p.tagger import Tagger
from kokoro_lab.g2p.vocab import known
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.spans import sounds
from kokoro_lab.weights.fetching import english_tagger

log = logging.getLogger(__name__)

_A_LETTER = regex.compile(r"[A-HJ-Z]\.?")
_NEVER_BEHIND_AN_ARTICLE = frozenset(("to ", "and ", "or ", "is ", "was ", "-"))
_AN_ORDINARY_WORD = regex.compile(r"\p{L}?\p{Ll}+|[IV]+")
_ENDINGS = ("'s", "s", "es", "ed", "d", "ing")


@cache
def _tagger(home: Path | None, source: Source | None) -> Tagger:
    """The tagger that both accents share (loaded in 0.1 s, 20 MB). Its files are fetched if they are
    missing."""
    return Tagger(english_tagger(home, source=source or settings().source))


class _Call(threading.local):
    """State of one call: the words of its sentence that eSpeak has read."""

    def __init__(self) -> None:
        self.by_espeak: set[str] = set()


class EnglishG2P:
    """Reads an English sentence, American or British, as words with phonemes. Thread-safe.

    Parameters
    ----------
    language : {"en-us", "en-gb"}
    by_context : bool
        Whether to read heteronyms by their context; False reads them as misaki does, for comparison.
    home : Path, optional
        The cache folder with the tagger; `Settings.home` unless given.
    source : str or Path, optional
        Source from which the tagger is fetched if it is missing; `Settings.source` unless given.
    """

    def __init__(
        self,
        language: str,
        *,
        by_context: bool = True,
        home: Path | None = None,
        source: Source | None = None,
    ) -> None:
        self.language = language
        self._espeak = EspeakEnglish(british=language == "en-gb")
        self._call = _Call()
        self._tagger = _tagger(home, source)
        self._dictionary = Dictionary(british=language == "en-gb")
        known = self._dictionary
        self._heteronyms = (
            Heteronyms(known.golds, known.s_form, british=known.british) if by_context else None
        )

    def knows(self, word: str) -> bool:
        """Whether a lower-case word, or the word of which it is a form, is in misaki's dictionaries."""
        known = self._dictionary
        return any(
            stem in known.golds or stem in known.silvers
            for stem in (word, *(word.removesuffix(ending) for ending in _ENDINGS if word.endswith(ending)))
        )

    def _by_espeak(self, text: str) -> str | None:
        phonemes = self._espeak(text)
        if phonemes is not None:
            self._call.by_espeak.add(text)
        return phonemes

    def __call__(self, sentence: AlignedText, on_fallback: OnFallback, given: Readings = ()) -> list[Word]:
        """Words in order, with offsets into the original text.

        Each of `given`, spans of `sentence` in order, becomes one word with its phonemes and the source
        `lexicon`.

        Every word and mark of `sentence` is spoken, or reported through `on_fallback` with its place. Nothing
        raises an error: `on_fallback` is called for each word that misaki could not read.
        """
        self._call.by_espeak = set()
        try:
            return self._words(sentence, on_fallback, given)
        except Exception as error:
            start, end = sentence.span(0, len(sentence))
            log.warning("misaki raised %s on characters %d:%d", type(error).__name__, start, end)
        return self._word_by_word(sentence, on_fallback, given)

    def _tokens(self, text: str, given: Readings) -> list[EnglishToken]:
        tagged = [EnglishToken(*token) for token in self._tagger(text)]
        tokens = _insert(tagged, text, given)
        if self._heteronyms:
            _name_letters(tokens)
            self._heteronyms.decide(tokens)
        return read(tokens, self._dictionary, self._by_espeak)

    def _words(self, sentence: AlignedText, on_fallback: OnFallback, given: Readings) -> list[Word]:
        words: list[Word] = []
        at = 0
        plain = plainer(sentence.text, marks=False)
        tokens = self._tokens(plain, given)
        starts = {fixed.start for fixed in given}
        for token, following in zip(tokens, [*tokens[1:], None], strict=True):
            i, j = locate(plain, token.text, at)
            at = j
            start, end = sentence.span(i, j)
            if token.text in CURRENCIES and following is not None and following.text[:1].isdigit():
                continue  # misaki says it after the number
            if i in starts:
                phonemes, source = token.phonemes, "lexicon"
            else:
                phonemes, source = self._phonemes(token.text, token.phonemes, start, end, on_fallback)
            if phonemes:
                space = bool(token.whitespace)
                if phonemes == "." and words and len(words[-1].text) == 1:  # `plan B .`
                    words[-1] = replace(words[-1], space_after=False)
                words.append(Word(sentence.text[i:j], start, end, phonemes, self.language, source, space))
            elif words and token.whitespace and not words[-1].space_after:
                words[-1] = replace(words[-1], space_after=True)
        return words

    def _word_by_word(self, sentence: AlignedText, on_fallback: OnFallback, given: Readings) -> list[Word]:
        """After a failure, read each white-space word by itself, so that one bad word spoils no other."""
        words: list[Word] = []
        for i, j, fixed in _ranges(sentence.text, given):
            text = sentence.text[i:j]
            start, end = sentence.span(i, j)
            try:
                if fixed:
                    words.append(Word(text, start, end, fixed.phonemes, self.language, "lexicon", False))
                else:
                    words += self._words(sentence.cut(i, j), on_fallback, ())
            except Exception:
                on_fallback(Fallback("g2p", "misaki raised; read by eSpeak", start, end))
                phonemes, source = self._phonemes(text, UNKNOWN, start, end, on_fallback)
                if phonemes:
                    words.append(Word(text, start, end, phonemes, self.language, source))
            if words and sentence.text[j : j + 1].strip() == "":
                words[-1] = replace(words[-1], space_after=True)
        return words

    def _phonemes(
        self, text: str, phonemes: str | None, start: int, end: int, on_fallback: OnFallback
    ) -> tuple[str, str]:
        """The phonemes of one token, and the name of the level of G2P from which they come."""
        source = "espeak" if text in self._call.by_espeak else "misaki"
        unspoken = not phonemes or not any(c.isalpha() for c in phonemes)
        if phonemes is None or UNKNOWN in phonemes or (unspoken and sounds(text)):
            phonemes, source = self._espeak(text), "espeak"
            if not phonemes or UNKNOWN in phonemes or not known(phonemes)[0].strip():
                phonemes, source = self._spelt(text), "characters"
            if phonemes:
                on_fallback(Fallback("g2p", f"read by {source}", start, end))
        elif source == "espeak" and _foreign(text):
            on_fallback(Fallback("g2p", "another script than this language's: named by espeak", start, end))
        if not phonemes:
            if text.strip() and not _silent(text):
                on_fallback(Fallback("g2p", "not spoken: no sound is known for it", start, end))
            return "", source
        kept, lost = known(phonemes)
        if lost:
            on_fallback(Fallback("g2p", f"symbols outside the vocabulary: {lost!r}", start, end))
        return kept.strip(), source

    def _spelt(self, text: str) -> str:
        """A token spelt character by character: letters and digits by their names, all else by its Unicode
        name."""
        return " ".join(filter(None, (self._character(c) for c in text)))

    def _character(self, character: str) -> str:
        base = unicodedata.normalize("NFKD", character)[:1]
        if base.isascii() and base.isalpha():
            return str(self._dictionary.spelt(base) or "")
        if base.isdecimal():
            name = unicodedata.name(str(unicodedata.decimal(base))).removeprefix("DIGIT ")
        elif sounds(character):
            name = unicodedata.name(character, "")
        else:
            return ""
        spoken = (self._dictionary.lookup(word.lower()) for word in name.split())
        return " ".join(filter(None, spoken))


def _name_letters(tokens: Sequence[EnglishToken]) -> None:
    """Mark an `A` as the letter, not the article, in three places: beside another single capital (`A T and
    T`, `H T M L A`); before a hyphen, `to`, `and`, `or`, `is` or `was`; and after a word (`grade A beef`),
    unless a capitalised word follows, as in a title."""
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        if token.text != "A":
            continue
        in_a_row = any(t and _A_LETTER.fullmatch(t.text) for t in (before, after))
        joined = after is not None and after.text + after.whitespace in _NEVER_BEHIND_AN_ARTICLE
        behind = before is not None and before.whitespace and _AN_ORDINARY_WORD.fullmatch(before.text)
        title = after is not None and after.text[:1].isupper()
        if in_a_row or joined or (behind and not title):
            token.tag = "NNP"


def _insert(tokens: Iterable[EnglishToken], text: str, given: Iterable[FixedReading]) -> list[EnglishToken]:
    """misaki's tokens of `text` with one token for each of `given`, which are in order.

    The tagger has seen the sentence as it is written. If only a part of a token is given, the rest of the
    token keeps its tag.
    """
    result: list[EnglishToken] = []
    waiting = iter(given)
    fixed = next(waiting, None)
    at = 0
    for token in tokens:
        start, stop = at, at + len(token.text)
        at = stop + len(token.whitespace)
        while fixed and fixed.start < stop:
            if start < fixed.start:
                result.append(_part(token, text, start, fixed.start))
            if start <= fixed.start:
                spoken = _part(token, text, fixed.start, fixed.end)
                spoken.phonemes = fixed.phonemes
                result.append(spoken)
            start = fixed.end
            if fixed.end > stop:
                break
            fixed = next(waiting, None)
        if start < stop:
            result.append(_part(token, text, start, stop) if start > stop - len(token.text) else token)
    return result


def _ranges(text: str, given: Readings) -> Iterator[tuple[int, int, FixedReading | None]]:
    """Ranges of `text` without white space: each of `given`, and each word between them."""
    for start, stop, fixed in parts(len(text), given):
        if fixed:
            yield start, stop, fixed
        else:
            words = regex.finditer(r"\S+", text, pos=start, endpos=stop)
            yield from ((*word.span(), None) for word in words)


def _part(token: EnglishToken, text: str, start: int, stop: int) -> EnglishToken:
    space = " " if text[stop : stop + 1].isspace() else ""
    return replace(token, text=text[start:stop], whitespace=space)


def locate(text: str, token: str, at: int) -> tuple[int, int]:
    """Where `token` stands in `text` at or after `at`, as a half-open range.

    misaki may have left single characters out of a token (an apostrophe between digits). So the token is
    matched character by character, each within eight places of the one before.
    """
    found = text.find(token, at)
    if found >= 0 and not text[at:found].strip():
        return found, found + len(token)
    start: int | None = None
    for character in token:
        place = text.find(character, at, at + 8)
        if place < 0:
            continue
        start = place if start is None else start
        at = place + 1
    return (at, at) if start is None else (start, at)


def _foreign(text: str) -> bool:
    """Whether a text has letters of a script other than Latin, which eSpeak names one by one."""
    return any(unicodedata.category(c)[0] == "L" and "LATIN" not in unicodedata.name(c, "") for c in text)


def _silent(text: str) -> bool:
    """Whether a token is punctuation, so that a missing sound is no lost word."""
    return all(unicodedata.category(c)[0] in "PZM" or unicodedata.category(c) in ("Sk", "Cf") for c in text)
