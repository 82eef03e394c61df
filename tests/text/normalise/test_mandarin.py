"""Mandarin is written out in Chinese numerals and words as it is read aloud."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kokoro_lab.lab.fixtures import load_rows
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.normalise import normalise
from kokoro_lab.text.normalise.mandarin import LARGEST, cardinal, code, date, number, ordinal, time
from kokoro_lab.text.sanitise import sanitise

LINES = load_rows("normalisation_zh")


def read(written: str) -> AlignedText:
    return normalise(sanitise(written).strip(), "zh")


def said(written: str) -> str:
    return read(written).text.replace(" ", "")


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["written"])
def test_the_corpus_is_read_as_expected(line: dict[str, str]) -> None:
    assert said(line["written"]) == line["spoken"].replace(" ", "")


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("见p.12和Vol.2", "见第十二页和第二卷"),
        ("90后，50后退一步", "九零后，五十后退一步"),
        ("拨打110，打110分", "拨打幺幺零，打一百一十分"),
        ("$1.2B，¥3M，￥500", "十二亿美元，三百万元，五百元"),
        ("¥25/kg", "二十五元每公斤"),
        ("会议ID是123 456", "会议ID是幺二三，四五六"),
    ],
)
def test_what_is_pasted_is_read_in_chinese(written: str, words: str) -> None:
    assert said(written) == words


def test_the_corpus_has_200_sentences_and_none_twice() -> None:
    assert len({line["written"] for line in LINES}) == len(LINES) >= 200
    assert min(Counter(line["category"] for line in LINES).values()) >= 3


@pytest.mark.parametrize("line", LINES[::5], ids=lambda line: line["written"])
def test_wide_digits_are_read_like_narrow_ones(line: dict[str, str]) -> None:
    wide = "".join(chr(ord(c) + 0xFEE0) if c.isdecimal() and c.isascii() else c for c in line["written"])
    if line["category"] != "electronic":
        assert said(wide) == line["spoken"].replace(" ", "")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "零"),
        (-12, "负十二"),
        (110, "一百一十"),
        (200, "二百"),
        (22_222, "两万二千二百二十二"),
        (10_205, "一万零二百零五"),
        (2 * 10**8, "两亿"),
        (LARGEST, "一" + "零" * 16),
    ],
)
def test_a_number_is_said_so(value: int, words: str) -> None:
    assert cardinal(value) == words


@given(st.integers(0, LARGEST - 1) | st.integers(0, 200_000))
@settings(deadline=None)
def test_numbers_are_those_of_a_library(value: int) -> None:
    library = pytest.importorskip("cn2an")
    assert cardinal(value).replace("两", "二") == library.an2cn(value)


def test_what_is_known_already_is_said_so() -> None:
    assert (date(2026, 3, 5), date(None, 10, 1)) == ("二零二六年三月五日", "十月一日")
    assert (time(2, 5, None, "pm"), time(8, 0, None, None)) == ("下午两点零五分", "八点")
    assert (time(8, None, 9, None), ordinal(3)) == ("八点零分零九秒", "第三")
    assert (code("110 01"), number("007"), number("3.50万")) == ("幺幺零，零幺", "零零七", "三点五零万")


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("距今有2000年历史，2000年出生", "距今有两千年历史，二零零零年出生"),
        ("价格区间$5-$10，¥3亿元", "价格区间五美元到十美元，三亿元"),
        ("10:30PM到11:15AM", "下午十点三十分到上午十一点十五分"),
        ("2023/24赛季，2024-09", "二零二三到二四赛季，二零二四年九月"),
        ("2两白酒、2分之1、22个", "二两白酒、二分之一、二十二个"),
        ("-10~5℃", "零下十到五摄氏度"),
        ("-10~-5℃、10~-5℃、-5--2℃", "零下十到零下五摄氏度、十到零下五摄氏度、零下五到零下两摄氏度"),
        ("10--12，-10%~-5%", "十到十二，负百分之十到负百分之五"),
        ("从10到5，比分10-5", "从十到五，比分十比五"),
        ("月薪8k-12k，工资1.5K", "月薪八千到一万二千，工资一千五百"),
        ("收入高，买了4K电视", "收入高，买了四K电视"),
        ("10万+，1+1", "十万加，一加一"),
        ("H7N9、4D、C++", "H七N九、四D、C++"),
        ("user_name@163.com", "user下划线name艾特一六三点com"),
        ("人口超过8000000000", "人口超过八十亿"),
        ("打了110个电话", "打了一百一十个电话"),
        ("25:61", "二十五比六十一"),
    ],
)
def test_what_stands_beside_a_number_decides(written: str, spoken: str) -> None:
    assert said(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("请于10/15前回复", "请于十月十五日前回复"),
        ("10/15（周三）", "十月十五日（周三）"),
        ("等于1/2，在1/2处，1/3后", "等于二分之一，在二分之一处，三分之一后"),
        ("康熙（1654—1722）", "康熙（一六五四到一七二二）"),
        ("（1500—2000）", "（一千五百到两千）"),
        ("京法〔2023〕18号", "京法〔二零二三〕十八号"),
        ("（2023）", "（两千零二十三）"),
        ("i7-13700K", "i七一三七零零K"),
        ("A4-100张", "A四到一百张"),
        ("25-20、23-25、25-18", "二十五比二十、二十三比二十五、二十五比十八"),
        ("第3-5、7-9页", "第三到五、七到九页"),
        ("60mg/kg/天，3mL/kg/h", "六十毫克每公斤每天，三毫升每公斤每小时"),
        ("3g/24h，6元/个", "三克每二十四小时，六元每个"),
        ("42%→45%，A→B", "百分之四十二到百分之四十五，A→B"),
    ],
)
def test_signs_mean_what_the_words_beside_them_show(written: str, spoken: str) -> None:
    assert said(written) == spoken


def test_a_day_that_there_is_not_is_no_date() -> None:
    assert "月" not in said("2025/13/40")


@pytest.mark.parametrize("text", ["你好，世界！", "一年有四季。", "他说：“明天见。”", "九寨沟、三亚、五台山"])
def test_what_holds_no_digit_and_no_sign_stays(text: str) -> None:
    assert read(text).text == text


def test_places_point_into_the_original() -> None:
    found = read("共25%，2个")
    start = found.text.index("百分之二十五")
    assert found.span(start, start + 6) == (1, 4)
    assert found.span(found.text.index("两"), found.text.index("两") + 1) == (5, 6)


@given(st.text("0123456789０５.,:/-~%+=¥$个月年日第两万亿元kmGB @①½²〇。，", max_size=30))
@settings(max_examples=300, deadline=None)
def test_nothing_raises_and_no_digit_is_left(written: str) -> None:
    found = read(written)
    assert not any(c.isdecimal() for c in found.text)
    assert list(found.starts) == sorted(found.starts)
