"""A word that the end of a line has cut is one word again; a hyphen of its own stays."""

from __future__ import annotations

import pytest

from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.hyphens import joined

WORDS = frozenset(("emotional", "reduce", "citizens", "within"))


@pytest.mark.parametrize(
    ("language", "written", "read"),
    [
        ("en-us", "some emo- tional way", "some emotional way"),
        ("en-us", "Re- duce it", "Reduce it"),
        ("en-us", "emo-\ntional", "emotional"),
        ("en-us", "a well- known man", "a well-known man"),
        ("en-us", "pre- and post-war", "pre- and post-war"),
        ("en-us", "two- to three-day", "two- to three-day"),
        ("en-us", "yes - no", "yes - no"),
        ("es", "la habi- tación", "la habitación"),
        ("es", "franco- y anglófono", "franco- y anglófono"),
        ("ja", "emo- tional", "emo- tional"),
    ],
)
def test_parts_of_a_word_are_joined(language: str, written: str, read: str) -> None:
    assert (
        joined(AlignedText.of(written), language, WORDS.__contains__ if language[:2] == "en" else None).text
        == read
    )


def test_what_is_joined_keeps_its_place() -> None:
    text = joined(AlignedText.of("emo- tional"), "en-us", WORDS.__contains__)
    assert text.span(0, len(text)) == (0, 11)
