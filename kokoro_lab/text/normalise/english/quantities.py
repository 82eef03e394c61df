"""English quantities: lengths, weights, temperatures, per cent, sizes of files, and amounts of money."""

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
    END,
    LOOSE_END,
    LOOSE_START,
    MAGNITUDE,
    MAGNITUDES,
    NAMES,
    WORDS,
    any_word,
    ends_text,
    optional,
    scaled,
    sign,
    took_part,
)
from kokoro_lab.text.tables import any_of, units

UNITS = units(__package__, "units.tsv")
"""Units by their written form, with its case."""
SPOKEN = frozenset(written for written, unit in UNITS.items() if written in (unit.one, unit.many))
"""Units that are written as they are said: only what stands before them needs reading."""

_UNIT, _WORD_UNIT = any_of(UNITS.keys() - SPOKEN), any_of(SPOKEN)
_PER_UNIT = any_of(NAMES["per"].keys() | WORDS["shared per"])
_PER = rf"(?:/(?P<per>{_PER_UNIT}|head|\p{{Ll}}{{4,}}){LOOSE_END})?"
_SIGNED = r"(?P<sign>(?<![\p{L}\p{N}.)\]])(?:[-−–](?=[\d.])|(?<=^)[-−–]\ |[+±~≈<>≤≥]\ ?))?"
_NO_NOUN = rf"(?!{any_word('no noun behind an amount')}\b)"
_AMOUNT = r"[\d.,]+(?:[-–][\d.,]+)?"
_DETERMINED = rf"""\b(?i:{any_word("before an attribute")})\ (?:{any_word("adjective before a measure")}\ )?
(?:[\d.,]+\ ?\p{{L}}{{1,3}}\ \()?{_AMOUNT}(?:\ (?:million|billion))?"""
_COMPOUND = rf"""(?P<compound>-(?=\p{{Ll}})|(?=\ {any_word("noun behind a measure")}\b)
|(?<={_DETERMINED}[-\ ]?(?:sq\.?\ )?[\p{{L}}°]{{1,4}}\.?
|\b(?i:{any_word("determiner")})\ {_AMOUNT}\p{{L}}{{1,3}}
|\d\ \({_AMOUNT}[-\ ]?\p{{L}}{{1,3}}\.?)
(?=\)?(?:\ \({_AMOUNT}\ ?\p{{L}}{{1,3}}\))?\ {_NO_NOUN}\p{{L}}{{3,}}|\)\ cans?\ (?!be\b|have\b|not\b)))?"""
_LEFT = r"(?<![\p{L}\p{N}_.,/:]|\p{N}[.,])"


def per(match: Any) -> str:
    """` per hour`, if a slash and a unit follow an amount."""
    unit, count = optional(match, "per"), optional(match, "count")
    return (
        f" per {scaled(count[:-1], count[-1]) if count else NAMES['per'].get(unit, unit)}"
        if unit or count
        else ""
    )


def _quantity(match: Any) -> str | None:
    text, unit, big = with_point(match["number"]), match["unit"], match["big"]
    # 4B is a flat, 2A a seat, 1st an ordinal
    loose = unit in WORDS["unit behind a space alone"] and not (unit == "F" and "." in text)
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
        return f"{mixed(int(whole), numerator, denominator)} {one if match['compound'] else many}"
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
    return counted(match["number"], "inch", "inch" if took_part(match, "compound") else "inches")


def _degrees(match: Any) -> str:
    names = [name for name in ("degrees", "minutes", "seconds") if match[name]]
    words = " ".join(counted(match[name], name[:-1], name) for name in names)
    return f"{words} {NAMES['direction'][match['direction']].lower()}"


CURRENCIES = units(__package__, "currencies.tsv")
"""Names by symbol or code; codes mostly have their CLDR names."""

_SYMBOLS = [s for s in CURRENCIES if not s[0].isalpha() or s.endswith("$")]
SYMBOL, SYMBOL_SIGNS = any_of(_SYMBOLS), "".join({symbol[-1] for symbol in _SYMBOLS})
SHORT = rf"(?:{any_of(MAGNITUDES)}{LOOSE_END})"
_BIG = rf"(?:\ ?(?P<big>{SHORT})|[\ -](?P<big>{MAGNITUDE}){END})?"
_SIGN = rf"(?P<sign>{LOOSE_START}[-−+±<>≤≥~≈]\ ?)?"
_PER_PRICE = rf"(?:/(?:(?P<per>{any_word('per of a price')})|(?P<count>\d+[KkM]))(?!\w))?"
_CODE = rf"(?P<code>{any_word('currency code')})"
_NO_DECIMALS = r"(?<![.,]\d*)"


def amount(symbol: str, text: str, big: str | None = None) -> str:
    """`$`, `5.99` is "five dollars and ninety nine cents"; with `bn` "billion dollars"."""
    one, many, _, minor_one, minor_many = CURRENCIES[symbol]
    text = with_point(text).replace(",", "")
    if big:
        return f"{scaled(text, big)} {many}"
    whole, point, part = text.partition(".")
    if len(part) > 2 or (point and not part):
        return f"{number(text.rstrip('.'))} {many}"
    cents = int(part.ljust(2, "0")) if part else 0
    major = counted(str(int(whole)), one, many) if whole and int(whole) else ""
    minor = counted(str(cents), minor_one, minor_many) if cents else ""
    return " and ".join(filter(None, (major, minor))) or f"zero {many}"


def _amount(match: Any) -> str:
    return sign(match) + amount(match["symbol"], match["amount"], match["big"]) + per(match)


def _compound(match: Any) -> str:
    """Before a noun an amount stays in the singular: a $5 bill, a $20-million deal."""
    return f"{scaled(match['amount'], match['big'])} {CURRENCIES[match['symbol']].one}"


def _span_of_amounts(match: Any) -> str | None:
    first, last, big = match["first"], match["last"], match["big"]
    many = CURRENCIES[match["symbol"]].many
    if "." not in first + last:
        return f"{scaled(first, match['first_big'])} to {scaled(last, big)} {many}"
    if big:
        return f"{number(first)} to {scaled(last, big)} {many}"
    return f"{amount(match['symbol'], first)} to {amount(match['symbol'], last)}"


def _code(match: Any) -> str:
    code, text, big = match["code"], match["amount"].removesuffix(".00"), match["big"]
    one = is_one(text) and not big
    name = CURRENCIES[code].one if one else CURRENCIES[code].many
    return f"{sign(match)}{scaled(text, big)} {name}"


def _pence(match: Any) -> str | None:
    """Pence, unless the number is that of a picture's lines: 1080p is no price."""
    lines = match["amount"] in WORDS["picture's lines"]
    return None if lines else counted(match["amount"], "penny", "pence")


def _currencies(match: Any) -> str:
    return f"{match['first']} {match['last']}" + (f" {number(match['number'])}" if match["number"] else "")


def _cents(match: Any) -> str:
    return counted(match["amount"], "cent", "cents")


_PER_ALONE = NAMES["per"].keys() - {"in"}


_RATES = [unit for unit in UNITS if "/" in unit]


def _rate(match: Any) -> str:
    return NAMES["per"][match["per"]] if match["per"] else UNITS[match["unit"]].many


def _square_inches(match: Any) -> str:
    unit = "inch" if match["compound"] else "inches"
    return f"{number(match['first'])} by {number(match['last'])} {unit}"


def _product(match: Any) -> str:
    return " times ".join(number(each) for each in regex.split("[x×]", match.group()))


def _either_unit(match: Any) -> str:
    return f"{_counted(match['number'], match['unit'])} or {_counted(match['other'], match['other_unit'])}"


def _games_behind(match: Any) -> str:
    return f"{counted(match['number'], 'game', 'games')} back"


def _basis_points(match: Any) -> str:
    return sign(match) + counted(match["number"], "basis point", "basis points")


def _blood_pressure(match: Any) -> str:
    unit = " millimeters of mercury" if match["unit"] else ""
    return f"{in_pairs(match['high'])} over {in_pairs(match['low'])}{unit}"


def _size(match: Any) -> str:
    return _counted(match["number"], f"{match['letter']}B")
