"""Sums of money: symbols and codes, cents, millions, and what a thing costs by the kilogram."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from kokoro_lab.text.normalise.rules import Rule, digit_rule
from kokoro_lab.text.normalise.spanish.measures import unit_name
from kokoro_lab.text.normalise.spanish.numerals import (
    AMOUNT,
    GENDERS,
    NUMERAL,
    START,
    Amount,
    Gender,
    amount_of,
    cardinal,
    read,
)
from kokoro_lab.text.tables import any_of, entries, names, rows, words


class Currency(NamedTuple):
    """Names of a currency and of its hundredth part."""

    singular: str
    plural: str
    gender: Gender
    cent: str
    cents: str


_ROWS = {
    Currency(row["one"], row["many"], cast(Gender, row["gender"]), row["minor_one"], row["minor_many"]): row
    for row in rows(__package__, "currencies.tsv", gender=GENDERS)
}
CURRENCIES = {written: found for found, row in _ROWS.items() for written in entries(row["written"])}
"""By sign or ISO 4217 code. A bare `$` is a dollar: which peso it may be, the text does not say."""
WRITTEN = {
    name: found
    for found in _ROWS
    if found.singular in words(__package__)["currency that is written out"]
    for name in (found.singular, found.plural)
}
"""By the names that a text may write out."""
_NAMES, _SIGNS = any_of(WRITTEN), any_of(CURRENCIES)
_CODES = any_of(each for each in CURRENCIES if each.isalpha() and each.isupper() and len(each) == 3)
_SCALE = r"[ ]?(?P<scale>mil[ ]millones|millones|millón|mill\.|mil|billones|billón|trillones|MM|M|K|k)"
_PER = r"(?:[ ]?/[ ]?(?P<per>[\p{L}²³]+)\.?)?"


def _money(match: Any) -> str | None:
    groups = match.groupdict()
    word, code = groups.get("word"), groups.get("code") or groups.get("lead")
    currency = WRITTEN[word] if word else CURRENCIES[code or match["symbol"]]
    amount = amount_of(match, comma_groups=True)
    if groups.get("minus"):
        amount = Amount("-", amount.low, amount.high)
    said = _counted(amount, currency, groups.get("scale"))
    if groups.get("per"):
        said = f"{said} por {unit_name(match['per'])}"
    return said


def _counted(amount: Amount, currency: Currency, scale: str | None) -> str:
    number = amount.last
    if scale:
        scale = names(__package__)["scale"].get(scale, scale)
        if scale == "millones" and amount.is_one:
            scale = "millón"
        if scale == "mil":
            return f"{amount.words(currency.gender)} mil {currency.plural}"
        return f"{amount.words('m')} {scale} de {currency.plural}"
    if amount.high is None and len(number.decimals) == 2:
        return _with_cents(amount, currency)
    name = currency.singular if amount.is_one else currency.plural
    return amount.words(currency.gender) + number.link + name


def _with_cents(amount: Amount, currency: Currency) -> str:
    number, cents = amount.low, int(amount.low.decimals)
    whole = Amount(amount.sign, read(number.whole))
    if not cents:
        return _counted(whole, currency, None)
    coins = f"{cardinal(cents, gender='m')} {currency.cent if cents == 1 else currency.cents}"
    if not number.value:
        return f"menos {coins}" if amount.sign == "-" else coins
    return f"{_counted(whole, currency, None)} con {coins}"


def _written(match: Any) -> str | None:
    number = read(match["low"])
    if len(number.decimals) != 2:
        return None
    currency = WRITTEN[match["name"]]
    return _with_cents(Amount(match["sign"] or "", number), currency)


def _cents(match: Any) -> str:
    amount = amount_of(match)
    name = "centavo" if match["cents"] == "¢" else "céntimo"
    return f"{amount.words('m')} {name}{'' if amount.is_one else 's'}"


RULES: tuple[Rule, ...] = (
    digit_rule(
        "money, symbol first",
        rf"""(?<![\w$])(?P<minus>(?<![\w)])-)?(?:(?P<lead>{_CODES})[ ]?(?=\$))?(?P<symbol>{_SIGNS})[ ]?
             {AMOUNT}(?:{_SCALE}(?!\w|\.\w))?
             (?:[ ](?P<code>{_CODES})(?!\w)|[ ](?:de[ ])?(?P<word>{_NAMES})(?!\w))?{_PER}""",
        _money,
    ),
    digit_rule(
        "money, symbol behind",
        rf"""{START}{AMOUNT}(?:{_SCALE}(?:[ ]de)?)?[ ]?(?P<symbol>{_SIGNS})(?![\w$])
             (?:[ ](?P<code>{_CODES})(?!\w))?{_PER}""",
        _money,
    ),
    digit_rule(
        "money, in words with cents",
        rf"{START}(?P<sign>-?)(?P<low>{NUMERAL})[ ](?P<name>{_NAMES})(?!\w)",
        _written,
    ),
    digit_rule("cents", rf"{START}{AMOUNT}[ ]?(?P<cents>¢|cts?\.?|cénts?\.?)(?!\w)", _cents),
)
