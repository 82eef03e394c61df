"""Finds where the sentences and lines of a text end, from its beginning on.

The end of a sentence depends on its own text and on `LOOK_CHARS` after it (`QUOTE_CHARS` in a quotation), so
that a text can be read while it is written. No text is ever dropped: a sentence that is too long is cut at
the best border that it has, if need be inside a word.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import regex

from kokoro_lab.text import marks
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.boundaries import sentence_ranges
from kokoro_lab.text.growing import ReadAhead

LOOK_CHARS = 24
"""Number of characters after a sentence and its white space on which the end of the sentence may depend."""
QUOTE_CHARS = 96
"""`LOOK_CHARS` inside an open quotation: if the quotation is closed within these characters, its sentences
stay together."""
SENTENCE_CHARS = 360
"""The longest sentence; a longer one is cut before G2P, at a clause or a space. The cuts of a sentence with
more than `LONG_TOKENS` token ids depend on at most this many characters, all other cuts on `JOINED_COLUMNS`
or `OPENING_COLUMNS`."""
REST_CHARS = 60
"""If a sentence is cut because it is too long, at least this many characters come after the cut."""
HARD_LINE_COLUMNS = 50
"""A line of fewer columns than this ends a sentence, like an item of a list, unless the next line begins with
a small letter or is the time of a subtitle."""
_MOST_CHARS = SENTENCE_CHARS + 2 * QUOTE_CHARS

UNSEEN_CHARS = 100_000
"""The longest `script` or `style` element that is left out. If an element is longer, or has no end, it and
all later ones are read as text, since each would have to be searched for its end again."""

_ENDING = r"[\p{Sentence_Terminal}…．]+(?:[\p{Pe}\p{Pf}\p{Pi}\"'*_~]|</\w{1,10}>)*\s*|\s*\n\s*"
_MAY_END = regex.compile(_ENDING)
_MAY_END_IN_PAGE = regex.compile(rf"(?P<unseen>(?:(?<=>)\s*|\s*\n\s*)(?=<(?i:script|style)[>\s]))|{_ENDING}")
_SUBTITLE_TIME = regex.compile(r"[\d:]{5,9}[.,]\d{3} -->")
"""The time line of a subtitle; the number in the line before belongs to it."""
_BLANK_LINE = regex.compile(r"\n\s*\n")
_WIDE = r"[\p{Hiragana}\p{Katakana}\p{Han}ー、。「」，；：]"
_WRAP = regex.compile(rf"((?<={_WIDE})\n(?={_WIDE}))|\s*\n\s*(?:>+\s?(?=\p{{L}}))?|  +")
"""Breaks and spaces within a sentence that become one space, or nothing between Han or kana. If a quotation
continues in the next line, that line's `>` is removed, too."""


class Sentence(NamedTuple):
    """One sentence; `text` holds no line break. If a line or a paragraph ends here, a pause follows.

    `columns` is its width on the screen, where kana and Han are as wide as two letters. `begins_line` says
    whether it begins a line.
    """

    text: AlignedText
    ends_line: bool
    ends_paragraph: bool
    columns: int = 0
    begins_line: bool = False


UNKNOWN = 0


class _Found(NamedTuple):
    """A sentence of `length` characters with the white space after it; `length` is `UNKNOWN` while its end
    has not been found."""

    length: int
    columns: int
    ends_line: bool
    ends_paragraph: bool


class Sentences(Iterator[Sentence]):
    """Sentences of a text in order, lazily, stripped, none of them empty or over `SENTENCE_CHARS`.

    Parameters
    ----------
    text : ReadAhead
        The cleaned text.
    language : str
        A canonical tag.
    """

    def __init__(self, text: ReadAhead, language: str) -> None:
        self._text = text
        self._language = language
        self._found: _Found | None = None
        self._leaves_out = True
        self.begins_line = True
        """Whether the next sentence begins a line."""

    def __next__(self) -> Sentence:
        while True:
            found = self._find()
            if found is None:
                raise StopIteration
            self._found = None
            text = _unwrapped(self._text.take(found.length)).strip()
            begins, self.begins_line = self.begins_line, found.ends_line
            if len(text):
                return Sentence(text, found.ends_line, found.ends_paragraph, found.columns, begins)

    def longer_than(self, columns: int) -> bool:
        """Whether the next sentence is wider than `columns`. If it is, the answer does not wait for the
        sentence's end."""
        found = self._find(columns)
        return found is not None and found.columns > columns

    def beginning(self, columns: int) -> AlignedText:
        """The first `columns` columns of the next sentence at most, cut at a space where possible. The
        sentence is not consumed."""
        text = self._text.rest(1, columns)
        while columns_of(text) > columns:
            text = text[:-1]
        text = marks.whole_links(text[: _last(r"\s", text, len(text) // 2, len(text))])
        return _unwrapped(self._text.ahead(len(text))).strip()

    def _find(self, limit: int | None = None) -> _Found | None:
        """The next sentence; None at the end of the text. A sentence wider than `limit` columns may be
        returned before its end is known."""
        if self._found is None:
            while not self._skip_space():
                if not self._text.next_part():
                    return None
            found = self._unseen() or self._looked_for(limit)
            if found.length == UNKNOWN:
                return found
            self._found = found
        return self._found

    def _skip_space(self) -> bool:
        """Skip white space; returns whether text follows in this part."""
        while window := self._text.rest(1, _MOST_CHARS):
            blank = len(window) - len(window.lstrip())
            if not blank:
                return True
            self._text.take(blank)
        return False

    def _unseen(self) -> _Found | None:
        """A `script` or `style` element of a page, which no reader sees, as a sentence of width 0."""
        begins = self._text.rest(1, 1) == "<" and marks.UNSEEN.match(self._text.rest(8, 8))
        least = 9 if begins and self._leaves_out else UNSEEN_CHARS
        while begins and least < UNSEEN_CHARS:
            window = self._text.rest(least, 2 * least)
            if found := marks.UNSEEN_END[begins[1].lower()].search(window):
                return _Found(found.end(), 0, ends_line=True, ends_paragraph=False)
            least = len(window) + 1 if len(window) >= least else UNSEEN_CHARS
        self._leaves_out = self._leaves_out and not begins
        return None

    def _looked_for(self, limit: int | None) -> _Found:
        known, least = 0, 1
        while True:
            window = self._text.rest(least, max(_MOST_CHARS, 2 * least))
            whole = len(window) < least  # this part of the text ends with it
            known, found = self._first(window, known, whole=whole)
            if found is not None:
                return found
            if limit is not None and columns_of(window[:known].rstrip()) > limit:
                return _Found(UNKNOWN, columns_of(window[:known].rstrip()), False, False)
            least = len(window) + 1

    def _first(self, window: str, known: int, *, whole: bool) -> tuple[int, _Found | None]:
        """Look for the end of the first sentence of `window`. It is not in the first `known` characters.
        Returns up to where the search got, and the sentence; None instead of the sentence if more text is
        needed."""
        in_page = "<" in window
        for match in (_MAY_END_IN_PAGE if in_page else _MAY_END).finditer(window, known):
            if match.start() >= SENTENCE_CHARS:
                break
            stop = match.end() + _look_chars(window[: match.end()], match.group())
            if not whole and stop > len(window):
                return match.start(), None
            if in_page and match["unseen"] is not None:
                return match.end(), _found(window, match.end(), whole=whole)._replace(ends_line=True)
            end = self._end(window[:stop])
            if end <= match.end():
                return end, _found(window, end, whole=whole)
            known = match.end()
        if len(window) > SENTENCE_CHARS:
            stop = _stop(window)
            return stop, _Found(stop, columns_of(window[:stop]), ends_line=False, ends_paragraph=False)
        if whole:
            return len(window), _found(window, len(window), whole=True)
        return len(window), None

    def _end(self, window: str) -> int:
        """Where the first sentence or line of `window` ends."""
        blank = _BLANK_LINE.search(window)
        paragraph = window[: blank.start()] if blank else window
        _, end = next(sentence_ranges(paragraph, self._language))
        lines: list[tuple[int, int]] = [
            (m.start(), m.end()) for m in regex.finditer(r"[^\n]+", paragraph[:end])
        ]
        for (start, stop), (following, _) in pairwise(lines):
            rest = paragraph[following:end].lstrip()
            line = paragraph[start:stop]
            if marks.goes_on(paragraph[:stop], rest):
                continue
            goes_on = rest[:1].islower() or _SUBTITLE_TIME.match(rest) is not None
            if marks.divides(line, rest) or (columns_of(line) < HARD_LINE_COLUMNS and not goes_on):
                return stop
        return end


def sentences(text: AlignedText, language: str) -> Iterator[Sentence]:
    """The `Sentences` of a complete text."""
    return Sentences(ReadAhead(text), language)


def marked_sentence(text: AlignedText) -> Iterator[Sentence]:
    """Parts of at most `SENTENCE_CHARS` of a text that is known to be one sentence; no part is empty."""
    rest = _unwrapped(text).strip()
    while len(rest):
        stop = _stop(rest.text) if len(rest) > SENTENCE_CHARS else len(rest)
        part, rest = rest.cut(0, stop).strip(), rest.cut(stop, len(rest)).strip()
        yield Sentence(part, not len(rest), ends_paragraph=False, columns=columns_of(part.text))


def _found(window: str, end: int, *, whole: bool) -> _Found:
    said = window[:end].rstrip()
    gap = window[len(said) : len(window) - len(window[len(said) :].lstrip())]
    length = len(said) + len(gap)
    at_end = whole and length == len(window)
    return _Found(length, columns_of(said), "\n" in gap, at_end or _BLANK_LINE.search(gap) is not None)


def _look_chars(text: str, ending: str) -> int:
    """How many characters after `text`, which ends with `ending`, can decide whether a sentence ends
    there."""
    if _BLANK_LINE.search(ending):
        return 0
    quoting = text.count('"') % 2 == 1 or any(text.count(a) > text.count(b) for a, b in ("“”", "「」"))
    return QUOTE_CHARS if quoting else LOOK_CHARS


def _last(pattern: str, text: str, start: int, stop: int) -> int | None:
    ends = [m.end() for m in regex.finditer(pattern, text, pos=start, endpos=stop)]
    return ends[-1] if ends else None


def columns_of(text: str) -> int:
    """The width of a text on the screen: kana and Han are as wide as two letters."""
    if text.isascii():
        return len(text)
    return len(text) + sum(unicodedata.east_asian_width(c) in "WF" for c in text)


def _unwrapped(text: AlignedText) -> AlignedText:
    return text.sub(_WRAP, lambda found: "" if found[1] else " ")


def _stop(text: str) -> int:
    """Where a sentence that is too long is cut: after a mark, at a space, or inside a word."""
    most = SENTENCE_CHARS - REST_CHARS
    return (
        _last(r"[,;:—…]\s|[、，；：]", text, most // 2, most) or _last(r"\s", text, most // 2, most) or most
    )
