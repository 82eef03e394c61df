"""Makes a spoken document of SSML: passages of text, with breaks, styles, languages and voices.

The source is the document as it was written. All offsets point into it.
"""

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
_NO_WORD = re.compile(r"[^\w\s'-]|_")
_REPLACED = ("say-as", "phoneme", "sub")
"""Elements whose text is replaced by other words."""


class Break(NamedTuple):
    """A pause at an offset of the source; 0 s removes the pause there."""

    offset: int
    duration_s: float


class Mark(NamedTuple):
    """A name for an offset of the source."""

    offset: int
    name: str


class Passage(NamedTuple):
    """Text up to a border that the document marks. `ends` says what ends there: a sentence, a paragraph or a
    voice's turn. `marked` says whether the text is one `s` element or a part of it. `turn` is the voice that
    speaks it, if it is not the request's."""

    text: AlignedText
    ends: Literal["sentence", "paragraph", "turn"]
    marked: bool
    turn: grammar.Turn | None = None


@dataclass(frozen=True, slots=True)
class Spans(Generic[T]):
    """Values by span of the source. Spans are sorted and do not overlap; between them the value is
    `default`."""

    default: T
    items: Sequence[tuple[int, int, T]] = ()

    def at(self, start: int, end: int) -> T:
        """The value that holds for the longest part of `start:end`. For an empty span: the value at its
        offset."""
        end = max(end, start + 1)
        # Only tags lie between spans, so a word is seldom in more than two
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
        """The spans that overlap the part of the source from which `text` comes."""
        first = bisect_right(self.items, text.starts[0], key=itemgetter(1))
        return self.items[first : bisect_left(self.items, text.ends[-1], key=itemgetter(0))]


@dataclass(frozen=True, slots=True)
class SsmlDocument:
    """The text of an SSML document and how it is to be spoken. All offsets are into its source.

    Parameters
    ----------
    passages : iterable of Passage
        Cleaned text, in order; none is empty. For a document that is still being written, they can be
        iterated once.
    styles : Spans of SpeakingStyle
    languages : Spans
        Canonical tags where the document names a language, else None.
    breaks : tuple of Break
        In order.
    fallbacks : tuple of Fallback
        Requests of the document that are followed in another way.
    readings : tuple of (int, int, str)
        Starts, ends and phonemes of spans of the source, in order.
    marks : tuple of Mark
        In order.
    turns : Spans
        The voice where the document names one, else None.
    """

    passages: Iterable[Passage]
    styles: Spans[SpeakingStyle]
    languages: Spans[str | None]
    breaks: tuple[Break, ...]
    fallbacks: tuple[Fallback, ...] = ()
    readings: tuple[tuple[int, int, str], ...] = ()
    marks: tuple[Mark, ...] = ()
    turns: Spans[grammar.Turn | None] = Spans(None)

    def forced(self, text: AlignedText) -> list[tuple[int, int, str]]:
        """The spans (start, end, canonical tag) in which the document names a language, for the part of the
        source from which `text` comes."""
        return [(start, end, tag) for start, end, tag in self.languages.within(text) if tag is not None]

    def __len__(self) -> int:
        return sum(len(passage.text) for passage in self.passages)

    @property
    def text(self) -> AlignedText:
        """The whole text, with empty lines between paragraphs and line breaks between marked sentences."""
        parts: list[AlignedText] = []
        for passage in self.passages:
            gap = "\n\n" if passage.ends == "paragraph" else "\n"
            parts += [
                passage.text,
                AlignedText.standing_for(gap, passage.text.ends[-1], passage.text.ends[-1]),
            ]
        return AlignedText.joined(parts[:-1])


def parse(
    source: str, language: str, noted: Noted = lambda _: None, outside: grammar.Outside | None = None
) -> SsmlDocument:
    """Read an SSML document.

    Parameters
    ----------
    source : str
        The document.
    language : str
        Canonical tag for text without `xml:lang`.
    noted : callable
        Called for each omission; see `sanitise`.
    outside : grammar.Outside, optional
        Looks up names in the document (voices, phonemes); without it, every name is accepted.

    Raises
    ------
    SsmlError
        The document is not well-formed, too large, or goes beyond the subset.
    """
    builder = DocumentBuilder(language, noted, outside or grammar.Outside())
    for event in read(source):
        if isinstance(event, Opening):
            builder.open(event)
        elif isinstance(event, Closing):
            builder.close()
        else:
            builder.say(event)
    return builder.document()


@dataclass(slots=True)
class DocumentBuilder:
    """Builds a document from the tags and the text of its source, one after the other. `elements` are the
    elements that are open, and `scopes` are their settings. `keeps_lines` says whether line breaks are kept,
    as in a plain text."""

    language: str
    noted: Noted
    outside: grammar.Outside
    keeps_lines: bool = False
    scopes: list[grammar.Scope] = field(default_factory=lambda: [grammar.ROOT])
    elements: list[Opening] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)
    breaks: list[Break] = field(default_factory=list)
    readings: list[tuple[int, int, str]] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    fallbacks: list[Fallback] = field(default_factory=list)
    _parts: list[AlignedText] = field(default_factory=list)
    _styles: list[tuple[int, int, SpeakingStyle]] = field(default_factory=list)
    _languages: list[tuple[int, int, str | None]] = field(default_factory=list)
    _written: list[AlignedText] = field(default_factory=list)
    """The text so far of an open element of `_REPLACED`."""
    _voices: set[str] = field(default_factory=set)
    _row_s: float = 0.0
    """Seconds of the breaks since the last spoken text."""
    _breaks_s: float = 0.0
    """Seconds of all breaks."""
    _said: bool = False
    """Whether the last part of the text was put in place of an element. Then a space must come before a
    following letter or digit."""

    def open(self, element: Opening) -> None:
        inner = grammar.entered(self.scopes[-1], element, self.outside)
        if element.name == "voice":
            self._turn_ends()
            self._voices.add(element.attributes["name"])
            if len(self._voices) > grammar.MAX_VOICES:
                most = f"up to {grammar.MAX_VOICES} voices"
                raise grammar.complaint(
                    element, "This is one voice too many.", attribute="name", allowed=most
                )
        if "xml:lang" in element.attributes:
            _, instead = understood(element.attributes["xml:lang"])
            if instead is not None:
                self.fallbacks.append(Fallback("language", instead, element.position.offset))
        if element.name in ("p", "s"):
            self._border("paragraph" if element.name == "p" else "sentence")
        elif element.name == "break":
            self.breaks.append(Break(element.position.offset, self._bounded_s(element)))
            self._append(AlignedText.standing_for(" ", element.position.offset, element.position.offset))
        elif element.name == "mark":
            self.marks.append(Mark(element.position.offset, grammar.required(element, "name", "a name")))
        self.scopes.append(inner)
        self.elements.append(element)

    def close(self) -> None:
        if self.elements[-1].name == "voice":
            self._turn_ends()
        self.scopes.pop()
        element = self.elements.pop()
        if element.name in _REPLACED:
            self._replace(element)
        elif element.name in ("p", "s"):
            self._border("paragraph" if element.name == "p" else "sentence", marked=element.name == "s")

    def say(self, written: AlignedText) -> None:
        element = self.elements[-1]
        if element.name in _REPLACED:
            self._written.append(written)
        elif element.name in ("break", "mark"):
            name = element.name
            raise grammar.complaint(element, f"<{name}> must be empty.", allowed=f"<{name}/>")
        else:
            self._append(written)
            self._note(written.starts[0], written.ends[-1], self.scopes[-1].language)

    def _bounded_s(self, element: Opening) -> float:
        """The seconds of the `break` `element`. Raises if they make the silence too long."""
        duration_s = grammar.pause_s(element)
        row_s, breaks_s = self._row_s + duration_s, self._breaks_s + duration_s
        for where, silence_s, most_s in (
            ("With the breaks right before it", row_s, grammar.MAX_ROW_S),
            ("With all breaks before it", breaks_s, grammar.MAX_BREAKS_S),
        ):
            if silence_s > most_s + 1e-6:
                attribute = "time" if "time" in element.attributes else "strength"
                message = f"{where}, this <break> comes to {silence_s:g} s of silence."
                allowed = grammar.ALLOWED_BREAKS
                raise grammar.refusal(element, attribute, f"{silence_s:g}s", message, allowed)
        self._row_s, self._breaks_s = row_s, breaks_s
        return duration_s

    def document(self) -> SsmlDocument:
        self._border("paragraph")
        return SsmlDocument(
            tuple(self.passages),
            Spans(PLAIN, self._styles),
            Spans(None, [each for each in self._languages if each[2] is not None]),
            tuple(self.breaks),
            tuple(self.fallbacks),
            tuple(self.readings),
            tuple(self.marks),
            Spans(None, [(p.text.starts[0], p.text.ends[-1], p.turn) for p in self.passages if p.turn]),
        )

    @property
    def _base(self) -> str:
        """The language of text for which the document names none."""
        turn = self.scopes[-1].turn
        return turn.language if turn else self.language

    def _turn_ends(self) -> None:
        self._border("turn", marked=any(element.name == "s" for element in self.elements))

    def _append(self, part: AlignedText) -> None:
        if self._said and part.text[:1].isalnum():
            at = part.starts[0]
            self._parts.append(AlignedText.standing_for(" ", at, at))
        self._said = False
        if _is_spoken(part.text):
            self._row_s = 0.0
        self._parts.append(part)

    def _note(self, start: int, end: int, language: str | None) -> None:
        """Record the style and the language of a span of the source."""
        scope = self.scopes[-1]
        if scope.style != PLAIN:
            self._styles.append((start, end, scope.style))
        if self._languages and self._languages[-1][2] == language:  # only a tag lies between them
            start = self._languages.pop()[0]
        self._languages.append((start, end, language))

    def _replace(self, element: Opening) -> None:
        """Replace the text of an element by other words."""
        found = AlignedText.joined(self._written)
        self._written.clear()
        text = _WHITE.sub(" ", found.text).strip()
        at = element.position.offset + 1  # behind the `<`: before it, a word may end
        start, stop = (found.starts[0], found.ends[-1]) if found.text else (at, at + 1)
        language = self.scopes[-1].language
        if element.name != "sub":  # its language is known, and detection might divide it
            language = language or self._base
        if element.name == "say-as":
            words = self._said_as(element, text)
        elif element.name == "sub":
            words = grammar.required(element, "alias", "words")
        else:
            phonemes = grammar.phonemes(element, self.outside)
            self.readings.append((start, stop, phonemes))
            # Without marks that would end a sentence within it
            words = " ".join(_NO_WORD.sub(" ", text).split()) or phonemes
        if self._parts and self._parts[-1].text[-1:].isalnum():
            before = self._parts[-1].ends[-1]
            self._append(AlignedText.standing_for(" ", before, before))
        self._append(AlignedText.standing_for(words, start, stop))
        self._said = True
        self._note(start, stop, language)

    def _said_as(self, element: Opening, text: str) -> str:
        kind, form = grammar.reading(element)
        try:
            return say_as.said(text, kind, form, self.scopes[-1].language or self._base)
        except say_as.Unreadable as error:
            message = f"<say-as> of {shown(text)!r} as a {kind}: {error}."
            raise grammar.complaint(element, message, value=shown(text), allowed=error.allowed) from None

    def _border(self, ends: Literal["sentence", "paragraph", "turn"], *, marked: bool = False) -> None:
        """Record that a passage ends here. If no text came since the passage before, a paragraph or a turn
        that ends here ends with that passage."""
        text = AlignedText.joined(self._parts)
        self._parts.clear()
        self._said = False
        if not self.keeps_lines:
            text = text.sub(_WHITE, lambda _: " ")
        text = clean(text, self.noted).strip()
        if len(text):
            self.passages.append(Passage(text, ends, marked, self.scopes[-1].turn))
        elif self.passages and ends != "sentence" and self.passages[-1].ends != "paragraph":
            self.passages[-1] = self.passages[-1]._replace(ends=ends)


def _is_spoken(text: str) -> bool:
    """Whether a text has more than white space and punctuation. Breaks with nothing spoken between them are
    one silence."""
    return any(c.isalnum() or unicodedata.category(c)[0] == "S" or c in "&@#%*/\\§" for c in text)
