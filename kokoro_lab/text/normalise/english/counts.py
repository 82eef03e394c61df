"""Fractions, scores, ratios, ordinals, ranges, and plain numbers: what no other kind has taken."""

from __future__ import annotations

import unicodedata
from fractions import Fraction
from typing import Any

import regex

from kokoro_lab.text.normalise.english.numerals import (
    cardinal,
    digits,
    fraction,
    in_pairs,
    mixed,
    number,
    ordinal,
)
from kokoro_lab.text.normalise.english.patterns import DECIMAL, END, MAGNITUDES, START, WHOLE, any_of, scaled
from kokoro_lab.text.normalise.english.serials import serial
from kokoro_lab.text.normalise.rules import Rule, digit_rule, rule

VULGAR = "[¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞]"


SHARED = regex.compile(r"\ (?:split|mix|deal|partnership|chance|ratio|rule|vote)\b")


def _vulgar(match: Any) -> str:
    value = Fraction(unicodedata.numeric(match["part"])).limit_denominator(10)
    whole = match["whole"]
    if whole:
        return mixed(int(whole), value.numerator, value.denominator)
    return fraction(value.numerator, value.denominator)


def _fraction(match: Any) -> str | None:
    numerator, denominator = (int(match[n].replace(",", "")) for n in ("numerator", "denominator"))
    if match["whole"]:
        return mixed(int(match["whole"]), numerator, denominator)
    if (numerator, denominator) in ((24, 7), (9, 11), (50, 50), (20, 20)):
        return f"{cardinal(numerator)} {cardinal(denominator)}" if denominator != 11 else "nine eleven"
    sign = "minus " if match["sign"] else ""
    if (denominator > 100 and denominator % 100) or numerator > denominator > 20:
        return f"{sign}{cardinal(numerator)} over {cardinal(denominator)}"
    return sign + fraction(numerator, denominator)


def _out_of(match: Any) -> str:
    return f"{number(match['numerator'])} out of {number(match['denominator'])}"


def _ratio(match: Any) -> str:
    return " to ".join(number(part) for part in match["ratio"].replace(" ", "").split(":"))


def _score(match: Any) -> str:
    return " to ".join(number(part) for part in (match["first"], match["last"]))


def _range(match: Any) -> str:
    first, last = match["first"], match["last"]
    big = match["big"]
    if big:
        return f"{number(first)} to {scaled(last, big)}"
    shares = first.isdecimal() and last.isdecimal() and int(first) + int(last) == 100
    if shares and (first == last or SHARED.match(match.string, match.end())):
        return f"{number(first)} {number(last)}"  # a fifty fifty chance
    return f"{number(first)} to {number(last)}"


def _ordinals(match: Any) -> str:
    return " to ".join(ordinal(int(match[n].replace(",", ""))) for n in ("first", "last"))


def _ordinal(match: Any) -> str:
    return ordinal(int(match["number"].replace(",", "")))


def _short_scale(match: Any) -> str:
    more = " plus" if match["more"] else ""
    return f"{_said_sign(match['sign'])}{scaled(match['number'], match['big'])}{more}"


def _said_sign(sign: str | None) -> str:
    return {"-": "minus ", "−": "minus ", "+": "plus ", "±": "plus or minus "}.get(sign or "", "")


def _number(match: Any) -> str:
    more = " plus" if match["more"] else ""
    return f"{_said_sign(match['sign'])}{number(match['number'])}{more}"


def _approximately(match: Any) -> str:
    lead = {
        "~": "about",
        "≈": "approximately",
        "<": "less than",
        ">": "more than",
        "≤": "at most",
        "≥": "at least",
    }
    return f"{lead[match['sign']]} {number(match['number'])}"


def _identifier(match: Any) -> str:
    """A number of a room, a flight, a house: four digits in pairs, three as one and two, the rest in full."""
    return in_pairs(match["number"])


ROUND = {
    "10": "tens", "100": "hundreds", "1000": "thousands", "10000": "tens of thousands",
    "100000": "hundreds of thousands", "1000000": "millions",
}  # fmt: skip


def _plural(words: str) -> str:
    """`fifty two` is "fifty twos", `sixty` "sixties"."""
    if words.endswith("y"):
        return f"{words[:-1]}ies"
    return f"{words}es" if words.endswith("x") else f"{words}s"


def _left_over(match: Any) -> str:
    """Digits in a place that no rule knows: a short run as a number, a long one digit by digit."""
    text = match.group()
    return number(text) if len(text) <= 4 and text.isascii() else digits(text)


BEFORE_UNITS: tuple[Rule, ...] = (
    digit_rule(
        "plan of pension",
        r"(?<![\p{L}\p{N}])(?P<number>401|403|457|529)\((?P<letter>[a-k])\)",
        lambda match: f"{in_pairs(match['number'])} {match['letter'].upper()}",
    ),
    digit_rule(
        "tens, hundreds and thousands",
        rf"{START}(?P<number>10|100|1,?000|10,?000|100,?000|1,?000,?000)s(?=\ of\b)",
        lambda match: ROUND[match["number"].replace(",", "")],
    ),
    digit_rule(
        "several of a number",
        r"""(?:(?<=\b(?i:the|these|those|two|three|new|old|boeing)\ )(?P<number>\d{3})|(?<![\p{L}\p{N}-])
        (?P<code>\p{Lu}{1,3}-?\d{1,3}))s(?![\p{L}\p{N}'])""",
        lambda match: _plural(in_pairs(match["number"]) if match["number"] else serial(match["code"])),
    ),
)
RULES: tuple[Rule, ...] = (
    digit_rule(
        "short scale before what is counted",
        rf"""(?<![\p{{L}}\p{{N}}_.,])(?P<sign>(?!))?(?P<number>{DECIMAL})(?P<big>[MB]|bn|(?<=\d\d)[Kk])
        (?P<more>\+)?(?=\ (?!race\b|run\b|resolution\b|video\b|gold\b)\p{{Ll}}{{3,}})""",
        _short_scale,
    ),
    rule(
        "number sign",
        r"(?<![\p{L}\p{N}&])(?:\#|№)\ ?(?P<number>\d[\d,]*)(?![\p{L}\p{N}])",
        lambda match: f"number {number(match['number'])}",
        wakes="#№",
    ),
    rule(
        "vulgar fraction",
        rf"(?<![\p{{L}}\p{{N}}.,/])(?:(?P<whole>\d+)\ ?)?(?P<part>{VULGAR})",
        _vulgar,
    ),
    rule(
        "part of a whole",
        rf"""(?<=\b(?:score(?:d)?|rated|rating(?:\ of)?|got|gave\ it|gave\ it\ a|a)\ )
        (?P<numerator>{DECIMAL})/
        (?P<denominator>5|10|100|20){END}""",
        _out_of,
        wakes="/",
    ),
    rule(
        "fraction",
        rf"""(?<![\p{{L}}\p{{N}}_.,:/])(?P<sign>[-−](?=\d))?(?:(?P<whole>\d+)(?:\ |\ ?-\ ?|\ and\ ))?
        (?P<numerator>{WHOLE})\ ?[/⁄]\ ?
        (?P<denominator>{WHOLE})(?:ths?|rds?|nds?)?{END}(?![/.]\d)""",
        _fraction,
        wakes="/⁄",
    ),
    digit_rule(
        "score",
        r"""(?<=\b(?i:won|win|wins|lost|lose|loses|beat|defeated|drew|draw|draws|tied|led|lead|leads
        |score\ (?:was|is|of)|
        score|scored|by|trailed|trailing|victory|defeat|loss|final\ score|record\ (?:of|was|is)|went
        |finished|vote|ruled|voted)[ ]
        (?:[\p{L}'.]+\ ){0,3})
        (?P<first>\d{1,3})[-–](?P<last>\d{1,3})(?![\p{L}\p{N}-]|[.,]\d)""",
        _score,
    ),
    digit_rule(
        "ratio", rf"{START}(?<![\d:.])(?P<ratio>\d+(?:\.\d+)?(?:\ ?:\ ?\d+(?:\.\d+)?)+){END}(?!:)", _ratio
    ),
    digit_rule(
        "span of ordinals",
        rf"{START}(?P<first>{WHOLE})(?:st|nd|rd|th)?\ ?[-–]\ ?(?P<last>{WHOLE})(?:st|nd|rd|th){END}",
        _ordinals,
        ignore_case=True,
    ),
    digit_rule(
        "ordinal",
        rf"{START}(?P<number>{WHOLE})\ ?(?:st|nd|rd|th|ᵗʰ|ˢᵗ|ⁿᵈ|ʳᵈ){END}",
        _ordinal,
        ignore_case=True,
    ),
    digit_rule(
        "room or flight",
        r"""(?<=\b(?i:room|rooms|rm\.|us|sr|flight|suite|apartment|apt\.?|unit|bus|route|highway|hwy\.?
        |interstate|gate
        |extension|ext\.?|building|boeing|cabin|locker|studio|terminal|ward|area)\ )(?P<number>\d{3,4})
        (?![\p{L}\p{N}-]|[.,]\d)""",
        _identifier,
    ),
    digit_rule(
        "range",
        rf"""(?<![\p{{L}}\p{{N}}_.,/$€£-])(?P<first>{DECIMAL})\ ?(?:[-–—~]|\.\.)\ ?(?P<last>{DECIMAL})(?:
        (?P<big>{any_of(MAGNITUDES)}))?
        (?![\p{{L}}\p{{N}}_/-]|[.,]\d)""",
        _range,
    ),
)
PLAIN: tuple[Rule, ...] = (
    digit_rule(
        "number in groups",
        r"(?<![\p{L}\p{N}_.,]|\p{N}\ )(?P<number>\d{1,3}(?:\ \d{3})+)(?![\p{L}\p{N}_]|[.,]\d|\ \d)",
        lambda match: number(match["number"]),
    ),
    digit_rule(
        "long number",
        rf"(?<![\p{{L}}\p{{N}}_.,$€£])(?P<number>0\d+|\d{{11,}}){END}(?![.,]\d)",
        lambda match: digits(match["number"]),
    ),
    digit_rule(
        "sign apart from its number",
        r"^[-−]\ (?P<number>\d[\d,.]*)$",
        lambda match: f"minus {number(match['number'])}",
    ),
    digit_rule(
        "short scale",
        rf"""(?<![\p{{L}}\p{{N}}_.,])(?P<sign>[-−+±])?(?P<number>{DECIMAL})
        (?P<big>{any_of(m for m in MAGNITUDES if m not in ("m", "t", "mm", "MM", "T", "b"))}|
        (?<=\d\.\d)[mb])(?P<more>\+)?{END}""",
        _short_scale,
    ),
    rule(
        "about a number",
        rf"(?<![\p{{L}}\p{{N}}])(?P<sign>[~≈<>≤≥])\ ?(?P<number>{DECIMAL}){END}",
        _approximately,
        wakes="<>~≈≤≥",
    ),
    digit_rule(
        "number",
        rf"""(?<![\p{{L}}\p{{N}}_]|\d[.,])(?P<sign>(?<![\p{{L}}\p{{N}})\]]|\p{{N}}\ )[-−+±](?=[\d.]))?
        (?P<number>{DECIMAL})(?P<more>\+(?![\p{{L}}\p{{N}}]))?(?![\p{{L}}\p{{N}}_])""",
        _number,
    ),
    rule("whatever digits are left", r"\p{Nd}+", _left_over),
    rule("whatever digit is left beside another rule's", r"\p{Nd}", _left_over),
)
