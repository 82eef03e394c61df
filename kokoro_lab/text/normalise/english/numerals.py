"""Numbers in American English words, without commas, hyphens and "and", at which the voice would pause."""

from __future__ import annotations

import unicodedata
from fractions import Fraction
from functools import lru_cache

from num2words import num2words

LARGEST_DIGITS = 18
"""A longer number is read digit by digit: no listener follows a quintillion, and the words of a number as
long as a book would take long to compute."""

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

FRACTION_NAMES = {2: ("half", "halves"), 4: ("quarter", "quarters")}


@lru_cache(4096)
def cardinal(value: int) -> str:
    """`-1234` is "minus one thousand two hundred thirty four"."""
    if value < 0:
        return f"minus {cardinal(-value)}"
    if value >= 10**LARGEST_DIGITS:
        return digits(str(value))
    return _plain(num2words(value))


@lru_cache(4096)
def ordinal(value: int) -> str:
    """`21` is "twenty first"."""
    if value < 0:
        return f"minus {ordinal(-value)}"
    if value >= 10**LARGEST_DIGITS:
        return f"{digits(str(value))}th"
    return _plain(num2words(value, to="ordinal"))


@lru_cache(1024)
def year(value: int) -> str:
    """`1905` is "nineteen oh five", `2004` "two thousand four", `2024` "twenty twenty four"."""
    if not 1000 <= value <= 9999 or value % 1000 == 0 or 2000 <= value < 2010:
        return cardinal(value)
    century, rest = divmod(value, 100)
    if rest == 0:
        return f"{cardinal(century)} hundred"
    if century == 10 and rest < 10:
        return cardinal(value)  # 1066 is "ten sixty six", but 1001 is not "ten oh one"
    return f"{cardinal(century)} {two_digits(rest)}"


def two_digits(value: int) -> str:
    """The words for the last two digits of a year or a house number: `5` is "oh five"."""
    return f"oh {cardinal(value)}" if value < 10 else cardinal(value)


def digits(text: str) -> str:
    """Every digit of `text` by its name."""
    return " ".join(DIGITS[int(c)] for c in text if c.isdecimal())


def number(text: str) -> str:
    """The words for a number that may have commas, a sign and a decimal point: `-1,234.50`.

    A whole number with a leading zero is no quantity, and is read digit by digit.
    """
    text = with_point(text).replace(",", "").replace(" ", "").replace("_", "")
    if text[:1] in "+-−±":
        sign = {"+": "plus", "±": "plus or minus"}.get(text[0], "minus")
        return f"{sign} {number(text[1:])}"
    whole, point, decimals = text.partition(".")
    if point and decimals:
        lead = f"{number(whole)} " if whole else ""
        return f"{lead}point {digits(decimals)}"
    if len(whole) > 1 and whole[0] == "0":
        return digits(whole)
    return cardinal(int(whole))


def with_point(text: str) -> str:
    """A number whose decimal mark is a comma (`1.299,00`, `21,5`), written with a decimal point. Every other
    number stays as it is."""
    whole, comma, decimals = text.rpartition(",")
    is_decimal = comma and len(decimals) in (1, 2) and decimals.isdecimal()
    return f"{whole.replace('.', '')}.{decimals}" if is_decimal else text


def is_one(text: str) -> bool:
    """Whether what is counted stands in the singular: `1`, but not `1.0`."""
    return text.lstrip("+-−") == "1"


def counted(text: str, one: str, many: str) -> str:
    """A number with the name of what it counts: `1`, `inch`, `inches` is "one inch"."""
    return f"{number(text)} {one if is_one(text) else many}"


def fraction(numerator: int, denominator: int) -> str:
    """`3`, `4` is "three quarters"; a denominator of 0 or 1 cannot be named and is read "over"."""
    if denominator < 2:
        return f"{cardinal(numerator)} over {cardinal(denominator)}"
    name = ordinal(denominator)
    if denominator in (100, 1_000, 1_000_000):
        name = name.removeprefix("one ")
    one, many = FRACTION_NAMES.get(denominator, (name, f"{name}s"))
    return f"{cardinal(numerator)} {one if numerator == 1 else many}"


def mixed(whole: int, numerator: int, denominator: int) -> str:
    """The words for a whole number and a fraction: `1`, `1`, `2` is "one and a half"."""
    part = fraction(numerator, denominator)
    if (numerator, denominator) in ((1, 2), (1, 4)):
        part = part.replace("one", "a", 1)
    return f"{cardinal(whole)} and {part}"


def _plain(words: str) -> str:
    return words.replace(" and ", " ").replace(",", "").replace("-", " ")


def vulgar(whole: str | None, part: str) -> str:
    """The words for a fraction that is one character, after a whole number or alone: `1`, `½` is "one and a
    half", None, `¾` is "three quarters"."""
    value = Fraction(unicodedata.numeric(part)).limit_denominator(10)
    if whole:
        return mixed(int(whole), value.numerator, value.denominator)
    return fraction(value.numerator, value.denominator)


def in_pairs(text: str) -> str:
    """Digits read in pairs: `2450` is "twenty four fifty", `305` "three oh five", `1600` "sixteen hundred",
    `51` "fifty one"."""
    if text[0] == "0" or len(text) > 4:
        return digits(text)
    value = int(text)
    high, low = divmod(value, 100)
    if len(text) < 3 or value % 1000 == 0:
        return cardinal(value)
    return f"{cardinal(high)} {two_digits(low) if low else 'hundred'}"
