"""How misaki reads numbers in English: years, money, versions, parts of names.

`text/normalise` has replaced most numbers by words before G2P; this module reads the remaining ones. The
rules are those of `misaki/en.py` 0.9.4 (hexgrad, Apache License 2.0).
"""

from __future__ import annotations

import re

from kokoro_lab.g2p.dictionary import Dictionary

CURRENCIES = {"$": ("dollar", "cent"), "£": ("pound", "pence"), "€": ("euro", "cent")}
_ORDINALS = frozenset(("st", "nd", "rd", "th"))
_NUMBER_ENDINGS = ("ing", "'d", "ed", "'s", "st", "nd", "rd", "th", "s")


def read_number(known: Dictionary, written: str, currency: str | None, *, first: bool) -> str | None:
    """Phonemes of a number; None if the text is no number.

    Parameters
    ----------
    known : Dictionary
        Has the phonemes of number words.
    written : str
        As `plain` writes it; an ending may follow: `1990s`, `3rd`.
    currency : str or None
        The currency sign before the number, if any.
    first : bool
        Whether the number begins a word: then it is read as a whole, and may be negative.
    """
    if not _is_number(written, first=first):
        return None
    ending = re.search(r"[a-z']+$", written)
    suffix = ending.group() if ending else ""
    digits = written.removesuffix(suffix)
    minus = digits.startswith("-")
    digits = digits.removeprefix("-")
    spoken = [known.lookup("minus")] * minus
    spoken += _numerals(known, digits, suffix, currency, minus, first=first)
    if not spoken or None in spoken:
        return None
    joined = " ".join(each or "" for each in spoken)
    if suffix in ("s", "'s"):
        return known.s_form(joined)
    if suffix in ("ed", "'d"):
        return known.ed_form(joined)
    return known.ing_form(joined) if suffix == "ing" else joined


def _numerals(
    known: Dictionary, digits: str, suffix: str, currency: str | None, minus: bool, *, first: bool
) -> list[str | None]:
    """Phonemes of each word of a number."""
    if _is_digits(digits) and suffix in _ORDINALS:
        return _in_words(known, _numeral(int(digits), to="ordinal"))
    if not minus and len(digits) == 4 and currency not in CURRENCIES and _is_digits(digits):
        return _in_words(known, _numeral(int(digits), to="year"))
    plain = digits.replace(",", "")
    if not first and "." not in digits:
        return _part_of_a_word(known, plain)
    if digits.count(".") > 1 or not first:
        return [spoken for part in plain.split(".") if part for spoken in _part_of_a_version(known, part)]
    if currency in CURRENCIES and len(digits.partition(".")[2]) < 3:
        return _money(known, plain, CURRENCIES[currency])
    if "." not in digits:
        return _in_words(known, _numeral(int(plain), to="ordinal" if suffix in _ORDINALS else "cardinal"))
    if plain.startswith("."):
        return _in_words(known, "point " + " ".join(_numeral(int(digit)) for digit in plain[1:]))
    return _in_words(known, _numeral(float(plain)))


def _in_words(known: Dictionary, numeral: str) -> list[str | None]:
    words = (word for word in re.split(r"[^a-z]+", numeral) if word != "and")
    return [known.lookup(word, None, -2.0 if word == "point" else None) for word in words]


def _cardinal(known: Dictionary, digits: str) -> list[str | None]:
    return _in_words(known, _numeral(int(digits)))


def _digit_by_digit(known: Dictionary, digits: str) -> list[str | None]:
    return [spoken for digit in digits for spoken in _cardinal(known, digit)]


def _part_of_a_word(known: Dictionary, digits: str) -> list[str | None]:
    """The number in `B747` or `MP3`. Of three digits, the first is read by itself, and the other two as one
    number."""
    if digits[0] == "0" or len(digits) > 3:
        return _digit_by_digit(known, digits)
    if len(digits) < 3 or digits.endswith("00"):
        return _cardinal(known, digits)
    if digits[1] == "0":
        return [
            *_cardinal(known, digits[0]),
            known.lookup("O", None, -2.0),
            *_cardinal(known, digits[2]),
        ]
    return [*_cardinal(known, digits[0]), *_cardinal(known, digits[1:])]


def _part_of_a_version(known: Dictionary, digits: str) -> list[str | None]:
    """Phonemes of one of several numbers with points between them, as in a version."""
    if digits[0] == "0" or (len(digits) != 2 and digits[1:].strip("0")):
        return _digit_by_digit(known, digits)
    return _cardinal(known, digits)


def _money(known: Dictionary, digits: str, units: tuple[str, str]) -> list[str | None]:
    whole, _, hundredths = digits.partition(".")
    amounts = [(int(whole or 0), units[0]), (int(hundredths or 0), units[1])]
    # Zero dollars or cents are left out, except in `$0`
    amounts = [each for each in amounts if each[0]] or amounts[:1]
    spoken: list[str | None] = []
    for amount, unit in amounts:
        spoken += [known.lookup("and")] * bool(spoken)
        spoken += _in_words(known, _numeral(amount))
        several = amount != 1 and unit != "pence"
        spoken.append(known.inflected(unit + "s", "s") if several else known.lookup(unit))
    return spoken


def _numeral(number: float, to: str = "cardinal") -> str:
    """The number in words, by num2words, which loads its fifty languages with the first number."""
    from num2words import num2words

    return str(num2words(number, to=to))


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _is_number(word: str, *, first: bool) -> bool:
    if not any(map(_is_digits, word)):
        return False
    for ending in _NUMBER_ENDINGS:
        if word.endswith(ending):
            word = word.removesuffix(ending)
            break
    return all(_is_digits(c) or c in ",." or (first and i == 0 and c == "-") for i, c in enumerate(word))
