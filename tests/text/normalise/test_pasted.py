"""What is pasted in a text of any language is no word, and what looks like it stays."""

from __future__ import annotations

import pytest

from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.normalise import normalise
from kokoro_lab.text.normalise.pasted import RULES, left_out
from kokoro_lab.text.normalise.rules import apply


@pytest.mark.parametrize("language", ["en-us", "es", "fr-fr", "hi"])
@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("◦ Bread", "Bread"),
        ("♪ Sing along ♪", "Sing along"),
        ("→ Bread", "Bread"),
        ("The treaty³ held.⁴", "The treaty held."),
        ("File > Save As", "File, Save As"),
        ("Account settings › Privacy", "Account settings, Privacy"),
        ("See you~ soon~!", "See you soon!"),
        ("Start ” Programs ” Tools", "Start, Programs, Tools"),
        ("Ten tips ##", "Ten tips"),
        (">> Narrator: Well", "Narrator: Well"),
        ("late--very late", "late — very late"),
        ("It─and order", "It — and order"),
        ("well -- no", "well — no"),
        ("7 00:00:01,000 --> 00:00:02,500", ""),
        ("00:01.000 --> 00:02.500 align:start", ""),
        ("WEBVTT", ""),
        ("<v Ann>Well, well.</v>", "Ann: Well, well."),
        ("{\\an8}Well", "Well"),
        ("+ Added a plum", "Added a plum"),
    ],
)
def test_signs_that_nobody_says_are_left_out(language: str, written: str, said: str) -> None:
    assert normalise(AlignedText.of(written), language).text == said


@pytest.mark.parametrize(
    "written",
    [
        "run it --now",
        "some-one",
        "a~b",
        "x > y",
        "we > they",
        "the name",
        "sin² of it",
        "m² of it",
        "<!-- so -->",
        "it has 4.0K of it",
        "“Say Hello ” Ann said",
        "cin >> X",
        "C## of it",
        "----------",
        "-rw-r-",
        "6'+2\"",
        "45'2",
        "+ tax",
        "+ 5 of it",
        "+ b",
        "see WEBVTT",
        "<video>",
    ],
)
def test_what_looks_like_it_stays(written: str) -> None:
    assert apply(AlignedText.of(written), RULES).text == written


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("-rw-r--r-- 1 ann 4.0K May 5", "R W R R 1 ann 4.0 K May 5"),
        ("drwxr-xr-x 2 ann", "D R W X R X R X 2 ann"),
        ("it is -rw-r--r-- now", "it is R W R R now"),
        ("(45'+2)", "(45 +2)"),
        ("90′ + 4", "90 + 4"),
    ],
)
def test_files_and_minutes_are_read(written: str, said: str) -> None:
    assert apply(AlignedText.of(written), RULES).text == said


def test_brackets_around_an_address_are_left_out() -> None:
    text = AlignedText.of("Ann <ann@b.org>, see <https://b.org>.")
    assert normalise(text, "en-us").text == "Ann ann at B dot org, see B dot org."


@pytest.mark.parametrize(
    ("written", "ranges"),
    [("His wife² left.", [(8, 9)]), ("An area of 5 m².", []), ("Two words.", []), ("3 > 2 and x²", [])],
)
def test_where_letters_were_left_out_is_known(written: str, ranges: list[tuple[int, int]]) -> None:
    assert list(left_out(written, normalise(AlignedText.of(written), "en-us"))) == ranges


@pytest.mark.parametrize(
    ("language", "written", "said"),
    [
        ("en-us", "Chapter Ⅻ, step ①", "Chapter twelve, step one"),
        ("hi", "अध्याय Ⅲ", "अध्याय तीन"),
        ("en-us", "the 1º and the 3ª", "the first and the third"),
        ("fr", "le 2º", "le deuxième"),
    ],
)
def test_a_number_in_one_sign_is_read(language: str, written: str, said: str) -> None:
    assert normalise(AlignedText.of(written), language).text == said
