"""Rules that rewrite pieces of a text, the first one that will have a piece taking it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import regex

from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.normalise.needs import NOTHING, characters, needs

Say = Callable[[Any], str | None]
"""From a match to what is said for it; None leaves it to the rules behind."""


_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}ー]")  # no spaces between words


class Pattern(Protocol):
    """What a rule needs of one."""

    def finditer(self, text: str) -> Iterator[Any]: ...


class LatePattern:
    """A pattern that is compiled when it is first looked for: a first text of words alone waits for few.

    Parameters
    ----------
    written : str
        As `regex` takes it.
    flags : int
    """

    __slots__ = ("_compiled", "_flags", "_written")

    def __init__(self, written: str, flags: int) -> None:
        self._written, self._flags = written, flags
        self._compiled: Any = None

    def finditer(self, text: str) -> Iterator[Any]:
        """Matches in `text`."""
        if self._compiled is None:
            self._compiled = regex.compile(self._written, self._flags)
        found: Iterator[Any] = self._compiled.finditer(text)
        return found


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of thing that is written otherwise than it is said.

    Parameters
    ----------
    name : str
        What it is: `clock time`, `fraction`, ...
    pattern : Pattern
        Where it may stand. Look around for what must be beside it.
    say : callable
        Words for one match, or None if on a second look it is something else.
    needs : frozenset of str
        Of these a text holds at least one wherever the pattern matches; none if that is not known.
    """

    name: str
    pattern: Pattern
    say: Say
    needs: frozenset[str] = NOTHING


def rule(name: str, pattern: str, say: Say, *, ignore_case: bool = False) -> Rule:
    """A `Rule` whose pattern is written over several lines, with comments."""
    flags = regex.VERBOSE | (regex.IGNORECASE if ignore_case else 0)
    return Rule(name, LatePattern(pattern, flags), say, needs(pattern, verbose=True))


def apply(text: AlignedText, rules: Iterable[Rule], keep: Iterable[tuple[int, int]] = ()) -> AlignedText:
    """`text` with each piece that a rule takes replaced by its words, set off by spaces from its neighbours.

    Every rule reads what was written, never what another rule made of it; a piece belongs to the first
    rule that takes it. No rule takes a piece that touches one of `keep`, which are in order.
    """
    kept = [(i, j, "") for i, j in keep]
    taken: list[tuple[int, int, str]] = []
    present = characters(text.text)
    for each in rules:
        if each.needs and each.needs.isdisjoint(present):
            continue
        for match in each.pattern.finditer(text.text):
            i, j = match.span()
            if i == j or overlaps(kept, i, j) or overlaps(taken, i, j):
                continue
            words = each.say(match)
            if words is not None:
                taken.insert(bisect_left(taken, (i, j, "")), (i, j, words))
    ends = {j for _, j, _ in taken}
    return text.rewrite(
        (i, j, _set_off(text.text, i, j, words, follows_another=i in ends)) for i, j, words in taken
    )


def overlaps(taken: Sequence[tuple[int, int, str]], i: int, j: int) -> bool:
    """Whether one of `taken`, which are in order and apart from one another, shares a place with `i:j`."""
    at = bisect_left(taken, (i, j, ""))
    return (at > 0 and taken[at - 1][1] > i) or (at < len(taken) and taken[at][0] < j)


def _set_off(text: str, i: int, j: int, words: str, *, follows_another: bool) -> str:
    if not words.strip():  # taken away, or only a space is put in its place
        return words
    parted = follows_another and text[i].isalnum()  # by the space behind the piece before
    before = " " if i and text[i - 1].isalnum() and not parted and not _UNSPACED.match(words[0]) else ""
    after = " " if j < len(text) and text[j].isalnum() and not _UNSPACED.match(words[-1]) else ""
    return f"{before}{words}{after}"
