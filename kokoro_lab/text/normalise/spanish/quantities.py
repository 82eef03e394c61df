"""Spanish quantities with units, per cents and degrees, units alone, and sums of money."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.rules import Rule, digit_rule
from kokoro_lab.text.normalise.spanish.agreement import names_a_thing
from kokoro_lab.text.normalise.spanish.numerals import (
    AMOUNT,
    NUMERAL,
    START,
    VULGAR,
    Amount,
    amount_of,
    cardinal,
    counted,
    fraction,
    half,
    read,
)
from kokoro_lab.text.tables import CountedUnit, any_of, names, units, words

UNITS = units(__package__, "units.tsv")
_WORDS = words(__package__)
_SYMBOLS = any_of(UNITS)
_PER = rf"(?:\.?/(?P<per>{any_of(_WORDS['per'])})(?:/(?P<then>{any_of(_WORDS['per'])}))?)?"
_END = r"(?![\w²³°]|/\p{L}|'\w|\.\p{L})"


def unit_name(symbol: str) -> str:
    """The unit after a slash, in the singular: `/kg` is `por kilogramo`. A unit that is already a word stays
    as it is."""
    return UNITS[symbol].one if symbol in UNITS else symbol


def _measure(match: Any) -> str | None:
    if _is_no_unit(match):
        return None
    unit = UNITS[match["unit"]]
    amount = amount_of(match)
    name = unit.one if amount.is_one else unit.many
    if match["per"]:
        name = f"{name} por {unit_name(match['per'])}"
    if match["then"]:  # `mg/kg/día`
        name = f"{name} por {unit_name(match['then'])}"
    return amount.words(unit.gender) + amount.last.link + name


def _is_no_unit(match: Any) -> bool:
    symbol, before = match["unit"], match.string[: match.start()]
    glued = match.string[match.start("unit") - 1] != " "
    if symbol == "d":
        lasts = _LASTS.search(match.string, max(0, match.start() - _LASTS_CHARS), match.start())
        return not lasts or match.string.startswith(")", match.end())
    if symbol in _LETTERS:  # "4K", "puerta 3 A"
        return glued or names_a_thing(match.string, match.start())
    if symbol == "°":  # typed for an ordinal's sign: "2° piso"
        return bool(_RANKED.match(match.string, match.end()))
    return bool(symbol == '"' and before.count('"') % 2)  # a quotation ends here


def _part_of_unit(match: Any) -> str:
    unit = UNITS[match["unit"]]
    numerator, denominator = VULGAR.get(match["vulgar"]) or (int(match["top"]), int(match["bottom"]))
    if (numerator, denominator) == (1, 2):
        return f"{half(unit.gender)} {unit.one}"
    return f"{fraction(numerator, denominator)} de {unit.one}"


def _share(match: Any) -> str:
    return f"{amount_of(match).words(None)} {'por ciento' if match['share'] == '%' else 'por mil'}"


def _in_parts(match: Any) -> str:
    """The words for an angle: for the degrees, minutes and seconds that it has, and for its side, such as
    north."""
    groups = match.groupdict()
    named = (("degrees", "grado"), ("minutes", "minuto"), ("seconds", "segundo"))
    said = [counted(int(groups[name]), noun) for name, noun in named if groups.get(name)]
    side = names(__package__)["side"].get(groups.get("side") or "")
    return " ".join((*said, side) if side else said)


def _alone(match: Any) -> str:
    unit = UNITS[match["unit"].rstrip(".")]
    counted_by_one = match.string[: match.start()].rstrip().casefold().endswith(_ONE_OF)
    numbered = regex.match(r"\.?[ ]?\d", match.string, pos=match.end())
    return unit.one if counted_by_one or numbered else unit.many


_LASTS = regex.compile(r"\b(?i:durante|cada|por|de|tras|x)[ ]\Z|\bc/\Z")
"""A pattern for the end of a text that a number of days may follow. After other words, the `d` of `5 d` is
the letter of an article."""
_LASTS_CHARS = 10
"""Number of characters before a number that may say that it counts days."""
_OPENS_A_QUOTATION = regex.compile(r"(?<!\w)['‘]\S")
_RANKED = regex.compile(rf"[ ]{any_of(_WORDS['ranked'])}(?!\w)")
_ALONE = any_of(_WORDS["unit that stands alone"])
_LETTERS = frozenset("KNBJAF")
"""Units whose sign is more often a mere letter if it touches a number or is in an address."""
_ONE_OF = ("el", "por", "cada", "un", "del", "al", "/")


CURRENCIES = units(__package__, "currencies.tsv")
"""Currencies by sign or ISO 4217 code. A bare `$` is a dollar, since a text does not say which peso it may
mean."""
WRITTEN = {
    name: found
    for found in CURRENCIES.values()
    if found.one in _WORDS["currency that is written out"]
    for name in (found.one, found.many)
}
"""Name of a currency, written in full → the currency."""
_NAMES, _SIGNS = any_of(WRITTEN), any_of(CURRENCIES)
_CODES = any_of(each for each in CURRENCIES if each.isalpha() and each.isupper() and len(each) == 3)
_SCALE = r"[ ]?(?P<scale>mil[ ]millones|millones|millón|mill\.|mil|billones|billón|trillones|MM|M|K|k)"
_PER_PRICE = r"(?:[ ]?/[ ]?(?P<per>[\p{L}²³]+)\.?)?"


def _money(match: Any) -> str | None:
    groups = match.groupdict()
    word, code = groups.get("word"), groups.get("code") or groups.get("lead")
    currency = WRITTEN[word] if word else CURRENCIES[code or match["symbol"]]
    amount = amount_of(match, comma_groups=True)
    if groups.get("minus"):
        amount = Amount("-", amount.low, amount.high)
    said = _sum(amount, currency, groups.get("scale"))
    if groups.get("per"):
        said = f"{said} por {unit_name(match['per'])}"
    return said


def _sum(amount: Amount, currency: CountedUnit, scale: str | None) -> str:
    number = amount.last
    if scale:
        scale = names(__package__)["scale"].get(scale, scale)
        if scale == "millones" and amount.is_one:
            scale = "millón"
        if scale == "mil":
            return f"{amount.words(currency.gender)} mil {currency.many}"
        return f"{amount.words('m')} {scale} de {currency.many}"
    if amount.high is None and len(number.decimals) == 2:
        return _with_cents(amount, currency)
    name = currency.one if amount.is_one else currency.many
    return amount.words(currency.gender) + number.link + name


def _with_cents(amount: Amount, currency: CountedUnit) -> str:
    number, cents = amount.low, int(amount.low.decimals)
    whole = Amount(amount.sign, read(number.whole))
    if not cents:
        return _sum(whole, currency, None)
    coins = f"{cardinal(cents, gender='m')} {currency.minor_one if cents == 1 else currency.minor_many}"
    if not number.value:
        return f"menos {coins}" if amount.sign == "-" else coins
    return f"{_sum(whole, currency, None)} con {coins}"


def _written(match: Any) -> str | None:
    number = read(match["low"])
    if len(number.decimals) != 2:
        return None
    currency = WRITTEN[match["name"]]
    return _with_cents(Amount(match["sign"] or "", number), currency)


def _with_apostrophe(match: Any) -> str:
    """`12'50 €`, as prices are written by hand: "doce con cincuenta euros"."""
    currency = (CURRENCIES | WRITTEN)[match["symbol"]]
    whole, cents = (cardinal(int(match[part]), gender=currency.gender) for part in ("whole", "cents"))
    return f"{whole} con {cents} {currency.many}"


def _cents(match: Any) -> str:
    amount = amount_of(match)
    name = "centavo" if match["cents"] == "¢" else "céntimo"
    return f"{amount.words('m')} {name}{'' if amount.is_one else 's'}"


RULES: tuple[Rule, ...] = (
    digit_rule(
        "degrees, minutes, seconds",
        r"""(?<!\w)(?P<degrees>\d{1,3})[°º][ ]?(?P<minutes>\d{1,2})[′'](?:[ ]?(?P<seconds>\d{1,2})[″"])?
            (?:[ ]?(?P<side>[NSEOW])(?!\w))?""",
        _in_parts,
        wakes="°º",
    ),
    digit_rule(
        "minutes and seconds", r"(?<![\w.,])(?P<minutes>\d{1,3})['′](?P<seconds>\d{1,2})[\"″]", _in_parts
    ),
    digit_rule(
        "minutes by their sign",  # `retraso de 25'`
        r"(?<![\w.,'′])(?<!\b(?:el|al|minuto)[ ])(?P<minutes>\d{1,3})['′](?!['′\w]|[ ]?[\d+])",
        lambda match: None if _OPENS_A_QUOTATION.search(match.string, 0, match.start()) else _in_parts(match),
        wakes="'′",
    ),
    Rule(
        "degree of the compass",
        rf"(?P<side>{any_of(names(__package__)['degree of the compass'])})"
        r"(?:\.(?=[ ][\d\p{Ll}]))?(?![\w.'’-])"
        r"(?<=\b(?i:vientos?|brisa|rachas|ráfagas)\b[^.,;!?]{0,40}\bdel?[ ]\p{Lu}{1,2}\.?)",
        lambda match: names(__package__)["degree of the compass"][match["side"]],
        wakes="NSEO",
    ),
    # With the sign of an ordinal, as it is often typed; no ordinal is below zero
    digit_rule(
        "degrees of frost",
        r"(?<![\w.,-])-(?P<degrees>\d{1,2})º(?!\w)",
        lambda match: f"menos {_in_parts(match)}",
    ),
    digit_rule(
        "degrees of heat",
        r"(?<=\b(?i:temperatura|temp|termómetro|máxim|mínim|máx|mín|fiebre|horno|calor|frío)\p{L}*\.?[^\d.!?]{0,20}"
        r"(?:\d+[ ]?[º°][^\d.!?]{1,12}(?i:máx|mín)?\.?[ ]?)?)(?<!\b(?:el|al|del|la)[ ])"
        r"(?P<degrees>\d{1,3})º(?!\w|[ ]\p{Ll}{4})",
        _in_parts,
    ),
    Rule("per cent", rf"{START}{AMOUNT}[ ]?(?P<share>[%‰])", _share, wakes="%‰"),
    Rule(
        "part of a unit",
        rf"{START}(?:(?P<top>\d{{1,2}})/(?P<bottom>[2-9]\d?)|(?P<vulgar>[½¼¾]))"
        rf"[ ]?(?P<unit>{_SYMBOLS}){_END}",
        _part_of_unit,
        wakes="/½¼¾",
    ),
    digit_rule(
        "measure", rf"{START}{AMOUNT}[ ]?(?P<unit>{_SYMBOLS}){_PER}{_END}(?:\.(?=[ ]\p{{Ll}}))?", _measure
    ),
    digit_rule(
        "per so many",  # `3 g/24 h`, `12 €/100 g`
        rf"(?<=\d[ ]?(?:{_SYMBOLS}|{_SIGNS}))/"
        r"(?=(?:[2-9]|[1-7]\d)[ ]?h\b|10{2,3}[ ]?(?:g|ml|mL|cl|kg|km)\b)",
        lambda _: " por",
        wakes="/",
    ),
    digit_rule(
        "stroke behind a unit",  # `8 GB/256 GB`
        rf"(?<=\d[ ]?(?:{_SYMBOLS}))/(?=\d)",
        lambda _: " ",
        wakes="/",
    ),
    Rule(
        "unit alone",
        rf"(?<![\w/.])(?P<unit>{_ALONE}|km\.(?=[ ]\d)){_END}",
        _alone,
    ),
)

MONEY: tuple[Rule, ...] = (
    digit_rule(
        "money with an apostrophe",
        rf"{START}(?P<whole>\d{{1,6}})['’](?P<cents>\d\d)[ ]?(?P<symbol>{_SIGNS}|{_NAMES})(?!\w)",
        _with_apostrophe,
    ),
    digit_rule(
        "money, symbol first",
        rf"""(?<![\w$])(?P<minus>(?<![\w)])-)?(?:(?P<lead>{_CODES})[ ]?(?=\$))?(?P<symbol>{_SIGNS})[ ]?
             {AMOUNT}(?:{_SCALE}(?!\w|\.\w))?
             (?:[ ](?P<code>{_CODES})(?!\w)|[ ](?:de[ ])?(?P<word>{_NAMES})(?!\w))?{_PER_PRICE}""",
        _money,
    ),
    digit_rule(
        "money, symbol behind",
        rf"""{START}{AMOUNT}(?:{_SCALE}(?:[ ]de)?)?[ ]?(?P<symbol>{_SIGNS})(?![\w$])
             (?:[ ](?P<code>{_CODES})(?!\w))?{_PER_PRICE}""",
        _money,
    ),
    digit_rule(
        "money, in words with cents",
        rf"{START}(?P<sign>-?)(?P<low>{NUMERAL})[ ](?P<name>{_NAMES})(?!\w)",
        _written,
    ),
    digit_rule("cents", rf"{START}{AMOUNT}[ ]?(?P<cents>¢|cts?\.?|cénts?\.?)(?!\w)", _cents),
)
