"""Reads untrusted XML safely: elements and text in order, each with its position in the source.

The size is checked first. A document type is refused, so there are no entities to expand or fetch. Depth and
number of elements are counted while reading, without recursion.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from kokoro_lab.errors import SsmlError
from kokoro_lab.text.aligned import AlignedText

MAX_BYTES = 1_000_000
"""Largest size of a document in UTF-8."""
MAX_DEPTH = 32
MAX_ELEMENTS = 5_000
MAX_TAGS = 4 * MAX_ELEMENTS
"""The most `<` in a document, counted before it is read: starts and ends of elements, comments, sections."""
MAX_TAG_CHARACTERS = 4_096
MAX_ATTRIBUTES = 16
"""Most attributes of one element; the subset has at most two."""
SHOWN_CHARACTERS = 40
"""The number of characters of a value that an error quotes."""

SYNTHESIS = "http://www.w3.org/2001/10/synthesis"
"""The namespace of SSML; elements in it and elements in none mean the same."""
XML = "http://www.w3.org/XML/1998/namespace"

_LONG_TAG = re.compile(rf"<[^!<>][^<>]{{{MAX_TAG_CHARACTERS}}}")
_ROOT = re.compile(r"\s*<speak\b")
_ENDS = re.compile(r"</speak\s*>\s*$|^\s*<speak\b[^<>]*/>\s*$")
_ENTITY = re.compile(r"&#?\w+;")


class SourcePosition(NamedTuple):
    """A position in the source: its offset in characters, and its line and column, counted from 1."""

    offset: int
    line: int
    column: int


class Opening(NamedTuple):
    """The start of an element. Names are as they are written. A name outside the namespace of SSML begins
    with its namespace in braces."""

    name: str
    attributes: Mapping[str, str]
    position: SourcePosition


class Closing(NamedTuple):
    """The end of an element."""

    name: str


Event = Opening | Closing | AlignedText
"""An `AlignedText` is a run of text: entities and CDATA sections are resolved, offsets point to how they were
written."""


def read(source: str) -> list[Event]:
    """The events of a well-formed document, in order; neighbouring runs of text are one.

    Raises
    ------
    SsmlError
        The document is too large, is nested too deep, has too many elements, is not well-formed, or has a
        document type or a processing instruction.
    """
    encoded = _encoded(source)
    _check_tags(source)
    target = _Target(source, encoded)
    # The encoding is set, so the parser ignores a declaration: the text was decoded before
    parser = DefusedXMLParser(target=target, encoding="utf-8", forbid_dtd=True)
    expat: Any = parser.parser
    expat.buffer_text = False  # a position for each run, before line breaks and entities are resolved
    target.expat = expat
    try:
        parser.feed(encoded)
        parser.close()
    except DefusedXmlException:
        raise target.error(
            "A document type is not allowed.",
            mend="Remove <!DOCTYPE …>; entities are &amp;, &lt;, &gt;, &quot;, &apos; and &#…;.",
        ) from None
    except ParseError as error:
        what = str(error).partition(":")[0]
        offset = target.offset_of(max(0, min(expat.ErrorByteIndex, len(encoded))))
        raise error_at(
            target.position_of(offset),
            f"The SSML is not well-formed: {what}.",
            mend="In text, write & as &amp; and < as &lt;; every element must be closed.",
        ) from None
    return target.finished()


def documents_of(lines: Iterable[str]) -> Iterator[str]:
    """Documents that follow one another, each up to the line that closes its root. Empty lines are passed
    over between them."""
    held: list[str] = []
    for line in lines:
        begun = any(_ROOT.search(before) for before in held)
        if begun and _ROOT.match(line):  # the document before was never closed; its reader reports that
            yield "\n".join(held)
            held = []
        if held or line.strip():
            held.append(line)
        if held and _ENDS.search(line):
            yield "\n".join(held)
            held = []
    if held:
        yield "\n".join(held)


def error_at(position: SourcePosition, message: str, **parts: Any) -> SsmlError:
    """An error about what is at `position`."""
    return SsmlError(message, line=position.line, column=position.column, **parts)


def shown(value: str) -> str:
    """The part of a value that an error may quote."""
    return value if len(value) <= SHOWN_CHARACTERS else value[: SHOWN_CHARACTERS - 1] + "…"


def _check_tags(source: str) -> None:
    """Refuse sizes that would keep the parser busy long before it met one element too many."""
    tags = source.count("<")
    if tags > MAX_TAGS:
        raise SsmlError(
            f"The SSML has {tags:,} tags.",
            value=tags,
            allowed=f"up to {MAX_TAGS:,}, of up to {MAX_ELEMENTS:,} elements",
            mend="Send it in parts.",
        )
    if _LONG_TAG.search(source):
        raise SsmlError(
            "The SSML has a tag that is too long.", allowed=f"up to {MAX_TAG_CHARACTERS:,} characters"
        )


def _encoded(source: str) -> bytes:
    if not isinstance(source, str):
        raise SsmlError(
            f"The SSML must be a string, not {type(source).__name__}.",
            value=type(source).__name__,
            mend="Decode bytes as UTF-8 first.",
        )
    # No character is less than one byte, so a gigabyte need not be encoded to be refused
    size = len(source)
    if size <= MAX_BYTES:
        try:
            encoded = source.encode()
        except UnicodeEncodeError as error:
            raise SsmlError(
                f"Character {error.start} is half of a surrogate pair, which is no text.",
                value=f"U+{ord(source[error.start]):04X}",
            ) from None
        size = len(encoded)
        if size <= MAX_BYTES:
            return encoded
    raise SsmlError(
        f"The SSML has {size:,} bytes or more.",
        value=size,
        allowed=f"up to {MAX_BYTES:,} bytes",
        mend="Send it in parts.",
    )


@dataclass(slots=True)
class _Target:
    """Receives the parser's events."""

    source: str
    encoded: bytes
    expat: Any = None
    events: list[Event] = field(default_factory=list)
    _depth: int = 0
    _elements: int = 0
    _runs: list[AlignedText] = field(default_factory=list)
    _at: tuple[int, int] = (0, 0)
    """The byte and the character of the last event. Events come in order, so the next one is searched from
    there."""
    _line: tuple[int, int, int] = (0, 1, 0)
    """The offset of the last event, its line, and the beginning of this line."""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._text_ends()
        position = self._here()
        self._depth += 1
        self._elements += 1
        for what, count, most in (
            ("is nested too deeply", self._depth, MAX_DEPTH),
            ("is one element too many", self._elements, MAX_ELEMENTS),
            ("has too many attributes", len(attributes), MAX_ATTRIBUTES),
        ):
            if count > most:
                raise error_at(
                    position,
                    f"<{shown(_written(tag))}> {what}.",
                    element=shown(_written(tag)),
                    value=count,
                    allowed=f"up to {most:,}",
                )
        # No attribute of SSML's own is ever written with a prefix
        named = {
            f"xml:{name[len(XML) + 2 :]}" if name.startswith(f"{{{XML}}}") else name: value
            for name, value in attributes.items()
        }
        self.events.append(Opening(_written(tag), named, position))

    def end(self, tag: str) -> None:
        self._text_ends()
        self._depth -= 1
        self.events.append(Closing(_written(tag)))

    def data(self, text: str) -> None:
        first = self.expat.CurrentByteIndex
        start = self.offset_of(first)
        entity = _ENTITY.match(self.source, start) if len(text) == 1 else None
        if not entity and self.source.startswith(text, start):
            self._runs.append(AlignedText.of(text, start))
        else:  # \r\n and \r are read as \n
            stop = entity.end() if entity else start + 1 + self.source.startswith("\r\n", start)
            self._runs.append(AlignedText.standing_for(text, start, stop))

    def pi(self, target: str, data: str | None = None) -> None:
        raise self.error(f"The processing instruction <?{shown(target)}?> is not allowed.", mend="Remove it.")

    def close(self) -> None:
        """Called by the parser at its end; `finished` returns the events."""

    def finished(self) -> list[Event]:
        self._text_ends()
        return self.events

    def error(self, message: str, **parts: Any) -> SsmlError:
        return error_at(self._here(), message, **parts)

    def _here(self) -> SourcePosition:
        return self.position_of(self.offset_of(self.expat.CurrentByteIndex))

    def offset_of(self, byte: int) -> int:
        """The character that begins at a byte of the encoded source."""
        known, offset = self._at
        if byte < known:  # the parser looks back for an error only
            return len(self.encoded[:byte].decode(errors="replace"))
        offset += len(self.encoded[known:byte].decode(errors="replace"))
        self._at = byte, offset
        return offset

    def position_of(self, offset: int) -> SourcePosition:
        known, line, begins = self._line if offset >= self._line[0] else (0, 1, 0)
        line += self.source.count("\n", known, offset)
        begins = max(begins, self.source.rfind("\n", known, offset) + 1)
        self._line = offset, line, begins
        return SourcePosition(offset, line, offset - begins + 1)

    def _text_ends(self) -> None:
        if self._runs:
            self.events.append(AlignedText.joined(self._runs))
            self._runs.clear()


def _written(tag: str) -> str:
    """An element's name. SSML's own namespace is left out, another one is kept."""
    return tag.removeprefix(f"{{{SYNTHESIS}}}")
