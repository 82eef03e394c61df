"""Finds Markdown, HTML and LaTeX marks in a plain text, and tells them from signs that only look like marks.

The package `markdown` then reads them, sentence by sentence, so that a text can be read while it is written.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import regex

from kokoro_lab.datatypes import Fallback
from kokoro_lab.text.aligned import AlignedText

_MAY_BE_MARKED = regex.compile(
    r"""[*|│-╿]|~~|==|'''|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])|\]\(|\]\[\d*\]|\[\^|\[[ xX]\]\ |<[A-Za-z/!]
    |\^[-−+]?\w{1,4}\^|~\d{1,3}~
    |&\#?\w+;|\$[^$]+\$|\\[(\[]|\\[*_~\#`]|^-{3}|^(?:>|\#{1,6}\ )|^\[[^\[\]]+\]:\ """,
    regex.VERBOSE,
)
_RULER = regex.compile(r"([=*_~-])(?: ?\1){2,}|\|?(?: *:?-+:? *\|)+(?: *:?-+:? *)?")
_BEGINNING = regex.compile(
    r"""(?:(?:>\s?)+(?!\s*[\d$€£=]))?+
    (?:'''+\w*(?:\s|\Z) | \#{1,6}\s+(?!of\s) | \*\s+)?+
    (?:[-*]\s\[[\ xX]\]\s)?""",
    regex.VERBOSE,
)
_DEFINITION = regex.compile(
    r"""\[(?!\^)[^\[\]\n]{1,80}\]:\ +<?(?:https?|ftp|mailto):[^\s<>]+>?
    (?:\ +(?:"[^"]*"|'[^']*'|\([^()]*\)))?""",
    regex.VERBOSE,
)
"""The definition of a link: `[1]: https://example.org "Title"`."""
_TITLE_OF_WIKI = regex.compile(r"(={2,6})\ *+(?P<title>[^=\s](?:[^=]*[^=\s])?)\ *+\1")
_DRAWN = regex.compile(r"[│-╿]+|[─━]{2,}|'{3,}")
_LOOKS_SO = regex.compile(
    r"""(?P<read>
        \$\$?(?![A-Z]{2})[^$]+\$\$? | \\\(.*?\\\) | \\\[.*?\\\]
      | </?(?P<tag>[A-Za-z][A-Za-z0-9]*)(?:\s+[\w:-]+\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'<>]+))*\s*/?>
      | <!--.*?--> | <(?:\w+://|[\w.+-]+@)[^\s<>]+>
      | \]\((?:<[^<>]*>|[^\s()]*[/.\#:@?]|\))
      | (?<=\]\([^()\s]{1,300}\))\]\( | \]\[\d*\] | \[\^[^\s\]]+\](?![*+?{])
    )
    | (?P<address> (?<![\w.~-])(?:\w+://|www\.|[\w.-]++@|[~.\w-]*+/)
        (?:[^\s()\[\]<>*|]|\([^\s()]*\))+ )
    | (?P<bar> \| )
    | (?P<text>
        (?<=[A-Za-z0-9])\*(?=[A-Za-z0-9]) | (?<=\d)\*+(?=[\p{L}\d]) | \*(?=\.\w)
      | (?<=[\w:])\\[*_~]* | \](?=[(\[]) | < | \$(?=[A-Z]{2}) | \[(?=\^)
    )""",
    regex.VERBOSE,
)
"""Parts in which not every sign is a mark, by how the Markdown parser gets them. `read` is left to it as it
is. Signs in an `address` are hidden from it, and so is a `bar` outside of a table's row, and `text` that only
looks like a mark: `a*b*c`, `C:\\x`, `[a](b)`, `a<b`, `$HOME`, `[^a]+`."""
_IN_ADDRESS = str.maketrans("_~\\$", "xxxx")
_UNSEEN = regex.compile(r"\]\([^()]*\)|<!--.*?-->")
_BLOCK = regex.compile(
    r"""'''|\#{1,6}\ |\||:?-{2,}:?\ *\||([=*_~-])(?:\ ?\1){2,}\s*(?:\n|$)
    |\[!\[|={2,6}\ *[^=\n]+={2,6}\s*(?:\n|$)|\[[^\[\]\n]{1,80}\]:\ +<?(?:https?|ftp|mailto):""",
    regex.VERBOSE,
)
_ITEM = regex.compile(r"(?:[-*•]|[\p{L}\d]{1,2}\)) ")
_QUOTE = regex.compile(r">+\s?(?=\p{L})")
_OPEN_LINK = regex.compile(r"\[[^\[\]]*\]\([^()\s]*\Z")
UNSEEN = regex.compile(r"<(script|style)[>\s]", regex.IGNORECASE)
"""The start of an HTML element that no reader sees."""
UNSEEN_END = {tag: regex.compile(rf"</{tag}\s{{0,9}}>", regex.IGNORECASE) for tag in ("script", "style")}
LEFT_OUT = "left out: the address of a link, or a comment"


class Unmarked(NamedTuple):
    """A sentence without its marks: its spoken parts, divided where a mark makes a border, and the parts left
    out."""

    parts: list[AlignedText]
    fallbacks: tuple[Fallback, ...] = ()


def unmarked(sentence: AlignedText, language: str, *, begins_line: bool) -> Unmarked:
    """A sentence of a plain text without its marks.

    Parameters
    ----------
    sentence : AlignedText
        Clean, without line breaks.
    language : str
        A canonical tag; formulas are read in it.
    begins_line : bool
        Whether the sentence begins a line: only then may it have the mark of a heading or a quote.
    """
    text = sentence.text
    if not _MAY_BE_MARKED.search(text):
        return Unmarked([sentence])
    if _RULER.fullmatch(text):
        return Unmarked([])
    unseen = UNSEEN.match(text)
    end = unseen and UNSEEN_END[unseen[1].lower()].search(text)
    if unseen and end and end.end() == len(text):
        return Unmarked(
            [], (Fallback("text", f"a {unseen[1].lower()} left out", *sentence.span(0, len(text))),)
        )
    if begins_line and _DEFINITION.fullmatch(text):
        return Unmarked([], (Fallback("text", LEFT_OUT, *sentence.span(0, len(text))),))
    from kokoro_lab.text.markdown.reading import sentence_of, shown

    title = _TITLE_OF_WIKI.fullmatch(text) if begins_line else None
    if title:
        content = sentence.cut(*title.span("title"))
    else:
        found = _BEGINNING.match(text) if begins_line else None
        content = sentence.cut(found.end() if found else 0, len(text))
    content = content.rewrite((*m.span(), " ") for m in _DRAWN.finditer(content.text)).strip()
    content = shown(content)
    is_row = text.startswith("|") or text.endswith("|")
    seen = _LOOKS_SO.sub(partial(_shown, is_row=is_row), content.text)
    said, fallbacks = sentence_of(content, seen, language)
    left_out = (Fallback("text", LEFT_OUT, *content.span(*m.span())) for m in _UNSEEN.finditer(seen))
    return Unmarked(said, (*fallbacks, *left_out))


def _shown(match: regex.Match[str], *, is_row: bool) -> str:
    """What the Markdown parser gets in place of a match of `_LOOKS_SO`: a letter for each character that is
    no mark."""
    found: str = match.group()
    if match["address"]:
        return found.translate(_IN_ADDRESS)
    if match["tag"]:
        from kokoro_lab.text.markdown.reading import TAGS

        return found if match["tag"].lower() in TAGS else f"x{found[1:]}"
    return found if match["read"] or (match["bar"] and is_row) else "x" * len(found)


def divides(line: str, following: str) -> bool:
    """Whether the marks of a line, or of the next one, make it end there."""
    begun = line.lstrip()
    return bool(
        _BLOCK.match(begun)
        or _BLOCK.match(following)
        or (_ITEM.match(begun) and _ITEM.match(following))
        or (_QUOTE.match(following) and not begun.startswith(">"))
    )


def goes_on(text: str, following: str) -> bool:
    """Whether a line continues the text before it: a formula is still open there, or the line is marked as
    quoted (`>`) and its first letter is small."""
    if text.count("$$") % 2 or text.count(r"\[") > text.count(r"\]"):
        return True
    quoted = _QUOTE.match(following)
    return quoted is not None and following[quoted.end()].islower()


def whole_links(text: str) -> str:
    """`text` was cut at its end. If the cut divides a link's address: `text` without that link; else
    `text`."""
    found = _OPEN_LINK.search(text)
    return text[: found.start()] if found and found.start() else text
