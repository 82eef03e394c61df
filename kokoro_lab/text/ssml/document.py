"""An SSML document as it is to be spoken: passages of text, and what is asked for at which offset."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Generic, Literal, NamedTuple, TypeVar

from kokoro_lab.datatypes import PLAIN, Fallback, SpeakingStyle
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.language import understood
from kokoro_lab.text.sanitise import Noted, clean
from kokoro_lab.text.ssml import grammar, say_as
from kokoro_lab.text.ssml.markup import Closing, Opening, read, shown

T = TypeVar("T")

_WHITE = re.compile(r"[ \t\r\n]+")


class Break(NamedTuple):
    """A pause that is asked for at an offset of the source; 0 s where there is to be none."""

    offset: int
    duration_s: float


class Passage(NamedTuple):
    """Text up to a border that the document marks. `ends` says of what; `marked` if it is one `s`."""

    text: AlignedText
    ends: Literal["sentence", "paragraph"]
    marked: bool


@dataclass(frozen=True, slots=True)
class Spans(Generic[T]):
    """Starts, ends and values of spans of the source: sorted, apart, `default` between them."""

    default: T
    items: Sequence[tuple[int, int, T]] = ()

    def at(self, start: int, end: int) -> T:
        """The value of most of `start:end`; of an empty span, that of where it is."""
        end = max(end, start + 1)
        # Between spans lies a tag at most, so that a word is seldom in more than two
        first = max(0, bisect_right(self.items, start, key=itemgetter(0)) - 1)
        best, most = self.default, 0
        for i in range(first, len(self.items)):
            starts, ends, value = self.items[i]
            if starts >= end:
                break
            shared = min(end, ends) - max(start, starts)
            if shared > most:
                best, most = value, shared
        return best

    def within(self, text: AlignedText) -> Sequence[tuple[int, int, T]]:
        """The spans that overlap the span of the source that a text comes from."""
        first = bisect_right(self.items, text.starts[0], key=itemgetter(1))
        return self.items[first : bisect_left(self.items, text.ends[-1], key=itemgetter(0))]


@dataclass(frozen=True, slots=True)
class SsmlDocument:
    """What an SSML document says and how. All offsets are into its source.

    Parameters
    ----------
    passages : iterable of Passage
        Cleaned text, in order; none is empty. Of a document that is still being written, they come once.
    styles : Spans of SpeakingStyle
    languages : Spans
        Canonical tags where the document names a language, else None.
    breaks : tuple of Break
        In order.
    fallbacks : tuple of Fallback
        What it asks for and is followed in another way.
    """

    passages: Iterable[Passage]
    styles: Spans[SpeakingStyle]
    languages: Spans[str | None]
    breaks: tuple[Break, ...]
    fallbacks: tuple[Fallback, ...] = ()

    def forced(self, text: AlignedText) -> list[tuple[int, int, str]]:
        """The languages that are named for the span of the source that a text comes from."""
        return [(start, end, tag) for start, end, tag in self.languages.within(text) if tag is not None]

    def __len__(self) -> int:
        return sum(len(passage.text) for passage in self.passages)

    @property
    def text(self) -> AlignedText:
        """All of it, paragraphs set off by empty lines and marked sentences by line breaks."""
        parts: list[AlignedText] = []
        for passage in self.passages:
            gap = "\n\n" if passage.ends == "paragraph" else "\n"
            parts += [passage.text, _standing_for(gap, passage.text.ends[-1], passage.text.ends[-1])]
        return AlignedText.joined(parts[:-1])


def parse(source: str, language: str, noted: Noted = lambda _: None) -> SsmlDocument:
    """Read an SSML document.

    Parameters
    ----------
    source : str
        The document.
    language : str
        Canonical tag of what has no `xml:lang`.
    noted : callable
        Hears of what is left out; see `sanitise`.

    Raises
    ------
    SsmlError
        It is not well-formed, too large, or holds what is not in the subset.
    """
    builder = _Builder(language, noted)
    for event in read(source):
        if isinstance(event, Opening):
            builder.open(event)
        elif isinstance(event, Closing):
            builder.close()
        else:
            builder.say(event)
    return builder.document()


@dataclass(slots=True)
class _Builder:
    """Walks through the events of a document. `scopes` and `elements` are those that are open."""

    language: str
    noted: Noted
    scopes: list[grammar.Scope] = field(default_factory=lambda: [grammar.OUTSIDE])
    elements: list[Opening] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)
    breaks: list[Break] = field(default_factory=list)
    fallbacks: list[Fallback] = field(default_factory=list)
    _parts: list[AlignedText] = field(default_factory=list)
    _styles: list[tuple[int, int, SpeakingStyle]] = field(default_factory=list)
    _languages: list[tuple[int, int, str | None]] = field(default_factory=list)
    _written: list[AlignedText] = field(default_factory=list)
    """What is in the `say-as` that is open."""
    _row_s: float = 0.0
    """What the breaks since the last text that is spoken ask for."""
    _breaks_s: float = 0.0
    """What all breaks ask for."""
    _said: bool = False
    """Whether the last part are words of a `say-as`, which must not run into what follows."""

    def open(self, element: Opening) -> None:
        inner = grammar.entered(self.scopes[-1], element)
        if "xml:lang" in element.attributes:
            _, instead = understood(element.attributes["xml:lang"])
            if instead is not None:
                self.fallbacks.append(Fallback("language", instead, element.position.offset))
        if element.name in ("p", "s"):
            self._border("paragraph" if element.name == "p" else "sentence")
        elif element.name == "break":
            self.breaks.append(Break(element.position.offset, self._bounded_s(element)))
            self._append(_standing_for(" ", element.position.offset, element.position.offset))
        self.scopes.append(inner)
        self.elements.append(element)

    def close(self) -> None:
        self.scopes.pop()
        element = self.elements.pop()
        if element.name == "say-as":
            self._say_as(element)
        elif element.name in ("p", "s"):
            self._border("paragraph" if element.name == "p" else "sentence", marked=element.name == "s")

    def say(self, written: AlignedText) -> None:
        element = self.elements[-1]
        if element.name == "say-as":
            self._written.append(written)
        elif element.name == "break":
            raise grammar.complaint(element, "<break> must be empty.", allowed="<break/>")
        else:
            self._append(written)
            self._note(written.starts[0], written.ends[-1])

    def _bounded_s(self, element: Opening) -> float:
        """The seconds of a `break`, which is refused if it makes the silence too long."""
        duration_s = grammar.pause_s(element)
        self._row_s += duration_s
        self._breaks_s += duration_s
        for where, silence_s, most_s in (
            ("With the breaks right before it", self._row_s, grammar.MAX_ROW_S),
            ("With all breaks before it", self._breaks_s, grammar.MAX_BREAKS_S),
        ):
            if silence_s > most_s + 1e-6:
                raise grammar.complaint(
                    element,
                    f"{where}, this <break> comes to {silence_s:g} s of silence.",
                    attribute="time" if "time" in element.attributes else "strength",
                    value=f"{silence_s:g}s",
                    allowed=grammar.ALLOWED_BREAKS,
                )
        return duration_s

    def document(self) -> SsmlDocument:
        self._border("paragraph")
        return SsmlDocument(
            tuple(self.passages),
            Spans(PLAIN, self._styles),
            Spans(None, [each for each in self._languages if each[2] is not None]),
            tuple(self.breaks),
            tuple(self.fallbacks),
        )

    def _append(self, part: AlignedText) -> None:
        if self._said and part.text[:1].isalnum():
            at = part.starts[0]
            self._parts.append(_standing_for(" ", at, at))
        self._said = False
        if _is_spoken(part.text):
            self._row_s = 0.0
        self._parts.append(part)

    def _note(self, start: int, end: int) -> None:
        """Keep what holds for a span of the source."""
        scope = self.scopes[-1]
        if scope.style != PLAIN:
            self._styles.append((start, end, scope.style))
        if self._languages and self._languages[-1][2] == scope.language:  # a tag between them says nothing
            start = self._languages.pop()[0]
        self._languages.append((start, end, scope.language))

    def _say_as(self, element: Opening) -> None:
        found = AlignedText.joined(self._written)
        self._written.clear()
        text = _WHITE.sub(" ", found.text).strip()
        kind, form = grammar.reading(element)
        try:
            words = say_as.said(text, kind, form, self.scopes[-1].language or self.language)
        except say_as.Unreadable as error:
            raise grammar.complaint(
                element,
                f"<say-as> of {shown(text)!r} as a {kind}: {error}.",
                value=shown(text),
                allowed=error.allowed,
            ) from None
        start, stop = found.starts[0], found.ends[-1]
        last = self._parts[-1].text[-1:] if self._parts else ""
        self._append(_standing_for(f" {words}" if last.isalnum() else words, start, stop))
        self._said = True
        self._note(start, stop)

    def _border(self, ends: Literal["sentence", "paragraph"], *, marked: bool = False) -> None:
        """A passage ends here. A paragraph that ends right behind a sentence ends with it."""
        text = AlignedText.joined(self._parts)
        self._parts.clear()
        self._said = False
        text = text.rewrite((m.start(), m.end(), " ") for m in _WHITE.finditer(text.text) if m.group() != " ")
        text = clean(text, self.noted).strip()
        if len(text):
            self.passages.append(Passage(text, ends, marked))
        elif self.passages and ends == "paragraph":
            self.passages[-1] = self.passages[-1]._replace(ends=ends)


def _is_spoken(text: str) -> bool:
    """Whether there is more in it than white space and punctuation, between which breaks are one silence."""
    return any(c.isalnum() or unicodedata.category(c)[0] == "S" or c in "&@#%*/\\§" for c in text)


def _standing_for(words: str, start: int, end: int) -> AlignedText:
    return AlignedText(words, (start,) * len(words), (end,) * len(words))
