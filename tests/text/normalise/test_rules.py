"""Rules take parts of a text in turn, and what they take is set off and kept in place; most rules sleep."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from kokoro_lab.lab.fixtures import load_rows
from kokoro_lab.text import tables
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.normalise import READERS, reader
from kokoro_lab.text.normalise.rules import DIGITS, Rule, apply, characters, read_rules

PAIR = Rule("pair", r"\d-\d", lambda match: "pair")
ONE = Rule("one", r"\d", lambda match: "one")


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
    silent = Rule("silent", r"x", lambda match: "")
    assert read("axb", silent) == "ab"


def test_a_text_without_anything_to_read_is_the_same_object() -> None:
    text = AlignedText.of("plain")
    assert apply(text, (PAIR, ONE)) is text


def test_a_rule_is_tried_on_a_text_that_holds_what_wakes_it() -> None:
    word = Rule("word", r"\w+", lambda match: "one", wakes=DIGITS)
    assert read("1", word) == "one"
    assert read("a", word) == "a"
    assert read("a", Rule("word", r"\w+", lambda match: "one")) == "one"


def test_digits_of_every_script_are_digits() -> None:
    assert DIGITS in characters("a١")
    assert DIGITS not in characters("a²½")


@pytest.mark.parametrize("language", READERS)
def test_no_rule_matches_a_text_without_what_wakes_it(language: str) -> None:
    rows = [row for name in ("normalisation_en", "normalisation_es") for row in load_rows(name)[::2]]
    texts = [row["written"] for row in rows]
    texts += [text.translate(dict.fromkeys(range(ord("0"), ord("9") + 1))) for text in texts]
    rules = reader(language)
    assert rules is not None
    for found in rules.RULES:
        for text in texts:
            if found.wakes and characters(text).isdisjoint(found.wakes):
                assert not list(found.matches(text)), found.name


def test_most_rules_need_not_be_tried_on_prose() -> None:
    rules = reader("en")
    assert rules is not None
    prose = characters("She said that it was late, and went home.")
    tried = [found for found in rules.RULES if not (found.wakes and prose.isdisjoint(found.wakes))]
    assert len(tried) < len(rules.RULES) / 3


HEADER = "module\trule\twakes\tread\tsay\tpattern"
MODULE = """
SIZE, SIZES = "[km]", {"k": "thousand", "m": "million"}

def twice(value: int) -> str:
    return str(2 * value)

def loud(text: str) -> str:
    return text.upper()

def marked(match) -> str | None:
    return f"<{match.group()}>" if match.group() != "red" else None
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A package with a table of rules, whose lines are the fixture's parameter, and with what they name."""
    folder = tmp_path / "ruled"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "kinds.py").write_text(MODULE, "utf-8")
    (folder / "words.tsv").write_text("list\twords\ncolour\tred, dark blue\n", "utf-8")
    (folder / "names.tsv").write_text("kind\twritten\tspoken\nsign\t&\tand\n", "utf-8")
    (folder / "rules.tsv").write_text("\n".join([HEADER, *request.param]) + "\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("ruled", "ruled.kinds"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    tables.names.cache_clear()
    tables.words.cache_clear()
    return "ruled"


@pytest.mark.parametrize(
    "package",
    [
        [
            'kinds\tsize\t0\t\t"{n:twice} {size:SIZES}, {size:loud}{more}"\t(?P<n>\\d{1,3})',
            "\t(?P<size>{SIZE})(?P<more>!)?  # a comment",
            'kinds\tnumber\t0\t\t"{0} {match:marked}"\t\\d+',
            'kinds\tno colour\t\t\t"no {match:marked}"\tred',
            "kinds\tcolour\t\tany case\tmarked\t{colour}",
            'kinds\tsign\t&\teither width\t"{0:sign}"\t{sign}',
        ]
    ],
    indirect=True,
)
def test_a_table_of_rules_is_read_in_its_order(package: str) -> None:
    rules = read_rules(package, seen=str.lower)
    assert [rule.name for rule in rules] == ["size", "number", "no colour", "colour", "sign"]
    assert [rule.seen for rule in rules] == [None, None, None, None, str.lower]
    assert read("21k, 5m! 7 red Dark Blue &", *rules) == (
        "42 thousand, K, 10 million, M! 7 <7> red <Dark Blue> and"
    )


@pytest.mark.parametrize(
    ("package", "error"),
    [
        (["kinds\tone\t\t\tmarked\t{shape}"], "rule 'one': there is no 'shape'"),
        (["kinds\tone\t\t\tmarkd\t."], "rule 'one': there is no 'markd'"),
        (['kinds\tone\t\t\t"{0:thrice}"\t.'], "rule 'one': there is no 'thrice'"),
        (['kinds\tone\t\t\t"{*:marked}"\t.'], "rule 'one': there is no '{*:marked}'"),
        (["kinds\tone\t\tno case\tmarked\t."], "rule 'one': there is no 'no case'"),
        (["kinds\tone\t\t\tmarked\t.\tmore"], "line 2: 7 cells"),
    ],
    indirect=["package"],
)
def test_a_rule_that_is_wrong_is_named(package: str, error: str) -> None:
    with pytest.raises(ValueError, match=rf"^rules\.tsv, {re.escape(error)}"):
        read_rules(package)


@pytest.mark.parametrize("package", [["kinds\tcolour\t\t\tmarked\t{colour}|green"]], indirect=True)
def test_a_rule_is_left_out_where_a_language_has_no_words_for_it(package: str) -> None:
    assert read_rules(package, own={"colour": []}) == ()
    (rule,) = read_rules(package, own={"colour": ["blue"]})
    assert read("green, dark blue", rule) == "<green>, dark <blue>"
