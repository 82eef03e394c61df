"""Money, per cent and units in Japanese: the name of the sign follows the number."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any

from kokoro_lab.text.normalise.japanese.numbers import NAMES, NO_LATIN_AFTER, SIGNS, WORDS, cardinal, number
from kokoro_lab.text.tables import any_of, entries, rows

_SIGNS, _CODES = NAMES["currency sign"], NAMES["currency code"]
_ENGLISH_SIZES = {written: int(size) for written, size in NAMES["English size"].items()}

_NEVER_BARE = frozenset(("F", "T", "s", "sec"))
"""Bare, these are floors, tesla that nobody writes, and seconds, which have a rule of their own."""


def _units() -> Iterator[tuple[str, str]]:
    """The name of each unit's sign. Degrees are Celsius unless marked otherwise, and nobody says 摂氏."""
    for row in rows(__package__, "units.tsv"):
        for unit in entries(row["unit"]):
            for prefix in entries(row["prefixes"]):
                yield prefix + unit, NAMES["prefix of a unit"][prefix] + row["name"]
            if unit not in _NEVER_BARE:
                yield unit, row["name"]


UNITS = dict(_units())
_PER, _PERCENT = NAMES["per"], NAMES["per cent"]
_LENGTHS, _ALONE = any_of(WORDS["length"]), any_of(WORDS["unit read alone"])
_BASE = rf"(?:{_LENGTHS}(?:\^?[23](?!\d)|[²³])|{any_of(UNITS)})"
_COMPOUND = rf"{_BASE}(?:/(?:{any_of(_PER)}|{_BASE}))?"
_COMPATIBLE = "㎜㎝㎞㎟㎠㎡㎢㎣㎤㎥㎦㎎㎏㎍㎖㎗㎘㎐㎑㎒㎓㎾㎿㎉㎈㏄㎅㎆㎇㎳㎲㎱㏈㎩㎪㎫㏊㎧㎨"


def _unit(written: str) -> str:
    """The name of a unit, a power of one, or one per another."""
    base, _, per = written.partition("/")
    for power, name in NAMES["power of a length"].items():
        if base.endswith(power) and base.removesuffix(power) in WORDS["length"]:
            said = name + UNITS[base.removesuffix(power)]
            break
    else:
        said = UNITS[base]
    if not per:
        return said
    return said + (_PER.get(per) or "毎" + _unit(per))


def _measure(match: Any) -> str:
    return SIGNS[match["sign"]] + number(match["n"]) + _unit(match["unit"])


def _compatible(match: Any) -> str:
    """A unit that is one character, alone or after a number: it is read like its letters."""
    plain = unicodedata.normalize("NFKC", match["unit"]).replace("∕", "/")
    return SIGNS[match["sign"]] + (number(match["n"]) if match["n"] else "") + _unit(plain)


def _money(match: Any) -> str:
    """`$3 million` is 三百万ドル; the sign of a debt may stand on either side of the currency's."""
    amount, name = match["n"], (_SIGNS | _CODES)[match["currency"]]
    sign = match["sign"] or match["inner"]
    said = _multiplied(amount, _ENGLISH_SIZES[match["size"]]) if match["size"] else number(amount)
    return SIGNS[sign or ""] + said + name


def _multiplied(amount: str, size: int) -> str:
    whole, _, decimals = amount.replace(",", "").partition(".")
    return cardinal(int(whole + decimals) * size // 10 ** len(decimals))


_SIZE = rf"(?:\s?(?<size>{any_of(_ENGLISH_SIZES)}){NO_LATIN_AFTER})?"


def _per_cent(match: Any) -> str:
    point = "ポイント" if match["point"] else ""
    return SIGNS[match["sign"]] + number(match["n"]) + _PERCENT[match["unit"]] + point


def _angle(match: Any) -> str:
    return f"{number(match['d'])}度{number(match['m'])}分" + (f"{number(match['s'])}秒" if match["s"] else "")
