"""Rules take pieces of a text in turn, and what they take is set off and kept in place."""

from __future__ import annotations

from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.normalise.rules import apply, rule

PAIR = rule("pair", r"\d-\d", lambda match: "pair")
ONE = rule("one", r"\d", lambda match: "one")


def read(text: str, *rules) -> str:  # type: ignore[no-untyped-def]
    return apply(AlignedText.of(text), rules).text


def test_the_first_rule_that_takes_a_piece_has_it() -> None:
    assert read("1-2 3", PAIR, ONE) == "pair one"
    assert read("1-2 3", ONE, PAIR) == "one-one one"


def test_a_rule_that_declines_leaves_the_piece_to_the_next() -> None:
    shy = rule("shy", r"\d-\d", lambda match: None)
    assert read("1-2", shy, ONE) == "one-one"


def test_no_rule_reads_what_another_made() -> None:
    digits = rule("word", r"a", lambda match: "1")
    assert read("a", digits, ONE) == "1"


def test_words_are_set_off_from_letters_beside_them() -> None:
    assert read("a1b", ONE) == "a one b"
    assert read("(1)", ONE) == "(one)"
    silent = rule("silent", r"x", lambda match: "")
    assert read("axb", silent) == "ab"


def test_a_text_without_anything_to_read_is_the_same_object() -> None:
    text = AlignedText.of("plain")
    assert apply(text, (PAIR, ONE)) is text
