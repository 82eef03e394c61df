"""Places in the Bible in English: `1 Cor 13:4-8a`, `Gen. 1:1–2:3`, `Rom 8`."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.english.numerals import cardinal, ordinal
from kokoro_lab.text.normalise.english.patterns import END, NAMES, WORDS, any_word
from kokoro_lab.text.normalise.rules import Rule, digit_rule
from kokoro_lab.text.tables import any_of

BOOKS = NAMES["book of the Bible"]
"""Books by their names and abbreviations."""
_START = r"(?<![\p{L}\p{N}_.,/-])"
_NUMBER = rf"""(?P<number>[123]|I{{1,3}})
(?<!\b(?i:{any_word("Roman part")}|{any_word("ruler")})\ (?:[123]|I{{1,3}}))\ ?"""
"""The number of a book; in `World War II John 3`, it belongs to the war."""
_IN_PARTS = any_of(each for each in BOOKS if BOOKS[each] in WORDS["book in several parts"])
_UNSURE = {
    "Is",
    *WORDS["may be a name or a word"],
    *(each for each in BOOKS if BOOKS[each] in ("Samuel", "Timothy", "Peter")),
}
_ALONE = any_of(each for each in BOOKS if each not in _UNSURE)
"""Books that are recognised without a number before them. Samuel, Timothy and Peter need one (`1 Tim 3:30`):
in `Tim 3:30`, Tim may be a friend and 3:30 a time."""
_WITH_POINT = any_of(WORDS["may be a name or a word"])
_CLEAR = r"""\.|(?<=Ex|Rev|Gen|Prov|Cor)\ \d
|\ \d+:(?:\d(?!\d)|[6-9]\d|\d+[-–]\d{1,3}(?![\d:])(?!\ ?[ap]\.?m\b))"""
"""What must follow a book that may also be a name (`_WITH_POINT`): a point (`Phil. 4:13`), or a place that
can be no time of day (`Dan 3:16-18`). After five of these books, any chapter will do."""
_OF_ISAIAH = r"\ (?:\d{1,2}:\d|(?:2[5-9]|[3-6]\d):\d+)[-–]\d{1,3}(?![\d:])"
"""What must follow `Is`, which may also be the verb: verses that are no time of day."""
_VERSE = r"\d{1,3}:\d{1,3}[a-c]?"
_PASSAGE = rf"{_VERSE}(?:[-–](?:{_VERSE}|\d{{1,3}}[a-c]?))?"
_PART = regex.compile(r"\d+|[-–]|[a-c]|[;,]")


def _book(match: Any) -> str:
    number = match.groupdict().get("number")
    count = len(number) if number and number[0] == "I" else int(number or 0)
    lead = f"{ordinal(count).capitalize()} " if count else ""
    return lead + BOOKS[match["book"]]


def _passages(match: Any) -> str:
    """The book, its chapter and the verses: "First Corinthians thirteen four to eight"."""
    words = " ".join(
        "to" if part in "-–" else cardinal(int(part)) if part.isdecimal() else part.upper()
        for part in _PART.findall(match["places"])
    )
    return f"{_book(match)} {words}".replace(" ,", ",").replace(" ;", ",")


RULES: tuple[Rule, ...] = (
    digit_rule(
        "psalm",  # `Ps 85`, but `the PS 5`
        rf"{_START}(?P<many>Pss?)(?=\ \d{{1,3}}(?:[,;)]|$|\ (?:and|is|was|says|in|\p{{Lu}})))",
        lambda match: "Psalms" if match["many"] == "Pss" else "Psalm",
        also="P",
    ),
    digit_rule(
        "verses of the Bible",
        rf"""{_START}(?:(?P<book>Is)(?={_OF_ISAIAH})
        |{_NUMBER}(?P<book>{_IN_PARTS})|(?P<book>{_ALONE}|{_WITH_POINT}(?={_CLEAR})))\.?[ ]
        (?P<places>{_PASSAGE}(?:[;,]\ ?{_PASSAGE})*){END}(?![:.]\d|\ ?[ap]\.?m\b)""",
        _passages,
    ),
    digit_rule(
        "book of the Bible",
        rf"{_START}{_NUMBER}(?P<book>{_IN_PARTS})\.?(?=\ \d{{1,3}}{END}(?![.:/]\d))",
        _book,
    ),
)
