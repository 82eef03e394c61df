"""A rule that is not tried on a text would have found nothing in it."""

from __future__ import annotations

import pytest

from kokoro_lab.lab.fixtures import load_rows
from kokoro_lab.text.normalise.languages import READERS, reader
from kokoro_lab.text.normalise.needs import characters, needs


@pytest.mark.parametrize(
    ("pattern", "needed"),
    [
        (r"\d+ [ ] km", "0"),
        (r"[1-9] x", "0"),
        (r"[0-9] x", "0"),
        (r"7 | \d x", "0"),
        (r"\d | %", "0%"),
        (r"a | \d", ""),
        (r"(?: [$€] | \d ) \. ", "$€0"),
        (r"\d \s* %", "%"),
        (r"\. \d", "0"),
        (r"x \d?", ""),
        (r"x \d{0,2}", ""),
        (r"x \d{,2}", ""),
        (r"x \d{2,}+", "0"),
        (r"(\d)* x", ""),
        (r"(?= .* @ ) x", "@"),
        (r"(?<= \d ) x", "0"),
        (r"(?<! \d ) x (?! % )", ""),
        (r"[^\d] x", ""),
        (r"[\d,] x", "0,"),
        (r"[\d\s] x", ""),
        (r"[+-/] x", ""),
        (r"[]%]", "]%"),
        (r"x # \d", ""),
        (r"\# \d", "#"),
        (r"\\ d", "\\"),
        (r"\p{Sc} x", ""),
        (r"(?P<digit> \d ) x", "0"),
    ],
)
def test_what_a_pattern_cannot_match_without(pattern: str, needed: str) -> None:
    assert needs(pattern, verbose=True) == frozenset(needed)


@pytest.mark.parametrize(
    "pattern",
    [
        r"[[a-z]--[b]] \d",  # sets of sets
        r"(?P<a>x)?(?(a)y|\d)",  # one of two, by what was found
        r"(?:\d){e<=1}",  # nearly so
        r"(?i) \d",
        r"(\d",
        r"\d)",
        r"(?P<a>\d)?\g<a>",
    ],
)
def test_of_what_is_not_understood_nothing_is_said(pattern: str) -> None:
    assert needs(pattern, verbose=True) == frozenset()


def test_a_space_counts_where_a_pattern_is_not_verbose() -> None:
    assert needs(r"#\d?", verbose=False) == frozenset("#")
    assert needs(r"#\d?", verbose=True) == frozenset()


def test_digits_of_every_script_are_digits() -> None:
    assert characters("a١") >= characters("0")
    assert not characters("a²½") & characters("0")


@pytest.mark.parametrize("language", READERS)
def test_no_rule_matches_a_text_without_what_it_needs(language: str) -> None:
    rows = [row for name in ("normalisation_en", "normalisation_es") for row in load_rows(name)[::5]]
    texts = [row["written"] for row in rows]
    texts += [text.translate(dict.fromkeys(range(ord("0"), ord("9") + 1))) for text in texts]
    rules = reader(language)
    assert rules is not None
    for rule in rules.RULES:
        for text in texts:
            if rule.needs and rule.needs.isdisjoint(characters(text)):
                assert not list(rule.pattern.finditer(text)), rule.name


def test_most_rules_need_not_be_tried_on_prose() -> None:
    rules = reader("en")
    assert rules is not None
    prose = characters("She said that it was late, and went home.")
    tried = [rule for rule in rules.RULES if not (rule.needs and rule.needs.isdisjoint(prose))]
    assert len(tried) < len(rules.RULES) / 3
