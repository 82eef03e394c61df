"""`say-as` takes what fits its kind and format, and nothing else."""

from __future__ import annotations

import pytest

from kokoro_lab.text.ssml import say_as
from kokoro_lab.text.ssml.say_as import Unreadable, said


class Plain:
    """A reader that says what it was told to read."""

    RULES = ()

    def cardinal(self, value: int) -> str:
        return f"c{value}"

    def ordinal(self, value: int) -> str:
        return f"o{value}"

    def date(self, year: int | None, month: int | None, day: int | None) -> str:
        return f"{year} {month} {day}"

    def time(self, hour: int, minute: int | None, second: int | None, half: str | None) -> str:
        return f"{hour} {minute} {second} {half}"


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(say_as, "reader", lambda language: None if language == "tlh" else Plain())


@pytest.mark.parametrize(
    ("text", "language", "words"),
    [
        ("12", "en-us", "c12"),
        ("-12", "en-us", "c-12"),
        ("+0", "en-us", "c0"),
        ("1,234,567", "en-us", "c1234567"),
        ("1 234", "en-us", "c1234"),
        ("1.234.567", "es", "c1234567"),
        ("1\u00a0234\u00a0567", "fr", "c1234567"),
        ("9" * 18, "en-us", f"c{'9' * 18}"),
    ],
)
def test_cardinals(text: str, language: str, words: str) -> None:
    assert said(text, "cardinal", None, language) == words


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("", "en-us"), ("twelve", "en-us"), ("1.5", "en-us"), ("1,23", "en-us"), ("1,234.567", "en-us"),
        ("1.234", "en-us"), ("1,234", "es"), ("--1", "en-us"), ("1_000", "en-us"), ("١٢", "en-us"),
        ("1e3", "en-us"), ("9" * 19, "en-us"), ("1,234 567", "en-us"),
    ],
)  # fmt: skip
def test_what_is_no_cardinal(text: str, language: str) -> None:
    with pytest.raises(Unreadable, match="no whole number"):
        said(text, "cardinal", None, language)


@pytest.mark.parametrize(
    ("text", "language", "words"),
    [
        ("3", "en-us", "o3"),
        ("3rd", "en-us", "o3"),
        ("21ST", "en-gb", "o21"),
        ("3.º", "es", "o3"),
        ("2e", "fr", "o2"),
    ],
)
def test_ordinals(text: str, language: str, words: str) -> None:
    assert said(text, "ordinal", None, language) == words


@pytest.mark.parametrize("text", ["", "third", "-3", "3xx", "3º", "1,000th", "٣"])
def test_what_is_no_ordinal(text: str) -> None:
    with pytest.raises(Unreadable, match="no rank"):
        said(text, "ordinal", None, "en-us")


@pytest.mark.parametrize(
    ("text", "form", "words"),
    [
        ("2024-03-05", None, "2024 3 5"),
        ("2024-03-05", "ymd", "2024 3 5"),
        ("3/5/2024", "mdy", "2024 3 5"),
        ("05.03.2024", "dmy", "2024 3 5"),
        ("20240305", "ymd", "2024 3 5"),
        ("03052024", "mdy", "2024 3 5"),
        ("12-25", "md", "None 12 25"),
        ("25-12", "dm", "None 12 25"),
        ("02-29", "md", "None 2 29"),
        ("2024-12", "ym", "2024 12 None"),
        ("12/2024", "my", "2024 12 None"),
        ("2024", "y", "2024 None None"),
        ("12", "m", "None 12 None"),
        ("31", "d", "None None 31"),
    ],
)
def test_dates(text: str, form: str | None, words: str) -> None:
    assert said(text, "date", form, "en-us") == words


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("3/5/2024", None), ("2023-02-29", "ymd"), ("2024-13-01", "ymd"), ("13/01/2024", "mdy"), ("0", "d"),
        ("32", "d"), ("0000", "y"), ("3/5/24", "mdy"), ("3/5", "mdy"), ("3/5/2024", "md"),
        ("3/5-2024", "mdy"),
        ("March 5", "md"), ("2024-003-05", "ymd"), ("", "ymd"), ("٢٠٢٤", "y"),
    ],
)  # fmt: skip
def test_what_is_no_date(text: str, form: str | None) -> None:
    with pytest.raises(Unreadable, match="date") as caught:
        said(text, "date", form, "en-us")
    assert caught.value.allowed.startswith("such as")


@pytest.mark.parametrize(
    ("text", "form", "words"),
    [
        ("3:05pm", "hms12", "3 5 None pm"),
        ("3:05 P.M.", "hms12", "3 5 None pm"),
        ("12:00:30am", "hms12", "12 0 30 am"),
        ("3pm", None, "3 None None pm"),
        ("3:05", "hms12", "3 5 None None"),
        ("15:05", None, "15 5 None None"),
        ("00:00:00", "hms24", "0 0 0 None"),
    ],
)
def test_times(text: str, form: str | None, words: str) -> None:
    assert said(text, "time", form, "en-us") == words


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("13:00", "hms12"), ("0:30am", None), ("24:00", "hms24"), ("12:60", "hms24"), ("12:30:60", "hms24"),
        ("3:05pm", "hms24"), ("3", None), ("3:5", None), ("noon", None), ("", None), ("3:05xm", None),
    ],
)  # fmt: skip
def test_what_is_no_time(text: str, form: str | None) -> None:
    with pytest.raises(Unreadable, match="time"):
        said(text, "time", form, "en-us")


@pytest.mark.parametrize(
    ("text", "language", "words"),
    [
        ("aB-3 _", "en-us", "eh B dash c3 underscore"),
        ("y@", "es", "ye arroba"),
        ("k.", "ja", "ケー ドット"),
        ("é.", "fr", "É point"),
        ("+", "hi", "प्लस"),
        ("@1", "zh", "艾特 c1"),
        ("ß", "en-gb", "ß"),
    ],
)
def test_characters(text: str, language: str, words: str) -> None:
    assert said(text, "characters", None, language) == words


@pytest.mark.parametrize(("text", "problem"), [("a€", "no name for '€'"), (" ", "there is none")])
def test_what_has_no_name_is_no_character(text: str, problem: str) -> None:
    with pytest.raises(Unreadable, match=problem):
        said(text, "characters", None, "en-us")


@pytest.mark.parametrize(
    ("text", "language", "words"),
    [
        ("555-01", "en-us", "c5 c5 c5, c0 c1"),
        ("+33 (1)", "fr", "plus c3 c3, c1"),
        ("2125550123", "en-us", "c2 c1 c2 c5 c5 c5 c0 c1 c2 c3"),
    ],
)
def test_telephone_numbers_are_read_group_by_group(text: str, language: str, words: str) -> None:
    assert said(text, "telephone", None, language) == words


def test_a_language_reads_a_telephone_number_by_its_own_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert said("800-555-0123 ext. 4", "telephone", None, "en-us") == (
        "eight hundred, five five five, zero one two three, extension four"
    )
    assert said("91 123 45 67", "telephone", None, "es").startswith("noventa y uno")


@pytest.mark.parametrize("text", ["", "call me", "12a", "+", "-", "1,5", "٣٣٣"])
def test_what_is_no_telephone_number(text: str) -> None:
    with pytest.raises(Unreadable, match="no telephone number"):
        said(text, "telephone", None, "en-us")


@pytest.mark.parametrize(
    ("text", "language", "words"),
    [
        ("12km/h", "en-us", "twelve kilometers per hour"),
        ("5 in", "en-us", "five inches"),
        ("-3 °C", "es", "menos tres grados Celsius"),
        ("12 kg", "ja", "十二キログラム"),
    ],
)
def test_units(text: str, language: str, words: str) -> None:
    assert said(text, "unit", None, language) == words


@pytest.mark.parametrize("text", ["", "3", "km", "4 blarg", "km 3 blarg", "two km"])
def test_what_is_no_number_with_its_unit(text: str) -> None:
    with pytest.raises(Unreadable, match="no number with a unit"):
        said(text, "unit", None, "en-us")


def test_a_language_whose_numbers_nothing_reads_is_said() -> None:
    with pytest.raises(Unreadable, match="nothing here that reads a cardinal in tlh"):
        said("3", "cardinal", None, "tlh")
