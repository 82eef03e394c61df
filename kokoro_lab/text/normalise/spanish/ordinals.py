"""Ordinals (`1.º`, `3.er`, `2da`) and fractions (`3/4`, `1 1/2`, `½`)."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.rules import Rule, digit_rule, rule
from kokoro_lab.text.normalise.spanish.agreement import gender_behind, plural_gender
from kokoro_lab.text.normalise.spanish.wordlist import wordlist
from kokoro_lab.text.normalise.spanish.words import Gender, cardinal, fraction, is_round, ordinal, part

_VULGAR = {
    "½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅕": (1, 5), "⅖": (2, 5), "⅗": (3, 5),
    "⅘": (4, 5), "⅙": (1, 6), "⅚": (5, 6), "⅐": (1, 7), "⅛": (1, 8), "⅜": (3, 8), "⅝": (5, 8), "⅞": (7, 8),
    "⅑": (1, 9), "⅒": (1, 10),
}  # fmt: skip
_SLASHED = r"(?P<top>\d{1,4})[/⁄](?P<bottom>\d{1,7})"
_START, _STOP = r"(?<![\w/])(?<!\d[.,:-])", r"(?![\w/]|[.,:-]\d|[.-]\w)"
_MARK = r"(?P<mark>er[oa]?|os|as|ros?|ras?|dos?|das?|tos?|tas?|mos?|mas?|vos?|vas?|nos?|nas?|[oa]|[ºª°])"


def _ordinal(match: Any) -> str | None:
    mark, value = match["mark"], int(match["number"].replace(".", ""))
    if value == 0 or not _fits(value, mark):
        return None
    feminine = mark == "ª" or mark.removesuffix("s")[-1:] == "a"
    if mark == "er":
        return ordinal(value, short=True)
    words = ordinal(value, gender="f" if feminine else "m", short=not feminine and _before_noun(match))
    return words + "s" if mark.endswith("s") else words


def _fits(value: int, mark: str) -> bool:
    """Whether a suffix of letters is how that ordinal ends: `2do` is one, `2mo` and `5a` alone are none."""
    if mark in "ºª°" or mark in {"os", "as"}:
        return True
    if mark.startswith("er"):
        return value % 10 in {1, 3}
    return ordinal(value).endswith(mark.removesuffix("s")[:-1] + "o") and len(mark) > 1


def _before_noun(match: Any) -> bool:
    found = regex.match(r"[ ](\p{Ll}{3,})", match.string, pos=match.end())
    if not found or found[1] in _NO_NOUNS:
        return False
    return gender_behind(match.string, match.start(), match.end(), one=True) == "m"


SMALL_PART = 20
"""More than a whole of smaller parts is no fraction: `120/80`."""
LARGEST_PART = 999
"""Nobody counts smaller parts than that, but for thousandths and such."""
_NO_NOUNS = wordlist(
    "izquierda derecha izda dcha interior exterior ayer hoy absoluto consecutivo empatado seguido clasificado"
)


def _mixed(match: Any) -> str | None:
    groups = match.groupdict()
    top, bottom = _VULGAR.get(groups.get("vulgar") or "") or (int(match["top"]), int(match["bottom"]))
    if not 0 < top < bottom:
        return None
    whole = int(match["whole"])
    noun = groups.get("noun") or ""
    if (top, bottom) == (1, 2):
        return _and_half(whole, noun)
    return f"{cardinal(whole)} y {fraction(top, bottom)}" + (f" {noun}" if noun else "")


def _and_half(whole: int, noun: str) -> str:
    if not noun:
        return f"{cardinal(whole)} y medio"
    gender = plural_gender(noun)
    counted = _singular(noun) if whole == 1 else noun
    return f"{cardinal(whole, gender=gender)} {counted} y {'media' if gender == 'f' else 'medio'}"


def _singular(noun: str) -> str:
    return (
        noun[:-2]
        if regex.search(r"[^aeiou]es$", noun) and noun.endswith(_WITH_ES)
        else noun.removesuffix("s")
    )


_WITH_ES = ("ses", "res", "nes", "des", "les")


def _half_of(match: Any) -> str | None:
    gender: Gender | None = gender_behind(match.string, match.start(), match.end(), one=True)
    return {"f": "media", "m": "medio", None: None}[gender]


def _fraction(match: Any) -> str | None:
    top, bottom = int(match["top"]), int(match["bottom"])
    if bottom < 2 or (top, bottom) in {(24, 7), (50, 50)} or match["bottom"].startswith("0"):
        return None
    if 1900 <= top < 2100:  # "curso 2020/21"
        return f"{cardinal(top)} {cardinal(bottom)}"
    if top > bottom > SMALL_PART:  # blood pressure
        return f"{cardinal(top)} sobre {cardinal(bottom)}"
    if bottom > LARGEST_PART and not is_round(bottom):  # "ley 39/2015"
        return f"{cardinal(top)} barra {cardinal(bottom)}"
    if top == bottom and top > 4:  # a full mark, not a whole in parts
        return f"{cardinal(top)} de {cardinal(bottom)}"
    return fraction(top, bottom)


def _vulgar(match: Any) -> str:
    top, bottom = _VULGAR[match.group()]
    return f"{cardinal(top, gender='m')} {part(bottom, plural=top != 1)}"


_VULGARS = "".join(_VULGAR)

RULES: tuple[Rule, ...] = (
    digit_rule(
        "ordinal",
        rf"(?<![\w.,/])(?P<number>\d{{1,4}}|\d\.\d{{3}})\.?{_MARK}(?!\w)(?:\.(?=[ ]\p{{Ll}}))?",
        _ordinal,
    ),
    digit_rule(
        "mixed fraction",
        rf"{_START}(?P<whole>\d{{1,4}})(?:[ ]{_SLASHED}|[ ]?(?P<vulgar>[{_VULGARS}]))"
        rf"(?:[ ](?P<noun>\p{{Ll}}{{2,}}s)(?!\w)|{_STOP})",
        _mixed,
    ),
    rule("half of", rf"{_START}(?:1/2|½)(?=[ ]\p{{Ll}}{{3,}})", _half_of),
    rule("fraction", rf"{_START}{_SLASHED}{_STOP}", _fraction, wakes="/⁄"),
    rule("fraction in one sign", f"[{_VULGARS}]", _vulgar),
)
