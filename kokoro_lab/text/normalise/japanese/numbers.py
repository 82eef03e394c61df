"""Numbers in kanji numerals.

num2words writes 10,000,000 as 千万, but it is said いっせんまん and written 一千万: so the numerals are made
here.
Zero is 零, as in print; the G2P knows how it sounds.
"""

from __future__ import annotations

import unicodedata

import regex

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
    """The numeral for a number from 1 to 9,999."""
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
