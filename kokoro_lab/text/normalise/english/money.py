"""Amounts of money."""

from __future__ import annotations

from typing import Any

from babel.numbers import get_currency_name

from kokoro_lab.text.normalise.english.measures import per_unit
from kokoro_lab.text.normalise.english.numerals import cardinal, is_one, number
from kokoro_lab.text.normalise.english.patterns import (
    DECIMAL,
    END,
    MAGNITUDE,
    MAGNITUDES,
    START,
    any_of,
    scaled,
    words_of,
)
from kokoro_lab.text.normalise.english.tables import table
from kokoro_lab.text.normalise.rules import Rule, digit_rule, rule

SYMBOLS = {
    row["written"]: (row["one"], row["many"], row["minor_one"], row["minor_many"])
    for row in table("currencies.tsv")
}
"""Singular and plural of a currency, then those of its hundredth."""
CODES = words_of("""
USD EUR GBP JPY CNY CHF CAD AUD NZD INR KRW RUB BRL MXN SEK NOK DKK PLN CZK HUF TRY ZAR HKD SGD THB
IDR MYR PHP ILS AED SAR EGP NGN KES ARS CLP COP PEN UAH VND TWD PKR BTC ETH
""")
CODE_NAMES = {
    "GBP": ("British pound", "British pounds"),
    "CHF": ("Swiss franc", "Swiss francs"),
    "EUR": ("euro", "euros"),
    "JPY": ("Japanese yen", "Japanese yen"),
    "BTC": ("bitcoin", "bitcoins"),
    "ETH": ("ether", "ether"),
}
"""Where the usual name is not Babel's."""

_BARE = [symbol for symbol in SYMBOLS if not symbol[0].isalpha() or symbol.endswith("$")]
SYMBOL = any_of(_BARE).replace("$", r"\$")
SYMBOL_SIGNS = "".join({symbol[-1] for symbol in _BARE})
WORDY = any_of(("Rs.", "Rs"))
AMOUNT = DECIMAL
SIGNS = {
    "+": "plus ", "-": "minus ", "−": "minus ", "±": "plus or minus ", "<": "less than ", ">": "more than ",
    "≤": "at most ", "≥": "at least ", "~": "about ", "≈": "about ",
}  # fmt: skip
SHORT = rf"(?:{any_of(MAGNITUDES)}(?![\p{{L}}\p{{N}}]))"
_BIG = rf"(?:\ ?(?P<big>{SHORT})|[\ -](?P<big>{MAGNITUDE}){END})?"


def amount(symbol: str, text: str, big: str | None = None) -> str:
    """`$`, `5.99` is "five dollars and ninety nine cents"; with `bn` "billion dollars"."""
    one, many, minor_one, minor_many = SYMBOLS[symbol]
    text = text.replace(",", "")
    if big:
        return f"{scaled(text, big)} {many}"
    whole, point, part = text.partition(".")
    if len(part) > 2 or (point and not part):
        return f"{number(text.rstrip('.'))} {many}"
    cents = int(part.ljust(2, "0")) if part else 0
    major = f"{cardinal(int(whole))} {one if is_one(whole) else many}" if whole and int(whole) else ""
    minor = f"{cardinal(cents)} {minor_one if cents == 1 else minor_many}" if cents else ""
    return " and ".join(filter(None, (major, minor))) or f"zero {many}"


def _sign(match: Any) -> str:
    sign = match.groupdict().get("sign")
    return SIGNS.get((sign or "").strip(), "")


def _before(match: Any) -> str | None:
    return _sign(match) + amount(match["symbol"], match["amount"], match["big"]) + _rate(match)


def _rate(match: Any) -> str:
    per = match.groupdict().get("per")
    if not per:
        return ""
    return f" per {per_unit(per)}"


def _compound(match: Any) -> str:
    """Before a noun an amount stays in the singular: a $5 bill, a $20-million deal."""
    one = SYMBOLS[match["symbol"]][0]
    words = scaled(match["amount"], match["big"])
    return f"{words} {one}"


def _span(match: Any) -> str | None:
    _, many, _, _ = SYMBOLS[match["symbol"]]
    first, last = match["first"], match["last"]
    big = match["big"]
    if "." in first or "." in last:
        if big:
            return f"{number(first)} to {scaled(last, big)} {many}"
        return f"{amount(match['symbol'], first)} to {amount(match['symbol'], last)}"
    first_big = match["first_big"]
    lead = scaled(first, first_big)
    return f"{lead} to {scaled(last, big)} {many}"


def _code_names(code: str) -> tuple[str, str]:
    if code in CODE_NAMES:
        return CODE_NAMES[code]
    return tuple(get_currency_name(code, count=count, locale="en") for count in (1, 2))  # type: ignore[return-value]


def _code(match: Any) -> str:
    one, many = _code_names(match["code"])
    text, big = match["amount"], match["big"]
    return f"{_sign(match)}{scaled(text, big)} {one if is_one(text) and not big else many}"


def _cents(match: Any) -> str:
    text = match["amount"]
    return f"{number(text)} {'cent' if is_one(text) else 'cents'}"


LINES = frozenset(("144", "240", "360", "480", "540", "576", "720", "1080", "1440", "2160", "4320"))
"""Of a picture: 1080p is no price."""


def _pence(match: Any) -> str | None:
    text = match["amount"]
    if text in LINES:
        return None
    return f"{number(text)} {'penny' if is_one(text) else 'pence'}"


_SIGNED = r"(?P<sign>(?<![\p{L}\p{N}])[-−+±<>≤≥~≈]\ ?)?"
_PER = r"""(?:/(?P<per>hour|hr|h|day|d|week|wk|month|mo|year|yr|person|kg|lb|g|oz|gal|gallon|l|L|km|mi
|mile|kWh|MWh|GB
|user|unit|share|barrel|bbl|ton|night|head|each|acre|seat|item|page|minute|min|sq\.?\ ?ft)
(?![\p{L}\p{N}]))?"""

RULES: tuple[Rule, ...] = (
    rule(
        "span of amounts",
        rf"""(?<![\p{{L}}\p{{N}}])(?P<symbol>{SYMBOL})\ ?(?P<first>{AMOUNT})
        (?P<first_big>{SHORT})?\ ?[-–]\ ?{SYMBOL}?
        (?P<last>{AMOUNT}){_BIG}(?![\p{{L}}\p{{N}}]|[.,]\d)""",
        _span,
        wakes=SYMBOL_SIGNS,
    ),
    rule(
        "amount before a noun",
        rf"""(?<![\p{{L}}\p{{N}}])(?P<symbol>{SYMBOL})(?P<amount>{AMOUNT})
        (?:-(?P<big>{MAGNITUDE}|{SHORT}))?-(?=(?!{MAGNITUDE})\p{{L}})""",
        lambda match: f"{_compound(match)} ",
        wakes=SYMBOL_SIGNS,
    ),
    rule(
        "large amount before a noun",
        rf"""(?<=\b[Aa]n?\ )(?P<symbol>{SYMBOL})(?P<amount>{DECIMAL})(?:\ ?(?P<big>{SHORT})|[\ -]
        (?P<big>{MAGNITUDE}))
        (?=[\ -](?!(?:in|of|to|a|an|per|for|from|and|or|was|is|on|by|at|each|more|less|every|into|that
        |which|over)\b)\p{{Ll}})""",
        _compound,
        wakes=SYMBOL_SIGNS,
    ),
    rule(
        "amount before a bill",
        rf"""(?<![\p{{L}}\p{{N}}])(?<=\b(?:[Aa]|[Oo]ne|[Tt]he|[Tt]his|[Tt]hat)\ )(?P<symbol>{SYMBOL})
        (?P<amount>{DECIMAL})(?P<big>{SHORT})?
        (?=\ (?:bill|note|coin|fee|fine|ticket|check|cheque|bonus|prize|gift|deal|loan|grant|tip|discount
        |coupon|voucher|charge|deposit|budget|investment|donation|bet|penalty|tax|surcharge|credit
        |increase|raise)\b)""",
        _compound,
        wakes=SYMBOL_SIGNS,
    ),
    rule(
        "amount",
        rf"""{_SIGNED}(?<![\p{{L}}\p{{N}}])(?P<symbol>{SYMBOL})\ ?(?P<amount>{AMOUNT}){_BIG}
        (?!\p{{N}}|[.,]\d|(?!\p{{Lu}}{{3}})\p{{L}}){_PER}""",
        _before,
        wakes=SYMBOL_SIGNS,
    ),
    rule(
        "signed amount behind its symbol",
        rf"""(?<![\p{{L}}\p{{N}}])(?P<symbol>{SYMBOL})(?P<sign>[-−])(?P<amount>{AMOUNT}){_BIG}(?!\p{{N}}|[.,]\d)""",
        _before,
        wakes=SYMBOL_SIGNS,
    ),
    digit_rule(
        "amount in rupees",
        rf"""{START}(?P<symbol>{WORDY})\ ?(?P<amount>{AMOUNT}){_BIG}(?!\p{{N}}|[.,]\d)""",
        _before,
    ),
    digit_rule(
        "amount before its symbol",
        rf"""{_SIGNED}{START}(?<![.,]\d*|[$€£¥])(?P<amount>{AMOUNT}){_BIG}\ ?(?P<symbol>[€£¥₹₩₽₪₺₴₫฿₱₦₿]|zł)
        (?!\p{{N}}){_PER}""",
        _before,
    ),
    rule(
        "amount before its dollar sign",
        rf"""{START}(?<![.,]\d*|[$€£¥])(?P<amount>{AMOUNT}){_BIG}(?P<symbol>\$)(?![\p{{L}}\p{{N}}])""",
        _before,
        wakes="$",
    ),
    digit_rule(
        "amount and currency code",
        rf"""{_SIGNED}{START}(?<![.,]\d*)(?P<amount>{AMOUNT}){_BIG}\ ?(?P<code>{any_of(CODES)}){END}""",
        _code,
    ),
    digit_rule(
        "currency code and amount",
        rf"""{START}(?P<code>{any_of(CODES)})\ ?(?P<amount>{AMOUNT}){_BIG}(?!\p{{N}}|[.,]\d|\p{{L}})""",
        _code,
    ),
    rule("cents", rf"""{START}(?<![.,]\d*)(?P<amount>{DECIMAL})\ ?¢""", _cents, wakes="¢"),
    digit_rule(
        "pence",
        rf"""{START}(?<![.,]\d*)(?P<amount>{DECIMAL})p{END}(?=\ (?:each|coin|off|per|a)\b|[,;!?]|\.?$)""",
        _pence,
    ),
)
