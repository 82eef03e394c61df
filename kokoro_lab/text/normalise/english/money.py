"""English amounts of money, by the sign or the code of their currency."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.english.numerals import (
    counted,
    is_one,
    number,
    with_point,
)
from kokoro_lab.text.normalise.english.patterns import (
    DECIMAL,
    END,
    LOOSE_END,
    LOOSE_START,
    MAGNITUDE,
    MAGNITUDES,
    SPAN,
    START,
    WITH_COMMA,
    WORDS,
    any_word,
    optional,
    scaled,
    sign,
)
from kokoro_lab.text.normalise.english.quantities import per
from kokoro_lab.text.normalise.rules import Rule, digit_rule
from kokoro_lab.text.tables import any_of, units

CURRENCIES = units(__package__, "currencies.tsv")
"""Currencies: their names by symbol or code. The names of codes are mostly those of Unicode's CLDR."""

_SYMBOLS = [s for s in CURRENCIES if not s[0].isalpha() or s.endswith("$")]
SYMBOL, SYMBOL_SIGNS = any_of(_SYMBOLS), "".join({symbol[-1] for symbol in _SYMBOLS})
SHORT = rf"(?:{any_of(MAGNITUDES)}{LOOSE_END})"
_BIG = rf"(?:\ ?(?P<big>{SHORT})|[\ -](?P<big>{MAGNITUDE}){END})?"
_SIGN = rf"(?P<sign>{LOOSE_START}[-−+±<>≤≥~≈]\ ?)?"
_PER_PRICE = (
    rf"(?:/(?:(?P<per>{any_word('per of a price')})|(?P<count>\d+[KkM]))(?!\w)(?:\.(?=\ \p{{Ll}}))?)?"
)
_CODE = rf"(?P<code>{any_word('currency code')})"
_SPACED, _GROUPS = r"\d{1,3}(?:\s\d{3})+(?:,\d\d)?", r"\d{1,3}(?:\.\d{3})+(?:,\d\d)?"
_BEHIND_SIGNS = "€£¥₹₩₽₪₺₴₫฿₱₦₿$"
_BEHIND = rf"(?:[{_BEHIND_SIGNS}]|zł)"
_NO_DECIMALS = r"(?<![.,]\d*)"


def amount(symbol: str, text: str, big: str | None = None) -> str:
    """The words for a sum of money: `$`, `5.99` is "five dollars and ninety nine cents", and `$`, `5`, `bn`
    is "five billion dollars"."""
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
    lead = "minus " if optional(match, "loss") else sign(match)
    return lead + amount(match["symbol"], match["amount"], match["big"]) + per(match)


def _compound(match: Any) -> str:
    """The words for a sum of money before a noun, in the singular: "five dollar" in `a $5 bill`."""
    return f"{scaled(match['amount'], match['big'])} {CURRENCIES[match['symbol']].one}"


def _span_of_amounts(match: Any) -> str:
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


RULES: tuple[Rule, ...] = (
    Rule(
        "amount with groups of thousands as in Europe",  # `10 000 €`, `€1.500`
        rf"""{_SIGN}{START}(?<![.,]\d*|\d\ |[$€£¥]\ ?)(?:(?P<symbol>€)\ ?(?P<amount>{_GROUPS})
        |(?P<amount>{_SPACED}|{_GROUPS}(?=\ ?€))\ ?(?P<symbol>{_BEHIND}))(?!\p{{N}}|[.,]\d){_PER_PRICE}""",
        lambda m: (
            sign(m) + amount(m["symbol"], regex.sub(r"[.\s]", "", m["amount"]).replace(",", ".")) + per(m)
        ),
        wakes=f"{_BEHIND_SIGNS}ł",
    ),
    Rule(
        "pence to pounds",  # `50p-£5`
        rf"{START}(?<![.,£])(?P<pence>\d{{1,2}})p\ ?[-–]\ ?£(?P<pounds>{DECIMAL})(?![\p{{L}}\p{{N}}]|[.,]\d)",
        lambda m: f"{counted(m['pence'], 'penny', 'pence')} to {amount('£', m['pounds'])}",
        wakes="£",
        also="p",
    ),
    Rule(
        "lakh or crore",  # `₹4.5 cr`
        rf"""(?P<sign>{LOOSE_START}[-−+~≈]\ ?)?₹\ ?(?P<amount>{DECIMAL})\ ?
        (?P<big>(?i:cr|crores?|lakhs?|lacs?)|L){LOOSE_END}\.?{_PER_PRICE}""",
        lambda m: (
            f"{sign(m)}{number(m['amount'])} {'crore' if m['big'][0] in 'cC' else 'lakh'} rupees{per(m)}"
        ),
        wakes="₹",
    ),
    Rule(
        "span of amounts",
        rf"""{LOOSE_START}(?P<symbol>{SYMBOL})\ ?(?P<first>{DECIMAL})(?P<first_big>{SHORT})?
        {SPAN}{SYMBOL}?(?P<last>{DECIMAL}){_BIG}(?![\p{{L}}\p{{N}}]|[.,]\d){_PER_PRICE}""",
        lambda match: _span_of_amounts(match) + per(match),
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
        rf"""(?<=\b(?i:{any_word("before an attribute")}|{any_word("determiner")})\ )
        (?P<symbol>{SYMBOL})(?P<amount>{DECIMAL})
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
        rf"""{_SIGN}{LOOSE_START}(?P<symbol>{SYMBOL})\ ?(?P<amount>{WITH_COMMA}|{DECIMAL}){_BIG}
        (?!\p{{N}}|[.,]\d|(?!\p{{Lu}}{{3}})\p{{L}}){_PER_PRICE}""",
        _amount,
        wakes=SYMBOL_SIGNS,
    ),
    Rule(
        "signed amount behind its symbol",
        rf"""{LOOSE_START}(?P<symbol>{SYMBOL})(?:(?P<sign>[-−])(?P<amount>{DECIMAL})|(?P<loss>\()
        (?P<amount>{DECIMAL})\)){_BIG}(?!\p{{N}}|[.,]\d)""",
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
        rf"""{_SIGN}{START}(?<![.,]\d*|[$€£¥])(?P<amount>{WITH_COMMA}|{DECIMAL}){_BIG}\ ?
        (?P<symbol>[€£¥₹₩₽₪₺₴₫฿₱₦₿]|zł)
        (?!\p{{N}}){_PER_PRICE}""",
        _amount,
        also="€£¥₹₩₽₪₺₴₫฿₱₦₿ł",
    ),
    Rule(
        "amount before its dollar sign",
        rf"""{START}(?<![.,]\d*|[$€£¥])(?P<amount>{DECIMAL}){_BIG}(?P<symbol>\$)(?![\p{{L}}\p{{N}}])""",
        _amount,
        wakes="$",
    ),
    Rule(
        "pair of currencies",
        rf"""{START}(?P<first>{any_word("currency code")})/(?P<last>{any_word("currency code")})
        (?:\ (?P<number>{DECIMAL}))?{END}""",
        lambda m: f"{m['first']} {m['last']}" + (f" {number(m['number'])}" if m["number"] else ""),
        wakes="/",
    ),
    digit_rule(
        "amount and currency code",
        rf"{_SIGN}{START}{_NO_DECIMALS}(?P<amount>{DECIMAL}){_BIG}\ ?{_CODE}{END}",
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
        rf"""{START}{_NO_DECIMALS}(?:(?P<amount>{DECIMAL})p{END}(?=\ (?:each|coin|off|per|a)\b|[,;!?]|\.?$)
        |(?P<amount>\d+\.\d+)p{END})""",
        _pence,
    ),
)
