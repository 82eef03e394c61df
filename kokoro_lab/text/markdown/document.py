"""Makes a spoken document of Markdown, as a whole, or block by block while the Markdown is written."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import regex
from markdown_it.token import Token

from kokoro_lab.datatypes import PLAIN, SpeakingStyle
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.growing import ReadAhead
from kokoro_lab.text.markdown.parser import blocks_of, lines_of
from kokoro_lab.text.markdown.reading import START, Block, BlockReader, Group, Memory
from kokoro_lab.text.sanitise import Noted, refuse_binary
from kokoro_lab.text.ssml import Passage, SsmlDocument
from kokoro_lab.text.ssml.document import Spans

_REPLACED = regex.compile(r"\r\n?|\0")
_DECIDED_BY_ITSELF = ("heading_open", "hr")
_DECIDED_BY_BLANK_LINE = ("paragraph_open", "blockquote_open", "table_open", "html_block", "formula_block")


def parse(source: str, language: str, code: str = "skip") -> SsmlDocument:
    """Read a Markdown document.

    Parameters
    ----------
    source : str
        Any text is a document.
    language : str
        Canonical tag of the text.
    code : {"skip", "name", "read"}
        What is said of a block of code: nothing, what language it is in, or all of it.

    Raises
    ------
    TextError
        The text is not a string, or is binary.
    """
    refuse_binary(source)
    return document_of(blocks(source, language, code))


def document_of(blocks: list[Block]) -> SsmlDocument:
    """Several blocks as one document."""
    return SsmlDocument(
        tuple(chain.from_iterable(block.passages for block in blocks)),
        Spans(PLAIN, tuple(chain.from_iterable(block.styles for block in blocks))),
        Spans(None),
        (),
        tuple(chain.from_iterable(block.fallbacks for block in blocks)),
    )


def blocks(
    source: str, language: str, code: str = "skip", *, offset: int = 0, memory: Memory = START
) -> list[Block]:
    """The blocks of a whole text; the options are those of `certain`."""
    text = _placed(source, offset)
    reader = BlockReader(text, language, code, memory)
    return [reader.read(group) for group in _groups(blocks_of(text.text))]


class Certain(NamedTuple):
    """The finished blocks of a text that is still being written, where the rest begins, and what must be
    remembered of these blocks when the rest is read."""

    blocks: list[Block]
    rest: int
    memory: Memory


def certain(
    source: str, language: str, code: str = "skip", *, offset: int = 0, memory: Memory = START
) -> Certain:
    """The blocks, in a text that is still being written, that no later character can change.

    A paragraph is certain when a blank line follows, a heading when its line ends, and an item of a list when
    the next item begins.

    Parameters
    ----------
    source : str
        The text so far, or the rest of it that no earlier call took.
    language, code : str
        As in `parse`.
    offset : int
        Where `source` begins in the text.
    memory : Memory
        What must be remembered of the text before `source` (see `Memory`).
    """
    complete = max(source.rfind("\n"), source.rfind("\r", 0, -1)) + 1
    text = _placed(source[:complete], offset)
    lines = text.text.split("\n")
    found: list[Block] = []
    reader = BlockReader(text, language, code, memory)
    groups = _groups(blocks_of(text.text))
    group = next(groups, None)
    while group is not None:
        following = next(groups, None)
        if following is None and not _is_closed(group, lines):
            break
        found.append(reader.read(group))
        group = following
    end_line = group.first_line if group else len(lines) - 1
    rest = sum(len(line) + 1 for line in lines[:end_line])
    rest = text.starts[rest] if rest < len(text) else offset + complete
    return Certain(found, rest, reader.memory)


def written(text: ReadAhead, language: str, code: str, noted: Noted) -> SsmlDocument:
    """A document that may still be being written. Its passages are read once, as they are asked for.

    Parameters
    ----------
    text : ReadAhead
        The text, as it is written.
    language, code : str
        As in `parse`.
    noted : callable
        Called with each fallback as the passages are read.
    """
    styles: list[tuple[int, int, SpeakingStyle]] = []

    def passages() -> Iterator[Passage]:
        for block in written_blocks(text, language, code):
            styles.extend(block.styles)
            for fallback in block.fallbacks:
                noted(fallback)
            yield from block.passages

    return SsmlDocument(passages(), Spans(PLAIN, styles), Spans(None), ())


def written_blocks(text: ReadAhead, language: str, code: str = "skip") -> Iterator[Block]:
    """The blocks of a text that may still be being written, each once it is certain.

    A part's end also ends its last block, and the next part is a document of its own.
    """
    offset, least, memory = 0, 1, START
    while True:
        source = text.rest(least, sys.maxsize)
        part_ends = len(source) < least
        if part_ends:
            found = blocks(source, language, code, offset=offset, memory=memory)
            rest, memory = offset + len(source), START
        else:
            found, rest, memory = certain(source, language, code, offset=offset, memory=memory)
        text.take(rest - offset)
        least = offset + len(source) - rest + 1
        offset = rest
        yield from found
        if part_ends and not text.next_part():
            return


def _placed(source: str, offset: int) -> AlignedText:
    """A source that begins at `offset`, with `\\n` as its only line break."""
    text = AlignedText.of(source, offset)
    return text.sub(_REPLACED, lambda found: "\ufffd" if found.group() == "\0" else "\n")


def _groups(tokens: list[Token]) -> Iterator[Group]:
    """The tokens of each block that is within no other block. A list gives one group for each of its
    items."""
    start = 0
    for i, token in enumerate(tokens):
        if token.level or token.nesting > 0:
            continue
        inside = tokens[start : i + 1]
        if token.type in ("bullet_list_close", "ordered_list_close"):
            yield from _items(inside[1:-1])
        else:
            yield Group(inside, *lines_of(inside[0]))
        start = i + 1


def _items(tokens: list[Token]) -> Iterator[Group]:
    first = 0
    for i, token in enumerate(tokens):
        if token.type == "list_item_close" and token.level == 1:
            yield Group(tokens[first : i + 1], *lines_of(tokens[first]), True, i + 1 == len(tokens))
            first = i + 1


def _is_closed(group: Group, lines: list[str]) -> bool:
    """Whether `group`, the last block of the complete lines `lines`, can no longer change."""
    token = group.tokens[0]
    if token.type == "fence":
        return token.content.count("\n") == group.end_line - group.first_line - 2
    if token.type in _DECIDED_BY_ITSELF or token.info == "closed":
        return True
    blank = group.end_line < len(lines) - 1 and not lines[group.end_line].strip(" \t")
    return token.type in _DECIDED_BY_BLANK_LINE and blank
