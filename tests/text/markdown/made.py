"""Markdown, and what only looks like it, made at random."""

from __future__ import annotations

from hypothesis import strategies as st

WORDS = ("Ada", "bob", "42", "3.5", "él", "日本", "नोट", "a", "snake_case", "C#", "U.S.")
MARKS = (
    *("*", "**", "***", "_", "__", "~~", "==", "`", "``", "[", "]", "(", ")", "](x)", "![", "<", ">"),
    *("|", "#", "<b>", "</b>", "<br>", "<!--", "-->", "<T>", "&amp;", "&", "$", "$$", "\\", "\\(", "\\)"),
    *("^", "[^1]", "-", " ", " ", " ", " ", ". ", ", ", "! ", ":", "[x]", "  \n", "\\\n", "\n", "\n", "\n\n"),
)  # fmt: skip
LINES = (
    *("# ", "## ", "- ", "* ", "1. ", "2) ", "- [x] ", "> ", "> > ", "    ", "  ", "\t", "```\n", "```py\n"),
    *("~~~\n", "---\n", "===\n", "***\n", "|---|---|\n", "| a | b |\n|---|:-:|\n", "| c | d |\n", "$$\n"),
    *("\\[\n", "\\]\n", "[^1]: ", "[a]: http://x.y\n", "<div>\n", "</div>\n", "<!-- c\n", "<script>\n"),
    *("1. a\n1. b\n", "- a\n\n  b\n"),
)  # fmt: skip

_PARTS = st.one_of(st.sampled_from(WORDS), st.sampled_from(WORDS), st.sampled_from(MARKS))
_LINE = st.tuples(
    st.lists(st.sampled_from(LINES), max_size=2).map("".join), st.lists(_PARTS, max_size=8).map("".join)
).map(lambda made: "".join(made) + "\n")


def documents() -> st.SearchStrategy[str]:
    """Lines with the marks of blocks and of what stands in them, in any order."""
    return st.lists(_LINE, max_size=10).map("".join)
