"""Any string becomes safe to analyse; no letter of any language is lost."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kokoro_lab.datatypes import Fallback
from kokoro_lab.errors import TextError
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.letters import undressed
from kokoro_lab.text.sanitise import MOST_MARKS, sanitise
from kokoro_lab.text.ssml import parse


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


def test_half_of_a_pair_is_left_out_and_noted() -> None:
    noted: list[Fallback] = []
    assert sanitise("a \ud83d b", noted.append).text == "a  b"
    assert [(fallback.start, fallback.end) for fallback in noted] == [(2, 3)]


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
    assert _plain_letters(clean) == _plain_letters(unicodedata.normalize("NFC", original))


def _plain_letters(text: str) -> list[str]:
    """Letters and digits as any reader of compatible forms sees them, look-alikes of alphabets apart."""
    plain = (unicodedata.normalize("NFKC", c) for c in undressed(AlignedText.of(text)).text)
    return [c for c in "".join(plain) if unicodedata.category(c)[0] in "LN"]


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


@pytest.mark.parametrize(
    "word",
    [
        unicodedata.normalize("NFD", "Nguyễn"),
        "ที่นี่",
        "क्षत्रिय",
        "ज़्यादा",
        "हिन्दी\u0951",
        "בְּרֵאשִׁ֖ית",
        "ka\u0303\u0301\u0330",
        "ကျွန်ုပ်",
        "ཧྐྵྨླྺྼྻྂ",
        "اللَّٰه",
    ],
)
def test_no_mark_of_a_language_is_left_out(word: str) -> None:
    noted: list[Fallback] = []
    assert sanitise(word, noted.append).text == unicodedata.normalize("NFC", word)
    assert noted == []


@pytest.mark.parametrize("count", [MOST_MARKS + 1, 1_000, 49_000])
@pytest.mark.parametrize("marks", ["\u0323", "\u0323\u0307"])
def test_marks_beyond_what_a_language_needs_are_left_out_and_noted(count: int, marks: str) -> None:
    noted: list[Fallback] = []
    original = "Ze" + (marks * count)[:count] + "bra x"
    clean = sanitise(original, noted.append)
    at = clean.text.index("b")
    assert len(clean) <= len("Zebra x") + MOST_MARKS
    assert original[slice(*clean.span(at, len(clean)))] == "bra x"
    assert clean.span(0, at)[1] == original.index("b"), "the word has no hole"
    reason = f"{count - MOST_MARKS} combining marks left out: 8 in a row are read"
    assert noted == [Fallback("text", reason, 2 + MOST_MARKS, 2 + count)]


def test_marks_between_which_something_invisible_stands_are_in_a_row() -> None:
    noted: list[Fallback] = []
    assert len(sanitise("e" + "\u0323\u200d" * 10_000 + "x", noted.append)) <= len("ẹx") + MOST_MARKS
    assert [fallback.stage for fallback in noted] == ["text"]


def test_marks_are_put_in_order_only_once_they_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which takes the square of their number."""
    ordered: list[int] = []
    normalize = unicodedata.normalize

    def counted(form: str, text: str) -> str:
        ordered.append(len(text))
        return normalize(form, text)

    monkeypatch.setattr("kokoro_lab.text.sanitise.unicodedata.normalize", counted)
    sanitise("e" + "\u0323\u0307" * 10_000 + "x")
    assert max(ordered) <= 1 + MOST_MARKS


def test_marks_that_a_document_writes_as_entities_are_left_out_and_noted() -> None:
    noted: list[Fallback] = []
    document = parse(f"<speak>e{'&#769;' * 500}</speak>", "en-us", noted.append)
    assert len(document) <= 1 + MOST_MARKS
    assert [fallback.stage for fallback in noted] == ["text"]
