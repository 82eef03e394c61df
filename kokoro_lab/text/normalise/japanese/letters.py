"""Latin letters, acronyms, Roman numerals and signs of mathematics and print in Japanese.

Acronyms and single letters are said by their Japanese names. Words stay as they are written; they are spoken
by the G2P of their own language.
"""

from __future__ import annotations

import unicodedata
from typing import Any

import regex

from kokoro_lab.text.normalise.japanese.numbers import LATIN, NAMES, cardinal, number
from kokoro_lab.text.normalise.roman import roman
from kokoro_lab.text.tables import any_of

LETTERS, GREEK = NAMES["letter"], NAMES["Greek letter"]
LONGEST_SPELT = 6
"""Longer runs of capitals are words that somebody shouts."""

_VOWEL = "AEIOUY"
_SHORT_WORDS = {written.lower(): said for written, said in NAMES["abbreviation"].items()}


def spelt(letters: str) -> str:
    """Letters by their names: NHK is エヌエイチケー."""
    return "".join(LETTERS.get(letter, letter) for letter in letters.upper())


def acronym(letters: str) -> str | None:
    """How capitals are said, or None if they look like a word that is only written so (SONY)."""
    if letters in NAMES["acronym said as a word"]:
        return NAMES["acronym said as a word"][letters]
    vowels = [letter in _VOWEL for letter in letters]
    pronounceable = any(vowels[1:]) and not all(vowels) and not regex.search(f"[^{_VOWEL}]{{3}}", letters)
    if len(letters) > LONGEST_SPELT or (len(letters) >= 4 and pronounceable):
        return None
    return spelt(letters)


LAUGH = r"(?:^|(?<=[\p{Hiragana}\p{Katakana}\p{Han}ー!?！？…)）]\s?))(?:w{2,}|(?<!^)w)(?=\s|$|[、。」!?…)])"
"""The letter w, once or several times, which stands for 笑い (laughter) after a text."""
_IN_A_PHRASE = r"(?<![a-z]['.]?\s)"
_PHRASE_AHEAD = r"(?!\s[A-Za-z]*[a-z])"
_NAME = (
    rf"(?<![A-Za-z][ ]|[A-Za-z\d@./-]){any_of(NAMES['name in Latin letters'])}(?!{LATIN}|[ ]{LATIN}|[@./-]\w)"
)
STAYS = regex.compile(f"{_NAME}|{LAUGH}")
"""Latin letters that are read by these rules, and not by those of another language."""


def _abbreviation(match: Any) -> str:
    return _SHORT_WORDS[match["word"].lower()]


def _acronym_with_points(match: Any) -> str:
    return spelt(match.group().replace(".", ""))


def _greek_letter(match: Any) -> str | None:
    return GREEK.get(match.group().lower())


_ABBREVIATED, _SIGNS = NAMES["abbreviation in one sign"], NAMES["sign"]
_BETWEEN = NAMES["sign between operands"]
"""Said only between two operands; elsewhere these divide words or decorate."""
_OPERAND = r"[\d)A-Za-zα-ωπ∞²³%円]"


def _roman_said(match: Any) -> str | None:
    value = roman(unicodedata.normalize("NFKC", match["numeral"]).upper())
    return None if value is None else cardinal(value)


def _power(match: Any) -> str:
    exponent = unicodedata.normalize("NFKC", match["exponent"]).lstrip("^").replace("−", "-")
    sign = "マイナス" if exponent[0] == "-" else ""
    base = match["base"]
    said = number(base) if base[0].isdigit() else spelt(base)
    return f"{said}の{sign}{number(exponent.lstrip('-'))}乗"
