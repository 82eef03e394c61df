"""Units and quantities with them, per cents and degrees; units that stand alone."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import regex

from kokoro_lab.text.normalise.rules import Rule, digit_rule
from kokoro_lab.text.normalise.spanish.agreement import names_a_thing
from kokoro_lab.text.normalise.spanish.numerals import (
    AMOUNT,
    GENDERS,
    START,
    VULGAR,
    Gender,
    amount_of,
    counted,
    fraction,
    half,
)
from kokoro_lab.text.tables import any_of, entries, rows, words


class SpanishUnit(NamedTuple):
    """Names of a unit: `kilómetro por hora`, `kilómetros por hora`."""

    singular: str
    plural: str
    gender: Gender


UNITS = {
    written: SpanishUnit(row["one"], row["many"], cast(Gender, row["gender"]))
    for row in rows(__package__, "units.tsv", gender=GENDERS)
    for written in entries(row["written"])
}
_WORDS = words(__package__)
_SYMBOLS = any_of(UNITS)
_PER = rf"(?:/(?P<per>{any_of(_WORDS['per'])}))?"
_END = r"(?![\w²³°]|/\p{L}|'\w|\.\p{L})"


def unit_name(symbol: str) -> str:
    """What is behind a stroke, in the singular: `/kg` is `por kilogramo`; a word stays as it is."""
    return UNITS[symbol].singular if symbol in UNITS else symbol


def _measure(match: Any) -> str | None:
    if _is_no_unit(match):
        return None
    unit = UNITS[match["unit"]]
    amount = amount_of(match)
    name = unit.singular if amount.is_one else unit.plural
    if match["per"]:
        name = f"{name} por {unit_name(match['per'])}"
    return amount.words(unit.gender) + amount.last.link + name


def _is_no_unit(match: Any) -> bool:
    symbol, before = match["unit"], match.string[: match.start()]
    glued = match.string[match.start("unit") - 1] != " "
    if symbol in _LETTERS:  # "4K", "puerta 3 A"
        return glued or names_a_thing(match.string, match.start())
    if symbol == "°":  # typed for an ordinal's sign: "2° piso"
        return bool(_RANKED.match(match.string, match.end()))
    return bool(symbol == '"' and before.count('"') % 2)  # a quotation ends here


def _part_of_unit(match: Any) -> str:
    unit = UNITS[match["unit"]]
    numerator, denominator = VULGAR.get(match["vulgar"]) or (int(match["top"]), int(match["bottom"]))
    if (numerator, denominator) == (1, 2):
        return f"{half(unit.gender)} {unit.singular}"
    return f"{fraction(numerator, denominator)} de {unit.singular}"


def _share(match: Any) -> str:
    return f"{amount_of(match).words(None)} {'por ciento' if match['share'] == '%' else 'por mil'}"


def _lasting(match: Any) -> str:
    return f"{counted(int(match['minutes']), 'minuto')} {counted(int(match['seconds']), 'segundo')}"


def _arc(match: Any) -> str:
    parts = [counted(int(match["degrees"]), "grado"), counted(int(match["minutes"]), "minuto")]
    if match["seconds"]:
        parts.append(counted(int(match["seconds"]), "segundo"))
    side = {"N": "norte", "S": "sur", "E": "este", "O": "oeste", "W": "oeste"}.get(match["side"] or "")
    return " ".join((*parts, side) if side else parts)


def _frost(match: Any) -> str:
    """With the sign of an ordinal, as it is often typed; no ordinal is below zero."""
    return f"menos {counted(int(match['degrees']), 'grado')}"


def _alone(match: Any) -> str:
    unit = UNITS[match["unit"].rstrip(".")]
    counted_by_one = match.string[: match.start()].rstrip().casefold().endswith(_ONE_OF)
    numbered = regex.match(r"\.?[ ]?\d", match.string, pos=match.end())
    return unit.singular if counted_by_one or numbered else unit.plural


_RANKED = regex.compile(rf"[ ]{any_of(_WORDS['ranked'])}(?!\w)")
_ALONE = any_of(_WORDS["unit that stands alone"])
_LETTERS = frozenset("KNBJAF")
"""Units that are more often a letter when they are glued to a number or stand in an address."""
_ONE_OF = ("el", "por", "cada", "un", "del", "al", "/")

RULES: tuple[Rule, ...] = (
    digit_rule(
        "degrees, minutes, seconds",
        r"""(?<!\w)(?P<degrees>\d{1,3})[°º][ ]?(?P<minutes>\d{1,2})[′'](?:[ ]?(?P<seconds>\d{1,2})[″"])?
            (?:[ ]?(?P<side>[NSEOW])(?!\w))?""",
        _arc,
    ),
    digit_rule(
        "minutes and seconds", r"(?<![\w.,])(?P<minutes>\d{1,3})['′](?P<seconds>\d{1,2})[\"″]", _lasting
    ),
    digit_rule("degrees of frost", r"(?<![\w.,-])-(?P<degrees>\d{1,2})º(?!\w)", _frost),
    Rule("per cent", rf"{START}{AMOUNT}[ ]?(?P<share>[%‰])", _share, wakes="%‰"),
    Rule(
        "part of a unit",
        rf"{START}(?:(?P<top>\d{{1,2}})/(?P<bottom>[2-9]\d?)|(?P<vulgar>[½¼¾]))"
        rf"[ ]?(?P<unit>{_SYMBOLS}){_END}",
        _part_of_unit,
    ),
    digit_rule(
        "measure", rf"{START}{AMOUNT}[ ]?(?P<unit>{_SYMBOLS}){_PER}{_END}(?:\.(?=[ ]\p{{Ll}}))?", _measure
    ),
    Rule(
        "unit alone",
        rf"(?<![\w/.])(?P<unit>{_ALONE}|km\.(?=[ ]\d)){_END}",
        _alone,
    ),
)
