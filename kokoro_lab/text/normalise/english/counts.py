"""Fractions, scores, ratios, ordinals and ranges in English, and all numbers that no other rule has taken."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.english.identifiers import serial
from kokoro_lab.text.normalise.english.numerals import (
    cardinal,
    counted,
    digits,
    fraction,
    in_pairs,
    mixed,
    number,
    ordinal,
    vulgar,
)
from kokoro_lab.text.normalise.english.patterns import MAGNITUDES, NAMES, optional, scaled, sign

VULGAR = "[¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞]"
_COMPARED = {"≈": "approximately ", ">": "greater than "}  # of a number alone
SHARED = regex.compile(r"\ (?:split|mix|deal|partnership|chance|ratio|rule|vote)\b")


def _fraction(match: Any) -> str | None:
    numerator, denominator = (int(match[n].replace(",", "")) for n in ("numerator", "denominator"))
    if match["whole"]:
        return mixed(int(match["whole"]), numerator, denominator)
    if (numerator, denominator) in ((24, 7), (9, 11), (50, 50), (20, 20)):
        return f"{cardinal(numerator)} {cardinal(denominator)}" if denominator != 11 else "nine eleven"
    if (denominator > 100 and denominator % 100) or numerator > denominator > 20:
        return f"{sign(match)}{cardinal(numerator)} over {cardinal(denominator)}"
    return sign(match) + fraction(numerator, denominator)


def _range(match: Any) -> str:
    first, last = match["first"], match["last"]
    shares = first.isdecimal() and last.isdecimal() and int(first) + int(last) == 100
    if shares and not optional(match, "big") and (first == last or SHARED.match(match.string, match.end())):
        return f"{number(first)} {number(last)}"  # a fifty fifty chance
    return f"{number(first)} to {scaled(last, optional(match, 'big'))}"


def _ordinal(match: Any) -> str:
    numbers = filter(None, (optional(match, "first"), match["last"]))
    return " to ".join(ordinal(int(each.replace(",", ""))) for each in numbers)


def _number(match: Any) -> str:
    more = " plus" if match["more"] else ""
    return f"{sign(match)}{scaled(match['number'], optional(match, 'big'))}{more}"


def _plural(words: str) -> str:
    """`fifty two` is "fifty twos", `sixty` "sixties"."""
    if words.endswith("y"):
        return f"{words[:-1]}ies"
    return f"{words}es" if words.endswith("x") else f"{words}s"


def _left_over(match: Any) -> str:
    """Digits that no rule takes: a short run as a number, a long one digit by digit."""
    text = match.group()
    return number(text) if len(text) <= 4 and text.isascii() else digits(text)


def _plan_of_pension(match: Any) -> str:
    return f"{in_pairs(match['number'])} {match['letter'].upper()}"


def _round(match: Any) -> str:
    return NAMES["round number"][match["number"].replace(",", "")]


def _several(match: Any) -> str:
    return _plural(in_pairs(match["number"]) if match["number"] else serial(match["code"]))


def _vulgar_fraction(match: Any) -> str:
    return vulgar(match["whole"], match["part"])


def _of_all(match: Any) -> str | None:
    part, whole = match["part"], match["whole"]
    return f"{number(part)} of {number(whole)}" if int(part) <= int(whole) else None


def _pages(match: Any) -> str:
    pages = _range(match) if match["last"] else number(match["first"])
    return ", ".join((*map(number, match.group("volume", "issue")), pages))


def _ratio_of(match: Any) -> str:
    return " to ".join(map(number, match.group().split(":")))


def _times_in_a_day(match: Any) -> str:
    return f"{counted(match['last'], 'time', 'times')} per {NAMES['per'][match['per']]}"


def _times_or_span(match: Any) -> str:
    return f"{number(match['first'])} to {number(match['last'])}" if match["first"] else number(match["last"])


SURE_MAGNITUDES = MAGNITUDES.keys() - {"m", "t", "mm", "MM", "T", "b"}
"""Short names of magnitudes that are no units."""


def _about(match: Any) -> str:
    return f"{_COMPARED.get(match['sign']) or sign(match)}{number(match['number'])}"
