"""Quantities with a unit: lengths, weights, temperatures, per cent, sizes of files."""

from __future__ import annotations

from typing import Any

from kokoro_lab.text.normalise.english.numerals import cardinal, counted, fraction, is_one, mixed, number
from kokoro_lab.text.normalise.english.patterns import (
    DECIMAL,
    END,
    LOOSE_END,
    MAGNITUDE,
    NAMES,
    WORDS,
    any_word,
    ends_text,
    optional,
    sign,
    took_part,
)
from kokoro_lab.text.normalise.rules import Rule, digit_rule
from kokoro_lab.text.tables import any_of, entries, rows

UNITS = {
    written: (row["one"], row["many"])
    for row in rows(__package__, "units.tsv")
    for written in entries(row["written"])
}
"""Singular and plural of what is written, with its case."""
SPOKEN = frozenset(unit for unit, names in UNITS.items() if unit in names)
"""Units that are written as they are said: only what stands before them needs reading."""

_UNIT, _WORD_UNIT = any_of(UNITS.keys() - SPOKEN), any_of(SPOKEN)
_PER_UNIT = any_of(NAMES["per"].keys() | WORDS["shared per"])
_PER = rf"(?:/(?P<per>{_PER_UNIT}|head){LOOSE_END})?"
_SIGNED = r"(?P<sign>(?<![\p{L}\p{N}.)\]])[-−–+±~≈<>≤≥]\ ?)?"
_COMPOUND = rf"(?P<compound>-(?=\p{{Ll}})|(?=\ {any_word('noun behind a measure')}\b))?"
_LEFT = r"(?<![\p{L}\p{N}_.,/:]|\p{N}[.,])"


def per(match: Any) -> str:
    """` per hour`, where a slash and a unit stand behind an amount."""
    unit = optional(match, "per")
    return f" per {NAMES['per'].get(unit, unit)}" if unit else ""


def _quantity(match: Any) -> str | None:
    text, unit, big = match["number"], match["unit"], match["big"]
    loose = unit in WORDS["unit behind a space alone"]  # 4B is a flat, 2A a seat, 1st an ordinal
    if loose and (not match["gap"] or match.string[match.end() :][:1] == "."):
        return None
    one, many = UNITS[unit]
    words = number(text) + (f" {big}" if big else "")
    singular = (is_one(text) and not big) or took_part(match, "compound") or match["hyphen"]
    stop = "." if unit.endswith(".") and ends_text(match) else ""
    return f"{sign(match)}{words} {one if singular else many}{per(match)}{stop}"


def _span(match: Any) -> str:
    first, last, unit = match["first"], match["last"], match["unit"]
    one, many = UNITS[unit]
    lead = match["unit_before"]
    left = f"{number(first)} {UNITS[lead][1]}" if lead and lead.strip() != unit.strip() else number(first)
    named = one if took_part(match, "compound") else many
    return f"{sign(match)}{left} to {number(last)} {named}{per(match)}"


def _box(match: Any) -> str:
    unit = match["unit"]
    sides = [number(match[name]) for name in ("first", "second", "third") if match[name]]
    return " by ".join(sides) + (f" {UNITS[unit][1]}" if unit else "")


def _sides(match: Any) -> str:
    one, many = UNITS[match["unit"]]
    sides = [match[name] for name in ("first", "second", "third") if match[name]]
    return " by ".join(counted(side, one, many) for side in sides)


def _fractional(match: Any) -> str:
    whole, numerator, denominator = match["whole"], int(match["numerator"]), int(match["denominator"])
    one, many = UNITS[match["unit"]]
    if whole:
        return f"{mixed(int(whole), numerator, denominator)} {one if match['compound'] else many}"
    words = fraction(numerator, denominator)
    if took_part(match, "compound"):
        return f"{words} {one}"
    article = "an" if one[0] in "aeio" or one == "hour" else "a"
    if (numerator, denominator) == (1, 2):
        return f"half {article} {one}"
    return f"{words} of {article} {one}"


def _height(match: Any) -> str:
    feet, inches = match["feet"], match["inches"]
    words = f"{cardinal(int(feet))} {'foot' if int(feet) == 1 or inches else 'feet'}"
    if not inches:
        return words
    return f"{words} {number(inches)}"


def _inches(match: Any) -> str:
    return counted(match["number"], "inch", "inch" if took_part(match, "compound") else "inches")


def _degrees(match: Any) -> str:
    names = [name for name in ("degrees", "minutes", "seconds") if match[name]]
    words = " ".join(counted(match[name], name[:-1], name) for name in names)
    return f"{words} {NAMES['direction'][match['direction']].lower()}"


RULES: tuple[Rule, ...] = (
    digit_rule(
        "inches by inches",
        rf"""{_LEFT}(?P<first>{DECIMAL})\ ?["″]?\ ?(?:[x×]|by)\ ?(?P<last>{DECIMAL})
        (?:\ ?["″]|\ in{LOOSE_END}\.?)""",
        lambda match: f"{number(match['first'])} by {number(match['last'])} inches",
    ),
    Rule(
        "degrees, minutes and seconds",
        rf"""{_LEFT}(?P<degrees>\d+(?:\.\d+)?)\ ?°\ ?(?:(?P<minutes>\d+(?:\.\d+)?)\ ?['′]\ ?(?:
        (?P<seconds>\d+(?:\.\d+)?)\ ?["″]\ ?)?)?(?P<direction>[NSEW]){END}""",
        _degrees,
        wakes="°",
    ),
    digit_rule(
        "feet and inches",
        r"""(?<![\p{L}\p{N}_.,'"])(?P<feet>\d+)\ ?['′]\ ?-?(?:(?P<inches>\d{1,2}(?:\.\d+)?)\ ?(?:["″”]|''|
        (?=[ ]|$|[,.;)]))|(?=\ (?:tall|high|long|wide|deep))|(?<=^\d+\ ?['′])$)""",
        _height,
    ),
    digit_rule(
        "inches",
        rf"""{_LEFT}(?P<number>{DECIMAL})\ ?(?:″|"(?=\ {any_word("noun behind inches")}|\ ?[x×])
        |[-\ ]in(?:\.|(?=[-\ ](?:diameter|screen|wide|tall|long)))){_COMPOUND}""",
        _inches,
    ),
    Rule(
        "sides with their units",
        rf"""{_LEFT}(?P<first>{DECIMAL})\ ?(?P<unit>{_UNIT})\ ?[x×]\ ?(?P<second>{DECIMAL})\ ?(?P=unit)
        (?:\ ?[x×]\ ?(?P<third>{DECIMAL})\ ?(?P=unit))?{LOOSE_END}""",
        _sides,
    ),
    digit_rule(
        "box",
        rf"""{_LEFT}(?P<first>{DECIMAL})\ ?[x×]\ ?(?P<second>{DECIMAL})(?:\ ?[x×]\ ?(?P<third>{DECIMAL}))?
        (?:\ ?(?P<unit>{_UNIT}){LOOSE_END}|(?![\p{{L}}\p{{N}}^⁰¹²³⁴-⁹⁻]|[.,]\d))(?!\ ?=)""",
        _box,
    ),
    Rule(
        "fraction of a unit",
        rf"""{_LEFT}(?:(?P<whole>\d+)(?:\ |-))?(?P<numerator>\d+)/(?P<denominator>\d+)[\ -]
        (?P<unit>{_UNIT}|{_WORD_UNIT}){LOOSE_END}{_COMPOUND}""",
        _fractional,
        wakes="/",
    ),
    digit_rule(
        "span of quantities",
        rf"""{_SIGNED}{_LEFT}(?P<first>{DECIMAL})(?:\ ?(?P<unit_before>{_UNIT}))?\ ?[-–]\ ?
        (?P<last>{DECIMAL})\ ?-?(?P<unit>{_UNIT}){LOOSE_END}{_PER}{_COMPOUND}""",
        _span,
    ),
    digit_rule(
        "quantity",
        rf"""{_SIGNED}{_LEFT}(?P<number>{DECIMAL})(?:\ (?P<big>{MAGNITUDE}))?(?:(?P<gap>\ )|(?P<hyphen>-))?
        (?P<unit>{_UNIT}){LOOSE_END}(?:\.(?=\ \p{{Ll}}))?{_PER}{_COMPOUND}""",
        _quantity,
    ),
    digit_rule(
        "inches at an end",
        rf"{_LEFT}(?P<number>{DECIMAL})\ in(?=\s*(?:$|[,;)]|\.$|\ {any_word('dimension')}\b))",
        _inches,
    ),
    digit_rule(
        "inches behind feet",
        r"(?<=(?:\bft\.?|\bfeet|\bfoot)\ )(?P<number>\d{1,2}(?:\.\d+)?)\ in(?![\p{L}\p{N}])\.?",
        _inches,
    ),
    Rule(
        "unit per unit",
        rf"(?<=\d\ )(?P<noun>\p{{Ll}}{{3,}})/(?P<per>{_PER_UNIT}){LOOSE_END}",
        lambda match: match["noun"] + per(match),
        wakes="/",
    ),
)
