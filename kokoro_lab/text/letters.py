"""Replaces styled letters (`𝐛𝐨𝐥𝐝`, `ⓒircled`) and look-alikes by the plain letters that a reader sees.

Styled are mathematical, circled, squared, full-width and small capital letters, ligatures, and letters that
are struck through or underlined by combining marks. Look-alikes are letters of another alphabet that look
like Latin ones within a Latin word. Signs with a meaning of their own (`m²`, `№`, `℃`, a lone `🅰`) are left
to later steps.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from functools import cache

import regex

from kokoro_lab.text.aligned import AlignedText

_DRESSED = regex.compile(
    r"[ſﬀ-ﬆⒶ-ⓁⓃ-ⓩℂ-ℭℯ-ℸℼ-ℿⅅ-ⅉ０-９Ａ-Ｚａ-ｚ％＄＃＆＋＝＠／\U0001d400-\U0001d7ff\U0001f130-\U0001f149\U0001fbf0-\U0001fbf9]+"
    r"|[\U0001f150-\U0001f169\U0001f170-\U0001f189]{2,}"
)
"""Long s, ligatures, circled, letterlike, full-width, mathematical and squared letters, and the digits of a
display, without the emoji among them (Ⓜ, ℹ). Of white letters on black, only several in a row: a single one
may be an emoji (🅰)."""
_KINDS = frozenset({"<font>", "<wide>", "<circle>", "<square>"})
"""Unicode's tags of letters that are forms of another one. `<compat>` holds ligatures, but `℃` and `№`
too."""
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
_CAPS = f"[{''.join(_SMALL)}sqx]"
_SMALL_WORDS = regex.compile(rf"(?<![\p{{L}}\p{{M}}]){_CAPS}+(?: {_CAPS}+)*+(?![\p{{L}}\p{{M}}])")
_THREE = regex.compile(rf"{_CAPS}{{3}}")
"""Three small capitals in a row, by which a word in small capitals is recognised. One alone may be a sign of
the IPA. Not every letter of the word need be a small capital: some letters have none."""
_ALIKE = dict(
    zip(
        "аеіјорсухѕԁһѵАВЕІЈКМНОРСТХЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧο",
        "aeijopcyxsdhvABEIJKMHOPCTXSABEZHIKMNOPTYXo",
        strict=True,
    )
)
_MIXED_WORD = regex.compile(r"(?=\p{L}*\p{Latin})(?=\p{L}*[\p{Cyrillic}\p{Greek}])(?<!\p{L})\p{L}+")


def undressed(aligned: AlignedText) -> AlignedText:
    """`aligned`, in which styled letters are replaced by plain ones. Offsets into the original are kept.

    Parameters
    ----------
    aligned : AlignedText
        In Unicode's form NFC.
    """
    for pattern, plain, is_meant in _RULES:
        if pattern.search(aligned.text):
            aligned = aligned.rewrite(_edits(aligned.text, pattern, plain, is_meant))
    return aligned


def _edits(
    text: str,
    pattern: regex.Pattern[str],
    plain: Callable[[str], str],
    is_meant: Callable[[str, str], object],
) -> Iterator[tuple[int, int, str]]:
    """The replacements (start, end, new letters), one for each letter, so that each keeps its own offset."""
    for match in pattern.finditer(text):
        new = [plain(c) for c in match.group()]
        if is_meant(match.group(), "".join(new)):
            for at, (c, letters) in enumerate(zip(match.group(), new, strict=True), match.start()):
                if letters != c:
                    yield at, at + 1, letters


def _always(_written: str, _plain: str) -> bool:
    return True


def _all_latin(_written: str, plain: str) -> bool:
    """Whether every letter of a mixed word looks Latin; not so in `ΔT` or `Wi-Фи`."""
    return all(unicodedata.name(letter, "").startswith("LATIN") for letter in plain)


@cache
def _plain(letter: str) -> str:
    """The letter or digit that `letter` shows; `letter` itself if it shows none."""
    name = unicodedata.name(letter, "")
    if name.startswith("NEGATIVE ") and " LATIN CAPITAL LETTER " in name:
        return name[-1]
    dressed = letter in _LIGATURES or unicodedata.decomposition(letter).split(" ")[0] in _KINDS
    return unicodedata.normalize("NFKC", letter) if dressed else letter


_RULES: tuple[tuple[regex.Pattern[str], Callable[[str], str], Callable[[str, str], object]], ...] = (
    (_STRUCK, lambda _: "", _always),
    (_DRESSED, _plain, _always),
    (_SMALL_WORDS, lambda c: _SMALL.get(c, c), lambda written, _: _THREE.search(written)),
    (_MIXED_WORD, lambda c: _ALIKE.get(c, c), _all_latin),
)
