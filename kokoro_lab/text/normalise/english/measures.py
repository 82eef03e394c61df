"""Quantities with a unit: lengths, weights, temperatures, per cent, sizes of files."""

from __future__ import annotations

from typing import Any

from kokoro_lab.text.normalise.english.numerals import cardinal, fraction, is_one, mixed, number
from kokoro_lab.text.normalise.english.patterns import DECIMAL, END, MAGNITUDE, any_of
from kokoro_lab.text.normalise.english.tables import table
from kokoro_lab.text.normalise.rules import Rule, digit_rule, rule

UNITS = {
    written: (row["one"], row["many"]) for row in table("units.tsv") for written in row["written"].split(", ")
}
"""Singular and plural of what is written, with its case."""
WORDS = frozenset(unit for unit, names in UNITS.items() if unit in names)
"""Units that are written as they are said: only what stands before them needs reading."""
LOOSE = frozenset(("st", "B", "K", "A", "F", "C", "N", "J", "pt", "bar"))
"""Units that are taken with a space before them only: 4B is a flat, 2A a seat, 1st an ordinal."""
PER = {
    "h": "hour", "hr": "hour", "hour": "hour", "d": "day", "day": "day", "wk": "week", "week": "week",
    "mo": "month", "month": "month", "yr": "year", "year": "year", "s": "second", "sec": "second",
    "second": "second", "min": "minute", "minute": "minute", "kg": "kilogram", "g": "gram", "lb": "pound",
    "oz": "ounce", "gal": "gallon", "gallon": "gallon", "l": "liter", "L": "liter", "ml": "milliliter",
    "mL": "milliliter", "dL": "deciliter", "km": "kilometer", "mi": "mile", "m": "meter",
    "m²": "square meter", "m2": "square meter", "m³": "cubic meter", "km²": "square kilometer",
    "cm²": "square centimeter", "ft": "foot", "in": "inch", "sq ft": "square foot",
    "sq. ft": "square foot", "kWh": "kilowatt hour", "MWh": "megawatt hour", "GB": "gigabyte",
    "bbl": "barrel", "ha": "hectare", "acre": "acre",
}  # fmt: skip

DIRECTIONS = {"N": "north", "S": "south", "E": "east", "W": "west"}


def per_unit(text: str) -> str:
    """The unit behind a slash, in the singular."""
    return PER.get(text, text)


_UNIT = any_of(unit for unit in UNITS if unit not in WORDS)
_WORD_UNIT = any_of(WORDS)
_PER = rf"(?:/(?P<per>{any_of(PER)}|person|unit|user|capita|head)(?![\p{{L}}\p{{N}}]))?"
_UNIT_END = r"(?![\p{L}\p{N}²³])"
_SIGNED = r"(?P<sign>(?<![\p{L}\p{N}.)\]])[-−–+±~≈<>≤≥]\ ?)?"
_SIGNS = {
    "-": "minus ", "−": "minus ", "–": "minus ", "+": "plus ", "±": "plus or minus ", "~": "about ",
    "≈": "about ", "<": "less than ", ">": "more than ", "≤": "at most ", "≥": "at least ",
}  # fmt: skip
_VULGAR = r"[¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞]"


def sign(text: str | None) -> str:
    """What is said for a sign before a quantity."""
    return _SIGNS.get(text.strip(), "") if text else ""


def _quantity(match: Any) -> str | None:
    text, unit, per = match["number"], match["unit"], match["per"]
    if unit in LOOSE and (not match["gap"] or match.string[match.end() :][:1] == "."):
        return None
    one, many = UNITS[unit]
    big = match["big"]
    words = number(text) + (f" {big}" if big else "")
    singular = is_one(text) and not big
    named = one if singular else many
    if match["compound"] is not None or match["hyphen"]:
        named = one
    stop = "." if unit.endswith(".") and _ends(match) else ""
    behind = f" per {per_unit(per)}" if per else ""
    return f"{sign(match['sign'])}{words} {named}{behind}{stop}"


def _ends(match: Any) -> bool:
    """Whether the point of an abbreviation is the sentence's too."""
    return not match.string[match.end() :].strip(" \"”')")


def _span(match: Any) -> str:
    first, last, unit, per = match["first"], match["last"], match["unit"], match["per"]
    one, many = UNITS[unit]
    joint = {"x": "by", "×": "by", "X": "by"}.get(match["joint"].strip(), "to")
    lead = match["unit_before"]
    left = f"{number(first)} {UNITS[lead][1]}" if lead and lead.strip() != unit.strip() else number(first)
    named = one if match["compound"] is not None else many
    behind = f" per {per_unit(per)}" if per else ""
    return f"{sign(match['sign'])}{left} {joint} {number(last)} {named}{behind}"


def _box(match: Any) -> str:
    sides = [number(match[name]) for name in ("first", "second", "third") if match[name]]
    unit = match["unit"]
    return " by ".join(sides) + (f" {UNITS[unit][1]}" if unit else "")


def _sides(match: Any) -> str:
    one, many = UNITS[match["unit"]]
    sides = [match[name] for name in ("first", "second", "third") if match[name]]
    return " by ".join(f"{number(side)} {one if is_one(side) else many}" for side in sides)


def _fractional(match: Any) -> str:
    whole, numerator, denominator = match["whole"], int(match["numerator"]), int(match["denominator"])
    unit = match["unit"]
    one, many = UNITS[unit]
    if whole:
        return f"{mixed(int(whole), numerator, denominator)} {one if match['compound'] else many}"
    words = fraction(numerator, denominator)
    if match["compound"] is not None:
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
    text = match["number"]
    return f"{number(text)} {'inch' if is_one(text) or match['compound'] is not None else 'inches'}"


def _degrees(match: Any) -> str:
    words = f"{number(match['degrees'])} degree{'' if is_one(match['degrees']) else 's'}"
    for name in ("minutes", "seconds"):
        if match[name]:
            words += f" {number(match[name])} {name if not is_one(match[name]) else name[:-1]}"
    direction = match["direction"]
    return words + (f" {DIRECTIONS[direction]}" if direction else "")


def _per_alone(match: Any) -> str:
    return f"{match['noun']} per {per_unit(match['per'])}"


_COMPOUND = r"""(?P<compound>-(?=\p{Ll})|(?=\ (?:monitor|screen|display|tv|TV|television|angle|turn
|battery|adapter|charger|drive|disk|engine|motor|
bulb|race|run|walk|drive|hike|ladder|limit|zone|radius|camera|lens|bag|bottle|can|jar|tank|pipe|cable
|outlet|supply|plan|card|
stick|module|band|network|connection|fence|wall|wave|radar|tower|bridge|tunnel|pool|dash|relay|sprint
|freestyle)\b))?"""
_LEFT = r"(?<![\p{L}\p{N}_.,/:]|\p{N}[.,])"

RULES: tuple[Rule, ...] = (
    digit_rule(
        "inches by inches",
        rf"""{_LEFT}(?P<first>{DECIMAL})\ ?["″]?\ ?(?:[x×]|by)\ ?(?P<last>{DECIMAL})(?:\ ?["″]|\ in
        (?![\p{{L}}\p{{N}}])\.?)""",
        lambda match: f"{number(match['first'])} by {number(match['last'])} inches",
    ),
    rule(
        "degrees, minutes and seconds",
        rf"""{_LEFT}(?P<degrees>\d+(?:\.\d+)?)\ ?°\ ?(?:(?P<minutes>\d+(?:\.\d+)?)\ ?['′]\ ?(?:
        (?P<seconds>\d+(?:\.\d+)?)\ ?["″]\ ?)?)?
        (?P<direction>[NSEW]){END}""",
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
        rf"""{_LEFT}(?P<number>{DECIMAL})\ ?(?:″|"(?=\ (?:x|by|×|screen|monitor|display|tv|TV|pipe|pizza
        |nail
        |disk|wide|tall|long)|\ ?[x×])|[-\ ]in(?:\.|(?=[-\ ](?:diameter|screen|wide|tall
        |long)))){_COMPOUND}""",
        _inches,
    ),
    rule(
        "sides with their units",
        rf"""{_LEFT}(?P<first>{DECIMAL})\ ?(?P<unit>{_UNIT})\ ?[x×]\ ?(?P<second>{DECIMAL})\ ?(?P=unit)
        (?:\ ?[x×]\ ?(?P<third>{DECIMAL})\ ?(?P=unit))?{_UNIT_END}""",
        _sides,
    ),
    digit_rule(
        "box",
        rf"""{_LEFT}(?P<first>{DECIMAL})\ ?[x×]\ ?(?P<second>{DECIMAL})(?:\ ?[x×]\ ?(?P<third>{DECIMAL}))?
        (?:\ ?(?P<unit>{_UNIT}){_UNIT_END}|(?![\p{{L}}\p{{N}}^⁰¹²³⁴-⁹⁻]|[.,]\d))(?!\ ?=)""",
        _box,
    ),
    rule(
        "fraction of a unit",
        rf"""{_LEFT}(?:(?P<whole>\d+)(?:\ |-))?(?P<numerator>\d+)/(?P<denominator>\d+)[\ -](?P<unit>{_UNIT}
        |{_WORD_UNIT}){_UNIT_END}{_COMPOUND}""",
        _fractional,
        wakes="/",
    ),
    digit_rule(
        "span of quantities",
        rf"""{_SIGNED}{_LEFT}(?P<first>{DECIMAL})(?:\ ?(?P<unit_before>{_UNIT}))?(?P<joint>\ ?[-–]\ ?)
        (?P<last>{DECIMAL})
        (?P<gap>\ ?)-?(?P<unit>{_UNIT}){_UNIT_END}{_PER}{_COMPOUND}""",
        _span,
    ),
    digit_rule(
        "quantity",
        rf"""{_SIGNED}{_LEFT}(?P<number>{DECIMAL})(?:\ (?P<big>{MAGNITUDE}))?(?:(?P<gap>\ )|(?P<hyphen>-))?
        (?P<unit>{_UNIT}){_UNIT_END}(?:\.(?=\ \p{{Ll}}))?{_PER}{_COMPOUND}""",
        _quantity,
    ),
    digit_rule(
        "inches at an end",
        rf"""{_LEFT}(?P<number>{DECIMAL})\ in(?=\s*(?:$|[,;)]|\.$|\ (?:wide|tall|long|deep|thick|high
        |diameter)\b))""",
        lambda match: f"{number(match['number'])} {'inch' if is_one(match['number']) else 'inches'}",
    ),
    digit_rule(
        "inches behind feet",
        r"(?<=(?:\bft\.?|\bfeet|\bfoot)\ )(?P<number>\d{1,2}(?:\.\d+)?)\ in(?![\p{L}\p{N}])\.?",
        lambda match: f"{number(match['number'])} {'inch' if is_one(match['number']) else 'inches'}",
    ),
    rule(
        "unit per unit",
        rf"""(?<=\d\ )(?P<noun>\p{{Ll}}{{3,}})/(?P<per>{any_of(PER)}|person|unit|user|capita){_UNIT_END}""",
        _per_alone,
        wakes="/",
    ),
)
