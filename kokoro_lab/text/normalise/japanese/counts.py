"""Japanese fractions, ranges, scores and ordinals, and at last every number that no other rule has taken."""

from __future__ import annotations

import unicodedata
from typing import Any

import regex

from kokoro_lab.text.normalise.japanese.numbers import cardinal, digits, number, ordinal
from kokoro_lab.text.normalise.japanese.written import (
    NO_LATIN_AFTER,
    NO_LATIN_BEFORE,
    NUMBER,
    PLAIN,
    SIGN,
    SIGNS,
    START,
    digits_of_either_width,
    with_dash,
    with_point,
    with_slash,
    with_tilde,
)
from kokoro_lab.text.normalise.pasted import sets
from kokoro_lab.text.normalise.rules import Rule

_VULGAR = "".join(
    c for c in map(chr, (*range(0xBC, 0xBF), *range(0x2150, 0x215F))) if "FRACTION" in unicodedata.name(c)
)
_OUTCOME = r"で?の?(?:勝|負|敗|快勝|辛勝|惨敗|完勝|圧勝|逆転|引き?分|同点|ドロー|優勝|リード|スコア|折り返)"
_SCORE_BEFORE = r"(?:スコア|得点|点差|試合結果|結果|試合)(?:は|が|、|:|\s)*"
_RANGE_END = r"[時分秒日月年円歳才人名個回本枚%℃度mgk番号階話章巻位]"


def _fraction(match: Any) -> str | None:
    whole, top, bottom = match["whole"], match["top"], match["bottom"]
    if int(bottom) == 0:
        return None
    said = f"{number(bottom)}分の{number(top)}"
    return SIGNS[match["sign"] or ""] + (f"{number(whole)}と{said}" if whole else said)


def _vulgar(match: Any) -> str:
    top, _, bottom = unicodedata.normalize("NFKC", match["vulgar"]).partition("⁄")
    said = f"{number(bottom)}分の{number(top)}" if bottom else f"{number(top)}分の"
    return f"{number(match['whole'])}と{said}" if match["whole"] else said


def _versus(match: Any) -> str:
    return f"{number(match['left'])}対{number(match['right'])}"


def _span(match: Any) -> str:
    """The words for the left number and the dash. `3-5` is a range, since it counts up; `3-2` and `0-1` are
    scores. Another rule reads the number on the right."""
    left, right = (float(regex.sub(r"[^\d.]", "", match[side])) for side in ("left", "right"))
    return number(match["left"]) + ("から" if 0 < left < right else "対")


_DECIMAL = "[一二三四五六七八九〇]"
RULES_BEFORE: tuple[Rule, ...] = (
    Rule(
        "decimal in kanji",
        rf"(?<=[一二三四五六七八九十〇])・(?={_DECIMAL}+(?:[度倍割秒億万兆%]|パー|ポイ|メート|キロ|センチ|ミリ|リット|グラ|トン))",
        lambda match: "点",
        wakes="・",
    ),
    with_dash(
        "scores of several sets",
        rf"{START}(?<![\-/:A-Za-z])\d{{1,3}}-\d{{1,3}}(?:[、,]\s?\d{{1,3}}-\d{{1,3}})+(?![\d\-./])",
        sets(number, "対"),
    ),
    with_dash("score", rf"{START}(?<!-)(?<left>\d{{1,3}})-(?<right>\d{{1,3}})(?={_OUTCOME})", _versus),
    with_dash(
        "score", rf"(?<={_SCORE_BEFORE}){START}(?<left>\d{{1,3}})-(?<right>\d{{1,3}})(?![\d\-.])", _versus
    ),
    with_slash(
        "fraction",
        rf"""(?<sign>{SIGN}){START}(?<![/A-Za-z])(?:(?<whole>\d+)(?:と|\s))?(?<top>\d+(?:,\d{{3}})*)/(?<bottom>\d+(?:,\d{{3}})*)
            (?![\d/]|\.\d|[A-Za-z])""",
        _fraction,
    ),
    Rule("fraction in one sign", rf"(?:(?<!\d)(?<whole>\d+)\s?)?(?<vulgar>[{_VULGAR}])", _vulgar),
)
"""Rules for a slash or a hyphen between two numbers; they come before the rules for money and units."""

RANGES: tuple[Rule, ...] = (
    with_dash(
        "range of times", r"(?<=\d:\d\d)\s?[-—]\s?(?=(?:[AaPp][Mm]\s?)?\d{1,2}:\d\d)", lambda _: "から"
    ),
    with_dash(
        "range or score with a hyphen",
        rf"{START}(?<![\-/:A-Za-z])(?<left>{PLAIN})\s?[-—]\s?(?=(?<right>{PLAIN})(?!\s?[-/:]\s?\d|\d))",
        _span,
    ),
    with_tilde(
        "range", r"(?<=[\d\p{Han}\p{Katakana}%°℃A-Za-z)])\s?~\s?(?=[-+▲]?[\d¥$€£第])", lambda _: "から"
    ),
    with_tilde("open range", rf"(?<=(?:\d|\d{_RANGE_END}|曜日))~(?=\s*(?:$|[、。,)」]))", lambda _: "から"),
    with_tilde(
        "range between words",
        r"(?<!~.*)(?<=[\p{Han}\p{Katakana}A-Za-z\d)])\s?~\s?(?=[\p{Han}\p{Katakana}A-Za-z])(?!.*~.*~)",
        lambda _: "から",
    ),
)

RULES: tuple[Rule, ...] = (
    digits_of_either_width("books, of which there are some", r"(?<!日)本(?=\s?\d+冊)", lambda _: "本 "),
    digits_of_either_width(
        "number sign",
        rf"{NO_LATIN_BEFORE}(?:No\.\s?|No|№\s?|\#(?=\d+位))(?=\d)",
        lambda _: "ナンバー",
        ignore_case=True,
    ),
    digits_of_either_width(
        "English ordinal",
        rf"{START}(?<n>\d+)(?:st|nd|rd|th){NO_LATIN_AFTER}",
        lambda match: ordinal(int(match["n"])),
        ignore_case=True,
    ),
    digits_of_either_width(
        "rank by a hash",
        rf"{NO_LATIN_BEFORE}\#(?<n>\d+)(?!\w)",
        lambda match: "シャープ" + number(match["n"]),
    ),
    with_point(
        "number without its zero", r"(?<![\dA-Za-z.])\.\d+(?![\d.])", lambda match: number(match.group())
    ),
    digits_of_either_width(
        "number",
        rf"(?<sign>{SIGN}){START}(?<n>{NUMBER})",
        lambda match: SIGNS[match["sign"]] + number(match["n"]),
    ),
    digits_of_either_width("digits that are left", r"\d+", lambda match: number(match.group())),
    Rule(
        "digit of another script or shape",
        r"\p{No}|(?![0-9０-９])\p{Nd}",
        lambda match: _numbered(match.group()),
    ),
    Rule("whatever digits are left", r"\p{Nd}", lambda match: digits(match.group())),
)
"""The rules of this module that come after those of all other modules."""


def _numbered(character: str) -> str | None:
    """The numeral for a character whose value is a whole number, such as ①, ⑽, ² or a digit of another
    script; None for every other character."""
    value = unicodedata.numeric(character, -1.0)
    if value < 0 or value != int(value):
        return None
    return cardinal(int(value))
