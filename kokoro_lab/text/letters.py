"""Letters that are dressed up, read as the letters that a reader sees.

Mathematical, circled, squared, full-width and small capital letters, ligatures, letters that are struck
through or underlined by combining marks, and letters of another alphabet that look like Latin ones within a
Latin word. What carries meaning beside its letters (`m²`, `№`, `℃`, a lone `🅰`) is left to who reads it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from functools import cache

import regex

from kokoro_lab.text.aligned import AlignedText

_DRESSED = regex.compile(
    r"[ſﬀ-ﬆⒶ-ⓩℂ-ℭℯ-ℹℼ-ℿⅅ-ⅉ０-９Ａ-Ｚａ-ｚ\U0001d400-\U0001d7ff\U0001f130-\U0001f149\U0001fbf0-\U0001fbf9]+"
    r"|[\U0001f150-\U0001f169\U0001f170-\U0001f189]{2,}"
)
"""Long s, ligatures, circled, letterlike, full-width, mathematical, squared, digits of a display; and a row
of white letters on black: a single one may be an emoji (🅰 is a blood type)."""
_KINDS = frozenset({"<font>", "<wide>", "<circle>", "<square>"})
"""Of what Unicode says a letter is a form of. `<compat>` holds ligatures, but `℃` and `№` too."""
_LIGATURES = frozenset("ſﬀﬁﬂﬃﬄﬅﬆ")
_STRUCK = regex.compile(
    r"(?<=[\p{L}\p{N}\s]\p{M}*)[\u0305\u0332-\u0338\u033f\u035c-\u0362\u20d2-\u20dc\u20e5-\u20eb]+"
)
"""Lines over, under and through letters, and slashes."""
_SMALL = {
    c: name[-1].lower()
    for c in map(chr, (*range(0x1D00, 0x1D23), *range(0x0262, 0x02A0), 0xA730, 0xA731))
    if regex.fullmatch(r"LATIN LETTER SMALL CAPITAL [A-Z]", name := unicodedata.name(c))
}
_SMALL_WORD = regex.compile(rf"(?<![\p{{L}}\p{{M}}])[{''.join(_SMALL)}sqx]{{3,}}(?![\p{{L}}\p{{M}}])")
"""Small capitals alone: there are none of some letters, and single ones are signs of the IPA."""
_ALIKE = dict(
    zip(
        "аеіјорсухѕԁһѵАВЕІЈКМНОРСТХЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧο",
        "aeijopcyxsdhvABEIJKMHOPCTXSABEZHIKMNOPTYXo",
        strict=True,
    )
)
_MIXED_WORD = regex.compile(r"(?=\p{L}*\p{Latin})(?=\p{L}*[\p{Cyrillic}\p{Greek}])(?<!\p{L})\p{L}+")


def undressed(aligned: AlignedText) -> AlignedText:
    """`aligned`, its dressed letters as plain ones; offsets into the original are kept.

    Parameters
    ----------
    aligned : AlignedText
        NFC.
    """
    for pattern, plain in _RULES:
        if pattern.search(aligned.text):
            aligned = aligned.rewrite(_edits(aligned.text, pattern, plain))
    return aligned


def _edits(
    text: str, pattern: regex.Pattern[str], plain: Callable[[str], str]
) -> Iterator[tuple[int, int, str]]:
    """Letter by letter, so that each still stands for its own place."""
    for match in pattern.finditer(text):
        new = [plain(c) for c in match.group()]
        if pattern is _MIXED_WORD and any(_foreign(c) for c in new):
            continue
        for at, (c, letters) in enumerate(zip(match.group(), new, strict=True), match.start()):
            if letters != c:
                yield at, at + 1, letters


def _foreign(letter: str) -> bool:
    """Whether a letter of a mixed word is none that looks Latin, as in `ΔT` or `Wi-Фи`."""
    return not unicodedata.name(letter, "").startswith("LATIN")


@cache
def _plain(letter: str) -> str:
    """The letter or digit that `letter` shows; `letter` itself if it shows none."""
    name = unicodedata.name(letter, "")
    if name.startswith("NEGATIVE ") and " LATIN CAPITAL LETTER " in name:
        return name[-1]
    dressed = letter in _LIGATURES or unicodedata.decomposition(letter).split(" ")[0] in _KINDS
    return unicodedata.normalize("NFKC", letter) if dressed else letter


_RULES: tuple[tuple[regex.Pattern[str], Callable[[str], str]], ...] = (
    (_STRUCK, lambda _: ""),
    (_DRESSED, _plain),
    (_SMALL_WORD, lambda c: _SMALL.get(c, c)),
    (_MIXED_WORD, lambda c: _ALIKE.get(c, c)),
)
