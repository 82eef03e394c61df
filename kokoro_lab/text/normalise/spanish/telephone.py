"""Telephone numbers: pairs of digits are said as numbers, longer groups digit by digit.

So does whoever dictates a number that is written in groups (`noventa y uno, uno dos tres, cuarenta y cinco`),
in Spain as in America, and no digit can be misheard.
"""

from __future__ import annotations

import re
from typing import Any

from kokoro_lab.text.normalise.rules import Rule, digit_rule, rule
from kokoro_lab.text.normalise.spanish.words import cardinal, digits

_EXTENSION = r"(?:,?[ ]?(?:ext|extensión|int|anexo|x)\.?[ ]?(?P<extension>\d{1,5})(?!\w))?"
LAST_YEAR = 2100
"""No range of years goes further."""
_SPACE = r"[ .-]"
_START, _STOP = r"(?<![\w+/.,:-])", r"(?![\w/:-]|[.,]\d|[ ]\d)"
_COUNTED = r"(?![ ](?:de[ ]|euros|pesos|dólares|habitantes|personas|km|kg|[€$%]|\p{Ll}{3,}s(?!\w)))"
_LEAD = r"""(?<=\b(?:tel|tels|tfno|tlf|tlfno|telf|teléfonos?|móvil|celular|cel|fax|whatsapp
    |ll[aá]m\p{L}+|m[aá]r[cq]\p{L}+|número)
    (?:[ ](?:fijo|móvil|de[ ]contacto|es|al|a|el|es[ ]el|con[ ]el|por[ ]el))*[.:]{0,2}[ ]?)"""


def _group(group: str) -> str:
    if len(group) == 2 and not group.startswith("0"):
        return cardinal(int(group))
    return digits(group)


def _telephone(match: Any) -> str:
    number = match["number"]
    groups = re.findall(r"\d+", number)
    said = [_group(group) for group in groups]
    if number.startswith("+"):
        # a country's code is a number of its own, but not when everything is glued to it
        said[0] = f"más {cardinal(int(groups[0])) if len(groups) > 1 else digits(groups[0])}"
    if match["extension"]:
        said += ["extensión", _group(match["extension"])]
    return " ".join(said)


def _counted(match: Any) -> str | None:
    return _telephone(match) if 7 <= len(re.sub(r"\D", "", match["number"])) <= 15 else None


def _two_fours(match: Any) -> str | None:
    low, high = int(match["left"]), int(match["right"])
    range_of_years = low < high <= LAST_YEAR
    range_of_round = low < high and low % 50 == high % 50 == 0
    return None if range_of_years or range_of_round else _telephone(match)


RULES: tuple[Rule, ...] = (
    rule(
        "international telephone number",
        rf"(?<![\w+])(?P<number>\+\d{{1,3}}(?:{_SPACE}?\(\d{{1,4}}\))?(?:{_SPACE}?\d{{1,4}}){{2,6}}){_EXTENSION}{_STOP}",
        _counted,
        wakes="+",
    ),
    digit_rule(
        "telephone number with an area code",
        rf"(?<![\w+])(?P<number>\(\d{{2,4}}\)[ ]?\d{{3,4}}[ -]?\d{{2,4}}(?:[ -]?\d{{2,4}})?)"
        rf"{_EXTENSION}{_STOP}",
        _counted,
    ),
    digit_rule(
        "telephone number in groups",
        rf"""{_START}(?P<number>
              [89]\d[ .-]\d{{3}}[ .-]\d{{2}}[ .-]\d{{2}}        # 91 123 45 67
            | [6-9]\d{{2}}[ .-]\d{{2}}[ .-]\d{{2}}[ .-]\d{{2}}  # 600 11 22 33
            | [6-9]\d{{2}}[ -]\d{{3}}[ -]\d{{3}}                # 912 345 678
            | \d{{3}}-\d{{3}}-\d{{4}} | \d{{3}}[ ]\d{{3}}[ ]\d{{4}} | \d{{3}}-\d{{4}}
            | \d{{2}}[ -]\d{{4}}[ -]\d{{4}} | \d{{3}}-\d{{2}}-\d{{2}} | \d{{1,2}}-\d{{3}}-\d{{3}}-\d{{4}}
            | \d[ -]\d{{3}}-\d{{4}}
            ){_EXTENSION}{_STOP}{_COUNTED}""",
        _telephone,
    ),
    digit_rule(
        "number that can only be a telephone's",
        rf"{_START}(?P<number>[679]\d{{8}}|\d{{10,11}})(?<!000){_EXTENSION}{_STOP}{_COUNTED}",
        _counted,
    ),
    digit_rule(
        "two fours that are no years",
        rf"{_START}(?P<number>(?P<left>\d{{4}})-(?P<right>\d{{4}})){_EXTENSION}{_STOP}{_COUNTED}",
        _two_fours,
    ),
    digit_rule(
        "number that is said to be a telephone's",
        rf"{_LEAD}(?P<number>\d(?:{_SPACE}?\d){{6,14}}){_EXTENSION}{_STOP}{_COUNTED}",
        _counted,
        ignore_case=True,
    ),
)
