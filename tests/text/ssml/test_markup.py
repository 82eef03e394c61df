"""XML from strangers: refused soon where it is an attack, and every character keeps its place."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kokoro_lab.errors import SsmlError
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.ssml.markup import (
    MAX_ATTRIBUTES,
    MAX_BYTES,
    MAX_DEPTH,
    MAX_ELEMENTS,
    Closing,
    Opening,
    documents_of,
    read,
)


def with_attributes(count: int) -> str:
    return "<speak " + " ".join(f"a{i}=''" for i in range(count)) + "/>"


BILLION_LAUGHS = (
    '<!DOCTYPE speak [<!ENTITY a0 "ha">'
    + "".join(f"<!ENTITY a{i} '" + f"&a{i - 1};" * 10 + "'>" for i in range(1, 10))
    + "]><speak>&a9;</speak>"
)
ATTACKS = {
    "billion laughs": BILLION_LAUGHS,
    "quadratic blow-up": f'<!DOCTYPE speak [<!ENTITY a "{"ha" * 50_000}">]><speak>{"&a;" * 50_000}</speak>',
    "external entity": '<!DOCTYPE speak [<!ENTITY x SYSTEM "file:///etc/passwd">]><speak>&x;</speak>',
    "parameter entity": '<!DOCTYPE speak [<!ENTITY % x SYSTEM "http://localhost/x"> %x;]><speak/>',
    "external document type": '<!DOCTYPE speak SYSTEM "http://localhost/x.dtd"><speak/>',
    "200,000 nested tags": f"<speak>{'<p>' * 200_000}{'</p>' * 200_000}</speak>",
    "200,000 nested tags that stay open": f"<speak>{'<p>' * 200_000}",
    "200,000 elements": f"<speak>{'<p/>' * 200_000}</speak>",
    "90,000 attributes": with_attributes(90_000),
    "10 MB": f"<speak>{'ha ' * 3_333_333}</speak>",
    "10 MB of one attribute": f'<speak version="{"1" * 10_000_000}"/>',
}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_refused_at_once(name: str) -> None:
    started = time.process_time()
    with pytest.raises(SsmlError) as caught:
        read(ATTACKS[name])
    assert time.process_time() - started < 0.1
    assert len(str(caught.value)) < 400


def test_an_xinclude_is_an_element_like_any_other_and_includes_nothing() -> None:
    source = '<speak xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="/etc/passwd"/></speak>'
    _, include, *_ = read(source)
    assert isinstance(include, Opening)
    assert include.name == "{http://www.w3.org/2001/XInclude}include"


@pytest.mark.parametrize(
    ("source", "line", "column", "said"),
    [
        ("", 1, 1, "no element found"),
        ("Hello.", 1, 1, "syntax error"),
        ("<speak>", 1, 8, "no element found"),
        ("<speak>a\n<p>b</speak>", 2, 7, "mismatched tag"),
        ("<speak>\nFish & chips</speak>", 2, 7, "not well-formed"),
        ("<speak>\n é &nbsp;</speak>", 2, 4, "undefined entity"),
        ("<speak>a\x00</speak>", 1, 9, "not well-formed"),
        ("<speak/>\n<speak/>", 2, 1, "junk after"),
        ("<x:speak/>", 1, 1, "unbound prefix"),
        ("<speak a='1' a='2'/>", 1, 14, "duplicate attribute"),
        ("<!DOCTYPE speak><speak/>", 1, 16, "document type is not allowed"),
        ("<speak>\n<?php echo ?></speak>", 2, 1, "processing instruction <?php?>"),
        (f"<speak>{'<p>' * MAX_DEPTH}", 1, 5 + 3 * MAX_DEPTH, "nested too deeply"),
        (f"<speak>{'<p/>' * MAX_ELEMENTS}</speak>", 1, 8 + 4 * (MAX_ELEMENTS - 1), "one element too many"),
        (with_attributes(MAX_ATTRIBUTES + 1), 1, 1, "too many attributes"),
    ],
)
def test_what_is_wrong_is_said_with_line_and_column(source: str, line: int, column: int, said: str) -> None:
    with pytest.raises(SsmlError, match=said.replace("?", r"\?")) as caught:
        read(source)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).startswith(f"Line {line}, column {column}: ")


def test_bytes_are_counted_and_not_characters() -> None:
    with pytest.raises(SsmlError, match=f"{MAX_BYTES:,}"):
        read(f"<speak>{'世' * (MAX_BYTES // 3)}</speak>")


@pytest.mark.parametrize("source", [b"<speak/>", None, 3, "<speak>\ud800</speak>"])
def test_what_is_no_text_is_refused(source: object) -> None:
    with pytest.raises(SsmlError):
        read(source)  # type: ignore[arg-type]


def test_every_character_knows_how_it_was_written() -> None:
    source = "<speak>é &amp;&#x41;\r\n<![CDATA[<b>&amp;]]>😀<!-- no -->\rz</speak>"
    opening, *runs, closing = read(source)
    assert isinstance(opening, Opening)
    assert isinstance(closing, Closing)
    written = []
    for run in runs:
        assert isinstance(run, AlignedText)
        spans = zip(run.text, run.starts, run.ends, strict=True)
        written += [(character, source[i:j]) for character, i, j in spans]
    assert written == [
        ("é", "é"),
        (" ", " "),
        ("&", "&amp;"),
        ("A", "&#x41;"),
        ("\n", "\r\n"),
        *((c, c) for c in "<b>&amp;"),
        ("😀", "😀"),
        ("\n", "\r"),
        ("z", "z"),
    ]


def test_a_declared_encoding_does_not_matter_for_text_that_was_decoded() -> None:
    events = read('\ufeff<?xml version="1.0" encoding="iso-8859-1"?><speak>é世</speak>')
    assert isinstance(events[1], AlignedText)
    assert events[1].text == "é世"


def test_names_in_the_namespace_of_ssml_are_plain() -> None:
    first, inner, *_ = read(
        '<a:speak xmlns:a="http://www.w3.org/2001/10/synthesis" xml:lang="en"><a:p/></a:speak>'
    )
    assert isinstance(first, Opening)
    assert isinstance(inner, Opening)
    assert (first.name, dict(first.attributes), inner.name) == ("speak", {"xml:lang": "en"}, "p")


@given(st.text(alphabet="a é😀\n\r&<>]'\"", max_size=60))
def test_text_comes_back_as_it_went_in_with_its_places(text: str) -> None:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    source = f"<speak>{escaped}</speak>"
    runs = [event for event in read(source) if isinstance(event, AlignedText)]
    assert "".join(run.text for run in runs) == text.replace("\r\n", "\n").replace("\r", "\n")
    ends = [7]
    for run in runs:
        for start, end in zip(run.starts, run.ends, strict=True):
            assert start == ends[-1] < end
            ends.append(end)


def test_documents_follow_one_another_over_lines() -> None:
    lines = ["<speak>a", "b</speak>", "", "<speak/>", "<?xml version='1.0'?>", "<speak>c</speak>", "<speak>d"]
    assert list(documents_of(lines)) == [
        "<speak>a\nb</speak>",
        "<speak/>",
        "<?xml version='1.0'?>\n<speak>c</speak>",
        "<speak>d",
    ]


def test_a_document_that_is_never_closed_does_not_swallow_the_next() -> None:
    assert list(documents_of(["<speak>a", "<speak>b</speak>"])) == ["<speak>a", "<speak>b</speak>"]
