"""Spanish ordinals, fractions, versions, scores and ranges, and plain numbers that agree with their noun."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.rules import Rule, digit_rule
from kokoro_lab.text.normalise.spanish.agreement import gender_behind, gender_of, plural_gender, word_before
from kokoro_lab.text.normalise.spanish.numerals import (
    NUMERAL,
    SIGN,
    VULGAR,
    cardinal,
    digits,
    fraction,
    half,
    is_round,
    ordinal,
    read,
    signed,
)
from kokoro_lab.text.normalise.spanish.quantities import UNITS
from kokoro_lab.text.tables import Gender, any_of, names, words

_WORDS = words(__package__)
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
    """Whether the ordinal of `value` can be written with the suffix `mark`: `2do` can, `2mo` and `5a`
    cannot."""
    if mark in "ºª°" or mark in {"os", "as"}:
        return True
    if mark.startswith("er"):
        return value % 10 in {1, 3}
    return ordinal(value).endswith(mark.removesuffix("s")[:-1] + "o") and len(mark) > 1


def _before_noun(match: Any) -> bool:
    found = regex.match(r"[ ](\p{Ll}{3,})", match.string, pos=match.end())
    if not found or found[1] in _WORDS["no noun behind an ordinal"]:
        return False
    return gender_behind(match.string, match.start(), match.end(), one=True) == "m"


SMALL_PART = 20
"""If the denominator is larger than this, and the numerator larger still, the text is no fraction:
`120/80`."""
LARGEST_PART = 999
"""Fractions with a larger denominator are not said as such, except round ones such as thousandths."""
_PLURAL_IN_ES = ("ses", "res", "nes", "des", "les")


def _mixed(match: Any) -> str | None:
    said = _mixed_without_sign(match)
    return said and signed(match["sign"], said)


def _mixed_without_sign(match: Any) -> str | None:
    """The words for a number with a fraction, such as `dos tazas y media`: the noun comes right after the
    whole number."""
    top, bottom = VULGAR.get(match["vulgar"] or "") or (int(match["top"]), int(match["bottom"]))
    if not 0 < top < bottom:
        return None
    whole, noun, unit = int(match["whole"]), match["noun"] or "", UNITS.get(match["unit"] or "")
    gender: Gender | None = None
    if unit:
        noun, gender = unit.one if whole == 1 else unit.many, unit.gender
    noun = _SPOONS.get(match["unit"] or "", noun)
    if noun in _WORDS["no noun"] or (whole != 1 and noun and not noun.endswith("s")):
        return f"{_parts(whole, '', top, bottom, None)} {noun}"
    if noun and not unit:
        gender = plural_gender(noun) if noun.endswith("s") else gender_of(noun)
        if whole == 1 and noun.endswith("s"):
            noun = noun.removesuffix("es") if noun.endswith(_PLURAL_IN_ES) else noun.removesuffix("s")
    return _parts(whole, noun, top, bottom, gender)


def _parts(whole: int, noun: str, top: int, bottom: int, gender: Gender | None) -> str:
    part = half(gender) if (top, bottom) == (1, 2) else fraction(top, bottom)
    return f"{cardinal(whole, gender=gender)} {noun} y {part}".replace("  ", " ")


def _mark_of(match: Any) -> str:
    full = cardinal(int(match["full"]))
    return f"{read(match['part']).words()} sobre {full}"


def _half_of(match: Any) -> str | None:
    gender = gender_behind(match.string, match.start(), match.end(), one=True)
    return half(gender) if gender else None


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
    if bottom == 20 >= top > 1 and not match.string.startswith(" de ", match.end()):
        return f"{cardinal(top)} sobre {cardinal(bottom)}"
    if top == bottom and top > 4:  # a full mark, not a whole in parts
        return f"{cardinal(top)} de {cardinal(bottom)}"
    return fraction(top, bottom)


_VULGARS = "".join(VULGAR)
_SPOONS = {
    written: said for written, said in names(__package__)["abbreviation"].items() if said.startswith("cuchar")
}
"""Abbreviation of a spoon in recipes → its name."""

_NAME_BEHIND = regex.compile(r"[ ]\p{Lu}")
_COUNTED_BEHIND = regex.compile(r"[ ]\p{Ll}{3,}s(?!\w)")


def _number(match: Any) -> str:
    written, text = match["number"], match.string
    number = read(written, comma_groups=bool(_COUNTED_BEHIND.match(text, match.end())))
    gender = gender_behind(
        text, match.start("number"), match.end(), one=number.is_one, grouped=number.grouped
    )
    if number.grouped and word_before(text, match.start()) in _WORDS["program with versions"]:
        return " punto ".join(cardinal(int(part)) for part in written.split("."))
    return signed(match["sign"], number.words(None if number.decimals else gender))


def _range(match: Any) -> str | None:
    low, high = read(match["low"]), read(match["high"])
    name = _NAME_BEHIND.match(match.string, match.end())  # of who played: `3-1 Betis` counts no Betis
    gender = None if name else gender_behind(match.string, match.start(), match.end(), one=False)
    joint = "menos" if _is_difference(match, low.value, high.value) else "a"
    return f"{low.words(gender)} {joint} {high.words(gender)}"


def _is_difference(match: Any, low: int, high: int) -> bool:
    """Whether the dash between two numbers is a minus: it is in a sum, or between spaces with the larger
    number first."""
    behind_sum = match.string[: match.start()].rstrip().endswith(("+", "=", "×", "*"))
    spaced = " - " in match.group() or " – " in match.group()
    return behind_sum or bool(_OPERATOR.match(match.string, match.end())) or (spaced and low > high)


def _groups(match: Any) -> str:
    """The words for groups of digits. With `_IDENTIFIES` digits or more, they identify something, and are
    read digit by digit; with fewer, each group is read as a number."""
    groups = regex.findall(r"\d+", match.group())
    if sum(map(len, groups)) >= _IDENTIFIES:
        return digits(match.group())
    return " ".join(map(_spoken, groups))


def _spoken(number: str) -> str:
    return digits(number) if number.startswith("0") else cardinal(int(number))


def _version(match: Any) -> str:
    said = " punto ".join(map(_spoken, match["parts"].split(".")))
    return f"versión {said}" if match["letter"] else said


_OPERATOR = regex.compile(r"[ ]?[-+=×*÷]")
_IDENTIFIES = 8
"""A number in groups with this many digits or more identifies something, and is no quantity."""

VERSIONS: tuple[Rule, ...] = (
    digit_rule(
        "code",
        r"(?<=\b(?:código|clave|pin|otp)[ ]?:?[ ])\d{4,8}(?![\w/-]|[ .,]\d)",
        lambda match: digits(match.group()),
        ignore_case=True,
    ),
    digit_rule(
        "version or address of a machine",
        r"""(?<![\w.,-])(?:
              (?P<letter>[vV]\.?[ ]?)(?P<parts>\d{1,4}(?:\.\d{1,4}){0,3})
            | (?P<parts>(?!\d{1,3}(?:\.\d{3})+(?![\d.]))\d{1,5}(?:\.\d{1,5}){2,3})  # thousands are none
            )(?![\w])(?!\.\d)""",
        _version,
    ),
)

MIXED: tuple[Rule, ...] = (
    digit_rule(
        "mixed fraction",
        rf"{_START}(?P<sign>{SIGN})(?P<whole>\d{{1,4}})(?:[ ]{_SLASHED}|[ ]?(?P<vulgar>[{_VULGARS}]))"
        rf"(?:[ ]?(?P<unit>{any_of((*UNITS, *_SPOONS))})(?![\w²³/])"
        rf"|[ ](?P<noun>\p{{Ll}}{{2,}})(?!\w)|{_STOP})",
        _mixed,
        wakes=f"/⁄{_VULGARS}",
    ),
)
"""Rules for a whole number with a fraction. They come before the rules for units, which would take only the
fraction."""

ORDINALS: tuple[Rule, ...] = (
    digit_rule(
        "mark out of a full mark",
        r"(?<![\w.,/])(?:(?P<part>\d{1,2}[.,]\d\d?)"
        rf"|(?<=\b{any_of(_WORDS['before a mark'])}:?[ ])(?P<part>\d{{1,3}})"
        r"|(?P<part>\d{1,2})(?=/\d+[ ](?:estrellas|⭐|★)))/(?P<full>5|10|20|100)(?![\w/]|[.,]\d)",
        _mark_of,
        ignore_case=True,
    ),
    digit_rule(
        "ordinal",
        rf"(?<![\w.,/])(?P<number>\d{{1,4}}|\d\.\d{{3}})\.?{_MARK}(?!\w)(?:\.(?=[ ]\p{{Ll}}))?",
        _ordinal,
    ),
    Rule("half of", rf"{_START}(?:1/2|½)(?=[ ]\p{{Ll}}{{3,}})", _half_of, wakes="/½"),
    Rule(
        "house numbers",  # said one after the other
        rf"""{_START}(?=\d+/)(?<=(?<!\w)(?i:{any_of(_WORDS["street"])})[ ]
        (?:(?:del?|l[ao]s?|el|\p{{Lu}}[\p{{L}}.'’]*)[ ]){{0,4}}\p{{Lu}}[\p{{L}}.'’]*,?[ ]
        (?:n[.º°]{{1,2}}[ ]?|número[ ])?)
        \d{{1,3}}(?:/\d{{1,3}}){{1,2}}{_STOP}(?!(?<=,[ ][\d/]+)[ ]del?\b)""",
        _groups,
        wakes="/",
    ),
    Rule("fraction", rf"{_START}{_SLASHED}{_STOP}", _fraction, wakes="/⁄"),
    Rule(
        "fraction in one sign",
        f"[{_VULGARS}]",
        lambda match: fraction(*VULGAR[match.group()]),
        wakes=_VULGARS,
    ),
)

RULES: tuple[Rule, ...] = (
    digit_rule(
        "range or score",
        rf"(?<![\w.,/:-])(?P<low>{NUMERAL})(?:[ ]?[-–][ ]?)(?P<high>{NUMERAL})(?![\w/:]|-\w)",
        _range,
    ),
    digit_rule(
        "number in groups",
        r"(?<![\w.,/])\d+(?:-\d+){2,}(?![\w/])|(?<![\w.,/])\d{4}(?:[ ]\d{4}){2,}(?:[ ]\d{1,4})?(?![\w/])",
        _groups,
    ),
    digit_rule("ratio", r"(?<=\d[ ]?):(?=\d)", lambda _: "a", wakes=":"),
    Rule("pair", r"(?<![\w/])(?:24/7|50/50)(?![\w/])", _groups, wakes="/"),
    Rule("stroke between numbers", r"(?<=\d)/(?=\d)", lambda _: "barra", wakes="/"),
    digit_rule("number", rf"(?P<sign>{SIGN})(?P<number>{NUMERAL})", _number),
    # Behind something else that ends in a digit, as in `#A0.0`
    digit_rule("digits left over", r"\d+", lambda match: " ".join(cardinal(int(d)) for d in match.group())),
)
