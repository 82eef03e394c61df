"""Numbers in words: cardinals and ordinals with their gender and apocope, digits, decimals, fractions."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from num2words import num2words

Gender = Literal["m", "f"]

LONGEST = 18
"""Digits of the largest number that is said as one; a longer one is said digit by digit."""
DECIMALS_TOGETHER = 3
"""Decimals up to this are said as a number (`tres coma catorce`), more of them digit by digit."""

_DIGITS = ("cero", "uno", "dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho", "nueve")

_UNITS = (
    "", "primero", "segundo", "tercero", "cuarto", "quinto", "sexto", "séptimo", "octavo", "noveno",
    "décimo", "undécimo", "duodécimo", "decimotercero", "decimocuarto", "decimoquinto", "decimosexto",
    "decimoséptimo", "decimoctavo", "decimonoveno",
)  # fmt: skip
_TENS = (
    "", "", "vigésimo", "trigésimo", "cuadragésimo", "quincuagésimo", "sexagésimo", "septuagésimo",
    "octogésimo", "nonagésimo",
)  # fmt: skip
_HUNDREDS = (
    "", "centésimo", "ducentésimo", "tricentésimo", "cuadringentésimo", "quingentésimo", "sexcentésimo",
    "septingentésimo", "octingentésimo", "noningentésimo",
)  # fmt: skip
_PARTS = {
    2: "medio", 3: "tercio", 4: "cuarto", 5: "quinto", 6: "sexto", 7: "séptimo", 8: "octavo", 9: "noveno",
    10: "décimo", 100: "centésimo", 1000: "milésimo", 10_000: "diezmilésimo", 100_000: "cienmilésimo",
    1_000_000: "millonésimo",
}  # fmt: skip


@lru_cache(maxsize=4096)
def cardinal(value: int, *, gender: Gender | None = None) -> str:
    """`veintiuno`; before a noun of that gender `veintiún` or `veintiuna`.

    Parameters
    ----------
    gender : {"m", "f"}, optional
        Of the noun that follows. None if none follows: counting, naming, doing sums.
    """
    if value < 0:
        return f"menos {cardinal(-value, gender=gender)}"
    if value >= 10**LONGEST:
        return digits(str(value))
    words = num2words(value, lang="es")
    words = re.sub(r"veintiuno(?= [mbt])", "veintiún", words)  # veintiún mil, treinta y un millones
    words = re.sub(r"\buno(?= [mbt])", "un", words)
    if gender == "m":
        return _short_one(words)
    return _feminine(words) if gender == "f" else words


def _short_one(words: str) -> str:
    if words.endswith("veintiuno"):
        return words.removesuffix("uno") + "ún"
    return re.sub(r"\buno$", "un", words)


def _feminine(words: str) -> str:
    """Hundreds and a last `uno` agree, but not those that count millions, which are masculine."""
    millions = re.match(r".*(?:millón|millones|billón|billones|trillón|trillones)\b", words)
    head, tail = (words[: millions.end()], words[millions.end() :]) if millions else ("", words)
    tail = re.sub(r"ientos\b", "ientas", tail)
    tail = re.sub(r"\bquinientos\b", "quinientas", tail)
    return head + re.sub(r"uno$", "una", tail)


def ordinal(value: int, *, gender: Gender = "m", short: bool = False) -> str:
    """`vigésimo primero`; `short` gives `primer` and `tercer`, as before a masculine noun.

    Two words from 21 on, which is the older of the two spellings; they sound alike.
    """
    if not 0 < value < 10_000:
        return cardinal(value, gender=gender)  # nobody says such an ordinal
    thousands, rest = divmod(value, 1000)
    hundreds, rest = divmod(rest, 100)
    tens, units = divmod(rest, 10) if rest >= 20 else (0, rest)
    thousand = (_small(thousands) if thousands > 1 else "") + "milésimo" if thousands else ""
    parts = [part for part in (thousand, _HUNDREDS[hundreds], _TENS[tens], _UNITS[units]) if part]
    if gender == "f":
        return " ".join(part[:-1] + "a" for part in parts)
    words = " ".join(parts)
    return re.sub(r"(primer|tercer)o$", r"\1", words) if short else words


def _small(value: int) -> str:
    return {3: "tres"}.get(value, cardinal(value))


def part(denominator: int, *, plural: bool) -> str:
    """What a fraction counts: `medio`, `tercios`, `doceavos`, `veinticincoavo`."""
    name = _PARTS.get(denominator)
    if name is None:
        stem = cardinal(denominator).replace(" y ", "i").replace(" ", "")
        name = _joined(stem)
    return name + "s" if plural else name


def _joined(stem: str) -> str:
    """`onceavo`, `treintavo`, `treintaidosavo`: of two vowels `a` only one is heard."""
    stem = stem.removesuffix("uno") + "un" if stem.endswith("uno") else stem
    plain = stem.translate(str.maketrans("éúó", "euo")) if stem[-1] not in "aeo" else stem
    return plain.removesuffix("a") + "avo"


def is_round(denominator: int) -> bool:
    """Whether its part has a name of its own, `milésimo`."""
    return denominator in _PARTS


def fraction(numerator: int, denominator: int) -> str:
    """`dos tercios`, `un medio`."""
    return f"{cardinal(numerator, gender='m')} {part(denominator, plural=numerator != 1)}"


def digits(text: str) -> str:
    """`0042` as `cero cero cuatro dos`; what is no digit is passed over."""
    return " ".join(_DIGITS[int(each)] for each in text if each.isdecimal())


def decimals(text: str) -> str:
    """Behind the mark: leading zeros one by one, then a number, or digits if there are many."""
    if len(text) > DECIMALS_TOGETHER:
        return digits(text)
    significant = text.lstrip("0")
    zeros = digits(text[: len(text) - len(significant)])
    return " ".join(each for each in (zeros, cardinal(int(significant)) if significant else "") if each)
