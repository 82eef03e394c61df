"""Rules take parts of a text in turn, and what they take is set off and kept in place; most rules sleep."""

from __future__ import annotations

import pytest

from kokoro_lab.lab.fixtures import load_rows
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.normalise import READERS, reader
from kokoro_lab.text.normalise.rules import DIGITS, POINT_WITHIN, ROMAN, Rule, apply, characters, digit_rule

PAIR = Rule("pair", r"\d-\d", lambda match: "pair")
ONE = Rule("one", r"\d", lambda match: "one")


PASTED = ("readings_reported", "readings_own", "readings_pasted", "readings_later", "readings_further",
          "readings_common", "readings_languages", "readings_everyday", "readings_same")  # fmt: skip


def read(text: str, *rules) -> str:  # type: ignore[no-untyped-def]
    return apply(AlignedText.of(text), rules).text


def test_the_first_rule_that_takes_a_part_has_it() -> None:
    assert read("1-2 3", PAIR, ONE) == "pair one"
    assert read("1-2 3", ONE, PAIR) == "one-one one"


def test_a_rule_that_declines_leaves_the_part_to_the_next() -> None:
    shy = Rule("shy", r"\d-\d", lambda match: None)
    assert read("1-2", shy, ONE) == "one-one"


def test_no_rule_reads_what_another_made() -> None:
    digits = Rule("word", r"a", lambda match: "1")
    assert read("a", digits, ONE) == "1"


def test_words_are_set_off_from_letters_beside_them() -> None:
    assert read("a1b", ONE) == "a one b"
    assert read("(1)", ONE) == "(one)"
    assert read("★★", Rule("star", "★", lambda match: "star")) == "star star"
    silent = Rule("silent", r"x", lambda match: "")
    assert read("axb", silent) == "ab"


def test_a_text_without_anything_to_read_is_the_same_object() -> None:
    text = AlignedText.of("plain")
    assert apply(text, (PAIR, ONE)) is text


def test_a_rule_is_tried_on_a_text_that_holds_what_wakes_it() -> None:
    word = digit_rule("word", r"\w+", lambda match: "one")
    assert read("1", word) == "one"
    assert read("a", word) == "a"
    assert read("a", Rule("word", r"\w+", lambda match: "one")) == "one"


def test_a_rule_that_needs_another_character_too_is_not_tried_without_it() -> None:
    word = digit_rule("word", r"\w+", lambda match: "one", also="-–")
    assert read("1-", word) == "one-"
    assert read("1", word) == "1"
    assert read("-", word) == "-"
    assert read("a-", word) == "a-"


def test_digits_of_every_script_are_digits() -> None:
    assert DIGITS in characters("a١")
    assert DIGITS not in characters("a²½")


def test_a_point_at_the_end_is_not_within() -> None:
    assert POINT_WITHIN in characters("Mr. Lee")
    assert POINT_WITHIN in characters("in e.g. “this”")
    assert POINT_WITHIN not in characters("(It ended.)")
    assert POINT_WITHIN not in characters("no point")


@pytest.mark.parametrize("text", ["World War II", "pages iv", "the XIXth century", "Henry V's", "Part IIB"])
def test_a_word_that_may_be_a_roman_number(text: str) -> None:
    assert ROMAN in characters(text)


@pytest.mark.parametrize("text", ["It was late", "Visit MIXES", "Iv", "Ixy", "late lights"])
def test_a_word_that_is_no_roman_number(text: str) -> None:
    assert ROMAN not in characters(text)


@pytest.mark.parametrize("language", READERS)
def test_no_rule_matches_a_text_without_what_wakes_it(language: str) -> None:
    rows = [row for name in ("normalisation_en", "normalisation_es") for row in load_rows(name)[::2]]
    texts = [row["written"] for row in rows]
    texts += [text.translate(dict.fromkeys(range(ord("0"), ord("9") + 1))) for text in texts]
    pasted = [row for name in PASTED for row in load_rows(name)]
    texts += [row["written"] for row in pasted if row["language"].startswith(language)]
    rules = reader(language)
    assert rules is not None
    written = {text: characters(text) for text in texts}
    for found in rules.RULES:
        for text, present in written.items():
            if any(needed and present.isdisjoint(needed) for needed in (found.wakes, found.also)):
                assert not list(found.matches(text)), found.name


def test_most_rules_need_not_be_tried_on_prose() -> None:
    rules = reader("en")
    assert rules is not None
    prose = characters("She said that it was late, and went home.")
    tried = [found for found in rules.RULES if not (found.wakes and prose.isdisjoint(found.wakes))]
    assert len(tried) < len(rules.RULES) / 12
