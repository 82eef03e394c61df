"""Finds the entries of pronunciation lexicons in a sentence, before any G2P reads it.

A sentence is searched twice: as written, so that `C++` or `GPT-4o` are not normalised, and in spoken words,
so that a name within an address is found as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

import regex

from kokoro_lab.datatypes import LexiconEntry
from kokoro_lab.g2p.dictionary import s_form
from kokoro_lab.g2p.lexicon_entries import ANY
from kokoro_lab.g2p.protocol import FixedReading
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.normalise import normalise
from kokoro_lab.text.normalise.rules import overlaps

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Khmer}\p{Lao}"
_WORD_OR_MARK = regex.compile(rf"[{_UNSPACED}]|[\w--[{_UNSPACED}]]+|[^\w\s]", regex.V1)
"""A word, a mark, or a letter of a script that puts no space between its words: an entry begins and ends
where one of them does."""
_POSSESSIVE = regex.compile(r"'s(?!\w)", regex.IGNORECASE)
_ADDRESS = regex.compile(r"://|[@\\_#~]|\w\.\w|(?:^|\0)[.:=]\w|^/")
"""Characters around a name which show that it is part of an address, a path, a hashtag or code."""


class Lexicon:
    """Entries in levels: the first level with an entry for a word decides. Immutable, so safe in threads.

    Parameters
    ----------
    levels : sequence of sequence of LexiconEntry
        The levels in the order in which they decide.
    below : Lexicon, optional
        A lexicon whose levels come after these.

    Attributes
    ----------
    version : str
        A digest of the entries, by which caches tell one lexicon from another.
    """

    def __init__(self, levels: Sequence[Sequence[LexiconEntry]], below: Lexicon | None = None) -> None:
        self._levels, self._below = levels, below
        self._tables: dict[str, Mapping[str, tuple[_Candidate, ...]]] = {}

    @cached_property
    def version(self) -> str:
        digest = hashlib.sha256(self._below.version.encode() if self._below else b"")
        for level in self._levels:
            digest.update(repr(tuple(level)).encode())
        return digest.hexdigest()[:16]

    def with_request(self, entries: Sequence[LexiconEntry]) -> Lexicon:
        """This lexicon with the entries of a request in front."""
        return Lexicon((entries,), self) if entries else self

    def find(self, text: str, language: str) -> list[FixedReading]:
        """The readings in one sentence: the longest entry at each place, from left to right.

        An English entry is also found with `'s` after it, and with `s` if it has the flag `plural`.
        """
        found: list[FixedReading] = []
        folded, table = _folded(text), self._table(language)
        spans = [match.span() for match in _WORD_OR_MARK.finditer(text)]
        ends: set[int] | None = None
        at = 0
        for start, stop in spans:
            if start < at or folded[start:stop] not in table:
                continue
            ends = ends or {end for _, end in spans}
            candidates = table[folded[start:stop]]
            match = next((m for c in candidates if (m := c.match(text, folded, start, ends))), None)
            if match:
                found.append(match)
                at = match.end
        return found

    def _table(self, language: str) -> Mapping[str, tuple[_Candidate, ...]]:
        """First word or mark of an entry → the entries that begin with it. Longer ones come first, and among
        those of equal length, those of earlier levels."""
        if language not in self._tables:
            table = dict(self._below._table(language)) if self._below else {}
            for head, found in _by_head(self._levels, language).items():
                # The longest first. Of equally long entries, ours stay before those of the lexicon below
                ordered = sorted((*found, *table.get(head, ())), key=lambda one: -len(one.grapheme))
                table[head] = tuple(ordered)
            self._tables[language] = table
        return self._tables[language]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One way in which an entry may be written."""

    grapheme: str
    folded: str
    phonemes: str
    by_case: bool
    possessive: str | None

    def match(self, text: str, folded: str, start: int, ends: set[int]) -> FixedReading | None:
        """If this entry is at `start` of `text`: its reading, together with its possessive ending; else
        None."""
        end = start + len(self.grapheme)
        if end not in ends or not folded.startswith(self.folded, start):
            return None
        if self.by_case and not text.startswith(self.grapheme, start):
            return None
        if start and not self.grapheme[0].isalnum() and text[start - 1].isalnum():
            return None  # `.NET` is not in `example.net`
        ending = _POSSESSIVE.match(text, end) if self.possessive else None
        if ending and self.possessive:
            return FixedReading(start, ending.end(), self.possessive)
        return FixedReading(start, end, self.phonemes)


def read_with(
    lexicon: Lexicon, sentence: AlignedText, language: str, given: Sequence[FixedReading] = ()
) -> tuple[AlignedText, tuple[FixedReading, ...]]:
    """A sentence in spoken words, and in it the spans that have phonemes from the lexicon, in order.

    Parameters
    ----------
    lexicon : Lexicon
        The lexicon. Its entries are searched for in the sentence as it is written and, if normalising or
        marks leave other words, also in the spoken words.
    sentence : AlignedText
        Sanitised, not yet normalised, in one language.
    language : str
        A canonical tag.
    given : sequence of FixedReading
        Readings that the document gives, in order. They come before the lexicon's.
    """
    taken = [(fixed.start, fixed.end, "") for fixed in given]
    found = [p for p in lexicon.find(sentence.text, language) if not overlaps(taken, p.start, p.end)]
    written = [
        fixed
        for fixed in found
        if not _in_address(sentence.text, fixed)
        # SSML has substituted this text, so it has no offsets of its own by which it could be found
        and sentence.range_of(*sentence.span(fixed.start, fixed.end)) == (fixed.start, fixed.end)
    ]
    complete = len(written) == len(found)
    written = sorted((*given, *written), key=attrgetter("start"))
    said = normalise(sentence, language, [(fixed.start, fixed.end) for fixed in written])
    if said.text == sentence.text and complete:
        return said, tuple(written)
    kept = [
        FixedReading(*said.range_of(*sentence.span(fixed.start, fixed.end)), fixed.phonemes)
        for fixed in written
    ]
    taken = [(fixed.start, fixed.end, "") for fixed in kept]
    new = [p for p in lexicon.find(said.text, language) if not overlaps(taken, p.start, p.end)]
    return said, tuple(sorted((*kept, *new), key=attrgetter("start")))


def _in_address(text: str, fixed: FixedReading) -> bool:
    """Whether the word around a reading, from space to space, is an address. The marks of an address are put
    into words before its names are looked up."""
    start = text.rfind(" ", 0, fixed.start) + 1
    stop = text.find(" ", fixed.end)
    around = f"{text[start : fixed.start]}\0{text[fixed.end : stop if stop >= 0 else len(text)]}"
    return len(around) > 1 and _ADDRESS.search(around) is not None


def _by_head(levels: Iterable[Sequence[LexiconEntry]], language: str) -> dict[str, list[_Candidate]]:
    found: dict[str, list[_Candidate]] = {}
    for level in levels:
        mine = [e for e in level if e.lang in (language, language.split("-")[0], ANY)]
        # Entries of an accent come before those of its language, and those with `case` before others
        for entry in sorted(mine, key=lambda e: (-len(e.lang), "case" not in e.flags)):
            for candidate in _forms(entry, language):
                head = _WORD_OR_MARK.match(candidate.folded)
                found.setdefault(head.group() if head else "", []).append(candidate)
    return found


def _forms(entry: LexiconEntry, language: str) -> Iterator[_Candidate]:
    by_case = "case" in entry.flags
    english = language.startswith("en")
    with_s = s_form(entry.phoneme, british=language == "en-gb")
    folded = _folded(entry.grapheme)
    yield _Candidate(entry.grapheme, folded, entry.phoneme, by_case, with_s if english else None)
    if english and "plural" in entry.flags:
        yield _Candidate(entry.grapheme + "s", folded + "s", with_s, by_case, with_s)


def _folded(text: str) -> str:
    """The text in lower case, with every letter at the same offset."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)
