"""English quantities: lengths, weights, temperatures, per cent and sizes of files."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.english.numerals import (
    cardinal,
    counted,
    fraction,
    in_pairs,
    is_one,
    mixed,
    number,
    vulgar,
    with_point,
)
from kokoro_lab.text.normalise.english.patterns import (
    DECIMAL,
    END,
    LOOSE_END,
    MAGNITUDE,
    NAMES,
    SPAN,
    VULGAR_SIGNS,
    WITH_COMMA,
    WORDS,
    any_word,
    ends_text,
    optional,
    scaled,
    sign,
    stop,
    took_part,
)
from kokoro_lab.text.normalise.rules import Rule, digit_rule
from kokoro_lab.text.tables import any_of, units

UNITS = units(__package__, "units.tsv")
"""How a unit is written, where capitals and small letters differ → its names."""
SPOKEN = frozenset(written for written, unit in UNITS.items() if written in (unit.one, unit.many))
"""Units that are written as they are said, so that only the number before them must be put into words."""

_UNIT, _WORD_UNIT = any_of(UNITS.keys() - SPOKEN), any_of(SPOKEN)
_PER_UNIT = any_of(NAMES["per"].keys() | WORDS["shared per"])
_PER = rf"(?:/(?P<per>{_PER_UNIT}|head|\p{{Ll}}{{4,}}){LOOSE_END}(?:/(?P<then>{_PER_UNIT}){LOOSE_END})?)?"
_SIGNED = r"(?P<sign>(?<![\p{L}\p{N}.)\]])(?:[-−–](?=[\d.])|(?<=^)[-−–]\ |[+±~≈<>≤≥]\ ?))?"
_NO_NOUN = rf"(?!{any_word('no noun behind an amount')}\b)"
_AMOUNT = r"(?:[\d.,]+(?:[-–][\d.,]+)?|(?:\d+[-\ ])?\d+/\d+)"
_DETERMINED = rf"""\b(?i:{any_word("before an attribute")})\ (?:{any_word("adjective before a measure")}\ )?
(?:[\d.,]+\ ?\p{{L}}{{1,3}}\ \()?{_AMOUNT}(?:\ (?:million|billion))?"""
_COMPOUND = rf"""(?P<compound>-(?=\p{{Ll}})
|(?=\ (?:[\d.¼½¾]+\ ?\p{{L}}{{1,3}}\ )?{any_word("part of a circuit")}\b)
|(?=\ {any_word("noun behind a measure")}\b)
|(?<={_DETERMINED}[-\ ]?(?:sq\.?\ )?[\p{{L}}°]{{1,4}}\.?
|\b(?i:{any_word("determiner")})\ {_AMOUNT}\p{{L}}{{1,3}}
|\d\ \({_AMOUNT}[-\ ]?\p{{L}}{{1,3}}\.?)
(?=\)?(?:\ \({_AMOUNT}\ ?\p{{L}}{{1,3}}\))?\ {_NO_NOUN}(?:\p{{L}}{{3,}}|\p{{Lu}}{{2}})
|\)\ cans?\ (?!be\b|have\b|not\b)))?"""
_LEFT = r"(?<![\p{L}\p{N}_.,/:]|\p{N}[.,])"


def per(match: Any) -> str:
    """If a slash and a unit follow an amount, once or twice: ` per hour` or the like; else empty."""
    unit, then, count = (optional(match, name) for name in ("per", "then", "count"))
    if count:
        return f" per {scaled(count[:-1], count[-1])}"
    return "".join(f" per {NAMES['per'].get(each, each)}" for each in (unit, then) if each)


def _quantity(match: Any) -> str | None:
    text, unit, big = with_point(match["number"]), match["unit"], match["big"]
    # 4B is a flat, 2A a seat, 1st an ordinal
    loose = unit in WORDS["unit behind a space alone"] and not (unit == "F" and "." in text)
    if loose and "." in text and match["gap"] and match.string[match.end() :] == ".":
        loose = False  # `373.15 K.` ends the sentence
    if loose and (not match["gap"] or match.string[match.end() :][:1] == "."):
        return None
    one, many = UNITS[unit][:2]
    words = number(text) + (f" {big}" if big else "")
    singular = (is_one(text) and not big) or took_part(match, "compound") or match["hyphen"]
    stop = "." if unit.endswith(".") and ends_text(match) else ""
    return f"{sign(match)}{words} {one if singular else many}{per(match)}{stop}"


def _span(match: Any) -> str:
    first, last, unit = match["first"], match["last"], match["unit"]
    one, many = UNITS[unit][:2]
    lead = match["unit_before"]
    left = f"{number(first)} {UNITS[lead].many}" if lead and lead.strip() != unit.strip() else number(first)
    named = one if took_part(match, "compound") else many
    return f"{sign(match)}{left} to {number(last)} {named}{per(match)}"


def _box(match: Any) -> str:
    unit = match["unit"]
    sides = [number(match[name]) for name in ("first", "second", "third") if match[name]]
    return " by ".join(sides) + (f" {UNITS[unit].many}" if unit else "")


def _sides(match: Any) -> str:
    one, many = UNITS[match["unit"]][:2]
    sides = [match[name] for name in ("first", "second", "third") if match[name]]
    return " by ".join(counted(side, one, many) for side in sides)


def _fractional(match: Any) -> str:
    whole, numerator, denominator = match["whole"], int(match["numerator"]), int(match["denominator"])
    one, many = UNITS[match["unit"]][:2]
    if whole:
        return f"{mixed(int(whole), numerator, denominator)} {one if took_part(match, 'compound') else many}"
    words = fraction(numerator, denominator)
    if took_part(match, "compound"):
        return f"{words} {one}"
    article = "an" if one[0] in "aeio" or one == "hour" else "a"
    if (numerator, denominator) == (1, 2):
        return f"half {article} {one}"
    return f"{words} of {article} {one}"


def _measured_part(match: Any) -> str:
    one, many = UNITS[match["unit"]][:2]
    part = vulgar(match["whole"], match["part"])
    if took_part(match, "compound"):
        return f"{part.removeprefix('one ')} {one}"
    if match["whole"]:
        return f"{part} {many}"
    article = "an" if one[0] in "aeiou" or one == "hour" else "a"
    return f"half {article} {one}" if part == "one half" else f"{part.replace('one', 'a', 1)} {one}"


def _counted(amount: str, unit: str) -> str:
    return counted(with_point(amount), *UNITS[unit][:2])


def _height(match: Any) -> str:
    feet, inches = match["feet"], match["inches"]
    words = f"{cardinal(int(feet))} {'foot' if int(feet) == 1 or inches else 'feet'}"
    if not inches:
        return words
    return f"{words} {number(inches)}"


def _inches(match: Any) -> str:
    named = counted(match["number"], "inch", "inch" if took_part(match, "compound") else "inches")
    return named + stop(match)


def _temperature(match: Any) -> str:
    first = ""
    if match["first"]:
        below = "minus " if match["first_sign"] in ("-", "−") else ""
        first = f"{below}{number(match['first'])} to "
    return f"{first}{sign(match)}{number(match['number'])} {UNITS[match['unit']].many}"


def _degrees(match: Any) -> str:
    names = [name for name in ("degrees", "minutes", "seconds") if match[name]]
    words = " ".join(counted(match[name], name[:-1], name) for name in names)
    return f"{words} {NAMES['direction'][match['direction']].lower()}"


RULES: tuple[Rule, ...] = (
    digit_rule(
        "inches by inches",
        rf"""{_LEFT}(?P<first>{DECIMAL})-?\ ?["″]?\ ?(?:[x×]|by)\ ?
        (?:(?P<second>{DECIMAL})-?\ ?["″]?\ ?(?:[x×]|by)\ ?)?(?P<last>{DECIMAL})
        (?:\ ?["″]|\ in{LOOSE_END}\.?|(?P<compound>-)in(?:ch)?{LOOSE_END}\.?)""",
        lambda match: (
            " by ".join(number(match[side]) for side in ("first", "second", "last") if match[side])
            + (" inch" if match["compound"] else " inches")
        ),
    ),
    Rule(
        "degrees, minutes and seconds",
        rf"""{_LEFT}(?P<degrees>\d+(?:\.\d+)?)\ ?°\ ?(?:(?P<minutes>\d+(?:\.\d+)?)\ ?['′]\ ?(?:
        (?P<seconds>\d+(?:\.\d+)?)\ ?["″]\ ?)?)?(?P<direction>[NSEW]){END}""",
        _degrees,
        wakes="°",
    ),
    Rule(
        "degrees and minutes",  # `+41° 16′`
        rf"""(?P<sign>(?<![\p{{L}}\p{{N}}])[-−+])?{_LEFT}(?P<degrees>\d{{1,3}})\ ?°\ ?
        (?P<minutes>\d{{1,2}}(?:\.\d+)?)\ ?['′](?:\ ?(?P<seconds>\d{{1,2}}(?:\.\d+)?)\ ?["″])?
        (?![\p{{L}}\p{{N}}])""",
        lambda m: (
            sign(m)
            + " ".join(
                counted(m[name], name[:-1], name) for name in ("degrees", "minutes", "seconds") if m[name]
            )
        ),
        wakes="°",
        also="'′",
    ),
    digit_rule(
        "temperature by the words before it",  # `lows near 28F`
        rf"""(?<=\b(?i:{any_word("before a temperature")})\b[^.!?;\d~≈+−-]{{0,16}})
        (?:(?P<first_sign>[-−~≈])?(?P<first>\d{{1,3}})(?P<joint>\ to\ |\ ?[-–]\ ?))?
        (?P<sign>[-−~≈])?(?P<number>\d{{1,3}}(?:\.\d)?)(?P<unit>[FC]){LOOSE_END}(?!/)""",
        _temperature,
        also="FC",
    ),
    digit_rule(
        "nautical miles",  # `3.2 nm off the coast`
        rf"""{_LEFT}(?P<number>{DECIMAL})\ ?nm
        (?=\ (?:off|offshore|from|due|out|north|south|east|west|[NSEW]{{1,2}}
        |to\ (?:the\ )?\p{{Lu}})\b)""",
        lambda match: counted(match["number"], "nautical mile", "nautical miles"),
    ),
    digit_rule(
        "feet and inches",
        r"""(?<![\p{L}\p{N}_.,'"])(?P<feet>\d+)\ ?['′]\ ?-?(?:(?P<inches>\d{1,2}(?:\.\d+)?)\ ?(?:["″”]|''|
        (?=[ ]|$|[,.;)]))|(?=\ (?:tall|high|long|wide|deep))|(?<=^\d+\ ?['′])$)""",
        _height,
        also="'′",
    ),
    digit_rule(
        "inches",
        rf"""{_LEFT}(?P<number>{DECIMAL})\ ?(?:″|"(?=\ {any_word("noun behind inches")}|\ ?[x×])
        |[-\ ]in(?:\.|(?=[-\ ](?:diameter|screen|wide|tall|long)))
        |(?<=\d)in(?:\.(?=\ \p{{Ll}}))?{LOOSE_END}){_COMPOUND}""",
        _inches,
    ),
    digit_rule(
        "sides with their units",
        rf"""{_LEFT}(?P<first>{DECIMAL})\ ?(?P<unit>{_UNIT})\ ?[x×]\ ?(?P<second>{DECIMAL})\ ?(?P=unit)
        (?:\ ?[x×]\ ?(?P<third>{DECIMAL})\ ?(?P=unit))?{LOOSE_END}""",
        _sides,
        also="x×",
    ),
    digit_rule(
        "product",
        rf"""{_LEFT}(?:(?<=\b(?i:{any_word("before a product")})\ )|(?=[\d.,\ x×]{{3,60}}+[=≈])){DECIMAL}
        (?:\ ?[x×]\ ?{DECIMAL})+(?=\ ?(?:[=≈]|[?.!]?$|[?,;]))""",
        lambda match: " times ".join(number(each) for each in regex.split("[x×]", match.group())),
        also="x×",
    ),
    digit_rule(
        "box",
        rf"""{_LEFT}(?P<first>{DECIMAL})\ ?[x×]\ ?(?P<second>{DECIMAL})(?:\ ?[x×]\ ?(?P<third>{DECIMAL}))?
        (?:\ ?(?P<unit>{_UNIT}){LOOSE_END}|(?![\p{{L}}\p{{N}}^⁰¹²³⁴-⁹⁻]|[.,]\d))(?!\ ?[=≈])""",
        _box,
        also="x×",
    ),
    Rule(
        "measured part",
        rf"""(?<![\p{{L}}\p{{N}}.,/])(?:(?P<whole>\d+)\ ?)?(?P<part>[¼-¾⅐-⅞])\ ?
        (?P<unit>{_UNIT}|{_WORD_UNIT}){LOOSE_END}(?P<compound>(?=\ {any_word("part of a circuit")}\b))?""",
        _measured_part,
        wakes=VULGAR_SIGNS,
    ),
    digit_rule(
        "one unit or another",
        rf"""{_LEFT}(?P<number>{DECIMAL})\ ?(?P<unit>{_UNIT})\ ?/\ ?(?P<other>{DECIMAL})
        \ ?(?P<other_unit>{_UNIT}){LOOSE_END}""",
        lambda match: (
            f"{_counted(match['number'], match['unit'])} or {_counted(match['other'], match['other_unit'])}"
        ),
    ),
    digit_rule(
        "games behind",
        r"""(?<!\d)(?P<number>\d+(?:\.5)?)\ GB(?!\p{L})
        (?<=\b(?i:record|standings?|place|wins?|losses)\b[^.!?]{0,80}\d[-–]\d+[,;(\ ]+[\d.]+\ GB)""",
        lambda match: f"{counted(match['number'], 'game', 'games')} back",
    ),
    digit_rule(
        "points with a hyphen",
        rf"{_LEFT}(?P<number>\d+)-pts?(?=\ \p{{Ll}}{{3,}})",
        lambda match: f"{number(match['number'])} point",
    ),
    digit_rule(
        "pints",  # which are no points of a match
        rf"""{_LEFT}(?P<number>{DECIMAL})\ ?(?P<unit>pts?\.?)(?![\p{{L}}\p{{N}}])
        (?:(?=\ (?:of\ )?{any_word("food")}\b|,?\ \d+\ ?(?:gal|qt|oz|cup))
        |(?<=\b(?:qts?|gal|gallons?|quarts?|cups?)\b[^!?]{{1,24}}))""",
        lambda match: counted(match["number"], "pint", "pints") + stop(match),
    ),
    digit_rule(
        "minutes and seconds",
        r"(?<=(?<![\d:])\d{1,2}:[0-5]\d\ )mins?(?![\p{L}\p{N}])\.?",
        lambda match: f"minutes{'.' if match.group().endswith('.') and ends_text(match) else ''}",
    ),
    digit_rule(
        "basis points",
        rf"{_SIGNED}{_LEFT}(?P<number>\d{{1,2}}(?:\.\d)?|1[0257][05]|200)\ ?bps{LOOSE_END}",
        lambda match: sign(match) + counted(match["number"], "basis point", "basis points"),
    ),
    digit_rule(
        "pressure of the blood",
        r"""(?<![\p{L}\p{N}_.,/])(?P<high>\d{2,3})/(?P<low>\d{2,3})(?:\ ?(?P<unit>mm\ ?Hg)(?!\p{L})
        |(?<=\b(?i:blood\ pressure|BP)(?:\ (?:is|was|of|at|reads?))?\ [\d/]+)(?![\d/]))""",
        lambda match: (
            f"{in_pairs(match['high'])} over {in_pairs(match['low'])}"
            + (" millimeters of mercury" if match["unit"] else "")
        ),
    ),
    Rule(
        "fraction of a unit",
        rf"""{_LEFT}(?:(?P<whole>\d+)(?:\ |-))?(?P<numerator>\d+)/(?P<denominator>\d+)[\ -]
        (?P<unit>{_UNIT}|{_WORD_UNIT}){LOOSE_END}{_COMPOUND}""",
        _fractional,
        wakes="/",
    ),
    digit_rule(
        "stones",
        rf"{_LEFT}(?P<number>\d*[02-9]|1\d|\d+(?=st\ \d+\ ?lb))st{LOOSE_END}",
        lambda match: f"{number(match['number'])} stone",
    ),
    digit_rule(
        "size by its letter",
        rf"""{_LEFT}(?P<number>{DECIMAL})(?P<letter>[GT])(?:(?=\ (?:of\ )?(?:V?RAM|memory|swap|[\d.]+[GT])\b)
        |(?<=\d[GT]\ of\ [\d.]+[GT])|(?<=[\d.]{{2}}[GT])(?=\ {any_word("behind a size")}\b)){LOOSE_END}""",
        lambda match: _counted(match["number"], f"{match['letter']}B"),
        also="GT",
    ),
    digit_rule(
        "span of quantities",
        rf"""{_SIGNED}{_LEFT}(?P<first>{DECIMAL})(?:\ ?(?P<unit_before>{_UNIT}))?{SPAN}
        (?P<last>{DECIMAL})\ ?-?(?P<unit>{_UNIT}){LOOSE_END}{_PER}{_COMPOUND}""",
        _span,
        also="-–",
    ),
    digit_rule(
        "quantity",
        rf"""{_SIGNED}{_LEFT}(?P<number>{DECIMAL}|{WITH_COMMA})(?:\ (?P<big>{MAGNITUDE}))?
        (?:(?P<gap>\ )|(?P<hyphen>-))?
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
        rf"""(?<=\d\ )(?P<noun>\p{{Ll}}{{3,}})/(?P<per>{_PER_UNIT}){LOOSE_END}
        |(?<![\p{{L}}\p{{N}}_./@-])(?P<noun>\p{{L}}\p{{Ll}}{{2,}})/(?P<per>mo|yr|hr|wk)(?![\p{{L}}\p{{N}}_/@-])""",
        lambda match: match["noun"] + per(match),
        wakes="/",
    ),
    Rule(
        "number per unit",
        rf"""(?<=\d)/(?P<per>{any_word("unit that numbers count by")}){LOOSE_END}
        |(?<=\^\d+|[⁰¹²³⁴⁵⁶⁷⁸⁹])/(?P<per>{_PER_UNIT}){LOOSE_END}""",
        per,
        wakes="/",
    ),
)

_PERIODS = {"d": "day", "w": "week", "m": "month", "q": "quarter", "y": "year"}

RATES: tuple[Rule, ...] = (
    Rule(
        "change over a period",  # `+0.3% m/m`
        r"(?<=(?:[%\d]|\dbps|\dpp|\bpercent)\ )(?P<period>[dwmqy])/(?P=period)(?![\p{L}\p{N}_/])",
        lambda m: " over ".join([_PERIODS[m["period"]]] * 2),
        wakes="/",
    ),
    Rule(
        "unit behind per",
        rf"\bper\ \K(?P<unit>{any_of(NAMES['per'].keys() - {'in'})}){LOOSE_END}",
        lambda m: NAMES["per"][m["unit"]],
    ),
    Rule(
        "unit alone",
        rf"(?<![\p{{L}}\p{{N}}_./]|\d\ )(?P<unit>{any_of(u for u in UNITS if '/' in u)}){LOOSE_END}",
        lambda m: UNITS[m["unit"]].many,
        wakes="/",
    ),
)
