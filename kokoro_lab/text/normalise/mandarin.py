"""Mandarin: digits and signs become Chinese numerals and words, as they are read aloud.

Latin words and letters stay as they are written: the G2P says them. In digits that identify something, 1 is
幺, so that nobody mistakes it for 七.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import partial
from operator import add
from typing import Any

import regex

from kokoro_lab.text.normalise.rules import in_calendar, read_rules
from kokoro_lab.text.tables import any_of, names

NUMERALS = "零一二三四五六七八九"
LARGEST = 10**16
"""Numbers from this one on are read digit by digit."""
_PLACES = ("", *"十百千万十百千亿十百千万十百千")
# How 零, 一 and 二 are written by place, and how they are said
_ZEROS = {
    "零[十百千]": "零",
    "零+": "零",
    "零(?=[万亿])|零$": "",
    "亿万": "亿",
    "^一(?=十)": "",
    "^二(?=[千万亿])": "两",
}
FIRST_YEAR, LAST_YEAR = 1000, 2199

_NAMES = names(__package__, "mandarin.tsv")
_UNITS, _CURRENCIES = _NAMES["unit"], _NAMES["currency"]
_SIGNS = _NAMES["sign"] | _NAMES["power"]
_BEFORE = _NAMES["sign before a number"] | {"": ""}
_PER = _UNITS | _NAMES["per"]
_IN_ADDRESS = _NAMES["sign in an address"]

# Behind these, two of something is 两
_COUNTED = r"""(?:[个位名人口只条张本件块元杯瓶碗台辆架艘次天时秒点倍种类些间座栋套双对份顿遍趟句段篇首幅封
    把根棵朵匹头岁米里斤克升吨部家国页行层组队门步厅卫]|[美欧港日]元|英镑|年(?!级)|分钟|小时|公[里斤]|[厘毫分千纳微]米|[毫千]克|平方|立方|周(?!岁)|[MGT]B)"""
_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5E)} | str.maketrans("￥～〜–−", "¥~~--")
_KEPT_WIDE = {ord(mark) for mark in "，：；！？（）．"}
_NARROW = {wide: narrow for wide, narrow in _WIDE.items() if wide not in _KEPT_WIDE}

_WHOLE = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)"
_NUMBER = rf"(?:{_WHOLE}(?:\.\d+)?[百千万亿兆]*)"
_START, _NO_LATIN = r"(?<!\d|\d[.,])", r"(?![A-Za-z])"
_SIGN = r"(?:(?<![\dA-Za-z²³)\]%‰℃年月日号时点分秒周元块])[-+±])?"
_BEHIND = rf"(?<n>{_NUMBER})(?:\s?(?<to>[-~—]{{1,2}}|[至到])\s?(?<last>{_NUMBER})(?![-\d]))?"
_AMOUNT = rf"(?<sign>{_SIGN}){_START}{_BEHIND}"
_DASH = r"[-\s]?"
# Nouns that digits behind them identify
_NAMED = r"""(?:(?:号码?|密码|验证码|[编代]码|邮编|账户|卡|QQ|ID|真|电话|热线)[是为:：]?\s?
    |拨打?|呼叫|[请就]打|致电)"""
_NOT_COUNTED = r"(?!\d|[.,:]\d|\s?[个位名人元块米年月日次万亿%℃])"


def cardinal(value: int) -> str:
    """`value` in Chinese numerals: 10_205 is 一万零二百零五, and 2_000 is 两千."""
    if value < 0:
        return "负" + cardinal(-value)
    if value >= LARGEST:
        return digits(str(value))
    written = str(value)
    said = "".join(map(add, digits(written), reversed(_PLACES[: len(written)])))
    for superfluous, left in _ZEROS.items():
        said = regex.sub(superfluous, left, said)
    return said or NUMERALS[0]


def digits(written: str) -> str:
    """Each digit by itself: 2026 is 二零二六. Other characters are left out."""
    return "".join(NUMERALS[unicodedata.decimal(c)] for c in written if c.isdecimal())


def code(written: str) -> str:
    """Digits that identify something, as they are said on the telephone, with a pause for a sign or a
    space."""
    return "，".join(digits(group).replace("一", "幺") for group in regex.findall(r"\d+", written))


def number(written: str) -> str:
    """A number as it is written, with commas, a point or 万, 亿 and the like in it: 3.5万 is 三点五万."""
    match = regex.fullmatch(r"(?<whole>[\d,]+)(?:\.(?<decimals>\d*))?(?<size>\D*)", written)
    whole = match["whole"].replace(",", "")
    if len(whole) > 1 and whole[0] == "0":
        said = digits(whole)
    elif whole == "2" and match["size"] and not match["decimals"]:
        said = "两"
    else:
        said = cardinal(int(whole))
    decimals, size = match["decimals"], str(match["size"])
    return said + ("点" + digits(decimals) if decimals else "") + size


def ordinal(value: int) -> str:
    """`value` as a place in a row: 第三."""
    return f"第{cardinal(value)}"


def date(year: int | None, month: int | None, day: int | None) -> str:
    """Words for a date or a part of one: 二零二六年三月五日."""
    said = "" if year is None else f"{digits(str(year))}年"
    return said + "".join(f"{cardinal(v)}{u}" for v, u in ((month, "月"), (day, "日")) if v is not None)


def time(hour: int, minute: int | None, second: int | None, half: str | None) -> str:
    """Words for a clock time: 下午两点零五分. A full hour has no minutes unless it has seconds."""
    said = (_NAMES["half of the day"][half[0]] if half else "") + f"{_counted(str(hour))}点"
    for value, unit in ((minute, "分"), (second, "秒")):
        if value or (unit == "分" and second):
            said += f"{'零' if value and value < 10 else ''}{cardinal(value or 0)}{unit}"
    return said


def _counted(written: str) -> str:
    return "两" if written == "2" else number(written)


def _clock(match: Any) -> str | None:
    hour, minute = int(match["hour"]), int(match["minute"])
    half = (match["half"] or "").lower()
    second = int(match["second"]) if match["second"] else None
    return time(hour, minute, second, half or None) if hour <= (12 if half else 24) else None


def _date(match: Any) -> str | None:
    year, month = int(match["year"]), int(match["month"])
    day = int(match["day"]) if match["day"] else None
    known = FIRST_YEAR <= year <= LAST_YEAR and in_calendar(year, month, day)
    return date(year, month, day) if known else None


def _amount(match: Any, say: Callable[[str], str] = number, *, of: str = "") -> str:
    """One number, or two as a range, with `of` after the sign."""
    last = f"{'至' if match['to'] == '至' else '到'}{say(match['last'])}" if match["last"] else ""
    return _BEFORE[match["sign"]] + of + say(match["n"]) + last


def _measure(match: Any) -> str:
    unit, per = match["unit"], match["per"]
    said = _amount(match, _counted) + _UNITS[unit] + (f"每{_PER[per]}" if per else "")
    return "零下" + said[1:] if match["sign"] in ("-", "−") and unit in ("℃", "°C") else said


def _money(match: Any) -> str:
    """A sum of money, without trailing zeros in its decimals."""
    said = _amount(match, lambda n: _counted(regex.sub(r"(\.\d*?)0+(?!\d)", r"\1", n)))
    return said + _CURRENCIES[match["currency"]]


def _number(match: Any) -> str:
    """A number by itself, or two: a range if the second one is larger, else a score."""
    say = _counted if match["counted"] else number
    if match["last"] and not match["sign"]:
        first, last = (float(regex.sub(r"[^\d.]", "", match[side])) for side in ("n", "last"))
        if match["score"] or (first >= last and match["last"][-1].isdigit()):
            return f"{number(match['n'])}比{number(match['last'])}"
    return _amount(match, say)


def _telephone(match: Any) -> str:
    """A mobile number in groups, as people say it."""
    written: str = regex.sub(r"^(1\d\d)(\d{4})(\d{4})$", r"\1 \2 \3", match.group().lstrip("+"))
    return ("加" if match.group().startswith("+") else "") + code(written)


def _address(match: Any) -> str:
    parts = regex.findall(r"[A-Za-z]+|\d+|.", match["address"].rstrip("/"))
    return "".join(digits(part) if part.isdigit() else _IN_ADDRESS.get(part, part) for part in parts)


def _parts(match: Any, say: Callable[[str], str] = number, by: str = "点") -> str:
    return by.join(map(say, regex.findall(r"\d+", match.group())))


def _numeral(match: Any) -> str | None:
    """A digit of another script or shape, by its value: ①, Ⅱ, 〇, ½."""
    top, _, bottom = unicodedata.normalize("NFKC", match.group()).partition("⁄")
    if bottom:
        return f"{number(bottom)}分之{number(top)}"
    value = unicodedata.numeric(match.group(), -1.0)
    return cardinal(int(value)) if value >= 0 and value == int(value) else None


def _between(signs: str, behind: str) -> str:
    """Signs of a sum between two operands, with what must follow."""
    return rf"(?<=[\dA-Za-z)²³]\s?)[{signs}](?=\s?[\d(A-Za-z]{behind})"


def _narrow(text: str) -> str:
    return text.translate(_NARROW)


_UNIT, _CURRENCY = any_of(_UNITS), any_of(_CURRENCIES)


def _years_of(match: Any) -> str:
    return f"{digits(match['n'])}{('至' if match['to'] == '至' else '到')}{digits(match['last'])}"


_digit_by_digit, _compared = partial(_parts, say=code), partial(_parts, by="比")


def _fraction_of(match: Any) -> str | None:
    return f"{number(match['bottom'])}分之{number(match['top'])}" if int(match["bottom"]) else None


_IN_A_SUM, _BETWEEN_TWO = _between("-*/", r"[^，。,]*="), _between("+×÷<>=*", "")


def _per_cent(match: Any) -> str:
    return _amount(match, of="百分之" if match["of"] == "%" else "千分之")


RULES = read_rules(__package__, "mandarin", name="mandarin_rules.tsv", seen=_narrow)
