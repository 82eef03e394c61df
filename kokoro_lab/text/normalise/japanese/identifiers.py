"""Japanese digits that identify: telephone numbers, postal codes, addresses, versions, codes."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.japanese.numbers import POINT, cardinal, digits, number
from kokoro_lab.text.normalise.japanese.written import (
    NO_LATIN_AFTER,
    NO_LATIN_BEFORE,
    START,
    digits_of_either_width,
    either_width,
    with_dash,
    with_point,
)
from kokoro_lab.text.normalise.rules import Rule

_DASH = "[-ー—]"
_ALONE = rf"(?!\d|{_DASH}\d)"
_UNDER_WAY = rf"(?<!\d|\d{_DASH}|[.,/]|\d:|{_DASH})"
# What is read out digit by digit, perhaps with は or a colon behind it
_CODES = r"""(?:内線|番号|パスワード|暗証|PIN|ID|コード|シリアル|型番|ナンバー)(?:は|が|、|:|\s)*"""
_COUNTED = r"(?!\d|\s?[番件個回人つ年月日時分%桁]|円)"


def in_groups(written: str) -> str:
    """Digits one by one, with の for a hyphen, a bracket or a space between them."""
    return "の".join(digits(group) for group in regex.findall(r"\d+", written))


def version(written: str) -> str:
    """The words for a version: `2.10` is 二点十, since version 10 follows 9, so that this is no decimal."""
    return POINT.join(number(part) for part in written.split("."))


def _dotted(match: Any) -> str:
    parts = match.group().split(".")
    if len(parts) == 4 and all(int(part) < 256 for part in parts):  # an address on a network
        return POINT.join(digits(part) for part in parts)
    return version(match.group())


def _in_parts(match: Any) -> str:
    parts = regex.findall(r"\d+", match.group())
    return "の".join(digits(part) if part[0] == "0" or len(part) > 4 else number(part) for part in parts)


def _block(match: Any) -> str:
    return "の".join(cardinal(int(part)) for part in regex.findall(r"\d+", match.group()))


RULES: tuple[Rule, ...] = (
    digits_of_either_width(
        "postal code", rf"〒\s?(?<n>\d{{3}}{_DASH}?\d{{4}}){_ALONE}", lambda m: "郵便番号" + in_groups(m["n"])
    ),
    either_width("postal code, its sign alone", r"〒", lambda _: "郵便番号", wakes="〒"),
    digits_of_either_width(
        "telephone",
        rf"""{_UNDER_WAY}(?:
              0\d{{1,4}}{_DASH}\d{{1,4}}{_DASH}\d{{3,4}} | 0\d{{1,4}}\s\d{{1,4}}\s\d{{3,4}}
            | \(0\d{{1,4}}\)\s?\d{{1,4}}{_DASH}\d{{3,4}} | 0\d{{1,4}}\s?\(\d{{1,4}}\)\s?\d{{3,4}}
            | 0\d{{9,10}} ){_ALONE}""",
        lambda match: in_groups(match.group()),
    ),
    digits_of_either_width(
        "international telephone",
        r"(?:(?<!\w)|(?<![A-Za-z\d])(?=\+\d{1,3}[-\s]\d))\+(?=(?:[-\s]?\(?\d\)?){7})"  # `+10-12度` is a range
        rf"(?<n>\d{{1,3}}(?:[-\s]?\(?\d{{1,4}}\)?){{2,5}}){_ALONE}",
        lambda match: "プラス" + in_groups(match["n"]),
    ),
    either_width("telephone, announced", r"(?:TEL|Tel|tel|℡)(?:\.|:|\s)*(?=[\d(+])", lambda _: "電話番号"),
    either_width("facsimile, announced", r"(?:FAX|Fax|fax)(?:\.|:|\s)*(?=[\d(+])", lambda _: "ファックス"),
    digits_of_either_width(
        "code",
        rf"(?<={_CODES})\d+(?:(?:-|\s(?=\d{{3}}))\d+)*{_COUNTED}",
        lambda match: in_groups(match.group()),
    ),
    with_point(
        "address on a network or version in parts",
        rf"{_UNDER_WAY}{NO_LATIN_BEFORE}\d+(?:\.\d+){{2,}}(?![\d.])",
        _dotted,
    ),
    digits_of_either_width(
        "version",
        rf"{NO_LATIN_BEFORE}(?:version|ver|v)\.?\s?(?<n>\d+(?:\.\d+)*)(?![\d.]\d)",
        lambda match: "バージョン" + version(match["n"]),
        ignore_case=True,
    ),
    digits_of_either_width(
        "version, announced", r"(?<=バージョン\s?)\d+(?:\.\d+)+", lambda match: version(match.group())
    ),
    digits_of_either_width(
        "digits in long groups",
        rf"{_UNDER_WAY}(?:\d+{_DASH})*(?:\d{{3}}{_DASH}\d{{4}}|\d{{4}}{_DASH}\d{{2,6}}{_DASH}\d+)(?:{_DASH}\d+)*{_ALONE}",
        lambda match: in_groups(match.group()),
    ),
    digits_of_either_width(
        "number in parts",  # `No.25-014`
        rf"(?<=(?<![A-Za-z])(?i:No\.?|№)\s?)\d+(?:{_DASH}\d+)+(?![\d.])",
        _in_parts,
        wakes="-ー—",
    ),
    digits_of_either_width(
        "block and house", rf"{_UNDER_WAY}\d{{1,4}}(?:{_DASH}\d{{1,4}}){{2,}}{_ALONE}", _block, wakes="-ー—"
    ),
    with_dash(
        "block and house behind a place",
        r"(?<=[\p{Han}ヶケのノ](?<![は第約]))\d{1,3}-\d{1,4}(?=\s?(?:$|[、。,)」\s]|[のにでまへがはを](?!勝|負|敗)))",
        _block,
    ),
    digits_of_either_width(
        "floor under the ground",
        rf"{NO_LATIN_BEFORE}B(?<n>\d+)(?:F{NO_LATIN_AFTER}|階)",
        lambda m: f"地下{number(m['n'])}階",
    ),
    digits_of_either_width(
        "floor", rf"{START}(?<n>\d{{1,3}})F{NO_LATIN_AFTER}(?!\d)", lambda match: f"{number(match['n'])}階"
    ),
    digits_of_either_width("page", rf"{NO_LATIN_BEFORE}pp?\.\s?(?=\d)", lambda _: "ページ", ignore_case=True),
)
