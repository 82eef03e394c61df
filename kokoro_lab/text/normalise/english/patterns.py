"""Parts that several English rules share: tables, parts of patterns, words for signs."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.english import numerals
from kokoro_lab.text.tables import any_of, names, words

NAMES, WORDS = names(__package__), words(__package__)

START = r"(?<![\p{L}\p{N}_])"
"""A pattern for a place where a word can begin: no part of the same word stands before it."""
END = r"(?![\p{L}\p{N}_])"
LOOSE_START, LOOSE_END = r"(?<![\p{L}\p{N}])", r"(?![\p{L}\p{N}])"
"""Patterns for the beginning and end of a word at which an underscore may stand, as emphasis."""
WHOLE = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d{1,2}(?:,\d{2})+,\d{3}(?!\d)|\d+)"
DECIMAL = rf"(?:{WHOLE}(?:\.\d+)?|\.\d+)"
VULGAR_SIGNS = "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
VULGAR = f"[{VULGAR_SIGNS}]"
WITH_COMMA = r"(?:\d{1,3}(?:\.\d{3})+,\d{2}|\d+,\d{1,2})(?!\d)"
"""A number as most of Europe writes it: 1.299,00 or 21,5."""
SPAN = r"(?:\ [-–]\ |[-–]\ ?)"
"""The dash between two numbers of a span. A dash with a space only before it is a minus: 500 -0.3%."""
DASH = r"(?:\ ?[-–—]\ ?)"
MAGNITUDES = NAMES["magnitude"]
MAGNITUDE = r"(?:hundred|thousand|million|billion|trillion|quadrillion|dozen)"


_ABOUT = regex.compile(rf"\b(?i:{any_of(WORDS['about'])})\ ?$", regex.VERBOSE)


def any_word(name: str) -> str:
    """A pattern for any word of the list `name` in `words.tsv`."""
    return any_of(WORDS[name])


def optional(match: Any, group: str) -> str:
    """If the pattern has the group `group`, and it matched: its text; else empty."""
    return match.groupdict().get(group) or ""


def took_part(match: Any, group: str) -> bool:
    """Whether the pattern has the group `group`, and it matched. It may have matched the empty string."""
    return match.groupdict().get(group) is not None


def ends_text(match: Any) -> bool:
    """Whether only closing quotes and brackets follow the match in its text."""
    return not match.string[match.end() :].strip(" \"”')")


def stop(match: Any) -> str:
    """If the point of an abbreviation ends the text, too: a point; else empty."""
    return "." if match.group().endswith(".") and ends_text(match) else ""


def sign(match: Any) -> str:
    """The word for the sign before a number, with a space after it."""
    written = optional(match, "sign").strip()
    spoken = NAMES["sign of a quantity"].get(written)
    if written and written in "~≈" and _ABOUT.search(match.string, 0, match.start()):
        return ""  # "about" stands there already
    return f"{spoken} " if spoken else ""


def scaled(amount: str, magnitude: str | None) -> str:
    """The words for a number with a letter for its size: `2.5`, `m` is "two point five million"."""
    spoken = numerals.number(amount)
    return f"{spoken} {MAGNITUDES.get(magnitude, magnitude.lower())}" if magnitude else spoken
