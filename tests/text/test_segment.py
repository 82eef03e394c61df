"""Text is cut where a speaker would pause, and nothing is ever lost to make it fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kokoro_lab.datatypes import Segment, Word
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.g2p.vocab import encode
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.segment import (
    FIRST_LEAST_TOKENS,
    FIRST_TOKENS,
    FIRST_WHOLE_TOKENS,
    LONG_TOKENS,
    MAX_TOKENS,
    SHORT_TOKENS,
    SpokenSentence,
    SpokenSentences,
    pack,
)
from kokoro_lab.text.sentences import SENTENCE_CHARS, sentences

SPACE_ID = 16


def cut(text: str) -> list[str]:
    return [s.text.text for s in sentences(AlignedText.of(text), "en-us")]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Dr. Smith met Mrs. Brown at 5 p.m. on St. James Street.", None),
        ("It costs 3.14 or 1,000.50 in the U.S. today.", None),
        ("See example.com and e.g. this one.", None),
        ("We use C# with .NET on it. It runs.", ["We use C# with .NET on it.", "It runs."]),
        (".NET is here .", None),
        ("He left at 5 p.m. Then we ate.", ["He left at 5 p.m.", "Then we ate."]),
        ("Milk\nEggs\nBread", ["Milk", "Eggs", "Bread"]),
        ("Chapter One\n\nIt was late.", ["Chapter One", "It was late."]),
        (
            "This line was wrapped by an editor that breaks at eighty characters, as\nmany of them do.",
            ["This line was wrapped by an editor that breaks at eighty characters, as many of them do."],
        ),
        ("   \n\n  ", []),
    ],
)
def test_sentences(text: str, parts: list[str] | None) -> None:
    assert cut(text) == ([text] if parts is None else parts)


@given(st.text(alphabet="ab .,;!?\n…—é世", max_size=3000))
@settings(deadline=None)
def test_no_character_is_lost_between_sentences(text: str) -> None:
    found = list(sentences(AlignedText.of(text), "en-us"))
    assert "".join("".join(s.text.text.split()) for s in found) == "".join(text.split())
    assert all(0 < len(s.text) <= SENTENCE_CHARS for s in found)


def test_a_very_long_sentence_is_cut_between_words() -> None:
    text = "word " * 1000
    assert {w for part in cut(text) for w in part.split()} == {"word"}


def test_a_very_long_paragraph_is_read_sentence_by_sentence() -> None:
    text = "The cat sat on the mat. " * 5000
    assert cut(text) == ["The cat sat on the mat."] * 5000


def spoken(*lengths: int, mark: str = ".", paragraph: bool = False) -> SpokenSentence:
    """A sentence of words with so many token ids each, the last one followed by `mark`."""
    phonemes = ["a" * n for n in lengths]
    phonemes[-1] += mark
    words = tuple(Word("w", 10 * i, 10 * i + 9, p, "en-us", "misaki") for i, p in enumerate(phonemes))
    return SpokenSentence(words, tuple(encode(p) for p in phonemes), paragraph)


def packed(parts: Sequence[SpokenSentence]) -> list[Segment]:
    return list(pack(SpokenSentences(parts), space_id=SPACE_ID, language="en-us"))


def test_one_sentence_is_one_segment() -> None:
    assert [s.phonemes for s in packed([spoken(30, 30), spoken(40)])] == [
        f"{'a' * 30} {'a' * 30}.",
        f"{'a' * 40}.",
    ]


def test_short_sentences_share_a_segment() -> None:
    assert [s.phonemes for s in packed([spoken(3), spoken(4), spoken(50)])] == [
        f"aaa. aaaa. {'a' * 50}.",
    ]


def test_a_paragraph_is_never_joined_to_the_next() -> None:
    assert len(packed([spoken(3, paragraph=True), spoken(4)])) == 2


def test_a_long_first_sentence_starts_with_its_first_clause() -> None:
    words = spoken(*[9] * 20)
    clause = list(words.words)
    clause[2] = Word("w", 20, 29, "a" * 9 + ",", "en-us", "misaki")
    sentence = SpokenSentence(tuple(clause), tuple(encode(w.phonemes) for w in clause), False)
    first, second = packed([sentence])
    assert SHORT_TOKENS <= len(first.token_ids) <= FIRST_TOKENS
    assert first.phonemes.endswith(",")
    assert first.pause_after_s == pytest.approx(0.08)
    assert len(first.words) + len(second.words) == 20


def of_words(texts: Sequence[str]) -> SpokenSentence:
    """A sentence of words that sound as they are written, with a stop."""
    bare = [(text.rstrip(","), text) for text in texts]
    words = [
        Word(name, 10 * i, 10 * i + 9, text, "en-us", "misaki")
        for i, (name, text) in enumerate(bare, start=1)
    ]
    words[-1] = replace(words[-1], phonemes=words[-1].phonemes + ".")
    return SpokenSentence(tuple(words), tuple(encode(w.phonemes) for w in words), False)


def test_a_long_first_sentence_starts_before_the_next_one_is_read() -> None:
    """A listener would wait for that for nothing: however short it is, it is not joined to the first part."""
    read: list[int] = []

    def reading() -> Iterator[SpokenSentence]:
        for number, sentence in enumerate(
            [of_words(["aaaaa"] * 4 + ["because"] + ["aaaaa"] * 12), spoken(9)]
        ):
            read.append(number)
            yield sentence

    segments = pack(SpokenSentences(reading()), space_id=SPACE_ID, language="en-us")
    first = next(segments)
    assert (len(first.words), read) == (4, [0])
    assert [len(segment.words) for segment in segments] == [13, 1]


def test_a_first_part_that_is_too_long_for_the_model_is_cut_again() -> None:
    words = [*["a" * 9] * 60, "aaaa,", *["a" * 9] * 9]
    assert [len(segment.words) for segment in packed([of_words(words)])] == [30, 15, 16, 9]


def test_a_long_first_sentence_without_a_place_to_pause_is_left_whole() -> None:
    assert len(packed([spoken(*[9] * 20)])) == 1


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (
            "The committee met on Tuesday because nobody had read the long and rather dull report in time.",
            "The committee met on Tuesday",
        ),
        (
            "My brother has bought an old house which needs a new roof and a lot of patience and money.",
            "My brother has bought an old house",
        ),
        (
            "The feelings of the older prisoners should no longer be outraged this way every other day.",
            "The feelings of the older prisoners",
        ),
        (
            "He was fond of restoring the ruined temples, and he knew more than anybody of their stones.",
            "He was fond of restoring the ruined temples,",  # a mark is worth a few token ids
        ),
    ],
)
def test_a_long_first_sentence_is_cut_where_a_speaker_would_pause(
    front_end: FrontEnd, text: str, first: str
) -> None:
    segments = list(front_end.segments(text, "en-us", lambda _: None))
    heard = [text[s.start : s.end] for s in segments]
    assert heard[0] == first
    assert len(segments) == 2
    assert SHORT_TOKENS <= len(segments[0].token_ids) <= FIRST_WHOLE_TOKENS
    assert " ".join(heard) == text
    assert 0.08 <= segments[0].pause_after_s <= 0.12


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("pt-br", "Aux. adm.: 44h por semana, R$ 1.800 e mais nada."),
        ("fr-fr", "Enfant : 15 mg/kg toutes les six heures, et rien de plus que cela."),
        ("en-us", "We counted slowly and found 128,543 of them in all of the old wooden boxes."),
        ("hi", "वेतन ₹15,000-18,000 हर महीने और खाना भी मिलेगा।"),
    ],
)
def test_no_first_segment_ends_within_a_number(front_end: FrontEnd, language: str, text: str) -> None:
    first, second, *_ = front_end.segments(text, language, lambda _: None)
    assert max(word.end for word in first.words) <= min(word.start for word in second.words)


def test_a_first_segment_may_end_within_a_long_number(front_end: FrontEnd) -> None:
    """Its reading would last longer than a listener should wait for the first sound."""
    text = "Son 612 345 678 habitantes."
    first, second = front_end.segments(text, "es", lambda _: None)
    assert first.end > second.start
    assert min(len(first.token_ids), len(second.token_ids)) >= SHORT_TOKENS


def test_between_a_subject_and_its_verb_only_a_very_long_first_sentence_is_cut(front_end: FrontEnd) -> None:
    text = "The enormous mechanical elephant was entirely covered."
    assert len(list(front_end.segments(text, "en-us", lambda _: None))) == 1


def test_a_place_that_comes_late_is_better_than_none(front_end: FrontEnd) -> None:
    text = (
        "The senior manufacturing engineers carefully inspected twenty enormous hydraulic turbines "
        "before anybody started the first of the machines in the basement."
    )
    segments = list(front_end.segments(text, "en-us", lambda _: None))
    assert text[: segments[0].end].endswith("turbines")
    assert len(segments[0].token_ids) > FIRST_WHOLE_TOKENS
    assert len(segments) == 2


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (
            "We all waited until twenty-seven exhausted electricians finally repaired everything.",
            "We all waited",
        ),
        (
            "The kettle is on, and twenty-seven exhausted electricians finally repaired everything.",
            "The kettle is on,",
        ),
    ],
)
def test_rather_than_begin_late_a_long_sentence_begins_with_a_few_words(
    front_end: FrontEnd, text: str, first: str
) -> None:
    segments = list(front_end.segments(text, "en-us", lambda _: None))
    assert [text[s.start : s.end] for s in segments] == [first, text[len(first) + 1 :]]
    assert FIRST_LEAST_TOKENS <= len(segments[0].token_ids) < SHORT_TOKENS


@pytest.mark.parametrize(
    ("mark", "low_s", "high_s"),
    [
        (".", 0.12, 0.18),
        (":", 0.12, 0.18),
        ("?", 0.12, 0.18),
        (".”", 0.12, 0.18),
        (",", 0.06, 0.1),
        (";", 0.06, 0.1),
        ("", 0.08, 0.12),
    ],
)
def test_the_pause_follows_the_mark(mark: str, low_s: float, high_s: float) -> None:
    assert low_s <= packed([spoken(40, mark=mark)])[0].pause_after_s <= high_s


@given(st.lists(st.lists(st.integers(1, 700), min_size=1, max_size=60), min_size=1, max_size=5))
@settings(deadline=None)
def test_every_token_id_is_spoken_once_and_in_order(sizes: list[list[int]]) -> None:
    alphabet = "abdefhijklmnopstuvwz"
    counter = 0
    parts = []
    for sentence in sizes:
        words = []
        for size in sentence:
            letters = "".join(alphabet[(counter + k) % len(alphabet)] for k in range(size))
            counter += size
            words.append(Word("w", counter, counter + 1, letters, "en-us", "misaki"))
        parts.append(SpokenSentence(tuple(words), tuple(encode(w.phonemes) for w in words), False))
    segments = packed(parts)
    assert all(0 < len(s.token_ids) <= LONG_TOKENS <= MAX_TOKENS for s in segments)
    heard = [i for s in segments for i in s.token_ids if i != SPACE_ID]
    assert heard == [i for part in parts for ids in part.ids for i in ids]
    assert [s.segment_id for s in segments] == list(range(len(segments)))
    for s in segments:
        for word, (first, stop) in zip(s.words, s.word_tokens, strict=True):
            assert s.token_ids[first:stop] == encode(word.phonemes)


def test_however_many_spaces_there_are_what_follows_is_of_the_same_paragraph() -> None:
    found = list(sentences(AlignedText.of("The kettle is on." + " " * 5000 + "So."), "en-us"))
    assert [(each.text.text, each.ends_paragraph) for each in found] == [
        ("The kettle is on.", False),
        ("So.", True),
    ]
