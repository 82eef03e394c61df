"""How numbers are written in Japanese, as parts of the rules' patterns, and how they are said in kanji.

Digits, letters and signs come in two widths. Rules see all of them as narrow ones, mapped one to one, so
that offsets stay valid. num2words writes 10,000,000 as 千万, but it is said いっせんまん and written 一千万:
so the numerals are made here. Zero is 零, as in print; the G2P knows how it sounds.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

import regex

from kokoro_lab.text.tables import names, words

_NARROW = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5E)} | str.maketrans(
    "￥￡￠￦〜～−–‐", "¥£¢₩~~---"
)

WHOLE = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)"
PLAIN = rf"(?:{WHOLE}(?:\.\d+)?)"
_MYRIAD = r"(?:[十百千]?[万億兆](?!博|葉)|京(?![都成阪王急浜])|千(?![葉代鳥歳駄羽])|百(?!貨))"
NUMBER = rf"(?:{PLAIN}(?:{_MYRIAD}{PLAIN})*{_MYRIAD}?)"
"""A pattern for digits with thousands commas, a point, and 万, 億 and the like after or between them."""
START = r"(?<!\d|\d[.,])"
"""A pattern for a place that is not inside a number."""
END = r"(?!\d|[.,]\d)"
SIGN = r"(?:(?<![\dA-Za-z)\]%])[-+±▲△])?"
LATIN = "[A-Za-z]"
NO_LATIN_BEFORE, NO_LATIN_AFTER = f"(?<!{LATIN})", f"(?!{LATIN})"

NAMES, WORDS = names(__package__), words(__package__)
SIGNS = NAMES["sign before a number"] | {"": ""}
DIGITS = "零一二三四五六七八九"
MINUS, POINT = "マイナス", "点"
_WITHIN = ("", "十", "百", "千")
_MYRIADS = ("", "万", "億", "兆", "京", "垓", "𥝱", "穣", "溝", "澗", "正", "載", "極")
LARGEST = 10 ** (4 * len(_MYRIADS))
"""There is no word for this number and larger ones, so they are read digit by digit."""


def cardinal(value: int) -> str:
    """`value` in kanji numerals: 1_234 is 千二百三十四."""
    if value < 0:
        return MINUS + cardinal(-value)
    if value >= LARGEST:
        return digits(str(value))
    groups: list[str] = []
    rest, myriad = value, 0
    while rest:
        rest, group = divmod(rest, 10_000)
        if group:
            said = "一千" if group == 1000 and myriad else _group(group)
            groups.append(said + _MYRIADS[myriad])
        myriad += 1
    return "".join(reversed(groups)) or DIGITS[0]


def _group(value: int) -> str:
    """One to 9,999."""
    said = ""
    for place in (3, 2, 1, 0):
        digit = value // 10**place % 10
        if digit:
            said += ("" if digit == 1 and place else DIGITS[digit]) + _WITHIN[place]
    return said


def digits(written: str) -> str:
    """Each digit by itself: 0120 is 零一二零. Other characters are left out."""
    return "".join(DIGITS[unicodedata.decimal(c)] for c in written if c.isdecimal())


def number(written: str) -> str:
    """A number as it is written, with commas, a point or 万, 億 and the like in it: 3.5万 is 三点五万."""
    said = ""
    for part in regex.finditer(
        r"(?<whole>[\d,]*)(?:\.(?<decimals>\d+))?(?<myriads>[十百千万億兆京]*)", written
    ):
        whole, decimals, myriads = part["whole"].replace(",", ""), part["decimals"], part["myriads"]
        if len(whole) > 1 and whole[0] == "0":
            said += digits(whole)
        elif whole:
            spoken = cardinal(int(whole))
            one_thousand = spoken == "千" and myriads[:1] in tuple("万億兆京") and not decimals
            said += "一" + spoken if one_thousand else spoken
        if decimals:
            said += POINT + digits(decimals)
        said += myriads
    return said


def ordinal(value: int) -> str:
    """`value` as a place in a row: 三番目."""
    return f"{cardinal(value)}番目"


@lru_cache(maxsize=4)
def narrow(text: str) -> str:
    """`text` with every wide character that has a narrow twin replaced by it, one for one."""
    return text.translate(_NARROW)
