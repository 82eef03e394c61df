"""Reads Mandarin with misaki's legacy G2P, with which Kokoro's voices were trained. It never raises.

jieba finds the words and pypinyin reads them, as in `misaki.zh.ZHG2P()`; changes of tones between syllables
(tone sandhi) and the ending -r (erhua) are not applied, since the voices were trained without them. This
module adds offsets into the original text, and names of letters. Characters that misaki leaves silent or
Latin are read by other means and reported.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial

import regex

from kokoro_lab.datatypes import Fallback, Word
from kokoro_lab.extras import imported
from kokoro_lab.g2p.espeak import EspeakEnglish
from kokoro_lab.g2p.protocol import OnFallback
from kokoro_lab.g2p.vocab import known
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.language import lacks_packages
from kokoro_lab.text.spans import sounds
from kokoro_lab.text.tables import names

LANGUAGE = "zh"
MARKS = names(__package__)["Mandarin mark"]
"""Punctuation mark → the model's symbol for it. Other punctuation (· and the like) has no sound."""
TIGHT = frozenset('“”…—"')
"""Marks that have no space on either side, as in misaki."""
OPENERS = frozenset(written for written, mark in MARKS.items() if mark in "“(") - TIGHT

_NON_SYLLABIC = "\u032f"  # misaki leaves it out of the diphthongs
_RUN = regex.compile(
    r"""(?<mandarin>[\u4E00-\u9FFF]+) | (?<latin>\p{Latin}[\p{Latin}\p{M}'’]*)
    | (?<rare>[\p{Han}\p{Bopomofo}\p{Hiragana}\p{Katakana}]) | [\p{L}--\p{Latin}]\p{M}* | .""",
    regex.V1 | regex.VERBOSE | regex.DOTALL,
)
_SPELT = regex.compile(r"\p{Lu}+|\p{L}|[^aeiouyAEIOUY]+")
"""Latin letters that are said by their names: capitals, single letters, and words without a vowel."""
_WORDS = frozenset(names(__package__)["word of capitals in Mandarin"])


class MandarinG2P:
    """Words of one Mandarin sentence. Thread-safe.

    Raises
    ------
    LanguageError
        The extra `zh` is not installed.
    """

    def __init__(self) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about escapes in jieba's patterns
                jieba, pypinyin = (imported(module, extra="zh") for module in ("jieba", "pypinyin"))
                from misaki.zh import ZHG2P
        except ImportError as error:
            raise lacks_packages("Mandarin", LANGUAGE, error) from error
        jieba.default_logger.handlers.clear()  # its handler writes to standard error
        divide = jieba.Tokenizer()
        # As its `initialize` does, but without a cache file in a folder that everybody can write to
        divide.FREQ, divide.total = divide.gen_pfdict(divide.get_dict_file())
        divide.initialized = True
        self._words: Callable[[str], list[str]] = divide.lcut
        style = pypinyin.Style.TONE3
        self._pinyin = partial(pypinyin.lazy_pinyin, style=style, neutral_tone_with_five=True)
        self._syllable = cache(ZHG2P.py2ipa)  # some 1,600 syllables
        self._espeak = EspeakEnglish(british=False)

    def __call__(self, sentence: AlignedText, on_fallback: OnFallback) -> list[Word]:
        """Words in order, with offsets into the original text.

        Every letter and sign of `sentence` is spoken, or reported through `on_fallback` with its
        place. Nothing raises.
        """
        words: list[Word] = []
        text = sentence.text
        for i, j, said, source, reported in self._said(text):
            start, end = sentence.span(i, j)
            if not said and sounds(text[i:j]):
                on_fallback(Fallback("g2p", "not spoken: no sound is known for it", start, end))
            elif said and reported:
                on_fallback(Fallback("g2p", f"read by {source}", start, end))
            kept, lost = known(said)
            if lost:
                on_fallback(Fallback("g2p", f"symbols outside the vocabulary: {lost!r}", start, end))
            if kept:
                clings = text[i] in MARKS and text[i] not in OPENERS and not text[i - 1 : i].isspace()
                if words and clings and words[-1].text not in MARKS:
                    words[-1] = replace(words[-1], space_after=False)
                tight = text[i] in TIGHT or text[i] in OPENERS
                words.append(Word(text[i:j], start, end, kept, LANGUAGE, source, not tight))
        return words

    def _said(self, text: str) -> Iterator[tuple[int, int, str, str, bool]]:
        """Runs `(i, j, phonemes, source, reported)` of the text: words, marks, and other characters."""
        for run in _RUN.finditer(text):
            written, (i, j) = run.group(), run.span()
            if run["mandarin"]:
                for word in self._words(written):
                    yield i, i + len(word), self._phonemes(word), "misaki", False
                    i += len(word)
            elif written in MARKS:
                yield i, j, MARKS[written], "misaki", False
            elif run["latin"] and written not in _WORDS and _SPELT.fullmatch(written):
                yield i, j, " ".join(filter(None, map(self._espeak, written.upper()))), "characters", False
            elif run["rare"]:
                yield i, j, self._phonemes(written), "misaki", False
            else:
                yield i, j, (self._espeak(written) or "").strip() if sounds(written) else "", "espeak", True

    def _phonemes(self, word: str) -> str:
        """The phonemes of `word`. If the reading of the word is unknown, its characters are read one by one,
        and characters without a reading are left out."""
        try:
            return "".join(map(self._syllable, self._pinyin(word))).replace(_NON_SYLLABIC, "")
        except (ValueError, AssertionError, KeyError):
            return "".join(map(self._phonemes, word)) if len(word) > 1 else ""
