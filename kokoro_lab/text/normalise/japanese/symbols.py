"""Signs of mathematics and print, Roman numerals, and one-character abbreviations, in Japanese."""

from __future__ import annotations

import unicodedata
from typing import Any

from kokoro_lab.text.normalise.japanese.letters import spelt
from kokoro_lab.text.normalise.japanese.numbers import cardinal, number
from kokoro_lab.text.normalise.japanese.written import (
    NAMES,
    NO_LATIN_AFTER,
    PLAIN,
    SIGNS,
    either_width,
    with_dash,
    with_slash,
)
from kokoro_lab.text.normalise.roman import roman
from kokoro_lab.text.normalise.rules import Rule
from kokoro_lab.text.tables import any_of

_ABBREVIATED, _SIGNS = NAMES["abbreviation in one sign"], NAMES["sign"]
_BETWEEN = NAMES["sign between operands"]
"""Signs that are said only between two operands. Elsewhere they divide words, or are decoration."""
_OPERAND = r"[\d)A-Za-zα-ωπ∞²³%円]"


def _roman_said(match: Any) -> str | None:
    value = roman(unicodedata.normalize("NFKC", match["numeral"]).upper())
    return None if value is None else cardinal(value)


def _power(match: Any) -> str:
    exponent = unicodedata.normalize("NFKC", match["exponent"]).lstrip("^").replace("−", "-")
    sign = "マイナス" if exponent[0] == "-" else ""
    base = match["base"]
    said = number(base) if base[0].isdigit() else spelt(base)
    return f"{said}の{sign}{number(exponent.lstrip('-'))}乗"


def _signed(match: Any) -> str | None:
    """The words for the first number of a range with a sign: `+10-12度` is from ten to twelve. None if the
    second number is smaller, as in the sum `+10-5`."""
    first, last = (float(match[end].replace(",", "")) for end in ("first", "last"))
    counts_up = (-first if match["sign"] == "-" else first) < last
    return f"{SIGNS[match['sign']]}{number(match['first'])}から" if counts_up else None


BEFORE_NUMBERS: tuple[Rule, ...] = (
    either_width(
        "abbreviation in one sign",
        any_of(_ABBREVIATED),
        lambda m: _ABBREVIATED[m.group()],
    ),
    either_width("right or wrong", "[○◯〇]×", lambda _: "マルバツ", wakes="×"),
    either_width(
        "arrow to an address",
        r"→(?=\s?(?:https?:|www\.|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[a-z]{2,}))",
        lambda _: "",
        wakes="→",
        also=".:",
    ),
    either_width("arrow that leads nowhere", r"(?<!\w\s?)→|→(?!\s?\w)", lambda _: "矢印", wakes="→"),
    either_width(
        "Roman numeral of a sequel",
        rf"(?<=[\p{{Katakana}}\p{{Han}}ー]\s?)(?<numeral>[IVX]{{2,}}){NO_LATIN_AFTER}(?![\d&])",
        _roman_said,
    ),
    Rule("Roman numeral", r"(?<numeral>[\u2160-\u216F]+|[\u2170-\u217F]+)", _roman_said),
    either_width("Roman numeral in letters", rf"(?<=第)(?<numeral>[IVXLC]+){NO_LATIN_AFTER}", _roman_said),
    either_width(
        "Roman numeral of a ruler", r"(?<![A-Za-z])(?<numeral>[IVXLC]+)(?=世(?!界|紀))", _roman_said
    ),
    either_width(
        "power",
        rf"""(?<![A-Za-z./])(?<base>(?<!\d){PLAIN}|(?<!\d\s?)m|[A-Za-ln-z]|(?<=[=+]\s?)[A-Za-z]{{2,3}})
            (?<exponent>⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+|\^-?\d+)(?![A-Za-z\d])""",
        _power,
        wakes="⁰¹²³⁴⁵⁶⁷⁸⁹^",
    ),
    either_width(
        "range from a number with a sign",  # of temperatures, if the sign is a minus
        rf"""(?<!{_OPERAND}\s?)(?<sign>\+|-(?=[\d.,]+--?[\d.]+\s?[度℃°]))(?<first>{PLAIN})-
            (?=(?<last>(?:(?<=-[^-]+-)-)?{PLAIN})(?![\d/:=-]|\s?=))""",
        _signed,
        wakes="-",
    ),
    either_width(
        "minus in a sum",
        rf"(?<={_OPERAND})\s?-\s?(?=[\dA-Za-z.]{{1,20}}+(?:\s?[-+×÷*/]\s?[\dA-Za-z.]{{1,20}}+){{0,9}}\s?=)",
        lambda _: "マイナス",
    ),
    with_dash("minus in a sum", r"(?<=[=+×÷*√]\s?[\dA-Za-z.]+)\s?-\s?(?=[\dA-Za-z])", lambda _: "マイナス"),
    with_dash("minus between spaces", rf"(?<={_OPERAND}\s)-(?=\s[\dA-Za-z])", lambda _: "マイナス"),
    either_width(
        "letters of a formula",
        rf"(?<=[=+×]\s?)[A-Za-z]{{2}}{NO_LATIN_AFTER}(?![²³^])|(?<![A-Za-z])[A-Za-z]{{2}}(?=\s?[=×])",
        lambda match: spelt(match.group()),
        wakes="=+×",
    ),
    either_width(
        "divided in a sum",
        rf"(?<={_OPERAND})\s?/\s?(?=[\dA-Za-z.]+\s?=)(?<!\d\s?/\s?(?=\d))",
        lambda _: "割る",
    ),
)
"""Rules that come before those for single digits and hyphens."""

RULES: tuple[Rule, ...] = (
    either_width(
        "sign between operands",
        rf"(?<={_OPERAND})\s?(?P<sign>[*<>])\s?(?=[\dA-Za-z(.α-ω√])",
        lambda match: _BETWEEN[match["sign"]],
    ),
    with_slash("slash between words", r"(?<=\w)/(?=\w)", lambda _: "スラッシュ"),
    either_width("sign", any_of(_SIGNS), lambda match: _SIGNS[match.group()]),
)
