"""Number words where a language has no rules of its own yet: num2words', and tables for Hindi."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

import regex

from kokoro_lab.text.tables import CountedUnit, any_of, entries, names, rows, units

MAX_DIGITS = 15
"""A longer row of digits is no quantity: it is read digit by digit."""
_DEVANAGARI = str.maketrans("०१२३४५६७८९", "0123456789")


_NUMBERS, _SCALES, _ORDINALS = (
    {int(written): said for written, said in names(__package__, "hindi.tsv")[kind].items()}
    for kind in ("number", "scale", "ordinal")
)
"""Number → its word in Hindi, which num2words lacks. Each number below a hundred has a word of its own."""


class OtherNumbers:
    """Cardinals, ordinals, decimals and counted things of a language with a column in `others.tsv`."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._words = {row["word"]: row[language] for row in rows(__package__, "others.tsv")}
        self._units = units(__package__, "other_units.tsv", language)
        self._signs = names(__package__, "other_signs.tsv")[language]
        num2words = partial(_by_num2words, self._words["locale"])
        self._say: Callable[[int], str] = _hindi if language == "hi" else partial(num2words, "cardinal")
        self.ordinal: Callable[[int], str] = (
            _hindi_ordinal if language == "hi" else partial(num2words, "ordinal")
        )

    def cardinal(self, value: int) -> str:
        """Words of a whole number."""
        return f"{self._words['minus']} {self._say(-value)}" if value < 0 else self._say(value)

    def _feminine(self, ordinal: str) -> str:
        """Each word of an ordinal with its feminine ending."""
        endings = self._pairs("feminine of an ordinal")
        ending = regex.compile(rf"{any_of(endings)}(?!\S)")
        return str(ending.sub(lambda match: endings[match.group()], ordinal))

    def _counted(self, value: int, unit: CountedUnit) -> str:
        head, _, last = self._say(value).rpartition(" ")
        said = f"{head} {self._pairs(f'{unit.gender}, before a noun').get(last, last)}".strip()
        if unit.gender == "f" and self._words["locale"] == "pt_BR":
            said = said.replace("entos", "entas")
        noun = unit.one if value == 1 else unit.many
        if value and value % 1_000_000 == 0:
            return spaced(f"{said} {self._of_a_million(noun)}")
        return f"{said} {noun}"

    def _of_a_million(self, noun: str) -> str:
        elided = self._words["of a million, before a vowel"]
        return (
            f"{elided}{noun}" if elided and noun[0] in "aeiouéè" else f"{self._words['of a million']} {noun}"
        )

    def _decimal(self, written: str) -> str:
        """The words for a number without a sign. It may have marks between thousands and a decimal mark."""
        whole, _, part = written.partition(self._words["decimal mark"])
        said = self._say(int(self._plain(whole)))
        return f"{said} {self._words['decimal mark, said']} {self._fraction(part)}" if part else said

    def _fraction(self, digits: str) -> str:
        """The words for the digits after the decimal mark. One or two are said as a number, after the leading
        zeros; more are said digit by digit, and so are all in Hindi."""
        if len(digits) > 2 or self._words["locale"] == "hi":
            return self._digits(digits)
        zeros = len(digits) - len(digits.lstrip("0०"))
        rest = [self._say(int(digits[zeros:]))] if digits[zeros:] else []
        return " ".join([self._say(0)] * zeros + rest)

    def _pair(self, digits: str) -> str:
        return self._digits(digits) if digits[0] == "0" else self._say(int(digits))

    def _digits(self, digits: str) -> str:
        return " ".join(self._say(int(digit)) for digit in digits)

    def _plain(self, digits: str) -> str:
        return "".join(c for c in digits if c.isdecimal())

    def _pairs(self, word: str) -> Mapping[str, str]:
        """A cell with pairs such as `un=une`, as a mapping from the first to the second of each pair."""
        pairs = (pair.partition("=") for pair in entries(self._words[word]))
        return {written: said for written, _, said in pairs}


def _by_num2words(locale: str, to: str, value: int) -> str:
    """num2words' cardinals and ordinals without the commas, at which the voice would pause."""
    from num2words import num2words

    said = str(num2words(value, lang=locale, to=to)).replace(",", "")
    if locale == "it":  # mistakes of num2words
        said = said.replace("dicotto", "diciotto")
        return f"{said[:-1]}é" if said.endswith("tre") and said != "tre" else said
    return said


def spaced(words: str) -> str:
    """Words joined with single spaces, where an empty word of the table would leave two."""
    return " ".join(words.split())


def _hindi(value: int) -> str:
    """A number in lakhs and crores, as is usual where Hindi is spoken."""
    for scale, name in _SCALES.items():
        if value >= scale:
            head = f"{_hindi(value // scale)} {name}"
            return f"{head} {_hindi(value % scale)}" if value % scale else head
    return _NUMBERS[value]


def _hindi_ordinal(value: int) -> str:
    return _ORDINALS.get(value) or f"{_hindi(value)}वाँ"


def last_stop(match: Any) -> str:
    """The point of an abbreviation that ends a sentence."""
    return "." if match.group()[-1] == "." and match.end() == len(match.string) else ""


@lru_cache(maxsize=8)
def western(text: str) -> str:
    """The text with the digits 0 to 9 for those of Devanagari."""
    return text.translate(_DEVANAGARI)
