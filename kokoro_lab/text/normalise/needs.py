"""What a text must hold for a pattern to match in it, read from how the pattern is written.

Most sentences hold no digit and no sign, and most rules match nothing else: they need not be tried. Only
what is certain is told: where a pattern is written in a way that is not known here, it needs nothing.
"""

from __future__ import annotations

import regex

DIGIT = "0"
"""Stands for every decimal digit."""
NOTHING: frozenset[str] = frozenset()

_COMMON = frozenset(".,'-:;()\"!?")
"""Marks of ordinary prose: of two things that are needed, another one tells more."""
_SKIPPED = regex.compile(r"(?:\s+|#[^\n]*)+")
_REPEAT = regex.compile(r"[*+?]|\{(\d*)(?:,\d*)?\}")
_ESCAPE = regex.compile(
    r"\\(?:[pPN]\{[^}]*\}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", regex.DOTALL
)
_LOOKS_NOT = regex.compile(r"\(\?<?!")
_OPENS = regex.compile(r"\((?:\?(?:[:>=|]|<=|P?<\w+>|[ims]+:))?(?![?*])")
_SET = regex.compile(r"\[(\^?)(\]?(?:\\.|[^\[\]\\])*)\]", regex.DOTALL)
_OPERATOR_OF_SETS = regex.compile(r"--|&&|\|\||~~")
_RANGE_OF_DIGITS, _RANGE = regex.compile(r"(?<!\\)[0-9]-[0-9]"), regex.compile(r"[^\\]-.", regex.DOTALL)
_MEMBER = regex.compile(rf"{_ESCAPE.pattern}|.", regex.DOTALL)
_WITH_A_NAME = (r"\g", r"\k", r"\L")


class _Unknown(Exception):
    """Written in a way of which nothing is said here."""


def characters(text: str) -> set[str]:
    """The characters of `text`, to be held against what is needed."""
    found = set(text)
    if any(map(str.isdecimal, found)):
        found.add(DIGIT)
    return found


def needs(pattern: str, *, verbose: bool) -> frozenset[str]:
    """Characters of which a text holds at least one wherever `pattern` matches; none if that is not known.

    Parameters
    ----------
    pattern : str
        A regular expression as `regex` takes it.
    verbose : bool
        Whether it is written with spaces and comments.
    """
    try:
        reader = _Reader(pattern, verbose=verbose)
        found = reader.branches()
    except _Unknown:
        return NOTHING
    return found if reader.at == len(pattern) else NOTHING


class _Reader:
    """Goes through a pattern once, from left to right."""

    def __init__(self, pattern: str, *, verbose: bool) -> None:
        self.pattern, self.at = pattern, 0
        self._verbose = verbose

    def branches(self) -> frozenset[str]:
        """Up to the end of a group: what one of its branches needs, if each of them needs something."""
        found = [self._sequence()]
        while self.pattern.startswith("|", self.at):
            self.at += 1
            found.append(self._sequence())
        return frozenset().union(*found) if all(found) else NOTHING

    def _sequence(self) -> frozenset[str]:
        best = NOTHING
        while True:
            self._skip()
            if self.at >= len(self.pattern) or self.pattern[self.at] in "|)":
                return best
            needed = self._item()
            if self._may_be_left_out():
                continue
            if needed and (not best or _tells(needed) > _tells(best)):
                best = needed

    def _skip(self) -> None:
        if self._verbose and (match := _SKIPPED.match(self.pattern, self.at)):
            self.at = match.end()

    def _may_be_left_out(self) -> bool:
        """Behind an item: whether what repeats it allows for none."""
        self._skip()
        repeat = _REPEAT.match(self.pattern, self.at)
        if not repeat:
            if self.pattern.startswith("{", self.at):
                raise _Unknown
            return False
        self.at = repeat.end()
        if self.pattern[self.at : self.at + 1] in ("?", "+"):  # as few as may be, or never given back
            self.at += 1
        return repeat.group() in "*?" or (repeat.group()[0] == "{" and not int(repeat[1] or 0))

    def _item(self) -> frozenset[str]:
        character = self.pattern[self.at]
        if character == "(":
            return self._group()
        if character == "[":
            return self._set()
        if character == "\\":
            return self._escape()
        self.at += 1
        return NOTHING if character in ".^$" else _atom(character)

    def _group(self) -> frozenset[str]:
        negated = _LOOKS_NOT.match(self.pattern, self.at)
        opens = negated or _OPENS.match(self.pattern, self.at)
        if not opens:
            raise _Unknown
        self.at = opens.end()
        needed = self.branches()
        if not self.pattern.startswith(")", self.at):
            raise _Unknown
        self.at += 1
        return NOTHING if negated else needed

    def _set(self) -> frozenset[str]:
        match = _SET.match(self.pattern, self.at)
        if not match or _OPERATOR_OF_SETS.search(match[2]):
            raise _Unknown
        self.at = match.end()
        members = _RANGE_OF_DIGITS.sub(DIGIT, match[2])
        if match[1] or _RANGE.search(members):
            return NOTHING
        found = [_atom(member) for member in _MEMBER.findall(members)]
        return frozenset().union(*found) if all(found) else NOTHING

    def _escape(self) -> frozenset[str]:
        match = _ESCAPE.match(self.pattern, self.at)
        if not match or match.group() in _WITH_A_NAME:
            raise _Unknown
        self.at = match.end()
        return _atom(match.group())


def _atom(written: str) -> frozenset[str]:
    """What one character needs, or one escape, such as `\\d`. Letters are left out: they have two cases."""
    if written == r"\d" or written.isdecimal():
        return frozenset(DIGIT)
    character = written.removeprefix("\\") or written
    if len(character) != 1 or character.isalnum() or character.isspace():
        return NOTHING
    return frozenset(character)


def _tells(needed: frozenset[str]) -> tuple[bool, bool, int]:
    """How much it tells that a text holds one of these."""
    return not needed & _COMMON, DIGIT not in needed, -len(needed)
