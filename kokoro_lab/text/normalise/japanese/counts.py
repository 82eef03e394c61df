"""Japanese fractions, ranges, scores and ordinals, and at last every number that no other rule has taken."""

from __future__ import annotations

import unicodedata
from typing import Any

import regex

from kokoro_lab.text.normalise.japanese.numbers import SIGNS, cardinal, number

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
    """`3-5` counts up: a range; `3-2` and `0-1` are scores. The number on the right is left to its own
    rule."""
    left, right = (float(regex.sub(r"[^\d.]", "", match[side])) for side in ("left", "right"))
    return number(match["left"]) + ("から" if 0 < left < right else "対")


_DECIMAL = "[一二三四五六七八九〇]"


def _numbered(character: str) -> str | None:
    """①, ⑽, ² or a digit of another script, by its value."""
    value = unicodedata.numeric(character, -1.0)
    if value < 0 or value != int(value):
        return None
    return cardinal(int(value))
