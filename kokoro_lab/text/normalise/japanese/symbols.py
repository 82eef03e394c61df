"""Signs of mathematics and print, Roman numerals, and abbreviations that are one character."""

from __future__ import annotations

import unicodedata
from typing import Any

from kokoro_lab.text.normalise.japanese.letters import spelt
from kokoro_lab.text.normalise.japanese.numbers import cardinal, number
from kokoro_lab.text.normalise.japanese.written import (
    NO_LATIN_AFTER,
    PLAIN,
    alternatives,
    either_width,
    table,
)
from kokoro_lab.text.normalise.rules import Rule, rule

ANYWHERE = table(
    """
    ==イコール ≠=ノットイコール ≒=ニアリーイコール ≈=ニアリーイコール ≤=以下 ≦=以下 ≥=以上 ≧=以上 ×=かける
    ÷=割る ±=プラスマイナス √=ルート ∞=無限大 &=アンド ※=米印 →=から ⇒=ならば ∴=ゆえに ∵=なぜならば ∠=角
    △=三角 ○=丸 ◯=丸 ●=黒丸 □=四角 ■=黒四角 ◎=二重丸 ▲=黒三角 ☆=星 ★=星 ♪=音符 ♯=シャープ ♭=フラット
    ♡=ハート @=アットマーク °=度 ∑=シグマ ∫=インテグラル ∈=属する ⊂=部分集合 ∪=カップ ∩=キャップ ∀=任意の
    ∃=存在する †=ダガー §=セクション ©=コピーライト ®=登録商標 ™=トレードマーク ←=左矢印 ↑=上矢印 ↓=下矢印
    ⇔=同値 ↔=左右矢印 ∝=比例 ‰=パーミル \\=バックスラッシュ _=アンダーバー $=ドル ¥=円 €=ユーロ
    £=ポンド +=プラス ∽=相似 ≡=合同 ⊥=垂直 ∥=平行 ¬=否定 ∂=ラウンド ∇=ナブラ #=シャープ
    """
)
BETWEEN = {"*": "かける", "<": "小なり", ">": "大なり"}
"""Said only between two operands; elsewhere these divide words or decorate."""
_ABBREVIATED = table(
    """
    ㈱=株式会社 (株)=株式会社 ㈲=有限会社 (有)=有限会社 ㍿=株式会社 ㍾=明治 ㍽=大正 ㍼=昭和 ㍻=平成 ㋿=令和
    ℡=電話 ㏍=株式会社 〆切=締め切り 〃=同じく ㊤=上 ㊥=中 ㊦=下 ㊙=マル秘 ㊗=祝 ㊟=注
    """
)
_ROMAN = {"M": 1000, "D": 500, "C": 100, "L": 50, "X": 10, "V": 5, "I": 1}
_OPERAND = r"[\d)A-Za-zα-ωπ∞²³%円]"


def roman(numeral: str) -> int | None:
    """The value of a Roman numeral in capitals, or None if it is not one as it would be written."""
    total, highest = 0, 0
    for letter in reversed(numeral):
        value = _ROMAN.get(letter)
        if value is None:
            return None
        total += value if value >= highest else -value
        highest = max(highest, value)
    return total if _as_roman(total) == numeral else None


def _as_roman(value: int) -> str:
    pairs = zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        ["M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"],
        strict=True,
    )
    said = ""
    for worth, letters in pairs:
        said += letters * (value // worth)
        value %= worth
    return said


def _roman_said(match: Any) -> str | None:
    value = roman(unicodedata.normalize("NFKC", match["numeral"]).upper())
    return None if value is None else cardinal(value)


def _power(match: Any) -> str:
    exponent = unicodedata.normalize("NFKC", match["exponent"]).lstrip("^").replace("−", "-")
    sign = "マイナス" if exponent[0] == "-" else ""
    base = match["base"]
    said = number(base) if base[0].isdigit() else spelt(base)
    return f"{said}の{sign}{number(exponent.lstrip('-'))}乗"


BEFORE_NUMBERS: tuple[Rule, ...] = (
    either_width(
        "abbreviation in one sign",
        alternatives(_ABBREVIATED),
        lambda m: _ABBREVIATED[m.group()],
    ),
    either_width("right or wrong", "[○◯〇]×", lambda _: "マルバツ"),
    either_width("arrow that leads nowhere", r"(?<!\w\s?)→|→(?!\s?\w)", lambda _: "矢印"),
    either_width(
        "Roman numeral of a sequel",
        rf"(?<=[\p{{Katakana}}\p{{Han}}ー]\s?)(?<numeral>[IVX]{{2,}}){NO_LATIN_AFTER}(?![\d&])",
        _roman_said,
    ),
    rule("Roman numeral", r"(?<numeral>[\u2160-\u216F]+|[\u2170-\u217F]+)", _roman_said),
    either_width("Roman numeral in letters", rf"(?<=第)(?<numeral>[IVXLC]+){NO_LATIN_AFTER}", _roman_said),
    either_width(
        "Roman numeral of a ruler", r"(?<![A-Za-z])(?<numeral>[IVXLC]+)(?=世(?!界|紀))", _roman_said
    ),
    either_width(
        "power",
        rf"""(?<![A-Za-z./])(?<base>{PLAIN}|(?<!\d\s?)m|[A-Za-ln-z]|(?<=[=+]\s?)[A-Za-z]{{2,3}})
            (?<exponent>⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+|\^-?\d+)(?![A-Za-z\d])""",
        _power,
    ),
    either_width(
        "minus in a sum",
        rf"(?<={_OPERAND})\s?-\s?(?=[\dA-Za-z.]+(?:\s?[-+×÷*/]\s?[\dA-Za-z.]+)*\s?=)",
        lambda _: "マイナス",
    ),
    either_width(
        "minus in a sum", r"(?<=[=+×÷*√]\s?[\dA-Za-z.]+)\s?-\s?(?=[\dA-Za-z])", lambda _: "マイナス"
    ),
    either_width("minus between spaces", rf"(?<={_OPERAND}\s)-(?=\s[\dA-Za-z])", lambda _: "マイナス"),
    either_width(
        "letters of a formula",
        rf"(?<=[=+×]\s?)[A-Za-z]{{2}}{NO_LATIN_AFTER}(?![²³^])|(?<![A-Za-z])[A-Za-z]{{2}}(?=\s?[=×])",
        lambda match: spelt(match.group()),
    ),
    either_width(
        "divided in a sum",
        rf"(?<={_OPERAND})\s?/\s?(?=[\dA-Za-z.]+\s?=)(?<!\d\s?/\s?(?=\d))",
        lambda _: "割る",
    ),
)
"""What must be known before a digit or a hyphen is read alone."""

RULES: tuple[Rule, ...] = (
    either_width(
        "sign between operands",
        rf"(?<={_OPERAND})\s?(?P<sign>[*<>])\s?(?=[\dA-Za-z(.α-ω√])",
        lambda match: BETWEEN[match["sign"]],
    ),
    either_width("slash between words", r"(?<=\w)/(?=\w)", lambda _: "スラッシュ"),
    either_width("sign", alternatives(ANYWHERE), lambda match: ANYWHERE[match.group()]),
)
