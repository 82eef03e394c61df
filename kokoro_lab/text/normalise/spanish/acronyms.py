"""Acronyms that are spelt, and codes of letters and digits. What can be read as a word stays as it is."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.rules import Rule, digit_rule, rule
from kokoro_lab.text.normalise.spanish.letters import is_sayable, spell
from kokoro_lab.text.normalise.spanish.wordlist import wordlist
from kokoro_lab.text.normalise.spanish.words import cardinal, digits

LONGEST = 5
_LOWERED = "₀₁₂₃₄₅₆₇₈₉"
_SUBSCRIPTS = str.maketrans(_LOWERED, "0123456789")
_SPELT = wordlist(
    """
    IP ID AM FM SOS MIT UK UE EU IA AI TI IU AA UA UHF ERC OEA UPV OCU
    """
)
"""Sayable, but spelt by everybody."""
_READ = wordlist(
    """
    SGAE CSIC IMSS MUFACE PSOE OVNI MERCOSUR UNICEF INTERPOL ISSSTE
    """
)
"""Not sayable letter by letter, but read as words by everybody: the phonetics know how."""
_WORDS = wordlist(
    """
    EL LA DE EN UN SI SÍ NO YA YO TU TÚ MI MÍ SU SE ES AL LO LE ME TE HA VA DA FE OH AH EH IR MÁS NI SÉ
    FUI OK VS
    """
)


def _acronym(match: Any) -> str | None:
    letters = match["letters"]
    if letters in _READ or letters in _WORDS:
        return None
    vowels_only = len(letters) <= 3 and not regex.search(r"[^AEIOUÁÉÍÓÚ]", letters)
    if letters not in _SPELT and not vowels_only and len(letters) > 2 and is_sayable(letters):
        return None
    if _shouts(match.string) and is_sayable(letters):
        return None
    return spell(letters)


def _ampersand(match: Any) -> str:
    return " y ".join(spell(part) for part in match.group().split("&"))


def _shouts(text: str) -> bool:
    """A text all in capitals has words, not acronyms."""
    return len(regex.findall(r"\p{Lu}{2,}", text)) > 2 and not regex.search(r"\p{Ll}", text)


def _dotted(match: Any) -> str:
    return spell(match.group().replace(".", "").replace(" ", ""))


def _code(match: Any) -> str:
    return " ".join(_piece(piece) for piece in regex.findall(r"\p{L}+|\d+|[₀-₉]+", match.group()))


def _piece(piece: str) -> str:
    if piece.isdecimal():
        return digits(piece) if piece.startswith("0") or len(piece) > 4 else cardinal(int(piece))
    if piece[0] in _LOWERED:
        return cardinal(int(piece.translate(_SUBSCRIPTS)))
    return piece if len(piece) > 3 and is_sayable(piece) else spell(piece)


RULES: tuple[Rule, ...] = (
    rule("dotted acronym", r"(?<![\w.])(?:\p{Lu}\.){2,}(?:\p{Lu}(?!\w))?", _dotted, wakes="."),
    rule(
        "code",
        r"(?<![\w.,-])(?=\d*\p{Lu})(?=\p{Lu}*[\d₀-₉])(?:\p{Lu}{1,5}|\d{1,12}|[₀-₉]{1,3}){2,6}(?!\w)(?![.,]\d)",
        _code,
    ),
    digit_rule("code with a hyphen", r"(?<![\w-])(?:\p{Lu}{1,3}-\d{1,12}|\d{1,4}-\p{Lu})(?![\w-])", _code),
    rule("letters and letters", r"(?<![\w&])\p{Lu}{1,3}&\p{Lu}{1,3}(?![\w&])", _ampersand, wakes="&"),
    digit_rule("word and number", r"(?<=\p{L}{2})-(?=\d)", lambda _: " "),
    rule(
        "acronym",
        rf"(?<![\w.@#])(?P<letters>\p{{Lu}}{{2,{LONGEST}}})(?:'?s)?(?:-(?=\p{{L}}))?(?<=-|(?![\w@]|\.\p{{L}}))",
        _acronym,
    ),
)
