"""Numbers that nothing else has taken: versions, scores, ranges, and plain ones that agree with their noun."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.rules import Rule, rule
from kokoro_lab.text.normalise.spanish.agreement import gender_behind, word_before
from kokoro_lab.text.normalise.spanish.numerals import NUMERAL, SIGN, read, signed
from kokoro_lab.text.normalise.spanish.words import cardinal, digits

_COUNTED_BEHIND = regex.compile(r"[ ]\p{Ll}{3,}s(?!\w)")
_SOFTWARE = frozenset("versión python java windows ios android linux ubuntu firmware php node".split())


def _number(match: Any) -> str:
    written, text = match["number"], match.string
    number = read(written, comma_groups=bool(_COUNTED_BEHIND.match(text, match.end())))
    gender = gender_behind(text, match.start("number"), match.end(), one=number.is_one, grouped=number.grouped)
    if number.grouped and word_before(text, match.start()) in _SOFTWARE:
        return " punto ".join(cardinal(int(part)) for part in written.split("."))
    return signed(match["sign"], number.words(None if number.decimals else gender))


def _range(match: Any) -> str | None:
    low, high = read(match["low"]), read(match["high"])
    gender = gender_behind(match.string, match.start(), match.end(), one=False, grouped=True)
    return f"{low.words(gender)} a {high.words(gender)}"


def _version(match: Any) -> str:
    parts = (cardinal(int(each)) if not each.startswith("0") else digits(each) for each in match["parts"].split("."))
    said = " punto ".join(parts)
    return f"versión {said}" if match["letter"] else said


def _pair(match: Any) -> str:
    return " ".join(cardinal(int(each)) for each in match.group().split("/"))


VERSIONS: tuple[Rule, ...] = (
    rule(
        "version or address of a machine",
        r"""(?<![\w.,])(?P<letter>[vV]\.?[ ]?)?(?P<parts>
             (?!\d{1,3}(?:\.\d{3})+(?![\d.]))\d{1,5}(?:\.\d{1,5}){2,3}   # thousands are no version
            | (?<=[vV]\.?[ ]?)\d{1,3}(?:\.\d{1,3})?)(?![\w])(?!\.\d)""",
        _version,
    ),
)

RULES: tuple[Rule, ...] = (
    rule(
        "range or score",
        rf"(?<![\w.,/:-])(?P<low>{NUMERAL})(?:-|[ ]?–[ ]?)(?P<high>{NUMERAL})(?![\w/:]|-\w)",
        _range,
    ),
    rule("pair", r"(?<![\w/])(?:24/7|50/50)(?![\w/])", _pair),
    rule("number", rf"(?P<sign>{SIGN})(?P<number>{NUMERAL})", _number),
)
