"""Tags come sooner than from spaCy's own pipeline, and are the same."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import spacy

from kokoro_lab.g2p.english import SPACY_MODEL
from kokoro_lab.g2p.tagger import REMEMBERED_TEXTS, Tagger
from kokoro_lab.lab.fixtures import load_rows

ODD = ["", " ", "x", " \n two  spaces ", "don't", "😀 C++ $5 (e.g. 3.5%)", "日本語 text", "a" * 300]


@pytest.fixture
def nlp() -> Any:
    return spacy.load(SPACY_MODEL, enable=["tok2vec", "tagger"])


def test_every_token_has_the_tag_that_spacy_gives_it(nlp: Any) -> None:
    tagger = Tagger(spacy.load(SPACY_MODEL, enable=["tok2vec", "tagger"]))
    prose = [row["text"] for row in load_rows("heteronyms")[::12]]
    written = [row["written"] for row in load_rows("normalisation_en")[::12]]
    for text in [*ODD, *prose, *written]:
        expected = [(token.text, token.tag_, token.whitespace_) for token in nlp(text)]
        assert [tuple(token) for token in tagger(text)] == expected


def test_words_that_were_read_are_forgotten_in_time(nlp: Any) -> None:
    tagger = Tagger(nlp)
    known = []
    for number in range(3 * REMEMBERED_TEXTS):
        tagger(f"The xqzz{number}vy was new.")
        known.append(len(nlp.vocab.strings))
    assert known[1] < known[REMEMBERED_TEXTS - 1]
    assert max(known[::REMEMBERED_TEXTS]) <= known[0] + 2


def test_a_model_of_another_build_is_refused(nlp: Any) -> None:
    smaller = SimpleNamespace(
        model=SimpleNamespace(walk=lambda: list(nlp.get_pipe("tok2vec").model.walk())[:-1])
    )
    other = SimpleNamespace(get_pipe={"tok2vec": smaller, "tagger": nlp.get_pipe("tagger")}.__getitem__)
    with pytest.raises(ValueError, match=r"only .* is known"):
        Tagger(other)
