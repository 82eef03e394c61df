"""A rewritten text knows where each of its characters came from."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kokoro_lab.text.aligned import AlignedText


def test_a_replacement_stands_for_the_whole_span() -> None:
    text = AlignedText.of("pay $5 now").rewrite([(4, 6, "five dollars")])
    assert text.text == "pay five dollars now"
    assert text.span(4, 8) == (4, 6)
    assert text.span(17, 20) == (7, 10)


def test_a_second_rewrite_still_points_into_the_original() -> None:
    once = AlignedText.of("a&b").rewrite([(1, 2, " and ")])
    twice = once.rewrite([(2, 5, "AND")])
    assert twice.text == "a AND b"
    assert twice.span(2, 5) == (1, 2)


def test_a_match_that_stays_as_it_is_keeps_its_offsets() -> None:
    text = AlignedText.of("one  two three").sub(re.compile(r"\s+|two"), _spaced)
    assert text.text == "one two three"
    assert text.span(3, 4) == (3, 5)
    assert text.span(5, 6) == (6, 7)


def _spaced(match: re.Match[str]) -> str:
    return " " if match.group().isspace() else match.group()


def test_overlapping_edits_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        AlignedText.of("abcdef").rewrite([(0, 3, "x"), (2, 4, "y")])


@given(st.text(), st.data())
def test_what_is_not_rewritten_points_to_itself(original: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(original)), max_size=6)))
    spans = list(zip(cuts[::2], cuts[1::2], strict=False))
    text = AlignedText.of(original).rewrite([(i, j, "§") for i, j in spans if i < j])
    for character, start, end in zip(text.text, text.starts, text.ends, strict=True):
        assert character == "§" or original[start:end] == character
