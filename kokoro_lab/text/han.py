"""Tells whether Han characters are Chinese or Japanese.

Kana beside Han mean Japanese. Without kana, the forms of the characters decide: forms that only the character
sets of China (GB 2312) or Taiwan (Big5) have are Chinese; forms that only Japan's (JIS X 0208) has are
Japanese; old forms in the second level of JIS are Chinese. Other Han characters take the language of the rest
of the sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import regex

from kokoro_lab.text.tables import any_of, words

CHINESE, JAPANESE = "zh", "ja"

_WORDS = words(__package__)
_KANA = r"[\p{Hiragana}\p{Katakana}ー]"
_HAS_KANA = regex.compile(_KANA)
_HAN = regex.compile(r"\p{Han}")
_KANA_RUN = regex.compile(rf"{_KANA}+(?:[\p{{Han}}々〆〇]+{_KANA}+)*")
_CHINESE_WORD = regex.compile(any_of(_WORDS["zh word"]))
_SECOND_LEVEL = b"\x98\x9f"
"""The first character of the second level of JIS X 0208, in Shift JIS."""
_KANA_SHARE = 1 / 4
"""In a Chinese text, a run with this share of kana and without a Chinese form is Japanese as a whole."""


def has_kana(text: str) -> bool:
    """Whether a text has kana, which only Japanese has."""
    return _HAS_KANA.search(text) is not None


def has_han(text: str) -> bool:
    """Whether any part of a text is written in Chinese characters."""
    return _HAN.search(text) is not None


@lru_cache(maxsize=4096)
def _spoken_for(character: str) -> tuple[str | None, bool]:
    """Two answers. First: if only one language has this form of `character`, that language; else None.
    Second: whether only GB 2312 has it."""
    china, taiwan, japan = (_encoded(character, codec) for codec in ("gb2312", "big5", "shift_jis"))
    if japan is None:
        return (CHINESE if china or taiwan else None), bool(china and not taiwan)
    if china is None and (taiwan is None or japan < _SECOND_LEVEL):
        return (JAPANESE if taiwan is None else None), False
    return (None if china else CHINESE), False


def _only_chinese(character: str) -> bool:
    """Whether Japanese texts have the character only in quoted Chinese. A form that JIS lacks is not enough
    for that, since Japanese names have some such forms."""
    return _spoken_for(character)[1] or character in "你您她"


def _encoded(character: str, codec: str) -> bytes | None:
    try:
        return character.encode(codec)
    except UnicodeEncodeError:
        return None


def evidence(run: str) -> str | None:
    """The language of a run by its kana, forms and words; None if they do not tell."""
    if has_kana(run):
        return JAPANESE
    found = [language for language, _ in map(_spoken_for, run) if language]
    if found:
        return CHINESE if found.count(CHINESE) >= found.count(JAPANESE) else JAPANESE
    return CHINESE if _CHINESE_WORD.search(run) else None


def languages_of(runs: Sequence[str], base: str, accent: str | None = None) -> list[str]:
    """The language of each run of kana and Han of one sentence.

    Parameters
    ----------
    runs : sequence of str
        In order.
    base, accent : str
        The languages of the request and of the voice.
    """
    if base == CHINESE:
        return [JAPANESE if has_kana(run) else CHINESE for run in runs]
    if base == JAPANESE:
        return [CHINESE if not has_kana(run) and any(map(_only_chinese, run)) else JAPANESE for run in runs]
    found = [evidence(run) for run in runs]
    others = CHINESE if accent == CHINESE else JAPANESE
    if any(found):
        others = JAPANESE if JAPANESE in found else CHINESE
    return [language or others for language in found]


def parted(run: str) -> Iterator[tuple[int, int]]:
    """Divide a run in a Chinese text into ranges with and without kana, where Chinese touches Japanese."""
    kana = len(_HAS_KANA.findall(run))
    whole = kana >= len(run) * _KANA_SHARE and all(_spoken_for(c)[0] != CHINESE for c in run)
    at = 0
    for match in _KANA_RUN.finditer(run) if kana and not whole else ():
        if at < match.start():
            yield at, match.start()
        yield match.span()
        at = match.end()
    if at < len(run):
        yield at, len(run)
