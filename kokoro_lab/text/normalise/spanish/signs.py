"""Signs of arithmetic, and all other signs with a Spanish name."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any
from unicodedata import digit

from kokoro_lab.text.normalise.spanish.numerals import cardinal
from kokoro_lab.text.tables import names

_OWN, _GREEK, _OTHERS = (
    names(__package__)[kind] for kind in ("sign in a rule of its own", "Greek letter", "sign")
)
_NAMES = {**_OWN, **_GREEK, **_OTHERS}
_OPENING, _CLOSING = frozenset("(“\"'¿¡["), frozenset(".,;:)”\"'?!]")
_POWERS = {"2": "al cuadrado", "3": "al cubo"}


def _named(match: Any) -> str:
    return _apart(match, _NAMES[match["sign"]])


def _minus(match: Any) -> str | None:
    """Between two words a hyphen is one, unless the text has a sum in it."""
    spaced = match.string[match.start() - 1].isspace() and match.string[match.end()].isspace()
    return _apart(match, "menos") if spaced else None


def _power(match: Any) -> str:
    exponent = "".join("-" if each == "⁻" else str(digit(each)) for each in match.group())
    if not exponent.lstrip("-").isdecimal() or exponent.rfind("-") > 0:
        return _apart(match, "elevado a menos")
    return _apart(match, _POWERS.get(exponent) or f"elevado a {cardinal(int(exponent))}")


def _apart(match: Any, said: str) -> str:
    """The words with spaces also beside signs and brackets; beside letters and digits, `apply` adds them."""
    before, after = match.string[: match.start()][-1:], match.string[match.end() :][:1]
    return _space(before, _OPENING) + said + _space(after, _CLOSING | _NAMES.keys())


def _space(beside: str, close: AbstractSet[str]) -> str:
    """A space beside the neighbouring character, unless there is none or it is one that needs no space."""
    return "" if not beside or beside.isspace() or beside.isalnum() or beside in close else " "


_GREEK_LETTERS, _ANY_SIGN = "".join(_GREEK), "".join(_OTHERS)
