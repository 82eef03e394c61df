"""Quantities with units, per cents and degrees; units that stand alone."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.rules import Rule, digit_rule, rule
from kokoro_lab.text.normalise.spanish.agreement import names_a_thing
from kokoro_lab.text.normalise.spanish.quantities import AMOUNT, START, amount_of
from kokoro_lab.text.normalise.spanish.units import UNITS, unit_name
from kokoro_lab.text.normalise.spanish.words import cardinal, fraction

_SYMBOLS = "|".join(regex.escape(each) for each in sorted(UNITS, key=len, reverse=True))
_PER = r"(?:/(?P<per>hora|h|día|semana|mes|año|min|minuto|s|segundo|persona|habitante|kg|l|m²|ha))?"
_END = r"(?![\w²³°]|/\p{L}|'\w|\.\p{L})"
_HALVES = {"½": (1, 2), "¼": (1, 4), "¾": (3, 4)}


def _measure(match: Any) -> str | None:
    if _is_no_unit(match):
        return None
    unit = UNITS[match["unit"]]
    amount = amount_of(match)
    name = unit.singular if amount.is_one else unit.plural
    if match["per"]:
        name = f"{name} por {unit_name(match['per'])}"
    link = (
        " de " if amount.last.value and amount.last.value % 10**6 == 0 and not amount.last.decimals else " "
    )
    return amount.words(unit.gender) + link + name


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
    numerator, denominator = _HALVES.get(match["vulgar"]) or (int(match["top"]), int(match["bottom"]))
    if (numerator, denominator) == (1, 2):
        return f"{'media' if unit.gender == 'f' else 'medio'} {unit.singular}"
    return f"{fraction(numerator, denominator)} de {unit.singular}"


def _share(match: Any) -> str:
    return f"{amount_of(match).words(None)} {'por ciento' if match['share'] == '%' else 'por mil'}"


def _count(digits: str, name: str) -> str:
    return f"{cardinal(int(digits), gender='m')} {name}{'' if int(digits) == 1 else 's'}"


def _lasting(match: Any) -> str:
    return f"{_count(match['minutes'], 'minuto')} {_count(match['seconds'], 'segundo')}"


def _arc(match: Any) -> str:
    parts = [_count(match["degrees"], "grado"), _count(match["minutes"], "minuto")]
    if match["seconds"]:
        parts.append(_count(match["seconds"], "segundo"))
    side = {"N": "norte", "S": "sur", "E": "este", "O": "oeste", "W": "oeste"}.get(match["side"] or "")
    return " ".join((*parts, side) if side else parts)


def _frost(match: Any) -> str:
    """With the sign of an ordinal, as it is often typed; no ordinal is below zero."""
    return f"menos {_count(match['degrees'], 'grado')}"


def _alone(match: Any) -> str:
    unit = UNITS[match["unit"].rstrip(".")]
    counted_by_one = match.string[: match.start()].rstrip().casefold().endswith(_ONE_OF)
    numbered = regex.match(r"\.?[ ]?\d", match.string, pos=match.end())
    return unit.singular if counted_by_one or numbered else unit.plural


_RANKED = regex.compile(
    r"[ ](?:piso|grado|lugar|puesto|año|curso|semestre|trimestre|cuatrimestre|nivel|turno|ciclo|básico|medio"
    r"|aniversario|congreso|premio|párrafo|inciso|tomo|capítulo|juzgado|distrito|batallón)(?!\w)"
)
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
    rule("per cent", rf"{START}{AMOUNT}[ ]?(?P<share>[%‰])", _share, wakes="%‰"),
    rule(
        "part of a unit",
        rf"{START}(?:(?P<top>\d{{1,2}})/(?P<bottom>[2-9]\d?)|(?P<vulgar>[½¼¾]))"
        rf"[ ]?(?P<unit>{_SYMBOLS}){_END}",
        _part_of_unit,
    ),
    digit_rule(
        "measure", rf"{START}{AMOUNT}[ ]?(?P<unit>{_SYMBOLS}){_PER}{_END}(?:\.(?=[ ]\p{{Ll}}))?", _measure
    ),
    rule(
        "unit alone",
        rf"(?<![\w/.])(?P<unit>km/h|km²|km|kg|cm²|cm|mm|m²|m³|kWh|kW|Mbps|°C|°F|m/s|mmHg"
        rf"|km\.(?=[ ]\d)){_END}",
        _alone,
    ),
)
