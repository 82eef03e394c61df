"""How numbers are written in Japanese: parts of patterns that several rules share.

Digits, letters and signs come in two widths. The rules get the narrow form of each character, one for one, so
that offsets stay valid.
"""

from __future__ import annotations

from functools import lru_cache, partial

from kokoro_lab.text.normalise.rules import DIGITS, Rule, Say
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


@lru_cache(maxsize=4)
def narrow(text: str) -> str:
    """`text` with every wide character that has a narrow twin replaced by it, one for one."""
    return text.translate(_NARROW)


def _of_both_widths(signs: str) -> str:
    return signs + "".join(chr(code) for code in _NARROW if narrow(chr(code)) in signs)


def either_width(
    name: str, pattern: str, say: Say, *, wakes: str = "", also: str = "", ignore_case: bool = False
) -> Rule:
    """A `Rule` that reads characters of both widths. Its pattern and its `say` get the narrow form, and the
    wide forms of `wakes` and `also` are added to them."""
    wakes, also = map(_of_both_widths, (wakes, also))
    return Rule(name, pattern, say, wakes=wakes, also=also, ignore_case=ignore_case, seen=narrow)


with_slash, with_point, with_dash, with_tilde, with_colon = (
    partial(either_width, wakes=signs) for signs in ("/", ".", "-—", "~", ":")
)
"""`either_width` for parts that contain that sign."""
digits_of_either_width = partial(either_width, wakes=DIGITS)
"""`either_width` for parts that contain a digit."""
