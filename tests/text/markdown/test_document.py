"""Markdown documents: read as a reader would, whole or as they are written, no word lost, no mark spoken."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kokoro_lab.datatypes import PLAIN
from kokoro_lab.errors import TextError
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.text.growing import GrowingLines
from kokoro_lab.text.markdown import blocks, certain, document_of, parse, written_blocks
from kokoro_lab.text.ssml import SsmlDocument
from kokoro_lab.text.ssml.grammar import EMPHASIS
from tests.g2p.test_growing_text import AwaitedLines
from tests.text.markdown.made import documents

FIXTURE = Path(__file__).parents[3] / "fixtures" / "texts" / "markdown.jsonl"
READINGS = [json.loads(line) for line in FIXTURE.read_text("utf-8").splitlines()]
often = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))


def lines(document: SsmlDocument) -> list[str]:
    return [passage.text.text.replace("\n", " ") for passage in document.passages]


def read(source: str, language: str = "en-us", code: str = "skip") -> list[str]:
    return lines(parse(source, language, code))


@pytest.mark.parametrize("known", READINGS, ids=lambda known: known["id"])
def test_a_document_is_read_as_a_reader_would(front_end: FrontEnd, known: dict[str, Any]) -> None:
    options = {name: known[name] for name in ("code", "emoji") if name in known}
    document = front_end.read(known["written"], "markdown", known["language"], **options)
    assert isinstance(document, SsmlDocument)
    assert lines(document) == known["read"]


@pytest.mark.parametrize("known", READINGS, ids=lambda known: known["id"])
def test_every_word_has_its_place_in_the_source(front_end: FrontEnd, known: dict[str, Any]) -> None:
    if known["language"] == "ja":
        pytest.importorskip("fugashi")
    source = known["written"]
    found = front_end.describe(source, known["language"], input_format="markdown")
    starts = [word["start"] for word in found["words"]]
    assert starts == sorted(starts)
    assert all(0 <= word["start"] < word["end"] <= len(source) for word in found["words"])
    assert not re.search(r"[`*|#~]", " ".join(segment["phonemes"] for segment in found["segments"]))


def test_words_stand_where_they_are_written() -> None:
    source = "> - *Fish* &amp;\r\n>   [chips](x) `a b`\r\n\r\n| é | b |\r\n|---|---|\r\n| c\\|d | \\* |\r\n"
    written = {
        (character, source[slice(*passage.text.span(i, i + 1))])
        for passage in parse(source, "en-us").passages
        for i, character in enumerate(passage.text.text)
    }
    names = {(said, "c\\|d") for said in "é: "} | {(said, "\\*") for said in "b: "}
    signs = {("&", "&amp;"), ("\n", "\r\n"), ("*", "\\*"), (",", " "), (" ", " "), ("|", "|")}
    assert {each for each in written if each[0] != each[1]} - names == signs - {(" ", " "), ("|", "|")}


def test_emphasis_is_that_of_ssml() -> None:
    source = "a *b* **c** ***d*** ~~e~~ <em>f</em> <b>g</b> **h *i* h**\n\nj"
    found = parse(source, "en-us").styles
    strong, moderate, reduced = (EMPHASIS[level] for level in ("strong", "moderate", "reduced"))
    expected = {"a ": PLAIN, "b* ": moderate, "c**": strong, "d*": strong, "e~": reduced, "f<": moderate}
    expected |= {"g<": strong, "h *": strong, "i*": strong, "h**": strong, "j": PLAIN}
    assert {word: found.at(source.index(word), source.index(word) + 1) for word in expected} == expected


def test_items_and_rows_are_one_paragraph_and_headings_stand_alone() -> None:
    document = parse("# One\n\n- two\n- three\n\n|a|\n|-|\n|b|\n|c|\n\nfour", "en-us")
    assert [(each.text.text, each.ends) for each in document.passages] == [
        ("One", "paragraph"),
        ("two", "sentence"),
        ("three", "paragraph"),
        ("a: b", "sentence"),
        ("a: c", "paragraph"),
        ("four", "paragraph"),
    ]


def test_a_name_of_a_column_stands_for_its_cell() -> None:
    source = "|Name|\n|-|\n|Ada|\n|Bob|\n"
    found = parse(source, "en-us").passages[1].text
    assert found.text == "Name: Bob"
    assert source[slice(*found.span(0, 4))] == "Bob"


def test_a_name_of_a_column_may_have_several_lines() -> None:
    assert read("|Ada<br>*Bob*|C|\n|-|-|\n|d<br>e|f|\n") == ["Ada Bob: d", "e, C: f"]


def test_what_is_left_out_is_said() -> None:
    source = "Run:\n\n```python\nx = 1\n```\n\n<script>\nlet x\n</script>\n"
    first, second = parse(source, "en-us").fallbacks
    assert (first.stage, first.reason) == ("text", "code in Python left out, as `code` says")
    assert source[first.start : first.end] == "```python\nx = 1\n```"
    assert second.reason == "a script left out"
    assert not parse(source, "en-us", "read").fallbacks[1:]


def test_formulas_of_other_languages_are_read_by_their_signs_and_that_is_said() -> None:
    document = parse(r"$\frac{a}{b} \le \alpha^2$", "hi")
    assert lines(document) == ["a/b ≤ alpha 2"]
    assert [each.reason for each in document.fallbacks] == [
        "there are no words for formulas in hi: its letters and signs are read"
    ]
    assert read("$x^2$", "es") == ["x al cuadrado"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (r"It is $c = \$5$ now.", "It is c equals $5 now."),
        (r"It is $\$5 + \$x$ now.", "It is $5 plus $ x now."),
        (r"$x = 5\$$ now", "x equals five $ now"),
        (r"It is $$c = \$5$$ now.", "It is c equals $5 now."),
        (r"\$5 and \$10 are sums", "$5 and $10 are sums"),
    ],
)
def test_an_escaped_dollar_in_a_formula_is_said(source: str, said: str) -> None:
    assert read(source) == [said]


def test_an_escaped_dollar_is_kept_where_a_formula_has_no_words() -> None:
    assert read(r"$x = \$5$ \(\&\)", "hi") == ["x = $5 &"]


@pytest.mark.parametrize(
    "text",
    ["[Note]: word", "It costs $5 or 10$ in all.", "x[0][1] [1][2]", "2 * 3 and 2*3", r"\[no link\]"],
)
def test_what_only_looks_like_a_mark_is_text(text: str) -> None:
    assert read(text) == [text.replace("\\", "")]


def test_the_address_of_a_link_is_unseen_but_in_a_heading() -> None:
    assert read("[a]: http://b.c 'd'\nText") == ["Text"]
    assert read("# [a]: http://b.c") == ["[a]: http://b.c"]


def test_bars_of_what_is_no_table_are_pauses() -> None:
    assert read("| Caché | Rapidez |\n| a | **b** |") == ["Caché, Rapidez a, b"]
    assert read("P(A|B) and |x|") == ["P(A|B) and |x"]


@pytest.mark.parametrize("text", [3, None, b"x"])
def test_only_a_text_is_markdown(text: Any) -> None:
    with pytest.raises(TextError):
        parse(text, "en-us")
    with pytest.raises(TextError, match="binary"):
        parse("\x01" * 100, "en-us")


def test_what_is_nested_too_deeply_is_read_as_paragraphs() -> None:
    assert read("> " * 5000 + "deep") == ["deep"]
    assert read("- " * 5000 + "deep") == ["deep"]
    assert " ".join(read("".join("  " * i + f"- w{i}\n" for i in range(60)))).split() == [
        f"w{i}" for i in range(60)
    ]
    assert read("![" * 3000 + "deep" + "](x)" * 3000)[0].count("deep") == 1


def test_blocks_are_certain_when_nothing_can_change_them() -> None:
    def first(source: str) -> list[str]:
        return lines(document_of(certain(source, "en-us").blocks))

    assert first("# Heading") == []
    assert first("# Heading\n") == ["Heading"]
    assert first("A line\n") == []  # `===` or a table may come
    assert first("A line\n\n") == ["A line"]
    assert first("- one\n- two") == []
    assert first("- one\n- two\n") == ["one"]
    assert first("- one\n\n  more\n\n") == []
    assert first("- one\n\nText\n") == ["one"]
    assert first("```\ncode\n\n") == []
    assert certain("```\ncode\n```\n", "en-us").blocks[0].fallbacks
    assert first("> quote\n\n") == ["quote"]
    assert first("|a|\n|-|\n|b|\n") == []
    assert first("|a|\n|-|\n|b|\n\n") == ["a: b"]
    assert first("$$\nx\n") == []
    assert first("$$\nx\n$$\n") == ["x"]


@often
@example("- a\n$$\n- b\n$$\n")
@example("1. a\n1. b\n1. c\n\n1) d\n")
@example("[^1]: a\n\n    Not code\n\n    code\n")
@given(documents())
def test_the_blocks_of_a_beginning_are_the_first_blocks_of_the_whole(source: str) -> None:
    whole = blocks(source, "en-us")
    ends = {i + 1 for i, character in enumerate(source) if character == "\n"}
    for i in sorted(ends | {end - 1 for end in ends} | {len(source) // 2}):
        found = certain(source[:i], "en-us").blocks
        assert found == whole[: len(found)]


@often
@given(documents(), st.integers(0, 2**32), st.sampled_from(["\n", "\r\n", "\r"]))
def test_however_a_text_is_cut_its_blocks_are_the_same(source: str, seed: int, line_break: str) -> None:
    source = source.replace("\n", line_break)
    random, cut, at = Random(seed), [], 0
    while at < len(source):
        count = random.choice((1, 1, 2, 3, 7, 20))
        cut.append(source[at : at + count])
        at += count
    assert list(written_blocks(AwaitedLines(cut), "en-us")) == blocks(source, "en-us")


def test_a_list_that_is_cut_is_counted_on() -> None:
    found = list(written_blocks(AwaitedLines(["1. a\n", "1. b\n", "1. c\n"]), "en-us"))
    assert lines(document_of(found)) == ["1. a", "2. b", "3. c"]


def test_a_part_is_a_document_of_its_own() -> None:
    text = GrowingLines()
    text.append("1. *a\n")
    text.flush()
    text.append("1. b*\n")
    text.end()
    found = list(written_blocks(text, "en-us"))
    assert lines(document_of(found)) == ["1. a", "1. b"]
    assert [(block.start, block.end) for block in found] == [(0, 5), (6, 11)]


def test_what_is_left_of_a_growing_text_is_short() -> None:
    text = AwaitedLines(["A paragraph.\n\n- item\n"] * 200)
    for block in written_blocks(text, "en-us"):
        assert text.length - block.end < 30
        assert text.length - text.read_chars < 30


class _Visible(HTMLParser):
    """What a browser shows, and the texts of images."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.shown: list[str] = []

    def handle_data(self, data: str) -> None:
        self.shown.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.shown += [value for name, value in attrs if name == "alt" and value]


def visible(source: str) -> str:
    page = _Visible()
    options = {"linkify": False, "tasklists": True}
    page.feed(MarkdownIt("gfm-like", options).disable("linkify").render(source))
    page.close()
    return "".join(page.shown)


def letters(text: str) -> Counter[str]:
    return Counter(filter(str.isalnum, text))


@often
@given(documents())
def test_every_letter_that_a_browser_shows_is_read(source: str) -> None:
    if re.search(r"[$\\]|\[\^|\]\[|<script|<!--", source):  # read otherwise than a browser shows them
        return
    assert not letters(visible(source)) - letters(" ".join(read(source, code="read")))


@often
@given(documents())
def test_no_mark_is_read(source: str) -> None:
    # What is escaped, code and formulas hold such signs as text, and so does the end of a link without its
    # beginning
    if re.search(r"[$\\`]|\[\^|^[^\[\n]*\]\(", source, re.M):
        return
    said = "\n".join(passage.text.text for passage in parse(source, "en-us").passages)
    assert not re.search(
        r"\*\*|~~|(?<!\w)_+\w|\w_+(?!\w)|(?<!\w)\*\w|^#{1,6} |^> |^[-*+] |\[.*\]\(x\)$", said, re.M
    )


def test_a_text_without_marks_is_read_like_plain_text(front_end: FrontEnd) -> None:
    text = "The kettle is on, and the window is open. Dr. Smith paid $3.50 for it at 5 p.m. Nobody is in."
    document = front_end.read(text, "markdown", "en-us")
    found = list(front_end.segments_of(document, "en-us", lambda _: None))
    plain = list(front_end.segments(text, "en-us", lambda _: None))
    assert [(s.phonemes, s.start, s.end) for s in found] == [(s.phonemes, s.start, s.end) for s in plain]


def calls(work: Callable[[], object]) -> int:
    """How many functions are called."""
    counted = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return counted


@pytest.mark.parametrize(
    "part",
    ["# H\n\nA *paragraph* with `code`.\n\n- item\n- [x] done\n\n|a|b|\n|-|-|\n|c|d|\n\n$x^2$\n\n", "[", "![",
     "[a](", "[a][", "*a **b ", "_a", "`a``b", "<", "<T>", "<!-- ", "&", "$x ", "\\(", "\\[a", "$x^2$ ",
     "1. ", "|c|d|\n", "- a\n", "> a\n", "==a ", "~~a", "[^1]: a\n"],
)  # fmt: skip
def test_twice_as_long_is_twice_the_work(part: str) -> None:
    short, long = part * (1500 // len(part)), part * (3000 // len(part))
    parse(short, "en-us", "read")
    once, twice = (calls(lambda text=text: parse(text, "en-us", "read")) for text in (short, long))
    assert twice < 2.2 * once
    assert twice < 300 * len(long)
