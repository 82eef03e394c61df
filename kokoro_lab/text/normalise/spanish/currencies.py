"""Signs and codes of currencies and their names."""

from __future__ import annotations

from typing import NamedTuple

from kokoro_lab.text.normalise.spanish.words import Gender


class Currency(NamedTuple):
    """Names of a currency and of its hundredth part."""

    singular: str
    plural: str
    gender: Gender
    cent: str
    cents: str


def _named(singular: str, plural: str, cent: str = "centavo", gender: Gender = "m") -> Currency:
    return Currency(singular, plural, gender, cent, {"penique": "peniques"}.get(cent, cent + "s"))


_EURO = _named("euro", "euros", "céntimo")
_DOLLAR = _named("dólar", "dólares")
_POUND = _named("libra", "libras", "penique", "f")
_YEN = _named("yen", "yenes", "sen")
_SOL = _named("sol", "soles", "céntimo")
_REAL = _named("real", "reales")
_COLON = _named("colón", "colones", "céntimo")


def _peso(of: str) -> Currency:
    return _named(f"peso {of}", f"pesos {of}s")


CURRENCIES = {
    "€": _EURO, "EUR": _EURO,
    "$": _DOLLAR, "US$": _DOLLAR, "US $": _DOLLAR, "USD$": _DOLLAR,
    "U$S": _DOLLAR, "USD": _DOLLAR, "U$D": _DOLLAR,
    "£": _POUND, "GBP": _POUND,
    "¥": _YEN, "JPY": _YEN, "CNY": _named("yuan", "yuanes", "fen"),
    "S/": _SOL, "S/.": _SOL, "PEN": _SOL,
    "R$": _REAL, "BRL": _REAL,
    "₡": _COLON, "CRC": _COLON,
    "MXN": _peso("mexicano"), "MX$": _peso("mexicano"), "COP": _peso("colombiano"),
    "ARS": _peso("argentino"), "AR$": _peso("argentino"), "CLP": _peso("chileno"), "UYU": _peso("uruguayo"),
    "DOP": _peso("dominicano"), "RD$": _peso("dominicano"),
    "CAD": _named("dólar canadiense", "dólares canadienses"), "C$": _named("córdoba", "córdobas"),
    "CHF": _named("franco suizo", "francos suizos", "céntimo"),
    "Bs.": _named("boliviano", "bolivianos"), "Bs": _named("boliviano", "bolivianos"),
    "VES": _named("bolívar", "bolívares", "céntimo"),
    "GTQ": _named("quetzal", "quetzales"), "HNL": _named("lempira", "lempiras"),
    "₲": _named("guaraní", "guaraníes", "céntimo"), "PYG": _named("guaraní", "guaraníes", "céntimo"),
    "₹": _named("rupia", "rupias", "paisa", "f"), "INR": _named("rupia", "rupias", "paisa", "f"),
    "₽": _named("rublo", "rublos", "kopek"), "₩": _named("won", "wones", "jeon"),
    "₪": _named("séquel", "séqueles", "agora"), "₺": _named("lira", "liras", "kurus", "f"),
    "₱": _named("peso", "pesos"), "₿": _named("bitcoin", "bitcoines"), "BTC": _named("bitcoin", "bitcoines"),
    "SEK": _named("corona sueca", "coronas suecas", "öre", "f"),
    "NOK": _named("corona noruega", "coronas noruegas", "øre", "f"),
    "DKK": _named("corona danesa", "coronas danesas", "øre", "f"),
    "₧": _named("peseta", "pesetas", "céntimo", "f"), "ptas.": _named("peseta", "pesetas", "céntimo", "f"),
}  # fmt: skip
"""By sign or ISO 4217 code. A bare `$` is a dollar: which peso it may be, the text does not say."""

WRITTEN = {
    name: currency
    for currency in (
        _EURO, _DOLLAR, _POUND, _SOL, _COLON, _named("peso", "pesos"),
        _named("bolívar", "bolívares", "céntimo"),
        _named("quetzal", "quetzales"), _named("franco", "francos", "céntimo"),
    )
    for name in (currency.singular, currency.plural)
}  # fmt: skip
"""By the names that a text may write out."""
