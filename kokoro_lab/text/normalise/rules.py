"""Rules that rewrite parts of a text: each part goes to the first rule that matches and accepts it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import date
from functools import cached_property, partial
from typing import Any

import regex

from kokoro_lab.text.aligned import AlignedText

Say = Callable[[Any], str | None]
"""Takes a match and returns its spoken words; None leaves the match to later rules."""

DIGITS, POINT_WITHIN, ROMAN = "0", "\x01", "\x02"
"""Characters for `wakes` that stand for a kind. `DIGITS` is a decimal digit of any script, `POINT_WITHIN` a
point with a letter or digit anywhere after it, and `ROMAN` a word that may be a Roman number."""
_LETTER_OR_DIGIT = regex.compile(r"[\p{L}\p{N}]")
_ROMAN = regex.compile(r"(?<![\p{L}\p{N}])(?:[IVXLCDM]++|[ivxlcdm]++)(?:[ABC]|th|st|nd|rd)?(?![\p{L}\p{N}])")

_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}ー]")  # no spaces between words


@dataclass(frozen=True)
class Rule:
    """One kind of writing that is said in other words.

    Parameters
    ----------
    name : str
        The kind: `clock time`, `fraction`, ...
    pattern : str
        Matches candidates; for the package `regex`, verbose. Look-arounds state what must stand beside them.
    say : callable
        Returns the words for a match, or None if the match is something else.
    wakes : str
        Characters of which every matching text has at least one. The rule is not tried on a text without
        them; if empty, it is tried on every text.
    also : str
        As `wakes`, for a rule that needs one of these characters, too.
    ignore_case : bool
    seen : callable, optional
        Maps a text to another of the same length, which the pattern is matched against.
    """

    name: str
    pattern: str
    say: Say
    _: KW_ONLY
    wakes: str = ""
    also: str = ""
    ignore_case: bool = False
    seen: Callable[[str], str] | None = None

    @cached_property
    def matches(self) -> Callable[[str], Iterator[Any]]:
        """The matches of the pattern in a text.

        The pattern is compiled when it is first tried, so that a first text without numbers waits for few
        patterns.
        """
        flags = regex.VERBOSE | (regex.IGNORECASE if self.ignore_case else 0)
        find: Callable[[str], Iterator[Any]] = regex.compile(self.pattern, flags).finditer
        seen = self.seen
        return find if seen is None else lambda text: find(seen(text))


digit_rule, roman_rule = partial(Rule, wakes=DIGITS), partial(Rule, wakes=ROMAN)
"""A `Rule` for parts that contain a digit, or a Roman number."""


def characters(text: str) -> set[str]:
    """The characters of `text`, to be compared with a rule's `wakes`. `DIGITS`, `POINT_WITHIN` and `ROMAN`
    are among them if the text has what they stand for."""
    found = set(text)
    if any(map(str.isdecimal, found)):
        found.add(DIGITS)
    if "." in found and _LETTER_OR_DIGIT.search(text, text.index(".")):
        found.add(POINT_WITHIN)
    if not found.isdisjoint("IVXLCDMivxlcdm") and _ROMAN.search(text):
        found.add(ROMAN)
    return found


def apply(text: AlignedText, rules: Iterable[Rule], keep: Iterable[tuple[int, int]] = ()) -> AlignedText:
    """`text` with each part that a rule takes replaced by its words, set off by spaces from its neighbours.

    Every rule sees the written text, never another rule's words; a part goes to the first rule that accepts
    it. No rule takes a part that touches one of `keep`, which are in order.
    """
    kept = [(i, j, "") for i, j in keep]
    taken: list[tuple[int, int, str]] = []
    written = text.text
    present = characters(written)
    for each in rules:
        if each.wakes and present.isdisjoint(each.wakes):
            continue
        if each.also and present.isdisjoint(each.also):
            continue
        for match in each.matches(written):
            i, j = match.span()
            if i == j or overlaps(kept, i, j) or overlaps(taken, i, j):
                continue
            words = each.say(match)
            if words is not None:
                taken.insert(bisect_left(taken, (i, j, "")), (i, j, words))
    ends = {j for _, j, words in taken if words.strip()}
    return text.rewrite(
        (i, j, _set_off(written, i, j, words, follows_another=i in ends)) for i, j, words in taken
    )


def overlaps(taken: Sequence[tuple[int, int, str]], i: int, j: int) -> bool:
    """Whether one of `taken`, which are in order and apart from one another, has a character of `i:j`."""
    at = bisect_left(taken, (i, j, ""))
    return (at > 0 and taken[at - 1][1] > i) or (at < len(taken) and taken[at][0] < j)


def _set_off(text: str, i: int, j: int, words: str, *, follows_another: bool) -> str:
    if not words.strip():  # removed, or replaced by a space alone
        return words
    parted = follows_another and text[i].isalnum()  # the part before ends with a space
    touches = follows_another or (i and text[i - 1].isalnum())
    in_words = touches and words[0].isalnum() and not _UNSPACED.match(words[0])
    before = " " if in_words and not parted else ""
    after = " " if j < len(text) and text[j].isalnum() and not _UNSPACED.match(words[-1]) else ""
    return f"{before}{words}{after}"


def in_calendar(year: int | None, month: int | None, day: int | None) -> bool:
    """Whether the date exists; for a date without year, month or day, whether it ever does."""
    try:
        date(2000 if year is None else year, 1 if month is None else month, 1 if day is None else day)
    except ValueError:
        return False
    return True
