"""Japanese is written out in kanji numerals and kana as it is read aloud."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.normalise import normalise
from kokoro_lab.text.normalise.japanese import cardinal, date, ordinal, time
from kokoro_lab.text.normalise.japanese.numbers import LARGEST, digits, number
from kokoro_lab.text.normalise.roman import roman
from kokoro_lab.text.sanitise import sanitise

CORPUS = Path(__file__).parents[3] / "fixtures" / "texts" / "normalisation_ja.jsonl"
LINES = [json.loads(line) for line in CORPUS.read_text("utf-8").splitlines()]


def read(written: str) -> AlignedText:
    return normalise(sanitise(written).strip(), "ja")


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line['category']}: {line['written']}")
def test_the_corpus_is_read_as_expected(line: dict[str, str]) -> None:
    assert _spaceless(read(line["written"]).text) == _spaceless(line["spoken"])


def _spaceless(text: str) -> str:
    """Japanese has no spaces between words; those around Latin words are nobody's to hear."""
    return text.replace(" ", "")


def test_the_corpus_has_every_category_and_no_line_twice() -> None:
    categories = Counter(line["category"] for line in LINES)
    assert len(LINES) >= 400
    assert min(categories.values()) >= 5
    assert len({line["written"] for line in LINES}) == len(LINES)


@pytest.mark.parametrize("line", LINES[::7], ids=lambda line: line["written"])
def test_wide_digits_letters_and_signs_are_read_like_narrow_ones(line: dict[str, str]) -> None:
    if line["category"] in ("latin", "electronic", "plain", "acronym"):
        return
    wide = "".join(chr(ord(c) + 0xFEE0) if c.isdigit() and c.isascii() else c for c in line["written"])
    assert _spaceless(read(wide).text) == _spaceless(line["spoken"])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "零"),
        (-3, "マイナス三"),
        (10**4, "一万"),
        (10**7, "一千万"),
        (1_100 * 10**4, "千百万"),
        (10**12, "一兆"),
        (10**16 + 1, "一京一"),
        (LARGEST, "一" + "零" * 52),
    ],
)
def test_cardinals(value: int, said: str) -> None:
    assert cardinal(value) == said


@given(st.integers(min_value=0, max_value=LARGEST - 1))
def test_a_cardinal_says_its_value(value: int) -> None:
    assert _value(cardinal(value)) == value


def _value(said: str) -> int:
    """The value of kanji numerals, by a way of its own."""
    total = group = digit = 0
    for character in said:
        if character in "零一二三四五六七八九":
            digit = "零一二三四五六七八九".index(character)
        elif character in "十百千":
            group += max(digit, 1) * 10 ** ("十百千".index(character) + 1)
            digit = 0
        else:
            total += (group + digit) * 10_000 ** ("万億兆京垓𥝱穣溝澗正載極".index(character) + 1)
            group = digit = 0
    return total + group + digit


def test_what_say_as_asks_for() -> None:
    assert ordinal(3) == "三番目"
    assert digits("03-12") == "零三一二"
    assert number("1億2,000万") == "一億二千万"
    assert date(2024, 3, 5) == "二千二十四年三月五日"
    assert date(None, 3, 5) == "三月五日"
    assert date(2024, None, None) == "二千二十四年"
    assert time(14, 30, None, None) == "十四時三十分"
    assert time(2, 5, 9, "pm") == "午後二時五分九秒"
    assert time(9, 0, None, "am") == "午前九時"


@pytest.mark.parametrize(
    ("written", "never"),
    [
        ("2024/13/45", "月"),  # no such month
        ("2023-02-30", "三十日"),
        ("24:75", "時"),
        ("31:10", "時"),
        ("1/0", "分の"),
        ("45.6.7", "年"),
        ("第MCIV", "千百"),  # letters that no rule takes for a numeral here
    ],
)
def test_what_only_looks_like_a_date_or_a_time_is_not_read_as_one(written: str, never: str) -> None:
    assert never not in read(written).text


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("-10-12度と-10--5℃", "マイナス十から十二度とマイナス十からマイナス五度"),
        ("+10-12度", "プラス十から十二度"),
        ("x-10-12の値", "エックス-十-十二の値"),
        ("Ctrl＋Shift+Tabキー", "コントロールプラスシフトプラスタブキー"),
        ("Homeを見る", "Homeを見る"),
    ],
)
def test_what_stands_beside_a_number_or_a_word_decides(written: str, spoken: str) -> None:
    assert _spaceless(read(written).text) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("見積No.25-014、25-14ページ", "見積ナンバー二十五の零一四、二十五対十四ページ"),
        ("地図→ maps.example.jp", "地図 mapsドットexampleドットジェーピー"),
        ("東京→大阪", "東京から大阪"),
        ("25-20、23-25、25-18", "二十五対二十、二十三対二十五、二十五対十八"),
        ("3-5、7-9ページ", "三から五、七から九ページ"),
        ("ID: 845 221 903", "アイディー: 八四五の二二一の九零三"),
        ("60mg/kg/日、60km/h", "六十ミリグラム毎キログラム毎日、六十キロメートル毎時"),
        ("番号12 2024年", "番号一二 二千二十四年"),
    ],
)
def test_signs_mean_what_the_words_beside_them_show(written: str, spoken: str) -> None:
    assert _spaceless(read(written).text) == _spaceless(spoken)


@pytest.mark.parametrize("numeral", ["IIII", "IC", "VV", "IXI", "A", "XIIX"])
def test_what_is_no_roman_numeral_has_no_value(numeral: str) -> None:
    assert roman(numeral) is None


@pytest.mark.parametrize(("numeral", "value"), [("IV", 4), ("XIX", 19), ("MCMXCIX", 1999), ("XLII", 42)])
def test_roman_numerals_have_their_value(numeral: str, value: int) -> None:
    assert roman(numeral) == value


def test_every_word_points_to_what_was_written() -> None:
    original = "会議は2024/04/01の14:30から、¥1,500です。"
    text = read(original)
    for said, written in (
        ("二千二十四年四月一日", "2024/04/01"),
        ("十四時三十分", "14:30"),
        ("千五百円", "¥1,500"),
    ):
        at = text.text.index(said)
        start, end = text.span(at, at + len(said))
        assert original[start:end] == written


def test_names_of_emoji_are_japanese() -> None:
    assert read("おはよう☂").text == "おはよう 傘"


@given(
    st.text(alphabet=st.sampled_from("0123456789０５.,/:-〜~%¥$円年月日時分(火)第ⅣVv@#kmgA x=+²½①午後PMR〒"))
)
@settings(deadline=None, max_examples=300)
def test_nothing_raises_and_no_digit_is_left(text: str) -> None:
    said = read(text).text
    assert not any(c.isdecimal() for c in said)


@given(st.text(alphabet=st.characters(exclude_categories=("Cc", "Cs", "Co", "Cn")), max_size=80))
@settings(deadline=None, max_examples=200)
def test_any_text_keeps_its_letters_in_their_places(text: str) -> None:
    cleaned = sanitise(text).strip()
    said = normalise(cleaned, "ja")
    assert len(said.text) == len(said.starts) == len(said.ends)
    assert list(said.starts) == sorted(said.starts)
