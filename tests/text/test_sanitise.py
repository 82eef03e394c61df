"""Any string becomes safe to analyse; no letter of any language is lost."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kokoro_lab.errors import TextError
from kokoro_lab.text.sanitise import sanitise


@pytest.mark.parametrize(
    ("original", "clean"),
    [
        ("don’t", "don't"),
        ("cafe\u0301", "café"),
        ("\u1112\u1161\u11ab", "한"),
        ("a\r\nb\rc\u2028d\u2029e\x85f", "a\nb\nc\nd\ne\nf"),
        ("a\u00a0b\tc\u3000d\u2009e", "a b c d e"),
        ("\ufeffzero\u200b width\u00ad", "zero width"),
        ("\u202eabc\u202c", "abc"),
        ("wait...", "wait…"),
        ("« oui »", "“ oui ”"),
        ("−3 ‑ 4", "-3 - 4"),
        ("NUL\x00 BEL\x07", "NUL BEL"),
        ("lone \ud800 surrogate", "lone  surrogate"),
    ],
)
def test_one_form_of_each_thing(original: str, clean: str) -> None:
    assert sanitise(original).text == clean


@pytest.mark.parametrize("meant", ["क्‍ष", "می‌خواهم", "👨‍👩‍👧", "❤️", "🏴󠁧󠁢󠁥󠁮󠁧󠁿"])
def test_joiners_that_carry_meaning_stay(meant: str) -> None:
    assert sanitise(meant).text == meant


def test_joiners_between_latin_letters_go() -> None:
    assert sanitise("ab\u200dc\u200cd").text == "abcd"


@given(st.text())
def test_no_letter_or_digit_is_lost(original: str) -> None:
    try:
        clean = sanitise(original).text
    except TextError:
        return
    kept = [c for c in unicodedata.normalize("NFC", original) if unicodedata.category(c)[0] in "LN"]
    assert [c for c in clean if unicodedata.category(c)[0] in "LN"] == kept


@given(st.text())
def test_a_clean_text_is_left_alone(original: str) -> None:
    try:
        clean = sanitise(original).text
    except TextError:
        return
    assert sanitise(clean).text == clean
    assert unicodedata.is_normalized("NFC", clean)


def test_offsets_survive() -> None:
    original = "cafe\u0301 don’t\r\nstop"
    clean = sanitise(original)
    at = clean.text.index("don't")
    start, end = clean.span(at, at + 5)
    assert original[start:end] == "don’t"


def test_a_file_is_not_a_text() -> None:
    with pytest.raises(TextError, match="binary"):
        sanitise(bytes(range(256)).decode("latin-1") * 4)
    with pytest.raises(TextError, match="binary"):
        sanitise("\ufffd" * 400 + "abc")


def test_bytes_are_refused_with_the_mend() -> None:
    with pytest.raises(TextError, match="UTF-8"):
        sanitise(b"hello")  # type: ignore[arg-type]
