"""Numbers that nothing else has taken: versions, scores, ranges, plain ones that agree with their noun."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.rules import Rule, digit_rule, rule
from kokoro_lab.text.normalise.spanish.agreement import gender_behind, word_before
from kokoro_lab.text.normalise.spanish.numerals import NUMERAL, SIGN, read, signed
from kokoro_lab.text.normalise.spanish.wordlist import wordlist
from kokoro_lab.text.normalise.spanish.words import cardinal, digits

_COUNTED_BEHIND = regex.compile(r"[ ]\p{Ll}{3,}s(?!\w)")
_SOFTWARE = wordlist("versión python java windows ios android linux ubuntu firmware php node")


def _number(match: Any) -> str:
    written, text = match["number"], match.string
    number = read(written, comma_groups=bool(_COUNTED_BEHIND.match(text, match.end())))
    gender = gender_behind(
        text, match.start("number"), match.end(), one=number.is_one, grouped=number.grouped
    )
    if number.grouped and word_before(text, match.start()) in _SOFTWARE:
        return " punto ".join(cardinal(int(part)) for part in written.split("."))
    return signed(match["sign"], number.words(None if number.decimals else gender))


def _range(match: Any) -> str | None:
    low, high = read(match["low"]), read(match["high"])
    gender = gender_behind(match.string, match.start(), match.end(), one=False, grouped=True)
    joint = "menos" if _is_difference(match, low.value, high.value) else "a"
    return f"{low.words(gender)} {joint} {high.words(gender)}"


def _is_difference(match: Any, low: int, high: int) -> bool:
    """Whether the stroke takes away: in a sum, or set apart with the larger number first."""
    sum_goes_on = _OPERATOR.match(match.string, match.end()) or match.string[
        : match.start()
    ].rstrip().endswith(("+", "=", "×", "*"))
    spaced = " - " in match.group() or " – " in match.group()
    return bool(sum_goes_on) or (spaced and low > high)


def _pieces(match: Any) -> str:
    """Long ones identify something, digit by digit; short ones are numbers in a row."""
    pieces = regex.findall(r"\d+", match.group())
    if sum(map(len, pieces)) >= _IDENTIFIES:
        return digits(match.group())
    return " ".join(cardinal(int(piece)) if not piece.startswith("0") else digits(piece) for piece in pieces)


def _version(match: Any) -> str:
    parts = (
        cardinal(int(each)) if not each.startswith("0") else digits(each)
        for each in match["parts"].split(".")
    )
    said = " punto ".join(parts)
    return f"versión {said}" if match["letter"] else said


def _pair(match: Any) -> str:
    return " ".join(cardinal(int(each)) for each in match.group().split("/"))


_OPERATOR = regex.compile(r"[ ]?[-+=×*÷]")
_IDENTIFIES = 8
"""Digits of a number in pieces from which on it is a name and no quantity."""

VERSIONS: tuple[Rule, ...] = (
    digit_rule(
        "version or address of a machine",
        r"""(?<![\w.,])(?:
              (?P<letter>[vV]\.?[ ]?)(?P<parts>\d{1,4}(?:\.\d{1,4}){0,3})
            | (?P<parts>(?!\d{1,3}(?:\.\d{3})+(?![\d.]))\d{1,5}(?:\.\d{1,5}){2,3})  # thousands are none
            )(?![\w])(?!\.\d)""",
        _version,
    ),
)

RULES: tuple[Rule, ...] = (
    digit_rule(
        "range or score",
        rf"(?<![\w.,/:-])(?P<low>{NUMERAL})(?:[ ]?[-–][ ]?)(?P<high>{NUMERAL})(?![\w/:]|-\w)",
        _range,
    ),
    digit_rule(
        "number in pieces",
        r"(?<![\w.,/])\d+(?:-\d+){2,}(?![\w/])|(?<![\w.,/])\d{4}(?:[ ]\d{4}){2,}(?:[ ]\d{1,4})?(?![\w/])",
        _pieces,
    ),
    digit_rule("ratio", r"(?<=\d[ ]?):(?=\d)", lambda _: "a"),
    rule("pair", r"(?<![\w/])(?:24/7|50/50)(?![\w/])", _pair, wakes="/"),
    rule("stroke between numbers", r"(?<=\d)/(?=\d)", lambda _: "barra", wakes="/"),
    digit_rule("number", rf"(?P<sign>{SIGN})(?P<number>{NUMERAL})", _number),
)
