"""Roman numerals in English, where the words around them show that they are numbers."""

from __future__ import annotations

from typing import Any

from kokoro_lab.text.normalise.english.numerals import cardinal, ordinal
from kokoro_lab.text.normalise.english.patterns import END, WORDS, any_word
from kokoro_lab.text.normalise.roman import roman, valued
from kokoro_lab.text.tables import any_of

NUMERAL = r"(?P<roman>[IVX]+|[IVXLCDM]{2,})"
PART = rf"(?i:{any_word('Roman part')})"
"""Words after which a Roman numeral is a cardinal, even a single I."""
GIVEN = any_of(map(str.title, WORDS["first name"]))
"""First names. After one and a family name, a Roman numeral belongs to the person: `John Smith the third`."""


_cardinal = valued(lambda _, value: cardinal(value))
_part = valued(lambda match, value: f"{cardinal(value)} {match['letter']}".rstrip())  # stage IIIB
_century = valued(lambda _, value: ordinal(value))


def _span(match: Any) -> str | None:
    first, last = roman(match["first"]), roman(match["last"])
    return None if first is None or last is None else f"{cardinal(first)} to {cardinal(last)}"


@valued
def _regnal(match: Any, value: int) -> str | None:
    return None if value > 60 else f"the {ordinal(value)}{match['own'] or ''}"


def _alone(match: Any) -> str | None:
    """A numeral by itself: two letters or more that are no English word and no common abbreviation."""
    text = match["roman"]
    spelt = len(text) < 4 and not set(text) <= set("IVX")  # a CLI, a DIV
    return None if spelt or text in WORDS["Roman letters that may be no number"] else _cardinal(match)


_END = rf"{END}(?!\.\p{{L}})"
