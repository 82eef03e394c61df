"""The values of Roman numerals."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from kokoro_lab.text.normalise.rules import Say

_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_WELL_FORMED = re.compile(r"M*(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")


def roman(numeral: str) -> int | None:
    """If `numeral` is a well-formed Roman numeral in capitals: its value; else (`IIII`, `VX`) None."""
    if not numeral or not _WELL_FORMED.fullmatch(numeral):
        return None
    values = [_VALUES[letter] for letter in numeral]
    return sum(-v if v < max(values[i + 1 :], default=0) else v for i, v in enumerate(values))


def valued(say: Callable[[Any, int], str | None], value_of: Callable[[str], int | None] = roman) -> Say:
    """A rule's function that calls `say` with the match and the value of its group `roman`, if that is a
    numeral."""

    def said(match: Any) -> str | None:
        value = value_of(match["roman"].upper())
        return None if value is None else say(match, value)

    return said
