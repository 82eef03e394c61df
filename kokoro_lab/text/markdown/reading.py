"""Puts the blocks of a Markdown document into words, with their offsets, styles and omissions.

The source is the document as it was written.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Literal, NamedTuple

import regex
from markdown_it.common.html_blocks import block_names
from markdown_it.token import Token

from kokoro_lab.datatypes import PLAIN, Fallback, SpeakingStyle
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.markdown import formulas
from kokoro_lab.text.markdown.parser import inline_of, lines_of
from kokoro_lab.text.sanitise import clean
from kokoro_lab.text.ssml import Passage
from kokoro_lab.text.ssml.grammar import EMPHASIS
from kokoro_lab.text.tables import names, rows, words

_STYLES = {"strong": EMPHASIS["strong"], "em": EMPHASIS["moderate"], "s": EMPHASIS["reduced"]}
"""Kind of emphasis → style. If several kinds are open, the one that comes first here counts."""
_STYLE_TAGS = {"b": "strong", "strong": "strong", "i": "em", "em": "em", "s": "s", "del": "s"}
_LINE_TAGS = {*block_names, "br", "pre"} - {"td", "th"}
TAGS = words(__package__)["HTML within a line"] | _LINE_TAGS

_SPACES = regex.compile(r"[ \t]*\n[ \t]*|[ \t]{2,}|\t")
_MARKER = regex.compile(r"(?:(\d{1,9})[.)]|[-*+])(?:[ \t]+(\[[xX]\])(?=[ \t]))?")
_LINK_DEFINITIONS = regex.compile(
    r"""\A(?:[ ]{0,3}\[(?!\^)[^\[\]\n]{1,200}\]:[ \t]*(?:<[^<>\n]*>|(?=\S*[/.\#:@])\S+)
    (?:[ \t]+(?:"[^"\n]*"|'[^'\n]*'|\([^()\n]*\)))?[ \t]*(?:\n|\Z))+""",
    regex.VERBOSE,
)
_MARKS_OF_LINES = regex.compile(
    r"^[ \t]*(?:(?:>|(?:\#{1,6}|[-*+])(?=[ \t]))[ \t]*)+", regex.VERBOSE | regex.MULTILINE
)
"""Marks of lists, quotes and headings in text that is indented or nested too deeply to be one."""
_LEFT_OVER = regex.compile(
    r"""(?P<edge>(?:^|(?<=\n))[ ]*\|+[ ]*|[ ]*\|+[ ]*(?=\n|\Z))
      | (?P<bar>[ ]*(?<=\s)\|+(?=\s))
      | (?P<opens>(?<![=\w])==(?=[^\s=]))[^=\n]+(?P<closes>(?<=[^\s=])==(?![=\w]))
      | (?P<unclosed>`+|<!--+)""",
    regex.VERBOSE,
)
"""Marks that markdown-it leaves in a text: bars of what is no table, highlights, backticks alone."""
_CONTAINERS = regex.compile(r"[ \t]*(?:(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t]))[ \t]*)*")
_CELL = regex.compile(r"(?:\\.|[^|\\]|\\\Z)+")
_ESCAPED_BAR = regex.compile(r"\\(?=\|)")
_TAG = regex.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*)(.*)>", regex.DOTALL)
_ALT = regex.compile(r"\salt\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", regex.IGNORECASE)
_RAISED = regex.compile(
    r"""<sup>\s*\[?(?P<number>[-−+]?\d{1,4})\]?\s*</sup>
    |(?<=[\p{L}\p{N})])\^(?P<number>[-−+]?\d{1,4}|(?<=\d\^)\p{L}{1,4})\^(?![\p{L}\p{N}^])""",
    regex.IGNORECASE | regex.VERBOSE,
)
_LOWERED = regex.compile(r"(?<=[A-Za-z)])~(?P<number>\d{1,3})~(?![\p{N}~])")
_SUPERSCRIPTS = str.maketrans("0123456789-−+", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁻⁺")
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_ESCAPED_TWICE = regex.compile(
    r"&(?:amp;)+(?=(?:#\d{1,6}|#[xX][\dA-Fa-f]{1,6}|amp|lt|gt|quot|apos|nbsp|[mn]dash|hellip|[lr][sd]quo|copy|reg);)"
)
_UNSEEN_HTML = regex.compile(r"\s*<(script|style)\b", regex.IGNORECASE)
_GOES_ON = regex.compile(r"\s(?:[*_=]+|<\w+>)?[\p{L}\p{N}\p{Sc}]")
_PROSE = regex.compile(r"\p{L}[.!?…。！？][\"”')]*\s*\Z")
"""Indented text that ends as a sentence does is no code."""

Ends = Literal["sentence", "paragraph"]


class Memory(NamedTuple):
    """The state that one block passes to the next: the last number of a list, as written and as spoken, and
    whether a footnote may continue."""

    written: int | None = None
    spoken: int = 0
    note: bool = False


START = Memory()
"""The memory at the beginning of a text."""


class Block(NamedTuple):
    """The spoken words of one block of a document.

    Parameters
    ----------
    start, end : int
        Where it stands in the source.
    passages : tuple of Passage
        The passages of the block, if it has any. None of them is empty.
    styles : tuple of (int, int, SpeakingStyle)
        Styles of spans of the source, in order.
    fallbacks : tuple of Fallback
        Parts that are left out, or read in another way.
    """

    start: int
    end: int
    passages: tuple[Passage, ...]
    styles: tuple[tuple[int, int, SpeakingStyle], ...]
    fallbacks: tuple[Fallback, ...]


class Group(NamedTuple):
    """The tokens of one block, or of one item of a list, and the range of its lines."""

    tokens: Sequence[Token]
    first_line: int
    end_line: int
    in_list: bool = False
    ends_list: bool = False


class BlockReader:
    """Reads the blocks of one source, one after the other.

    Parameters
    ----------
    source : AlignedText
        With `\\n` as its only line break.
    language : str
        Canonical tag of the text, in which code is named and formulas are read.
    code : {"skip", "name", "read"}
        What is said of blocks of code.
    memory : Memory
        What must be remembered of the block before the source.
    """

    def __init__(self, source: AlignedText, language: str, code: str, memory: Memory) -> None:
        self.memory = memory
        self._source = source
        self._language = language
        self._code = code
        self._words = _words(language.split("-")[0])
        self._lines = [0, *(found.end() for found in regex.finditer("\n", source.text))]
        self._marker_end = 0
        self._depth = 0
        """How many lists contain the text that is being read."""
        self._open = Counter[str]()
        """The open kinds of emphasis, each with its depth."""
        self._parts: list[AlignedText] = []
        self._passages: list[Passage] = []
        self._styles: list[tuple[int, int, SpeakingStyle]] = []
        self._fallbacks: list[Fallback] = []

    def read(self, group: Group) -> Block:
        """Read the tokens of the next block."""
        before, self.memory = self.memory, Memory()
        self._passages, self._styles, self._fallbacks = [], [], []
        self._depth = int(group.in_list)
        numbers = [before]
        heading = False
        tokens = iter(group.tokens)
        for token in tokens:
            match token.type:
                case "ordered_list_open" | "bullet_list_open":
                    self._depth += 1
                    numbers.append(Memory())
                case "ordered_list_close" | "bullet_list_close":
                    self._depth -= 1
                    numbers.pop()
                case "list_item_open":
                    numbers[-1] = self._item(token, numbers[-1])
                case "heading_open" | "paragraph_open":
                    heading = token.type == "heading_open"
                case "inline":
                    self._paragraph(self._placed(token), defines=not heading)
                case "fence" | "code_block":
                    self._block_of_code(token, after_note=before.note)
                case "formula_block":
                    self._block_of_formula(token)
                case "html_block":
                    self._html(token)
                case "table_open":
                    self._table(token, tokens)
            if token.nesting <= 0:
                self._border()
        if group.in_list and not group.ends_list:
            self.memory = numbers[0]._replace(note=self.memory.note)
        elif self._passages:
            self._passages[-1] = self._passages[-1]._replace(ends="paragraph")
        start, end = self._span(group.first_line, group.end_line)
        start, end = self._source.span(start, end)
        return Block(start, end, tuple(self._passages), tuple(self._styles), tuple(self._fallbacks))

    def read_sentence(self, seen: str) -> tuple[list[AlignedText], list[Fallback]]:
        """Read the source as one paragraph. The parser gets the text `seen` instead, which is as long as the
        source. Returns the spoken parts and the fallbacks."""
        self._inline(self._source, seen)
        self._border()
        return [passage.text for passage in self._passages], self._fallbacks

    # The content of blocks, with its offsets

    def _line(self, number: int) -> tuple[int, int]:
        """A line of the source, without its break."""
        start = self._lines[number]
        end = self._lines[number + 1] - 1 if number + 1 < len(self._lines) else len(self._source)
        return start, end

    def _span(self, first: int, end: int) -> tuple[int, int]:
        return self._line(first)[0], self._line(max(first, end - 1))[1]

    def _placed(self, token: Token, skipped_lines: int = 0) -> AlignedText:
        """The content of a block with its offsets, line by line."""
        parts: list[AlignedText] = []
        text = self._source.text
        first, end_line = lines_of(token)
        number, last = first + skipped_lines, end_line - 1
        for line in token.content.removesuffix("\n").split("\n"):
            kept = line.lstrip()
            # The parser leaves out empty lines in front
            while number < last and not text[slice(*self._line(number))].rstrip().endswith(kept.rstrip()):
                number += 1
            start, end = self._line(number)
            number += 1
            at = text.rindex(kept, start, end)
            parts += [self._source.cut(at, at + len(kept)), self._source.cut(end, end + 1)]
        return AlignedText.joined(parts[:-1])

    def _standing(self, words: str, start: int, end: int) -> AlignedText:
        """Words that stand for a range of the source."""
        start, end = self._source.span(start, end)
        return standing_for(words, start, end)

    # What is said

    def _say(self, part: AlignedText) -> None:
        style = next((style for kind, style in _STYLES.items() if self._open[kind] > 0), PLAIN)
        if style != PLAIN and len(part):
            self._styles.append((part.starts[0], part.ends[-1], style))
        self._parts.append(part)

    def _border(self, ends: Ends | None = None) -> None:
        """End a passage here."""
        text = AlignedText.joined(self._parts)
        self._parts.clear()
        text = text.sub(_SPACES, lambda found: "\n" if "\n" in found.group() else " ")
        text = clean(text, self._fallbacks.append).strip()
        if len(text):
            self._passages.append(Passage(text, ends or ("sentence" if self._depth else "paragraph"), False))

    def _left_out(self, what: str, span: tuple[int, int]) -> None:
        self._fallbacks.append(Fallback("text", what, *self._source.span(*span)))

    def _item(self, token: Token, last: Memory) -> Memory:
        """Say the number of an item of a numbered list, and, if the item is a task that is ticked, that it is
        done.

        The numbers are those that a browser shows: if an author repeats one number, the items are counted
        from it.
        """
        found = _MARKER.search(self._source.text, max(self._marker_end, self._line(lines_of(token)[0])[0]))
        assert found is not None, "an item begins with its marker"
        self._marker_end = found.end()
        if token.info:
            written = int(token.info)
            spoken = last.spoken + 1 if written == last.written else written
            self._say(self._standing(f"{spoken}. ", *found.span(1)))
            last = Memory(written, spoken)
        if token.meta.get("checked"):
            self._say(self._standing(f"{self._words['done']}: ", *found.span(2)))
        return last

    def _block_of_code(self, token: Token, *, after_note: bool) -> None:
        fenced = token.type == "fence"
        if not fenced and (after_note or _PROSE.search(token.content)):
            self.memory = Memory(note=after_note)
            self._paragraph(self._placed(token))
            return
        language = (token.info.split() or [""])[0].strip("{}.").lower()
        name = names(__package__)["code"].get(language, language.capitalize())
        span = self._span(*lines_of(token))
        if self._code == "name":
            label = self._words["code_in"].format(name) if name else self._words["code"]
            self._say(self._standing(label, *span))
        elif self._code == "skip":
            self._left_out(f"code{f' in {name}' if name else ''} left out, as `code` says", span)
        else:
            lines = self._placed(token, skipped_lines=int(fenced)) if token.content else AlignedText.of("")
            for found in regex.finditer(r"[^\n]+", lines.text):
                self._say(lines.cut(*found.span()))
                self._border("sentence")

    def _block_of_formula(self, token: Token) -> None:
        if token.info == "closed":
            inside = token.content.strip(" \t.,;")[2:-2]
            self._formula(inside, self._source.span(*self._span(*lines_of(token))))
        else:
            self._paragraph(self._placed(token))

    def _formula(self, latex: str, span: tuple[int, int]) -> None:
        words = formulas.said(latex, self._language)
        if words is None:
            words = formulas.bare(latex)
            reason = f"there are no words for formulas in {self._language}: its letters and signs are read"
            self._fallbacks.append(Fallback("text", reason, *span))
        self._say(standing_for(words, *span))

    def _html(self, token: Token) -> None:
        unseen = _UNSEEN_HTML.match(token.content)
        if unseen:
            self._left_out(f"a {unseen[1].lower()} left out", self._span(*lines_of(token)))
        else:
            self._paragraph(self._placed(token))

    def _table(self, opening: Token, tokens: Iterator[Token]) -> None:
        """Read a table row by row, each cell after the name of its column.

        The repeated name of a column takes the offsets of its cell, so that offsets stay in order.
        """
        lines: list[int] = []
        for token in tokens:
            if token.type == "table_close":
                break
            if token.type == "tr_open" and token.map:
                lines.append(token.map[0])
        columns, *body = [self._cells(line, nested=opening.level > 0) for line in lines]
        titles = [self._plain(self._cut(cell)) for cell in columns]
        for number, row in enumerate(body or [columns]):
            said = False
            missing = [(row[-1][1],) * 2] * (0 if number else len(titles) - len(row))
            for column, cell in enumerate(row + missing):
                title = titles[column] if column < len(titles) and body else ""
                text = self._cut(cell)
                if not len(text) and (number or not title):
                    continue
                if said:
                    self._say(self._standing(", ", cell[0] - 1, cell[0]))
                said = True
                if title:
                    mark = "" if title[-1] in ":?!." or not len(text) else ":"
                    self._say(self._standing(f"{title}{mark} ", cell[0] - (not len(text)), cell[1]))
                self._inline(text)
            self._border("sentence")
        if self._passages and not self._depth:
            self._passages[-1] = self._passages[-1]._replace(ends="paragraph")

    def _cells(self, line: int, *, nested: bool) -> list[tuple[int, int]]:
        """The ranges of the cells of a line; in a nested table, they begin after the marks of quotes and
        lists."""
        text = self._source.text
        start, end = _stripped(text, *self._line(line))
        if nested and (found := _CONTAINERS.match(text, start, end)):
            start = found.end()
        at = start + text.startswith("|", start, end)
        cells: list[tuple[int, int]] = []
        while at < end:
            found = _CELL.match(text, at, end)
            stop = found.end() if found else at
            cells.append(_stripped(text, at, stop))
            at = stop + 1
        return cells or [(end, end)]

    def _cut(self, cell: tuple[int, int]) -> AlignedText:
        return self._source.cut(*cell).sub(_ESCAPED_BAR, lambda _: "")

    def _plain(self, content: AlignedText) -> str:
        """The words of a text, without its styles, to be said at another place."""
        kept, styles, passages = self._parts, len(self._styles), len(self._passages)
        self._parts = []
        self._inline(content)
        self._border()
        said = " ".join(passage.text.text for passage in self._passages[passages:])
        self._parts = kept
        del self._styles[styles:], self._passages[passages:]
        return said

    # What paragraphs hold

    def _paragraph(self, content: AlignedText, *, defines: bool = False) -> None:
        """Read a paragraph. If it `defines`, it may begin with definitions of links, which are not
        displayed."""
        for pattern in (_LINK_DEFINITIONS, _MARKS_OF_LINES) if defines else (_MARKS_OF_LINES,):
            content = content.rewrite((m.start(), m.end(), "") for m in pattern.finditer(content.text))
        self._inline(shown(content))

    def _inline(self, content: AlignedText, seen: str | None = None) -> None:
        """Read inline text. If `seen` is given, the parser gets this text instead, which is as long as
        `content`."""
        seen = content.text if seen is None else seen
        self._walk(inline_of(seen), content, list(_left_over(seen)))
        self._open.clear()

    def _walk(self, tokens: Sequence[Token], content: AlignedText, edits: list[tuple[int, int, str]]) -> None:
        autolink = False
        for token in tokens:
            at: int = token.meta["at"]
            match token.type:
                case "text" if autolink:
                    self._say(content.cut(at + 1, content.text.index(">", at)))
                case "text" if "mark" in token.meta:
                    self._mark(token.content, at, content)
                case "text":
                    self._text(content, at, at + len(token.content), edits)
                case "text_special":
                    stop = at + len(token.markup)
                    self._say(standing_for(token.content, *content.span(at, stop)))
                case "softbreak":
                    self._say(standing_for("\n", *content.span(at, at + 1)))
                case "hardbreak":
                    self._border("sentence")
                case "code_inline":
                    self._code_inline(token, at, content)
                case "link_open" | "link_close":
                    autolink = token.type == "link_open" and token.markup == "autolink"
                case "image":
                    alternative = content.cut(at + 2, at + 2 + len(token.content))
                    self._walk(token.children or (), alternative, list(_left_over(alternative.text)))
                case "formula":
                    self._formula(token.content, content.span(at, at + len(token.markup)))
                case "note" if token.info == "definition":
                    self._border()
                    self.memory = Memory(note=True)
                case "alert":
                    self._say(standing_for(token.content.capitalize(), *content.span(at, at + 1)))
                    self._border()
                case "html_inline":
                    self._tag(token.content, at, content)
                case _ if token.nesting:
                    self._open[token.tag] += token.nesting
                    if token.type == "s_close":
                        self._part_struck(at, at + len(token.markup), content)

    def _text(self, content: AlignedText, start: int, stop: int, edits: list[tuple[int, int, str]]) -> None:
        first, last = bisect_left(edits, (start,)), bisect_left(edits, (stop,))
        within = [(i - start, j - start, new) for i, j, new in edits[first:last] if j <= stop]
        self._say(content.cut(start, stop).rewrite(within))

    def _mark(self, mark: str, at: int, content: AlignedText) -> None:
        """Read a delimiter that has no partner. Between two words it is text, and is said: `snake_case`, `2 *
        3`."""
        text = content.text
        before = text[at - 1 : at]
        if not mark or before == mark[0]:  # in a row of delimiters, the first one decides
            return
        last = at + len(mark)
        while text[last : last + 1] == mark[0]:
            last += 1
        behind = text[last : last + 1]
        within = before.isalnum() and behind.isalnum()
        spaced = before.isspace() and behind.isspace() and mark == "*"
        if last - at == 1 and (within or spaced):
            self._say(content.cut(at, last))
        elif within:
            self._say(standing_for(" ", *content.span(at, last)))

    def _part_struck(self, at: int, end: int, content: AlignedText) -> None:
        """Say a comma between text that is struck out and its replacement: `~~20 €~~ 15 €` are two prices."""
        if _GOES_ON.match(content.text, end):
            self._say(standing_for(",", *content.span(at, end)))

    def _code_inline(self, token: Token, at: int, content: AlignedText) -> None:
        start = at + len(token.markup)
        stop = start + len(token.content)
        if content.text[start:stop].replace("\n", " ") != token.content:  # a space on either side
            start, stop = start + 1, stop + 1
        inside = content.cut(start, stop)
        self._say(AlignedText(token.content, inside.starts, inside.ends))

    def _tag(self, tag: str, at: int, content: AlignedText) -> None:
        """Read an HTML tag. It may end a line, begin or end an emphasis, or be an image, whose text is read.
        Of an unknown tag, the name is read: `<url>`."""
        found = _TAG.fullmatch(tag)
        if not found:  # a comment
            return
        closes, name, attributes = bool(found[1]), found[2].lower(), found[3]
        if name in _LINE_TAGS:
            self._border("sentence")
        elif name in _STYLE_TAGS:
            self._open[_STYLE_TAGS[name]] += -1 if closes else 1
            if closes and _STYLE_TAGS[name] == "s":
                self._part_struck(at, at + len(tag), content)
        elif name in ("td", "th") and not closes and self._parts:
            self._say(standing_for(", ", *content.span(at, at)))
        elif name == "img" and (alt := _ALT.search(tag)):
            group = alt.lastindex or 0
            text = content.cut(at + alt.start(group), at + alt.end(group))
            self._walk(inline_of(text.text), text, list(_left_over(text.text)))
        elif name not in TAGS and not closes and not attributes and name not in _closed_tags(content.text):
            space = " " if content.text[at - 1 : at].isalnum() else ""
            self._say(standing_for(space, *content.span(at, at)))
            self._say(content.cut(at + 1, at + len(tag) - 1))


def sentence_of(sentence: AlignedText, seen: str, language: str) -> tuple[list[AlignedText], list[Fallback]]:
    """The spoken parts of a sentence, and the fallbacks for the parts left out. The parser gets the text
    `seen` instead of the sentence, which is as long."""
    return BlockReader(sentence, language, "read", START).read_sentence(seen)


def shown(content: AlignedText) -> AlignedText:
    """`content` with raised and lowered digits in signs of Unicode, and entities that were escaped twice
    escaped once: `x<sup>2</sup>` and `x^2^` are `x²`, `H~2~O` is `H₂O`, and `&amp;amp;` is `&amp;`."""
    for pattern, plain in (
        (_ESCAPED_TWICE, lambda _: "&"),
        (_RAISED, lambda match: match["number"].translate(_SUPERSCRIPTS)),
        (_LOWERED, lambda match: match["number"].translate(_SUBSCRIPTS)),
    ):
        if pattern.search(content.text):
            content = content.rewrite((*m.span(), plain(m)) for m in pattern.finditer(content.text))
    return content


def standing_for(words: str, start: int, end: int) -> AlignedText:
    """`words`, each character of which stands for the span `start:end` of the original."""
    return AlignedText(words, (start,) * len(words), (end,) * len(words))


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    """A range without white space at its ends."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def _left_over(text: str) -> Iterator[tuple[int, int, str]]:
    """The marks that the parser leaves in a text: where each begins and ends, and what replaces it (nothing,
    or a comma)."""
    for found in _LEFT_OVER.finditer(text):
        for kind, instead in (("edge", ""), ("bar", ","), ("opens", ""), ("closes", ""), ("unclosed", "")):
            if found[kind] is not None:
                yield *found.span(kind), instead


@lru_cache(maxsize=2)
def _closed_tags(text: str) -> frozenset[str]:
    """The names of the tags that a text closes."""
    return frozenset(each.lower() for each in regex.findall(r"</([A-Za-z][A-Za-z0-9-]*)", text))


@cache
def _words(language: str) -> dict[str, str]:
    """The words that reading adds to a text ("Done", ...), in its language or else in English."""
    table = {row["language"]: row for row in rows(__package__, "spoken.tsv")}
    return table.get(language, table["en"])
