"""How numbers are written in Spanish texts, and their words with gender and apocope.

Spanish texts have two decimal marks, and four ways to group thousands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from unicodedata import normalize

from num2words import num2words

from kokoro_lab.text.tables import Gender, names

LONGEST = 18
"""A number with more digits than this is said digit by digit."""
DECIMALS_TOGETHER = 3
"""Decimals up to this are said as a number (`tres coma catorce`), more of them digit by digit."""

_DIGITS = ("cero", "uno", "dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho", "nueve")

_ORDINALS, _PARTS = (
    {int(written): spoken for written, spoken in names(__package__)[kind].items()}
    for kind in ("ordinal", "part of a whole")
)


@lru_cache(maxsize=4096)
def cardinal(value: int, *, gender: Gender | None = None) -> str:
    """The words for a whole number. Before a noun, they depend on its gender: `veintiuno` is `veintiún` or
    `veintiuna`.

    Parameters
    ----------
    gender : {"m", "f"}, optional
        Gender of the noun that follows; None if no noun follows, as in counting or sums.
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
    """The words of a number before a feminine noun: hundreds and a final `uno` become feminine, except where
    they count millions, which are masculine."""
    millions = re.match(r".*(?:millón|millones|billón|billones|trillón|trillones)\b", words)
    head, tail = (words[: millions.end()], words[millions.end() :]) if millions else ("", words)
    tail = re.sub(r"ientos\b", "ientas", tail)
    return head + re.sub(r"uno$", "una", tail)


def counted(number: int, noun: str) -> str:
    """A number with its noun, which must end in `a` or `o`: `una hora`, `dos minutos`."""
    said = cardinal(number, gender="f" if noun.endswith("a") else "m")
    return f"{said} {noun}{'' if number == 1 else 's'}"


def ordinal(value: int, *, gender: Gender = "m", short: bool = False) -> str:
    """`vigésimo primero`; `short` gives `primer` and `tercer`, as before a masculine noun.

    Tens and units are two words (`vigésimo primero`): the older of two spellings that sound alike.
    """
    if not 0 < value < 10_000:
        return cardinal(value, gender=gender)  # nobody says such an ordinal
    thousands, rest = divmod(value, 1000)
    hundreds, rest = divmod(rest, 100)
    tens, units = divmod(rest, 10) if rest >= 20 else (0, rest)
    parts = [_ORDINALS[each] for each in (hundreds * 100, tens * 10, units) if each]
    if thousands:
        parts.insert(0, f"{cardinal(thousands) if thousands > 1 else ''}milésimo")
    if gender == "f":
        return " ".join(part[:-1] + "a" for part in parts)
    words = " ".join(parts)
    return re.sub(r"(primer|tercer)o$", r"\1", words) if short else words


def is_round(denominator: int) -> bool:
    """Whether the denominator has a name of its own, such as `milésimo`."""
    return denominator in _PARTS


def fraction(numerator: int, denominator: int) -> str:
    """`dos tercios`, `un medio`, `tres veinticincoavos`."""
    part = _PARTS.get(denominator) or _part(denominator)
    return f"{cardinal(numerator, gender='m')} {part}{'' if numerator == 1 else 's'}"


def _part(denominator: int) -> str:
    """`onceavo`, `treintavo`, `treintaidosavo`: two vowels `a` in a row become one."""
    stem = cardinal(denominator).replace(" y ", "i").replace(" ", "")
    stem = stem.removesuffix("uno") + "un" if stem.endswith("uno") else stem
    plain = stem.translate(str.maketrans("éúó", "euo")) if stem[-1] not in "aeo" else stem
    return plain.removesuffix("a") + "avo"


def half(gender: Gender | None) -> str:
    """`media` for a feminine noun that is counted, else `medio`."""
    return "media" if gender == "f" else "medio"


def digits(text: str) -> str:
    """`0042` as `cero cero cuatro dos`; what is no digit is passed over."""
    return " ".join(_DIGITS[int(each)] for each in text if each.isdecimal())


def decimals(text: str) -> str:
    """The words for digits after the decimal mark: leading zeros one by one, then a number, or single digits
    if there are many."""
    if len(text) > DECIMALS_TOGETHER:
        return digits(text)
    significant = text.lstrip("0")
    zeros = digits(text[: len(text) - len(significant)])
    return " ".join(each for each in (zeros, cardinal(int(significant)) if significant else "") if each)


NUMERAL = r"""(?:
    \d{1,3}'\d{3}(?:[.,]\d{3})+(?!\d)                       # 1'234.567
  | \d{1,3}(?:\.\d{3})+(?:,\d+)?(?![\d])                    # 1.234.567,89
  | \d{1,3}(?:,\d{3})+\.\d+(?!\d)                           # 1,234.56
  | \d{1,3}(?:,\d{3}){2,}(?!\d)                             # 1,234,567
  | \d{1,3}(?:[ ]\d{3})+(?:[.,]\d+)?(?!\d|[ ]\d)            # 1 234 567,8
  | \d+(?:[.,]\d+)?
)"""
"""A pattern, in verbose style, for a number without its sign."""

SIGN = r"(?:(?<![\w\p{Sc}°%)\].,])[-+±])?"
"""A pattern for the sign of a number, or for none. No word or number may stand right before the sign: there,
a hyphen would join the two."""

_MARKS = {",": "coma", ".": "punto"}
_SIGNS = {"-": "menos ", "+": "más ", "±": "más menos ", "": ""}


@dataclass(frozen=True, slots=True)
class Numeral:
    """A written number, taken apart.

    Parameters
    ----------
    whole : str
        Digits before the decimal mark, without marks between them.
    decimals : str
        Digits after the decimal mark; empty if there is none.
    mark : str
        The decimal mark, `,` or `.`; empty if there is none.
    grouped : bool
        Whether signs or spaces separate the thousands. A year is not grouped.
    """

    whole: str
    decimals: str = ""
    mark: str = ""
    grouped: bool = False

    @property
    def value(self) -> int:
        """The whole part."""
        return int(self.whole)

    @property
    def link(self) -> str:
        """The word between the number and its noun: `un millón de euros`, but `un millón cien euros`."""
        return " de " if self.value and self.value % 10**6 == 0 and not self.decimals else " "

    @property
    def is_one(self) -> bool:
        """Whether the counted noun is in the singular."""
        return self.value == 1 and not self.decimals

    def words(self, gender: Gender | None = None) -> str:
        """The words before a noun of `gender`, or before none."""
        if self.decimals:
            # "veintiuno coma cinco kilos": apocope is for whole numbers
            return f"{self._whole(None)} {_MARKS[self.mark]} {decimals(self.decimals)}"
        return self._whole(gender)

    def _whole(self, gender: Gender | None) -> str:
        led_by_zero = len(self.whole) > 1 and self.whole.startswith("0")
        if led_by_zero or len(self.whole) > LONGEST:
            return digits(self.whole)
        return cardinal(self.value, gender=gender)


def read(written: str, *, comma_groups: bool = False) -> Numeral:
    """The numeral of a match of `NUMERAL`.

    Parameters
    ----------
    comma_groups : bool
        Whether `1,234` is a thousand and something, as with money and people, and not 1 and decimals.
    """
    plain = written.replace("'", "").replace(" ", "")
    grouped = plain != written
    marks = re.findall(r"[.,]", plain)
    if not marks:
        return Numeral(plain, grouped=grouped)
    if "'" in written or (len(marks) > 1 and len(set(marks)) == 1):
        return Numeral(re.sub(r"[.,]", "", plain), grouped=True)
    if len(marks) > 1:
        whole, behind = plain.rsplit(marks[-1], 1)
        return Numeral(re.sub(r"[.,]", "", whole), behind, marks[-1], grouped=True)
    whole, behind = plain.split(marks[0])
    if not grouped and _parts_thousands(whole, marks[0], behind, comma_groups):
        return Numeral(whole + behind, grouped=True)
    return Numeral(whole, behind, marks[0], grouped=grouped)


def _parts_thousands(whole: str, mark: str, behind: str, comma_groups: bool) -> bool:
    if len(behind) != 3 or len(whole) > 3 or whole.startswith("0"):
        return False
    # `1.234` is a thousand wherever Spanish is written with points; `10,000` is one too, since nobody writes
    # such zeros for precision
    return mark == "." or comma_groups or behind.endswith("00")


def signed(sign: str | None, words: str) -> str:
    """The name of the sign, followed by `words`."""
    return _SIGNS[sign or ""] + words


START = r"(?<!\w)(?<!\d[.,:/'])"
"""A pattern for a place where a number may start: not within a word or another number."""
RANGE = r"(?:[ ]?[-–][ ]?|[ ]a[ ])"
VULGAR = {sign: tuple(map(int, normalize("NFKC", sign).split("⁄"))) for sign in "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒"}
"""Fraction that is one character → its numerator and denominator."""
AMOUNT = rf"(?P<sign>{SIGN})(?P<low>{NUMERAL})(?:{RANGE}(?P<high>{NUMERAL}))?"


@dataclass(frozen=True, slots=True)
class Amount:
    """A number (`low`), or a range of numbers from `low` to `high`."""

    sign: str
    low: Numeral
    high: Numeral | None = None

    @property
    def last(self) -> Numeral:
        """The number next to the counted noun."""
        return self.high or self.low

    @property
    def is_one(self) -> bool:
        return self.high is None and self.low.is_one

    def words(self, gender: Gender | None) -> str:
        """The words for the number or the range before a noun of `gender`: `menos cinco`, `diez a quince`."""
        said = self.low.words(gender)
        if self.high:
            said = f"{said} a {self.high.words(gender)}"
        return signed(self.sign, said)


def amount_of(match: Any, *, comma_groups: bool = False) -> Amount:
    """The amount in a match of a pattern that contains `AMOUNT`."""
    high = match["high"]
    return Amount(
        match["sign"] or "",
        read(match["low"], comma_groups=comma_groups),
        read(high, comma_groups=comma_groups) if high else None,
    )
