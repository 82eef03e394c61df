"""Amounts of money."""

from __future__ import annotations

from typing import Any

from babel.numbers import get_currency_name

from kokoro_lab.text.normalise.english.measures import per
from kokoro_lab.text.normalise.english.numerals import counted, is_one, number
from kokoro_lab.text.normalise.english.patterns import (
    DECIMAL,
    END,
    LOOSE_END,
    LOOSE_START,
    MAGNITUDE,
    MAGNITUDES,
    START,
    WORDS,
    any_word,
    scaled,
    sign,
)
from kokoro_lab.text.normalise.rules import Rule, digit_rule
from kokoro_lab.text.tables import any_of, entries, rows

CURRENCIES = {
    written: (row["one"], row["many"], row["minor_one"], row["minor_many"])
    for row in rows(__package__, "currencies.tsv")
    for written in entries(row["written"])
}
"""Of a symbol, or a code whose usual name is not Babel's: singular, plural, then those of its hundredth."""

_SYMBOLS = [s for s in CURRENCIES if not s[0].isalpha() or s.endswith("$")]
SYMBOL, SYMBOL_SIGNS = any_of(_SYMBOLS), "".join({symbol[-1] for symbol in _SYMBOLS})
SHORT = rf"(?:{any_of(MAGNITUDES)}{LOOSE_END})"
_BIG = rf"(?:\ ?(?P<big>{SHORT})|[\ -](?P<big>{MAGNITUDE}){END})?"
_SIGNED = rf"(?P<sign>{LOOSE_START}[-−+±<>≤≥~≈]\ ?)?"
_PER = rf"(?:/(?P<per>{any_word('per of a price')}){LOOSE_END})?"
_CODE = rf"(?P<code>{any_word('currency code')})"
_NO_DECIMALS = r"(?<![.,]\d*)"


def amount(symbol: str, text: str, big: str | None = None) -> str:
    """`$`, `5.99` is "five dollars and ninety nine cents"; with `bn` "billion dollars"."""
    one, many, minor_one, minor_many = CURRENCIES[symbol]
    text = text.replace(",", "")
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
    return f"{scaled(match['amount'], match['big'])} {CURRENCIES[match['symbol']][0]}"


def _span(match: Any) -> str | None:
    first, last, big = match["first"], match["last"], match["big"]
    many = CURRENCIES[match["symbol"]][1]
    if "." not in first + last:
        return f"{scaled(first, match['first_big'])} to {scaled(last, big)} {many}"
    if big:
        return f"{number(first)} to {scaled(last, big)} {many}"
    return f"{amount(match['symbol'], first)} to {amount(match['symbol'], last)}"


def _code(match: Any) -> str:
    code, text, big = match["code"], match["amount"], match["big"]
    one = is_one(text) and not big
    if code in CURRENCIES:
        name = CURRENCIES[code][0 if one else 1]
    else:
        name = get_currency_name(code, count=1 if one else 2, locale="en")
    return f"{sign(match)}{scaled(text, big)} {name}"


def _pence(match: Any) -> str | None:
    """Unless they are a picture's lines: 1080p is no price."""
    lines = match["amount"] in WORDS["picture's lines"]
    return None if lines else counted(match["amount"], "penny", "pence")


RULES: tuple[Rule, ...] = (
    Rule(
        "span of amounts",
        rf"""{LOOSE_START}(?P<symbol>{SYMBOL})\ ?(?P<first>{DECIMAL})(?P<first_big>{SHORT})?
        \ ?[-–]\ ?{SYMBOL}?(?P<last>{DECIMAL}){_BIG}(?![\p{{L}}\p{{N}}]|[.,]\d)""",
        _span,
        wakes=SYMBOL_SIGNS,
    ),
    Rule(
        "amount before a noun",
        rf"""{LOOSE_START}(?P<symbol>{SYMBOL})(?P<amount>{DECIMAL})
        (?:-(?P<big>{MAGNITUDE}|{SHORT}))?-(?=(?!{MAGNITUDE})\p{{L}})""",
        lambda match: f"{_compound(match)} ",
        wakes=SYMBOL_SIGNS,
    ),
    Rule(
        "large amount before a noun",
        rf"""(?<=\b[Aa]n?\ )(?P<symbol>{SYMBOL})(?P<amount>{DECIMAL})
        (?:\ ?(?P<big>{SHORT})|[\ -](?P<big>{MAGNITUDE}))
        (?=[\ -](?!{any_word("no noun behind an amount")}\b)\p{{Ll}})""",
        _compound,
        wakes=SYMBOL_SIGNS,
    ),
    Rule(
        "amount before a bill",
        rf"""{LOOSE_START}(?<=\b(?:[Aa]|[Oo]ne|[Tt]he|[Tt]his|[Tt]hat)\ )(?P<symbol>{SYMBOL})
        (?P<amount>{DECIMAL})(?P<big>{SHORT})?(?=\ {any_word("noun behind an amount")}\b)""",
        _compound,
        wakes=SYMBOL_SIGNS,
    ),
    Rule(
        "amount",
        rf"""{_SIGNED}{LOOSE_START}(?P<symbol>{SYMBOL})\ ?(?P<amount>{DECIMAL}){_BIG}
        (?!\p{{N}}|[.,]\d|(?!\p{{Lu}}{{3}})\p{{L}}){_PER}""",
        _amount,
        wakes=SYMBOL_SIGNS,
    ),
    Rule(
        "signed amount behind its symbol",
        rf"""{LOOSE_START}(?P<symbol>{SYMBOL})(?P<sign>[-−])(?P<amount>{DECIMAL}){_BIG}(?!\p{{N}}|[.,]\d)""",
        _amount,
        wakes=SYMBOL_SIGNS,
    ),
    digit_rule(
        "amount in rupees",
        rf"""{START}(?P<symbol>Rs\.?)\ ?(?P<amount>{DECIMAL}){_BIG}(?!\p{{N}}|[.,]\d)""",
        _amount,
    ),
    digit_rule(
        "amount before its symbol",
        rf"""{_SIGNED}{START}(?<![.,]\d*|[$€£¥])(?P<amount>{DECIMAL}){_BIG}\ ?(?P<symbol>[€£¥₹₩₽₪₺₴₫฿₱₦₿]|zł)
        (?!\p{{N}}){_PER}""",
        _amount,
    ),
    Rule(
        "amount before its dollar sign",
        rf"""{START}(?<![.,]\d*|[$€£¥])(?P<amount>{DECIMAL}){_BIG}(?P<symbol>\$)(?![\p{{L}}\p{{N}}])""",
        _amount,
        wakes="$",
    ),
    digit_rule(
        "amount and currency code",
        rf"{_SIGNED}{START}{_NO_DECIMALS}(?P<amount>{DECIMAL}){_BIG}\ ?{_CODE}{END}",
        _code,
    ),
    digit_rule(
        "currency code and amount",
        rf"{START}{_CODE}\ ?(?P<amount>{DECIMAL}){_BIG}(?!\p{{N}}|[.,]\d|\p{{L}})",
        _code,
    ),
    Rule(
        "cents",
        rf"{START}{_NO_DECIMALS}(?P<amount>{DECIMAL})\ ?¢",
        lambda match: counted(match["amount"], "cent", "cents"),
        wakes="¢",
    ),
    digit_rule(
        "pence",
        rf"""{START}{_NO_DECIMALS}(?P<amount>{DECIMAL})p{END}(?=\ (?:each|coin|off|per|a)\b|[,;!?]|\.?$)""",
        _pence,
    ),
)
