"""Reads with eSpeak NG: English words that misaki does not know, sentences of other languages, and letters.

eSpeak's phonemes are put into the model's symbols as misaki's `EspeakFallback` and `EspeakG2P` do, since the
model was trained on these. But misaki returns one string for a sentence, and drops all but the first if
phonemizer divides the sentence into several strings. Here eSpeak reads a sentence clause by clause, so that
words still run together as in speech (`les amis`), and each word gets its own phonemes.

An eSpeak instance holds the state of the phrase that it reads: two threads on one instance would get each
other's phonemes. So each instance has a lock. One instance for each thread would work too, but then each new
thread of a server would wait 90 ms for its first unknown word; reading a word takes 15 µs.
"""

from __future__ import annotations

import ctypes
import logging
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import regex

from kokoro_lab.datatypes import Fallback, Word
from kokoro_lab.g2p.protocol import OnFallback
from kokoro_lab.g2p.shared_lock import SharedLock
from kokoro_lab.g2p.vocab import known, symbols
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.spans import is_read
from kokoro_lab.text.tables import names

log = logging.getLogger(__name__)
# phonemizer warns where its count of words differs and where eSpeak switches languages: both are usual here,
# and the fallbacks report what matters. Its own `get_logger` resets levels, but no filters
logging.getLogger("phonemizer").addFilter(lambda record: record.levelno >= logging.ERROR)

_ENGLISH = names(__package__)["eSpeak English"]
"""eSpeak's symbol for English → the model's symbol. They are replaced in this order. Then a syllable without
a vowel gets one, and the replacements of the accent follow (`_BRITISH`, `_AMERICAN`)."""
_SYLLABIC = regex.compile(r"(\S)\u0329")
_BRITISH = names(__package__)["eSpeak British"]
_AMERICAN = names(__package__)["eSpeak American"]
_EVERY_ACCENT = names(__package__)["eSpeak English of every accent"]
_OTHERS = names(__package__)["eSpeak other languages"]
"""eSpeak's symbol in every other language → the model's symbol."""
_SWITCH = regex.compile(r"\([^()]*\)")
"""A language code such as `(ko)`, with which eSpeak marks a change of language; it is not spoken."""
PART_LETTERS, WORD_LETTERS = 20, 30
"""eSpeak says at most 200 sounds of a word and leaves out the rest. So a word longer than `WORD_LETTERS` is
read in parts of `PART_LETTERS`, and so is a word without a vowel, which eSpeak spells, if it is longer than
that."""
_VOWELS = frozenset("aeiouy")
_SCRIPTS = regex.compile(r"[\p{Latin}\p{Common}\p{Inherited}]+|\P{Latin}+")
_NAMED = regex.compile("[\u1e00-\u1eff]")
"""Latin letters that eSpeak says by their numbers: those of Vietnamese, and of names from India and Arabia in
Latin letters."""
_SPACES = (int.from_bytes(b" " * 8),) * 64


def divided(word: str) -> list[str]:
    """`word` in parts that eSpeak reads completely and without crashing.

    Latin letters and those of other scripts are never in one part: where eSpeak changes its language within a
    word (`Ꮩj` in Hindi), it reads the memory before its list of phonemes, and the process may crash.
    """
    return [part for letters in _SCRIPTS.findall(word) for part in _short(letters)]


def _short(word: str) -> list[str]:
    spelt = word.isascii() and not _VOWELS & set(word.lower())
    if len(word) <= (PART_LETTERS if spelt else WORD_LETTERS):
        return [word]
    return [word[at : at + PART_LETTERS] for at in range(0, len(word), PART_LETTERS)]


def plainer(text: str, *, marks: bool = True) -> str:
    """`text`, as long as before, without letters that eSpeak says by their numbers.

    Parameters
    ----------
    text : str
    marks : bool
        Whether a letter keeps the mark that eSpeak can read: `Nguyễn` as `Nguyên`. Else it is `Nguyen`, as
        English dictionaries have it.
    """

    def plain(match: Any) -> str:
        parts = unicodedata.normalize("NFD", match[0])
        marked = unicodedata.normalize("NFC", parts[:2])
        return marked if marks and len(marked) == 1 and not _NAMED.match(marked) else parts[0]

    return str(_NAMED.sub(plain, text))


@cache
def amend_phonemizer() -> None:
    """Have phonemizer leave no file behind, and have eSpeak never read beyond its stack.

    phonemizer copies eSpeak's library for each instance and removes the copy when the process ends; a process
    that is killed leaves 0.7 MB behind. So the copy is deleted as soon as it is loaded. Call this before the
    first instance is made.

    After some words (the Spanish `tres`), eSpeak 1.52 searches for the next space. After the last word of a
    text there is no space, so it reads on through the stack. If there is no space either, as in a new thread,
    the process crashes. Later versions stop at the end of the text. So spaces are passed as further
    arguments, which lie on the stack after eSpeak's own data.
    """
    from phonemizer.backend.espeak import wrapper

    class AmendedAPI(wrapper.EspeakAPI):  # type: ignore[misc]  # the library has no types
        def __init__(self, *where: Any) -> None:
            super().__init__(*where)
            for copy in Path(self._tempdir).iterdir():
                copy.unlink()

        def text_to_phonemes(self, text: Any, text_mode: int, phonemes_mode: int) -> bytes | None:
            say = self._library.espeak_TextToPhonemes
            say.restype = ctypes.c_char_p
            say.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int] + [ctypes.c_uint64] * len(_SPACES)
            said: bytes | None = say(text, text_mode, phonemes_mode, *_SPACES)
            return said

    wrapper.EspeakAPI = AmendedAPI


def _backend(language: str, **options: str) -> Any:
    """phonemizer's eSpeak, with the library and the data that come as a package."""
    import espeakng_loader
    from phonemizer.backend import EspeakBackend
    from phonemizer.backend.espeak.wrapper import EspeakWrapper

    amend_phonemizer()
    EspeakWrapper.set_library(espeakng_loader.get_library_path())
    EspeakWrapper.set_data_path(espeakng_loader.get_data_path())
    return EspeakBackend(language, preserve_punctuation=True, with_stress=True, tie="^", **options)


def _replaced(phonemes: str, pairs: Mapping[str, str]) -> str:
    for old, new in pairs.items():
        phonemes = phonemes.replace(old, new)
    return phonemes


class EspeakEnglish:
    """Phonemes of single English words in misaki's symbols; safe to call from any thread."""

    def __init__(self, *, british: bool) -> None:
        self._british = british
        self._backend: Any = None
        self._lock = SharedLock()

    def __call__(self, word: str) -> str | None:
        """Phonemes of `word`, or None if eSpeak has nothing to say or fails."""
        try:
            with self._lock:
                phonemes = "".join(map(self._say, divided(word)))
        except Exception as error:  # a C library behind ctypes: the next level reads the word
            log.warning("eSpeak failed on a word of %d characters: %s", len(word), type(error).__name__)
            return None
        return _SWITCH.sub("", phonemes).strip() or None

    def _say(self, text: str) -> str:
        if self._backend is None:
            self._backend = _backend("en-gb" if self._british else "en-us")
        said = self._backend.phonemize([plainer(text)])
        phonemes = _replaced(said[0].strip() if said else "", _ENGLISH)
        phonemes = _SYLLABIC.sub(r"ᵊ\1", phonemes).replace("\u0329", "")
        return _replaced(_replaced(phonemes, _BRITISH if self._british else _AMERICAN), _EVERY_ACCENT)


MARKS = names(__package__)["mark"]
"""Punctuation mark → the model's symbol for it. Other marks are silent."""

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
"""A space between words. The space that French puts before its marks does not count."""


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
        A canonical tag.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self._lock = SharedLock()  # an instance holds the state of the phrase that it reads
        self._english = None
        if language.startswith("en"):
            self._english = EspeakEnglish(british=language == "en-gb")
        else:
            espeaks = {"fr": "fr-fr", "zh": "cmn"}.get(language, language)
            self._backend = _backend(espeaks, language_switch="remove-flags")

    def __call__(self, sentence: AlignedText, on_fallback: OnFallback) -> list[Word]:
        """Words and marks in order, with offsets into the original text.

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
                words[-1] = replace(words[-1], space_after=True)
        return words

    def _settled(
        self, token: _Token, phonemes: str, start: int, end: int, on_fallback: OnFallback
    ) -> tuple[str, str]:
        """The phonemes for one token, and the name of the level of G2P from which they come."""
        if token.kind == "mark":
            return phonemes, "espeak"
        source = "espeak"
        kept, lost = known(phonemes)
        if not any(c.isalpha() for c in kept):
            kept, source = self.spelt(token.text), "characters"
            reason = f"read by {source}" if kept else "not spoken: no sound is known for it"
            on_fallback(Fallback("g2p", reason, start, end))
            return kept, source
        if lost:
            on_fallback(Fallback("g2p", f"symbols outside the vocabulary: {lost!r}", start, end))
        if _foreign(token.text, self.language):
            on_fallback(Fallback("g2p", "another script than this language's: named by espeak", start, end))
        return kept, source

    def _phonemes(self, tokens: Sequence[_Token]) -> list[str]:
        """The phonemes of each token, read clause by clause."""
        result: list[str] = []
        for kind, run in groupby(tokens, attrgetter("kind")):
            texts = [token.text for token in run]
            if kind == "mark":
                result += [MARKS.get(text, "") for text in texts]
            elif kind == "word":
                result += self._clause(texts)
            else:
                result += [phonemes for text in texts for phonemes in self._clause([text])]
        return result

    def _clause(self, words: Sequence[str]) -> list[str]:
        apart = any(len(word) > PART_LETTERS or len(divided(word)) > 1 for word in words)
        spoken = [] if apart else self._say(" ".join(words)).split()
        if len(spoken) != len(words):  # else eSpeak joined two words, or divided one
            spoken = ["".join(map(self._word, divided(word))) for word in words]
        return spoken

    def spelt(self, text: str) -> str:
        """A text spelt character by character, each by eSpeak's name for it."""
        names = (known(self._word(c))[0] for c in text if unicodedata.category(c)[0] in "LNS")
        return " ".join(filter(None, names))

    def _word(self, text: str) -> str:
        return "".join(self._say(text).split())

    def _say(self, text: str) -> str:
        if self._english is not None:
            return " ".join(self._english(word) or "" for word in text.split())
        with self._lock:
            said = self._backend.phonemize([plainer(text)])
        return _composed(_replaced(" ".join(part.strip() for part in said), _OTHERS))


def _composed(phonemes: str) -> str:
    """eSpeak's phonemes in the model's symbols.

    A diacritic that the model does not know is dropped, and its vowel kept.
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
    """Whether a text has letters of a script in which the language is not written."""
    script = {"hi": "DEVANAGARI", "ja": "CJK HIRAGANA KATAKANA", "zh": "CJK"}.get(language, "LATIN").split()
    return any(
        unicodedata.category(c)[0] == "L" and unicodedata.name(c, "").split(" ")[0] not in script
        for c in text
    )


class LetterG2P:
    """The last level of G2P: spells letter by letter, from a table made when it is loaded. It cannot block or
    fail.

    Parameters
    ----------
    language : str
        A canonical tag.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        speak = EspeakG2P(language)
        devanagari = "".join(map(chr, range(0x905, 0x93A))) if language == "hi" else ""
        self._names = {c: speak.spelt(c) for c in f"abcdefghijklmnopqrstuvwxyz0123456789{devanagari}"}

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
