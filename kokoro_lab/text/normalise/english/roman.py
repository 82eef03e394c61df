"""Roman numerals in English, where the words around them show that they are numbers."""

from __future__ import annotations

from typing import Any

from kokoro_lab.text.normalise.english.numerals import cardinal, ordinal
from kokoro_lab.text.normalise.english.patterns import END, START, WORDS, any_word
from kokoro_lab.text.normalise.roman import roman, valued
from kokoro_lab.text.normalise.rules import Rule, roman_rule
from kokoro_lab.text.tables import any_of

NUMERAL = r"(?P<roman>[IVX]+|[IVXLCDM]{2,})"
PART = rf"(?i:{any_word('Roman part')})"
"""Words after which a Roman numeral is a cardinal, even a single I."""
GIVEN = any_of(map(str.title, WORDS["first name"]))
"""First names. After one and a family name, a Roman numeral belongs to the person: `John Smith the third`."""


_cardinal = valued(lambda _, value: cardinal(value))
_part = valued(lambda match, value: f"{cardinal(value)} {match['letter']}".rstrip())  # stage IIIB
_century = valued(lambda _, value: ordinal(value))


def _span(match: Any) -> str | None:
    first, last = roman(match["first"]), roman(match["last"])
    return None if first is None or last is None else f"{cardinal(first)} to {cardinal(last)}"


def _small_span(match: Any) -> str | None:
    first, last = roman(match["first"].upper()), roman(match["last"].upper())
    return None if first is None or last is None else f"{cardinal(first)} to {cardinal(last)}"


@valued
def _regnal(match: Any, value: int) -> str | None:
    return None if value > 60 else f"the {ordinal(value)}{match['own'] or ''}"


def _alone(match: Any) -> str | None:
    """A numeral by itself: two letters or more that are no English word and no common abbreviation."""
    text = match["roman"]
    spelt = len(text) < 4 and not set(text) <= set("IVX")  # a CLI, a DIV
    return None if spelt or text in WORDS["Roman letters that may be no number"] else _cardinal(match)


_END = rf"{END}(?!\.\p{{L}})"

RULES: tuple[Rule, ...] = (
    roman_rule(
        "Roman ruler with his title",
        rf"""(?<=\b{any_word("ruler's title")}\ \p{{Lu}}\p{{Ll}}+\ (?:\p{{Lu}}\p{{Ll}}+\ )?)
        (?P<roman>[IVX]+)(?P<own>'s)?{_END}""",
        _regnal,
    ),
    roman_rule(
        "Roman century",
        rf"{START}(?P<roman>[IVX]+)(?:th|st|nd|rd)?(?=\ {any_word('noun behind a century')}\b)",
        _century,
    ),
    Rule(
        "span of Roman parts",
        rf"(?<=\b{PART}s?\ )(?P<first>[IVXLCDM]+)\ ?[-–]\ ?(?P<last>[IVXLCDM]+){_END}",
        _span,
        wakes="-–",
    ),
    Rule(
        "span of pages in Roman numerals",  # `pp. iv–ix`
        r"(?<=\b[Pp](?:p\.|ages?|gs?\.)\ )(?P<first>[ivxlc]+)\ ?[-–]\ ?(?P<last>[ivxlc]+)(?![\p{L}\p{N}_-])",
        _small_span,
        wakes="-–",
    ),
    roman_rule(
        "Roman number of a movement or a heading",  # `VI. Adagio`
        rf"""(?<=^|\ [–—]\ )(?:(?P<roman>[IVX]{{2,}})\.(?=\ \p{{Lu}}\p{{Ll}}|(?<=[–—]\ \w+\.)\ *$)
        |(?P<roman>[IVX]+)\.(?=\ {any_word("first word of a movement")}\b))""",
        valued(lambda _, value: f"{cardinal(value)}."),
    ),
    roman_rule(
        "Roman part",
        rf"(?<=\b{PART}s?\ )(?!(?<=\b(?:[Gg]eneration|Xbox\ Series)\ )X\b){NUMERAL}(?P<letter>[ABC]?){_END}",
        _part,
    ),
    roman_rule(
        "Roman parts",
        rf"(?<=\b{PART}s\ [IVX]+(?:\ and\ |\ ?[-–]\ ?|\ to\ |,\ )){NUMERAL}{_END}",
        _cardinal,
    ),
    roman_rule(
        "Roman ruler",
        rf"""(?<=\b(?i:{any_word("ruler")})\ )(?!I\ (?:\p{{Ll}}+|'))(?P<roman>[IVX]+)(?P<own>'s)?{END}""",
        _regnal,
    ),
    roman_rule(
        "Roman ruler with his number",
        rf"""(?<=\b\p{{Lu}}\p{{Ll}}+\ (?:the\ )?)(?P<roman>{any_word("Roman number of a ruler")})
        (?P<own>'s)?{END}(?=,?\ (?:of\ (?:\p{{Lu}}|the)|{any_word("said of a ruler")}))""",
        _regnal,
    ),
    roman_rule(
        "lower-case Roman part",
        rf"(?<=\b(?i:{any_word('Roman part')}|pages?|pp?\.)s?\ )(?P<roman>[ivxlc]+){_END}",
        _cardinal,
    ),
    Rule(
        "Roman number in brackets",
        r"(?<=\()(?P<roman>ii|iii|iv|vi|vii|viii|ix|xi|xii)(?=\))",
        _cardinal,
        wakes="(",
    ),
    roman_rule(
        "lower-case Roman number",
        r"(?<![\p{L}\p{N}_.&-])(?P<roman>ii|iii|vii|viii|xii|xiii|xvii|xviii)(?![\p{L}\p{N}_&-]|\.\p{L}|')",
        _cardinal,
    ),
    roman_rule(
        "no Roman number",  # eSpeak would read `open it in vi` and `Thanks! xx` as numbers
        r"(?<![\p{L}\p{N}_.&/-])(?P<letters>vi(?![\p{L}\p{N}_&/-]|\.\p{L}|')|xx(?=[\s.!]*$))",
        lambda match: {"vi": "V I", "xx": "kiss kiss"}[match["letters"]],
    ),
    roman_rule(
        "Roman number of a person",
        rf"(?<=\b{GIVEN}\ (?:\p{{Lu}}\.\ )?\p{{Lu}}\p{{Ll}}+\ )(?P<roman>II|III|IV|V)(?P<own>'s)?{_END}",
        _regnal,
    ),
    roman_rule(
        "Roman number of a name",
        rf"(?<=\b\p{{Lu}}\p{{Ll}}+\ (?:\p{{Lu}}\p{{Ll}}+\ )?)(?P<roman>II|III|IV|VI|VII|VIII|IX){_END}",
        _cardinal,
    ),
    roman_rule(
        "Roman number",
        r"(?<![\p{L}\p{N}_.&-])(?P<roman>[IVXLCDM]{2,})(?![\p{L}\p{N}_&-]|\.\p{L}|')",
        _alone,
    ),
)
