"""Texts of a benchmark: of the length asked for, distinct, and reproducible."""

from __future__ import annotations

import pytest

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bench.texts import PRESETS, sentences_of, texts_of
from kokoro_lab.lab.fixtures import load_texts

SENTENCES = [
    "The cat sat on the mat, and slept.",
    "Nobody came.",
    "Rain fell on the quiet town all night, and in the morning the river had risen to the lowest step.",
]


@pytest.mark.parametrize("characters", PRESETS.values(), ids=PRESETS)
def test_texts_are_distinct_and_of_the_length_asked_for(characters: int) -> None:
    texts = list(texts_of(SENTENCES, characters, 3, seed=1))
    assert all(0.7 * characters <= len(t) <= 1.2 * characters + 1 for t in texts)
    assert len(set(texts)) == 3
    assert texts == list(texts_of(SENTENCES, characters, 3, seed=1))
    assert any(texts != list(texts_of(SENTENCES, characters, 3, seed)) for seed in range(2, 8))


def test_no_two_texts_begin_alike() -> None:
    sentences = sentences_of([t.text for t in load_texts() if t.kind in ("prose", "short", "long")])
    for characters in PRESETS.values():
        beginnings = {t[:30] for t in texts_of(sentences, characters, 30)}
        assert len(beginnings) == 30


def test_too_few_sentences_are_refused_with_a_mend() -> None:
    with pytest.raises(ParameterError, match=r"only 3 .* --corpus"):
        list(texts_of(SENTENCES, 140, 4))


def test_two_sentences_that_are_cut_to_the_same_text_are_one() -> None:
    alike = [
        f"Rain fell on the quiet town all through the night, and {end}." for end in ("we slept", "they ran")
    ]
    with pytest.raises(ParameterError, match="only 1 "):
        list(texts_of(alike, 40, 2))


def test_sentences_come_once_each() -> None:
    found = sentences_of(["Dr. Allen came. He sat.", "He sat. Nobody spoke."])
    assert found == ["Dr. Allen came.", "He sat.", "Nobody spoke."]
