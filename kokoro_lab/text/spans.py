"""Divides a sentence into words by script, and into spans of one language each.

If the text names a word's language (`xml:lang`), that decides. Otherwise the word's script decides, and for a
Latin word, the language detector. Marks, digits and spaces belong to the span of the word that they touch. In
a sentence of another script, Latin words are English unless the detector finds another language. Single
letters, capitals, letters at a number (`A4`, `NHK`, `5 km`) and addresses keep the language of the sentence,
whose rules read them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import regex

from kokoro_lab.text import han
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.detect import LATIN, Known, LatinWord, detect
from kokoro_lab.text.language import SPOKEN, english_of
from kokoro_lab.text.tables import words as word_lists

Forced = Sequence[tuple[int, int, str]]
"""Half-open ranges of the original text, each with the canonical tag of its language. The last range that
contains a word decides, so inner ranges follow outer ones."""

_WORDS = word_lists(__package__)
_OPENING = r"[(\[{¿¡“‘「『（【《〈〔]"
_OPENS = regex.compile(rf"{_OPENING}|[\"']$")
_ENDS = regex.compile(r"[.!?…:。！？]\s|[.!?…:。！？“\"¿¡「『]\W*$")
_MARK = regex.compile(r"[^\s\w'-]")
_INVERTED, _CLOSED = regex.compile(r"[¿¡]"), regex.compile(r"[?!.…]")
_NUMBER_BEFORE = regex.compile(r"\d\s?$")
_NUMBER_BEHIND = regex.compile(r"\s?\d")
_NUMBER_BEHIND_MARK = regex.compile(r"[,;:]\s(?=\W*\d)")
_DIGITS = regex.compile(r"\d+")
_PRINTED = regex.compile(r"[!-~\p{Latin}\p{M}]+")
_ADDRESS = regex.compile(
    r"@|://|www\.|\w[./]\w|[\\_]|^[~/]?/|\p{L}-?\d|\d\p{L}{3}|^[-dl](?:[r-][w-][xsStT-]){3}"
)
"""Runs of printable characters that are an address, a path, an option, the permissions of a file or a
code."""
_IN_ADDRESSES = regex.compile(r"[@/\\_\p{Nd}]|\w\.\w")
"""The characters of which every address, path, option or code has at least one."""
_LATIN_BESIDE = regex.compile(r"\p{Latin} [aI]|[aI] \p{Latin}")
_UNIT_LETTERS = 3
_WORD = regex.compile(
    r"""
      (?P<ja> [\p{Hiragana}\p{Katakana}\p{Han}ー々〆〇]+ )
    | (?P<hi> \p{Devanagari}[\p{Devanagari}\u200c\u200d]* )
    | (?P<latin> [\p{Latin}--[ªº]][\p{Latin}\p{M}]* (?: '\p{Latin}[\p{Latin}\p{M}]* )* )
    | (?P<other> \p{L}[\p{L}\p{M}--[\p{Latin}\p{Hiragana}\p{Katakana}\p{Han}\p{Devanagari}]]* )
    """,
    regex.VERBOSE | regex.V1,
)

# By this table and not by `unicodedata`, whose Unicode version is older and lacks new letters
_READ = regex.compile(r"[\p{L}\p{N}]")
_SOUND = regex.compile(r"[\p{L}\p{N}\p{Sm}\p{Sc}\p{So}]")


def is_read(character: str) -> bool:
    """Whether a character is a letter or a numeral of any script."""
    return _READ.match(character) is not None


def sounds(text: str) -> bool:
    """Whether a text has a character that is said aloud: a letter, a numeral or a symbol, but not
    punctuation."""
    return _SOUND.search(text) is not None


class ScriptWord(NamedTuple):
    """Letters that stand together: `text[start:end]`, in the script of a language, or `latin`, or `other`."""

    start: int
    end: int
    script: str


def script_words(text: str) -> Iterator[ScriptWord]:
    """The words of `text` in order; a change of script ends a word. Kana and Han are one script, `ja`."""
    for match in _WORD.finditer(text):
        yield ScriptWord(match.start(), match.end(), match.lastgroup or "other")


class LanguageSpan(NamedTuple):
    """`text[start:end]` of a sentence, and the canonical tag of its language."""

    start: int
    end: int
    language: str


def language_spans(
    sentence: AlignedText,
    base: str,
    *,
    accent: str | None = None,
    mode: str = "auto",
    forced: Forced = (),
    known: Known | None = None,
) -> list[LanguageSpan]:
    """The spans of `sentence` in order. Together they cover all of it, and neighbours differ in language.

    Parameters
    ----------
    sentence : AlignedText
        Sanitised.
    base : str
        The language of the request, a canonical tag.
    accent : str, optional
        The voice's own language. It decides which English is meant if `base` names none. Han characters
        without other evidence are Chinese if it is Chinese, and else Japanese.
    mode : {"auto", "scripts", "off"}
        How words of other languages are found; see `Utterance.detect_languages`.
    forced : sequence of (start, end, language)
        Languages that the text itself states, as ranges of the original.
    known : callable, optional
        Returns whether a lower-case word is in the lexicon of `base`; only for English.
    """
    if not len(sentence):
        return []
    words = list(script_words(sentence.text))
    if base == han.CHINESE:
        words = list(_parted(sentence.text, words))
    if forced:
        words = sorted([*words, *_forced_numbers(sentence, forced)])
    languages = _detected(sentence.text, words, base, accent, mode, known)
    for k, word in enumerate(words):
        languages[k] = _forced_at(sentence, word.start, word.end, forced) or languages[k]
    if not words:
        return [LanguageSpan(0, len(sentence), _forced_at(sentence, 0, len(sentence), forced) or base)]
    return list(_joined(sentence.text, words, languages, base))


def _parted(text: str, words: Iterable[ScriptWord]) -> Iterator[ScriptWord]:
    """The words of a Chinese text. If a part of a word is Japanese, it becomes a word of its own."""
    for word in words:
        if word.script == han.JAPANESE:
            for i, j in han.parted(text[word.start : word.end]):
                yield ScriptWord(word.start + i, word.start + j, word.script)
        else:
            yield word


def _forced_at(sentence: AlignedText, i: int, j: int, forced: Forced) -> str | None:
    start, end = sentence.span(i, j)
    return next((tag for first, last, tag in reversed(forced) if first <= start and end <= last), None)


def _forced_numbers(sentence: AlignedText, forced: Forced) -> Iterator[ScriptWord]:
    """Numbers for which the text itself states the language. It need not be that of a neighbouring word."""
    for match in _DIGITS.finditer(sentence.text):
        if _forced_at(sentence, match.start(), match.end(), forced):
            yield ScriptWord(match.start(), match.end(), "number")


def _detected(
    text: str,
    words: Sequence[ScriptWord],
    base: str,
    accent: str | None,
    mode: str,
    known: Known | None,
) -> list[str]:
    if mode == "off" or not words:
        return [base] * len(words)
    found = [word.script if word.script in SPOKEN else base for word in words]
    wide = [k for k, word in enumerate(words) if word.script == han.JAPANESE]
    if wide:
        runs = [text[words[k].start : words[k].end] for k in wide]
        for k, language in zip(wide, han.languages_of(runs, base, accent), strict=True):
            found[k] = language
    english = english_of(base, accent)
    home = base if base[:2] in LATIN else english  # of Latin words by default
    latin = [k for k, word in enumerate(words) if word.script == "latin"]
    runs_of_signs = _PRINTED.finditer(text) if _IN_ADDRESSES.search(text) else ()
    addresses = [m.span() for m in runs_of_signs if _ADDRESS.search(m.group())]
    if latin and base[:2] == "ja":
        from kokoro_lab.text.normalise.japanese.letters import STAYS

        addresses += [m.span() for m in STAYS.finditer(text)]
    if base[:2] not in LATIN:
        latin = [k for k in latin if not _stays(text, words[k], addresses)]
    for k in latin:
        found[k] = home
    if addresses:  # they tell no language
        latin = [k for k in latin if not _within(words[k], addresses)]
    units = _WORDS["unit behind a number"] | _WORDS.get(f"{home[:2]} scale behind a number", frozenset())
    latin = [  # `57 Wh` is of every language, and `mi` in `60,3 mi` is no Spanish word
        k
        for k in latin
        if text[words[k].start : words[k].end] not in units
        or not _NUMBER_BEFORE.search(text, max(0, words[k].start - 2), words[k].start)
    ]
    if mode == "auto":
        inverted = [m.end() for m in _INVERTED.finditer(text)]
        tokens = [_token(text, words, k, inverted) for k in latin]
        for k, language in zip(latin, detect(tokens, home[:2], known), strict=True):
            if language != home[:2]:
                found[k] = _tag(language, english)
    return found


def _tag(language: str, english: str) -> str:
    return {"en": english, "pt": "pt-br"}.get(language, language)


def _stays(text: str, word: ScriptWord, addresses: Sequence[tuple[int, int]]) -> bool:
    """Whether a Latin word is left to the rules of the request's language, which has another script."""
    letters = text[word.start : word.end]
    if letters in ("a", "I"):
        return not _LATIN_BESIDE.search(text[max(0, word.start - 2) : word.end + 2])
    if len(letters) == 1 or letters.isupper() or text[word.end : word.end + 1].isdigit():
        return True
    if len(letters) <= _UNIT_LETTERS and _NUMBER_BEFORE.search(text, 0, word.start):
        return True
    return _within(word, addresses)


def _within(word: ScriptWord, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(start <= word.start < end for start, end in ranges)


def _token(text: str, words: Sequence[ScriptWord], k: int, inverted: Sequence[int]) -> LatinWord:
    """The word with number `k`, for the detector. `inverted` has the ends of the text's inverted marks, in
    order."""
    word = words[k]
    between = text[words[k - 1].end if k else 0 : word.start]
    last = bisect_right(inverted, word.start)
    return LatinWord(
        text[word.start : word.end],
        opens=k == 0 or (between != " " and bool(_ENDS.search(between))),
        after_mark=between != " " and bool(_MARK.search(between)),
        inverted=last > 0 and not _CLOSED.search(text, inverted[last - 1], word.start),
    )


def _joined(
    text: str, words: Sequence[ScriptWord], languages: Sequence[str], base: str
) -> Iterator[LanguageSpan]:
    """Spans of neighbouring words of one language, together with the marks and digits that belong to them."""
    start = 0
    runs = [(language, list(run)) for language, run in groupby(range(len(words)), key=languages.__getitem__)]
    for (language, run), following in zip(runs, [*runs[1:], None], strict=True):
        end = len(text)
        if following is not None:
            stop, resume = words[run[-1]].end, words[following[1][0]].start
            end = stop + _border(text[stop:resume], back=language == base)
        elif base not in (language, *LATIN) and _NUMBER_BEHIND.match(text, words[run[-1]].end):
            end = words[run[-1]].end  # `用Windows 11。`: the number is read in the language of the request
        elif language != base and (apart := _NUMBER_BEHIND_MARK.match(text, words[run[-1]].end)):
            end = apart.end()  # `Big Al Nuñez, 6'4"`, too
        yield LanguageSpan(start, end, language)
        start = end
    if start < len(text):
        yield LanguageSpan(start, len(text), base)


def _border(between: str, *, back: bool) -> int:
    """Where to divide the characters between two words of different languages.

    Characters that touch a word go with it; those that touch neither go with the request's language.
    """
    opening = _OPENS.search(between)
    if opening:
        return int(opening.start())
    groups: list[tuple[int, int]] = [(m.start(), m.end()) for m in regex.finditer(r"\S+", between)]
    if not groups:
        return len(between)
    touches_first, touches_last = groups[0][0] == 0, groups[-1][1] == len(between)
    alone = len(groups) == 1
    if touches_last and not (touches_first and alone):
        return groups[-1][0] if back or alone else groups[int(touches_first)][0]
    if back or (touches_first and alone):
        return len(between)
    return groups[0][1] if touches_first else 0
