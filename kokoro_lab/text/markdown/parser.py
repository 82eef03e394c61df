"""markdown-it, extended so that each token has its offset in the source and no text is lost.

Differences from CommonMark, each so that a block can be read before what follows it is there: definitions
of links are not looked up, and `[text][name]` is a link whether or not `name` is defined. Formulas are
recognised, and text that is nested too deeply becomes a paragraph instead of being dropped.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import regex
from markdown_it import MarkdownIt
from markdown_it.parser_block import ParserBlock
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_block import StateBlock, paragraph
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

MAX_DEPTH = 20
"""How deep blocks may be nested: as many quotes in each other, or half as many lists. Deeper text is read as
paragraphs, because each level takes three frames of Python's stack, and the parser looks at every line
again."""

_NOTE = regex.compile(r"\[\^[^\]\s]{1,80}\]:?")
_ALERT = regex.compile(r"\[!(\w{1,20})\](?=\s|$)")
_REFERENCE = regex.compile(r"\[[^\[\]]{0,200}\]")
_INLINE_FORMULA = regex.compile(
    r"""\$\$(?P<display>(?:\\.|\\\n|[^$\\]){1,4000})\$\$
      | (?<![\w$\\])\$
        (?P<dollars>(?:\\.|[^\s$\\])(?:(?:\\.|[^$\\\n]|\n(?!\n)){0,998}(?:\\.|[^\s\\$]))?)\$(?!\d)
      | \\\((?P<round>(?:[^\\]|\\[^()\[\]]){1,1000})\\\)
      | \\\[(?P<square>(?:[^\\]|\\[^()\[\]]){1,4000})\\\]""",
    regex.VERBOSE,
)
_IS_FORMULA = regex.compile(
    r"[\\^_=<>+*/|{}≤≥≠≈∈π]|\A(?!.*[\p{Hiragana}\p{Katakana}\p{Sc}])(?:\S{1,3}\Z|(?!.*\p{L}{2}))",
    regex.DOTALL,
)
"""A pattern for a formula between dollar signs: it has a sign of mathematics, or at least no word. `$5 and
10$` are sums of money, and `$と€と$` are signs."""
_CLOSES_FORMULA = {"$$": regex.compile(r"\$\$[ \t.,;]*$"), r"\[": regex.compile(r"\\\][ \t.,;]*$")}


class _PlacedState(StateInline):
    """Writes into each token's `meta` where the token begins (`at`), and whether it is a delimiter that may
    have no partner (`mark`)."""

    _text_at = 0
    _row_at = -1
    _in_row = 0

    def append_pending(self, text: str) -> None:
        if not (self._pending or self._pending_buffer):
            self._text_at = self.pos
        super().append_pending(text)

    def pushPending(self) -> Token:  # noqa: N802
        token = super().pushPending()
        token.meta["at"] = self._text_at
        return token

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        token = super().push(ttype, tag, nesting)
        token.meta["at"] = self.pos
        if ttype == "text":  # one of a row of delimiters
            self._in_row = self._in_row + 1 if self.pos == self._row_at else 0
            self._row_at = self.pos
            token.meta |= {"at": self.pos + self._in_row, "mark": True}
        return token


class _PlacedInline(ParserInline):
    def parse(self, src: str, md: MarkdownIt, env: Any, tokens: list[Token]) -> list[Token]:
        state = _PlacedState(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


class _FlatBlocks(ParserBlock):
    """Reads text that is nested too deeply as paragraphs, where markdown-it would skip it."""

    def tokenize(self, state: StateBlock, startLine: int, endLine: int) -> None:  # noqa: N803
        if state.level < MAX_DEPTH:
            super().tokenize(state, startLine, endLine)
            return
        state.line = startLine
        while (line := state.skipEmptyLines(state.line)) < endLine and state.sCount[line] >= state.blkIndent:
            paragraph(state, line, endLine, False)


def _formula(state: StateInline, silent: bool) -> bool:
    """Parse a formula between dollar signs, or between brackets that each follow a backslash. Returns whether
    one was found."""
    if state.src[state.pos] not in "$\\":
        return False
    found = _INLINE_FORMULA.match(state.src, state.pos, state.posMax)
    if not found:
        return False
    inside = next(each for each in found.groups() if each is not None)
    if not _IS_FORMULA.search(inside):
        return False
    if not silent:
        token = state.push("formula", "", 0)
        token.content, token.markup = inside, found.group()
    state.pos = found.end()
    return True


def _bracket(state: StateInline, silent: bool) -> bool:
    """Parse the mark of a footnote, the kind of an alert, or a link that names its address by reference.
    Returns whether one was found."""
    image = state.src.startswith("![", state.pos)
    start = state.pos + image
    if state.src[start : start + 1] != "[":
        return False
    for kind, pattern in (("note", _NOTE), ("alert", _ALERT)):
        if found := pattern.match(state.src, start, state.posMax):
            defines = kind == "note" and found.group().endswith(":") and state.src[start - 1 : start] in "\n"
            if not silent:
                token = state.push(kind, "", 0)
                token.content, token.info = found.group(found.lastindex or 0), "definition" if defines else ""
            state.pos = found.end() if defines else found.end() - found.group().endswith(":")
            return True
    if state.html_terminator_last("][") < start or (start and state.src[start - 1].isalnum()):
        return False
    end = state.md.helpers.parseLinkLabel(state, start, True)
    name = _REFERENCE.match(state.src, end + 1, state.posMax) if end > start + 1 else None
    if name is None or not any(each.isalpha() for each in state.src[start + 1 : end]):
        return False
    if not silent:
        most, state.pos, state.posMax = state.posMax, start + 1, end
        state.push("link_open", "a", 1)
        state.md.inline.tokenize(state)
        state.push("link_close", "a", -1)
        state.posMax = most
    state.pos = name.end()
    return True


def _formula_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a formula of several lines, and return whether one was found. Its first line has only the opening
    sign. It ends at its closing sign, or at the next blank line."""

    def line_of(number: int) -> str:
        return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]

    opening = line_of(start).rstrip()
    if opening not in _CLOSES_FORMULA or state.is_code_block(start):
        return False
    if silent:  # unless this line closes a formula that begins within the paragraph
        return (
            opening != "$$" or state.src.count("$$", state.bMarks[state.line], state.bMarks[start]) % 2 == 0
        )
    last, closed = start + 1, False
    while last < end and not (closed or state.isEmpty(last) or state.sCount[last] < state.blkIndent):
        closed = _CLOSES_FORMULA[opening].search(line_of(last)) is not None
        last += 1
    token = state.push("formula_block", "", 0)
    token.content = "\n".join(map(line_of, range(start, last)))
    token.markup, token.info = opening, "closed" if closed else ""
    token.map = [start, last]
    state.line = last
    return True


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("zero")
    parser.inline, parser.block = _PlacedInline(), _FlatBlocks()
    parser.configure("gfm-like", {"linkify": False, "tasklists": True, "maxNesting": MAX_DEPTH})
    parser.inline.ruler.before("escape", "formula", _formula)
    parser.inline.ruler.before("link", "bracket", _bracket)
    parser.block.ruler.before(
        "fence", "formula_block", _formula_block, {"alt": ["paragraph", "blockquote", "list"]}
    )
    parser.disable(["reference", "fragments_join", "linkify"])
    return parser


def blocks_of(source: str) -> list[Token]:
    """The tokens of a document's blocks; the text in a token of the type `inline` is not parsed yet."""
    tokens: list[Token] = []
    parser = _parser()
    parser.block.parse(source, parser, {}, tokens)
    return tokens


def inline_of(source: str) -> list[Token]:
    """The tokens of a paragraph's text. The `meta` of each token says where it begins (`at`)."""
    parser = _parser()
    return parser.inline.parse(source, parser, {}, [])


def lines_of(token: Token) -> tuple[int, int]:
    """The first line of a block's token, and the line after its last one."""
    assert token.map is not None, "tokens of blocks have lines"
    first, end = token.map
    return first, end
