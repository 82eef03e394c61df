"""Rules that rewrite parts of a text: each part goes to the first rule that matches and accepts it.

The rules of a language stand in a table, in the order in which they are tried (`read_rules`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import date
from functools import cached_property
from importlib import import_module
from inspect import signature
from types import MappingProxyType
from typing import Any

import regex

from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.tables import any_of, entries, names, rows, words

Say = Callable[[Any], str | None]
"""Takes a match and returns its spoken words; None leaves the match to later rules."""

DIGITS = "0"
"""A character for `wakes`: any decimal digit, of any script."""

ANY_CASE, EITHER_WIDTH = "any case", "either width"
_FRAGMENT = regex.compile(r"(?<!\\[pP])\{([\p{L}_][^{}]*)\}")
"""In a pattern, `{DECIMAL}`: a pattern or a list by its name."""
_PLACE = regex.compile(r"\{(\w+)(?::([^{}]+))?\}")
"""In what is said, `{hour}` or `{hour:cardinal}`: a group of the match, and how it is read."""

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
    ignore_case : bool
    seen : callable, optional
        Maps a text to another of the same length, which the pattern is matched against.
    """

    name: str
    pattern: str
    say: Say
    _: KW_ONLY
    wakes: str = ""
    ignore_case: bool = False
    seen: Callable[[str], str] | None = None

    @cached_property
    def wakers(self) -> frozenset[str]:
        return frozenset(self.wakes)

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


def read_rules(
    package: str,
    *shared: str,
    name: str = "rules.tsv",
    seen: Callable[[str], str] | None = None,
    own: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[Rule, ...]:
    """The rules of a table, in its order.

    Its columns are `module`, where the names in a row are looked up; `rule`, the rule's name; `wakes`, as of
    a `Rule`; `read`, which may say `any case` and `either width`; `say`; and `pattern`. A name is that of a
    constant or function of the module or a shared one, of a list in `words.tsv`, or of a kind in `names.tsv`.

    A pattern takes other patterns and lists by their names: `{START}(?P<hour>\\d+)\\ {before a year}`. What
    is said is the name of a function that takes the match, or words in quotes, in which `{hour}` stands for a
    group, `{0}` for all that matched, and `{hour:cardinal}` for what a function or a table makes of it.
    `{match:sign}` gives the function the match itself. A function that takes a whole number gets one; if one
    returns None, the match is left to later rules.

    Parameters
    ----------
    package : str
        The Python package that has the table.
    *shared : str
        Modules of the package whose names every row may use.
    name : str
        The table's file.
    seen : callable, optional
        The `seen` of rules that read either width.
    own : mapping of str to object
        Names that come before those of the module. A rule whose pattern takes an empty list from here is left
        out: the language has no such words.

    Raises
    ------
    ValueError
        The errors of `rows`; or a row has a name that there is not, or another word in `read`. It names the
        file and the rule.
    """
    return tuple(
        _read(package, (row["module"], *shared), name, row, seen, own)
        for row in rows(package, name, continued=True)
        if all(own.get(fragment, True) for fragment in _FRAGMENT.findall(row["pattern"]))
    )


def _read(
    package: str,
    modules: Sequence[str],
    table: str,
    row: Mapping[str, str],
    seen: Callable[[str], str] | None,
    own: Mapping[str, Any],
) -> Rule:
    defined = ChainMap(dict(own), *(vars(import_module(f"{package}.{module}")) for module in modules))
    how = entries(row["read"])

    def named(name: str) -> Any:
        if name in defined:
            return defined[name]
        listed = words(package).get(name)
        return names(package)[name] if listed is None else listed

    def fragment(match: Any) -> str:
        found = named(match[1])
        return found if isinstance(found, str) else any_of(found)

    try:
        if not {ANY_CASE, EITHER_WIDTH}.issuperset(how):
            raise KeyError(row["read"])
        pattern, wakes = (_FRAGMENT.sub(fragment, row[cell]) for cell in ("pattern", "wakes"))
        say = _filled(row["say"][1:-1], named) if row["say"].startswith('"') else named(row["say"])
    except (KeyError, FileNotFoundError) as error:
        raise ValueError(f"{table}, rule {row['rule']!r}: there is no {error}") from error
    given = seen if EITHER_WIDTH in how else None
    return Rule(row["rule"], pattern, say, wakes=wakes, ignore_case=ANY_CASE in how, seen=given)


def _filled(written: str, named: Callable[[str], Any]) -> Say:
    """What says `written`, with the groups of the match in their places."""
    first, *rest = _PLACE.split(written)
    if {"{", "}"} & set("".join((first, *rest[2::3]))):
        raise KeyError(written)
    places: list[tuple[int | str, Callable[[Any], str | None], str]] = [
        (int(group) if group.isdecimal() else group, _reading(named(reading)) if reading else str, behind)
        for group, reading, behind in zip(rest[::3], rest[1::3], rest[2::3], strict=True)
    ]

    def said(match: Any) -> str | None:
        words = [read(match if group == "match" else match[group] or "") for group, read, _ in places]
        if None in words:
            return None
        return first + "".join(f"{word}{behind}" for word, (*_, behind) in zip(words, places, strict=True))

    return said


def _reading(found: Any) -> Callable[[Any], str | None]:
    """What makes words of the text of a group: the look-up in a table, or a function."""
    if isinstance(found, Mapping):
        return found.__getitem__
    takes_number = next(iter(signature(found).parameters.values())).annotation in (int, "int")
    read: Callable[[Any], str | None] = found
    return (lambda text: read(int(text))) if takes_number else read


def characters(text: str) -> set[str]:
    """The characters of `text`, to compare with a rule's `wakes`."""
    found = set(text)
    if any(map(str.isdecimal, found)):
        found.add(DIGITS)
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
        if each.wakes and present.isdisjoint(each.wakers):
            continue
        for match in each.matches(written):
            i, j = match.span()
            if i == j or overlaps(kept, i, j) or overlaps(taken, i, j):
                continue
            words = each.say(match)
            if words is not None:
                taken.insert(bisect_left(taken, (i, j, "")), (i, j, words))
    ends = {j for _, j, _ in taken}
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
    parted = follows_another and text[i].isalnum()  # by the space behind the part before
    in_words = i and text[i - 1].isalnum() and words[0].isalnum() and not _UNSPACED.match(words[0])
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
