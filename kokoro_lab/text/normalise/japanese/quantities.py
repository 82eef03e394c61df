"""Money, per cent and units in Japanese: the name of the sign follows the number."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any

from kokoro_lab.text.normalise.japanese.numbers import cardinal, number
from kokoro_lab.text.normalise.japanese.written import (
    NAMES,
    NO_LATIN_AFTER,
    NO_LATIN_BEFORE,
    NUMBER,
    SIGN,
    SIGNS,
    START,
    WORDS,
    digits_of_either_width,
    either_width,
    with_slash,
)
from kokoro_lab.text.normalise.rules import Rule
from kokoro_lab.text.tables import any_of, entries, rows

_SIGNS, _CODES = NAMES["currency sign"], NAMES["currency code"]
_ENGLISH_SIZES = {written: int(size) for written, size in NAMES["English size"].items()}

_NEVER_BARE = frozenset(("F", "T", "s", "sec"))
"""Signs that are no units right after a number: `F` is a floor there, `T` is hardly ever tesla, and a rule of
its own reads `s` and `sec`."""


def _units() -> Iterator[tuple[str, str]]:
    """Each unit's sign and its name. Degrees are Celsius unless another scale is named, and 摂氏 (Celsius) is
    not said."""
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
_COMPOUND = rf"{_BASE}(?:/(?:{any_of(_PER)}|{_BASE})){{0,2}}"
_COMPATIBLE = "㎜㎝㎞㎟㎠㎡㎢㎣㎤㎥㎦㎎㎏㎍㎖㎗㎘㎐㎑㎒㎓㎾㎿㎉㎈㏄㎅㎆㎇㎳㎲㎱㏈㎩㎪㎫㏊㎧㎨"


def _unit(written: str) -> str:
    """The name of a unit, of a unit's power (`m²`), or of one unit per others (`km/h`, `mg/kg/日`)."""
    base, *pers = written.split("/")
    for power, name in NAMES["power of a length"].items():
        if base.endswith(power) and base.removesuffix(power) in WORDS["length"]:
            said = name + UNITS[base.removesuffix(power)]
            break
    else:
        said = UNITS[base]
    return said + "".join(_PER.get(per) or "毎" + _unit(per) for per in pers)


def _measure(match: Any) -> str:
    return SIGNS[match["sign"]] + number(match["n"]) + _unit(match["unit"])


def _compatible(match: Any) -> str:
    """The words for a unit that is a single character (`㎏`), alone or after a number. It is read like the
    letters in it."""
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
RULES: tuple[Rule, ...] = (
    digits_of_either_width(
        "money, the sign first",
        rf"""(?<sign>{SIGN}){NO_LATIN_BEFORE}(?<currency>{any_of(_SIGNS)}|{any_of(_CODES)})
            \s?(?<inner>[-▲△]?)(?<n>{NUMBER}){_SIZE}円?""",
        _money,
    ),
    digits_of_either_width(
        "money, the currency last",
        rf"""(?<sign>{SIGN})(?<inner>){START}(?<n>{NUMBER})(?<size>)\s?
            (?<currency>{any_of(_SIGNS)}|{any_of(_CODES)}{NO_LATIN_AFTER})""",
        _money,
    ),
    digits_of_either_width(
        "per cent",
        rf"(?<sign>{SIGN}){START}(?<n>{NUMBER})\s?(?<unit>[%‰])(?<point>pt{NO_LATIN_AFTER})?",
        lambda m: (
            SIGNS[m["sign"]] + number(m["n"]) + _PERCENT[m["unit"]] + ("ポイント" if m["point"] else "")
        ),
        wakes="%‰",
    ),
    either_width(
        "per cent, the sign alone",
        r"[%‰](?=\s|\P{L}|[\p{Han}\p{Hiragana}\p{Katakana}]|$)",
        lambda m: _PERCENT[m.group()],
    ),
    digits_of_either_width(
        "degrees Fahrenheit",
        rf"(?<sign>{SIGN}){START}(?<n>{NUMBER})\s?(?:°F|℉)",
        lambda match: "華氏" + SIGNS[match["sign"]] + number(match["n"]) + "度",
        wakes="°℉",
    ),
    digits_of_either_width(
        "angle",
        rf"{START}(?<d>{NUMBER})°\s?(?<m>\d+)[′'](?:\s?(?<s>{NUMBER})[″\"])?",
        lambda m: f"{number(m['d'])}度{number(m['m'])}分" + (f"{number(m['s'])}秒" if m["s"] else ""),
    ),
    digits_of_either_width(
        "measure",
        rf"(?<sign>{SIGN}){START}(?<n>{NUMBER})\s?(?<unit>{_COMPOUND})(?![A-Za-z²³]|\d(?!\d*(?:\.\d+)?{_BASE}))",
        _measure,
    ),
    digits_of_either_width(
        "measure in one sign",
        rf"(?<sign>{SIGN}){START}(?<n>{NUMBER})?(?<unit>[{_COMPATIBLE}](?:/{any_of(_PER)})?)",
        _compatible,
        wakes=_COMPATIBLE,
    ),
    either_width(
        "unit alone",
        rf"(?<![A-Za-z0-9/])(?:(?:{_LENGTHS})[²³]|{_ALONE})(?![A-Za-z0-9'./])",
        lambda match: _unit(match.group()),
    ),
    with_slash(
        "a time", r"(?<=\d\p{Han}{1,2})/(?=(?:時間?|[分秒日月年週人個回])(?!\p{Han}))", lambda _: "毎"
    ),
)
