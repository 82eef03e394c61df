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

from kokoro_lab.text.normalise.pasted import sets
from kokoro_lab.text.normalise.rules import DIGITS, Rule, in_calendar
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
_BEHIND = rf"(?<n>{_NUMBER})(?:\s?(?<to>[-~—]{{1,2}}|[至到]-?)\s?(?<last>{_NUMBER})(?![-\d]))?"
_AMOUNT = rf"(?<sign>{_SIGN}){_START}{_BEHIND}"
_DASH = r"[-\s]?"
# Nouns after which digits identify something
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


def _day(match: Any) -> str | None:
    month, day = int(match["month"]), int(match["day"])
    return date(None, month, day) if in_calendar(None, month, day) else None


def _life(match: Any) -> str | None:
    """The words for two years in brackets; None if they are round, as amounts are."""
    first, last = match["n"], match["last"]
    if first >= last or (first[2:] == "00" and last[2:] == "00"):
        return None
    return f"{digits(first)}到{digits(last)}"


def _amount(match: Any, say: Callable[[str], str] = number, *, of: str = "") -> str:
    """A number with the word for its sign, or two numbers as a range. `of` is put between the sign's word and
    the number. The second number of `-10~-5`, and of `-10--5`, is below zero, too."""
    last, to = "", match["to"]
    if to:
        below = to[-1] == "-" and (to[0] in "~至到" or (len(to) > 1 and match["sign"] == "-"))
        sign = _BEFORE["-"] + of if below else ""
        last = f"{'至' if to[0] == '至' else '到'}{sign}{say(match['last'])}"
    return _BEFORE[match["sign"]] + of + say(match["n"]) + last


def _measure(match: Any) -> str:
    unit = match["unit"]
    said = (
        _amount(match, _counted) + _UNITS[unit] + "".join(f"每{_PER[per]}" for per in match.captures("per"))
    )
    return said.replace(_BEFORE["-"], "零下") if unit in ("℃", "°C") else said


def _money(match: Any) -> str:
    """A sum of money, without trailing zeros in its decimals."""
    said = _amount(match, lambda n: _counted(regex.sub(r"(\.\d*?)0+(?!\d)", r"\1", n)))
    return said + _CURRENCIES[match["currency"]]


def _number(match: Any) -> str:
    """One number, or two with a mark between. Two are read as a range if the second one is larger, else as a
    score."""
    say = _counted if match["counted"] else number
    if match["last"] and not match["sign"]:
        first, last = (float(regex.sub(r"[^\d.]", "", match[side])) for side in ("n", "last"))
        if match["score"] or (first >= last and match["last"][-1].isdigit() and match["to"][0] in "-—"):
            return f"{number(match['n'])}比{number(match['last'])}"
    return _amount(match, say)


def _salary(match: Any) -> str:
    """`月薪8k-12k`: 八千到一万二千."""
    said = (cardinal(round(float(match[n]) * 1000)) for n in ("n", "last") if match[n])
    return "到".join(said)


_ENGLISH_SCALES = {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}


def _large(match: Any) -> str | None:
    """`$1.2B`, in the scales of Chinese: 十二亿美元."""
    value = round(float(match["n"]) * _ENGLISH_SCALES[match["scale"]])
    for scale, name in ((10**12, "万亿"), (10**8, "亿"), (10**4, "万")):
        if value >= scale:
            amount = f"{value / scale:.6f}".rstrip("0").rstrip(".")
            return f"{number(amount)}{name}{_CURRENCIES[match['currency']]}"
    return None


def _telephone(match: Any) -> str:
    """The words for a mobile number, in the groups in which people say it."""
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
    """A pattern for a sign of a sum between two operands; `behind` is a pattern for the text after the second
    operand's first character."""
    return rf"(?<=[\dA-Za-z)²³]\s?)[{signs}](?=\s?[\d(A-Za-z]{behind})"


def _sign(match: Any) -> str:
    return _SIGNS[match.group()]


def _narrow(text: str) -> str:
    return text.translate(_NARROW)


_rule = partial(Rule, seen=_narrow, wakes=DIGITS)
_UNIT, _CURRENCY = any_of(_UNITS), any_of(_CURRENCIES)

RULES: tuple[Rule, ...] = (
    _rule(
        "address",
        r"""(?<![A-Za-z0-9@._/-])(?:https?://)?(?<address>(?:[A-Za-z0-9_+%-]+[.@])+(?=[A-Za-z])[A-Za-z0-9]{2,10}
            (?![A-Za-z0-9])(?:/[A-Za-z0-9\-._~/?\#=&%:]*)?)""",
        _address,
        wakes=".@",
    ),
    _rule(
        "date", rf"{_START}(?<year>\d{{4}})(?<by>[-/.])(?<month>\d\d?)(?P=by)(?<day>\d\d?)(?![\d/-])", _date
    ),
    _rule("year and month", rf"{_START}(?<year>\d{{4}})[-/](?<month>[01]?\d)(?<day>)(?![\d/-])", _date),
    _rule(
        "date without a year",  # in `等于1/2`, there is none
        rf"""(?:(?<=(?:[请定将订已]于|截至|截止至?|日期[为是:：]?|[日时]间[为是:：])\s?)
            (?<month>1[0-2]|0?[1-9])/(?<day>3[01]|[12]\d|0?[1-9])
            |{_START}(?<!/)(?<month>1[0-2]|0?[1-9])/(?<day>3[01]|[12]\d|0?[1-9])
            (?=之?前|以前|[起（(\s]?\s?(?:周|星期)[一二三四五六日天]|\s?[上下]午|\s\d\d?[:：]\d\d))(?![\d/.])""",
        _day,
        wakes="/",
    ),
    _rule(
        "years of a life",  # `（1654—1722）`
        r"(?<=[(（]\s?)(?<n>1\d{3}|20\d\d)\s?[-~—]{1,2}\s?(?<last>1\d{3}|20\d\d)(?=\s?[)）])",
        _life,
        wakes="-~—–－～〜",
    ),
    _rule(
        "year of a document",  # `京法〔2023〕18号`
        r"(?<=[〔\[(（])(?:19|20)\d\d(?=[〕\])）]\s?(?:第\s?)?\d+号)",
        lambda m: digits(m.group()),
        also="〔[(（",
    ),
    _rule("zero in front", r"(?<!\d)0(?<n>[1-9])(?=[月日号])", lambda m: cardinal(int(m["n"]))),
    _rule(
        "years",
        rf"{_START}(?<n>\d{{4}})\s?(?<to>[-/~—至到])\s?(?<last>\d{{4}}|\d\d)(?=年|赛季|学年|财年)",
        lambda m: f"{digits(m['n'])}{'至' if m['to'] == '至' else '到'}{digits(m['last'])}",
    ),
    _rule(
        "year",
        rf"{_START}(?<![有近约达过](?=\d\d00))(?<n>[12]\d{{3}})(?=\s?年(?!前|后|来|历史|以))",
        lambda m: digits(m["n"]),
    ),
    _rule(
        "clock time",
        rf"""{_START}(?<!:)(?<hour>\d\d?)[:：](?<minute>[0-5]\d)(?:[:：](?<second>[0-5]\d))?(?![\d:：])
            (?:\s?(?<half>[AaPp])\.?[Mm]\.?{_NO_LATIN})?""",
        _clock,
    ),
    _rule("minutes", r"(?<=\d\s?[点时])0(?<n>[1-9])(?=分)", lambda m: f"零{cardinal(int(m['n']))}"),
    _rule(
        "telephone",
        rf"""(?<![\d.A-Za-z])(?:(?:\+?86{_DASH})?1[3-9]\d{_DASH}\d{{4}}{_DASH}\d{{4}}
            |\(?0\d{{2,3}}(?:\)\s?|-)\d{{7,8}}|[48]00(?!000){_DASH}\d{{3}}{_DASH}\d{{4}}
            |\+\d{{1,3}}(?:{_DASH}\d{{2,4}}){{2,5}}|12306|1008[56]|10010)(?!\d|[.,]\d)""",
        _telephone,
    ),
    _rule(
        "scores of several sets",
        rf"{_START}(?<![-/:A-Za-z])\d{{1,3}}-\d{{1,3}}(?:[、，,]\s?\d{{1,3}}-\d{{1,3}})+(?![\d\-./])",
        sets(number, "比"),
        wakes="-－–",
    ),
    _rule(
        "model with a dash",  # `i7-13700K`
        r"(?<=(?<![A-Za-z])(?:i|[A-Za-z](?=\d+-\d+[A-Za-z])))(?<n>\d\d?)-(?<model>\d{3,5})"
        r"(?=[A-Za-z]{0,3}(?![A-Za-z\d]))",
        lambda m: f"{number(m['n'])} {digits(m['model'])}",
        wakes="-",
    ),
    _rule("code with dashes", r"(?<![\d.])\d+(?:-\d+){2,}(?![\d.])", lambda m: code(m.group())),
    _rule(
        "code",
        rf"(?<={_NAMED}|\d[转轉]|\d\s?分机号?)\d{{3,}}(?:[ -]\d{{3,}})*{_NOT_COUNTED}",
        lambda m: code(m.group()),
    ),
    _rule(
        "room, train, flight or model",
        rf"(?<![\d.,])\d{{3,4}}(?=号?(?:房|室|教室|路公?[交车]))|(?<=[A-Za-z][-_·]?)\d{{3,}}(?![\d.]|\s?{_UNIT})"
        rf"|(?<=[A-Z]\s)(?<!{_CURRENCY}\s)\d{{3,4}}(?<!00)(?![\d.,]|\s?(?:{_COUNTED}|{_UNIT}))",
        lambda m: code(m.group()),
    ),
    _rule(
        "number that is called",
        r"(?<=(?:拨打?|致电|打)\s?)1\d\d(?!\d|[.,]\d|[个次元块人分])",
        lambda m: code(m.group()),
    ),
    _rule(
        "page or volume",
        r"(?<![A-Za-z])(?:(?<page>pp?)|vol)\.\s?(?<n>\d+)(?![\d.])",
        lambda m: f"第{number(m['n'])}{'页' if m['page'] else '卷'}",
        ignore_case=True,
    ),
    _rule(
        "price of one",
        rf"(?<={_CURRENCY}\s?[\d.,]{{1,12}}|[元块]|\d\s?\p{{Han}}{{1,2}})/(?<per>{any_of(_PER)})(?![A-Za-z\d])",
        lambda m: f"每{_PER[m['per']]}",
        wakes="/",
    ),
    _rule("years of birth", rf"{_START}\d0(?=后(?![来面天年退]))", lambda m: digits(m.group())),
    _rule(
        "large amount in English",
        rf"(?<currency>{_CURRENCY})\s?(?<n>\d+(?:\.\d+)?)\s?(?<scale>[KMBT])(?![A-Za-z\d])",
        _large,
    ),
    _rule("address on a network", r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])", partial(_parts, say=code)),
    _rule("version", r"(?<![\d.])\d+(?:\.\d+){2,}(?![\d.])", _parts),
    _rule(
        "blood pressure", r"(?<=血压\D{0,3})(?<n>\d{2,3})/(?<last>\d{2,3})(?!\d)", partial(_parts, by="比")
    ),
    _rule("mixed number", r"(?<=\d\s?)[½⅓⅔¼¾⅕⅛⅜⅝⅞]", lambda m: f"又{_numeral(m)}", wakes="½⅓⅔¼¾⅕⅛⅜⅝⅞"),
    _rule(
        "mixed fraction",
        r"(?<![\d.,/])(?<whole>\d{1,3})\s(?<top>[1-9])/(?<bottom>[2-9])(?![\d/.]|\s?=)",
        lambda m: f"{number(m['whole'])}又{number(m['bottom'])}分之{number(m['top'])}",
    ),
    _rule(
        "model",
        rf"(?<=(?:型[号號]|机型|款号)[是为:：]?\s?)\d+[A-Za-z]+\d+(?![\d.A-Za-z]|\s?(?:[厘毫公]?[米分寸]|{_UNIT}))",
        lambda m: regex.sub(r"\d+", lambda part: digits(part.group()), m.group()),
    ),
    _rule(
        "mark out of a full mark",
        rf"(?<=(?:[评打得]分|分数|评价|评级|豆瓣)[是为有:：]?\s?){_START}(?<n>\d+(?:\.\d+)?)/(?<full>5|10|100)分?(?![\d/.])",
        lambda m: f"{number(m['n'])}分，满分{number(m['full'])}分",
    ),
    _rule("size", r"(?<=\d\s?)(?<!(?<!\d)0)[xX](?=\s?\d)", lambda m: "乘", wakes="xXＸｘ"),
    _rule(
        "fraction",
        rf"{_START}(?<!/)(?<top>\d+(?:\.\d+)?)/(?<bottom>\d+)(?![\d/.]|\s?=)",
        lambda m: f"{number(m['bottom'])}分之{number(m['top'])}" if int(m["bottom"]) else None,
    ),
    _rule("ratio", rf"{_START}\d+[:：]\d+(?![\d:：])", partial(_parts, by="比")),
    _rule("sign of a sum", _between("-*/", r"[^，。,]{0,40}="), _sign, wakes="=＝"),
    _rule("sign between two", _between("+×÷<>=*", ""), _sign, wakes="+＋×÷<>=＜＞＝*＊"),
    _rule("power", r"(?<=[\dA-Za-z]\s?)[²³](?![A-Za-z])(?<!m.)", _sign, wakes="²³"),
    _rule(
        "range between units",
        rf"""(?<=[年月日号时点分秒周元块万亿%‰]|:\d\d|\d\s?{_UNIT})\s?[-~—]{{1,2}}(?<!~-)\s?(?=[-+]?(?:{_CURRENCY})?\d)
            |(?<=\d)[-~—](?={_CURRENCY}\d)""",
        lambda _: "到",
    ),
    _rule("days", r"(?<=(?:周|星期)[一二三四五六日])[-~—](?=周|星期)", lambda _: "到", wakes="周期"),
    _rule("money", rf"(?<sign>{_SIGN})(?<currency>{_CURRENCY})\s?{_BEHIND}(?:[美欧港日]?元)?", _money),
    _rule("money, its currency last", rf"{_AMOUNT}\s?(?<currency>{_CURRENCY}){_NO_LATIN}", _money),
    _rule(
        "per cent",
        rf"{_AMOUNT}\s?(?<of>[%‰])",
        lambda m: _amount(m, of="百分之" if m["of"] == "%" else "千分之"),
    ),
    _rule(
        "measure", rf"{_AMOUNT}\s?(?<unit>{_UNIT})(?:/(?<per>{any_of(_PER)})){{0,2}}(?![A-Za-z\d])", _measure
    ),
    _rule(
        "arrow between quantities",
        r"(?<=[\d%‰℃万亿元]\s?)→(?=\s?[-+¥$]?\d)",
        lambda _: "到",
        wakes="→",
    ),
    _rule(
        "each",
        rf"(?<=[元块]|\d\s?(?:\p{{Han}}{{1,2}}|{_UNIT}))/(?=\p{{Han}}|\d)|(?<={_CURRENCY}\s?[\d.,]{{1,12}})/(?=\p{{Han}})",
        lambda _: "每",
        wakes="/／",
    ),
    _rule(
        "metres and centimetres",
        rf"(?<=\d[米块])\d\d(?![\d.,]|\s?(?:{_COUNTED}|[厘毫公]|{_UNIT}))",
        lambda m: digits(m.group()),
    ),
    _rule(
        "salary in thousands",
        r"""(?<=(?:薪|工资|收入|待遇|月入|年入)[^\d，。,;；]{0,6})(?<n>\d+(?:\.\d+)?)
            (?:[kK]?\s?[-~—至到]\s?(?<last>\d+(?:\.\d+)?))?[kK](?![A-Za-z\d])""",
        _salary,
        wakes="kKｋＫ",
    ),
    _rule("number sign", r"(?<![A-Za-z])[Nn][Oo]\.?\s?(?=\d)", lambda _: "第"),
    _rule(
        "number",
        rf"(?:(?<=(?<score>[比战]分[为是]?|以|[胜赢负输]))|){_AMOUNT}(?=(?<counted>(?<!第\d)[多几]?\s?{_COUNTED})?)",
        _number,
    ),
    _rule("digits that are left", r"\d+", lambda m: number(m.group())),
    Rule("digit of another script or shape", r"[\p{No}\p{Nl}]", _numeral),
    _rule("sign", r"[=×÷≥≤≠≈±&%√∞π°]|(?<=[\p{Han}\d]\s?)\+", _sign, wakes=""),
    Rule("wide Latin word", r"[Ａ-Ｚａ-ｚ]+", lambda m: _narrow(m.group())),
)
