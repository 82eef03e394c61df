"""Tokens and tags are those of spaCy, which `scripts/record_misaki.py` recorded."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgpack
import pytest

from kokoro_lab.g2p.tagger import REMEMBERED_TOKENS, Tagger
from kokoro_lab.lab.fixtures import load_rows
from kokoro_lab.weights.store import english_tagger_path

ODD = ["", " ", "x", " \n two  spaces ", "don't", "😀 C++ $5 (e.g. 3.5%)", "日本語 text", "a" * 300]


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    return Tagger(english_tagger_path())


def test_every_token_has_the_tag_that_spacy_gives_it(tagger: Tagger) -> None:
    for row in load_rows("misaki_readings"):
        tagged = tagger(row["text"])
        assert " ".join(f"{token.text}|{token.tag}" for token in tagged) == row["tags"], row["text"]


@pytest.mark.parametrize("text", ODD)
def test_tokens_with_the_spaces_behind_them_are_the_text(tagger: Tagger, text: str) -> None:
    assert "".join(token.text + token.whitespace for token in tagger(text)) == text


def test_an_exception_is_found_within_a_longer_word(tagger: Tagger) -> None:
    """`a.m.` and `don't` stand in the model's list; a mark or a bracket beside them does not hide them."""
    for text, tokens in (
        ("(don't)", ["(", "do", "n't", ")"]),
        ("at 9a.m., then", ["at", "9", "a.m.", ",", "then"]),
        ("http://example.org/a-b?c", ["http://example.org/a-b?c"]),
        ("co-op's", ["co", "-", "op", "'s"]),
    ):
        assert [token.text for token in tagger(text)] == tokens


def test_words_that_were_read_are_forgotten_in_time(tagger: Tagger) -> None:
    for number in range(REMEMBERED_TOKENS + 10):
        tagger(f"xqzz{number}vy")
    assert tagger._embedding.cache_info().currsize == REMEMBERED_TOKENS


def test_a_model_of_another_build_is_refused(tmp_path: Path) -> None:
    shutil.copytree(english_tagger_path(), tmp_path, dirs_exist_ok=True)
    other = tmp_path / "tagger" / "model"
    model = msgpack.unpackb(other.read_bytes(), strict_map_key=False)
    model["nodes"][-1]["name"] = "linear"
    other.chmod(0o644)
    other.write_bytes(msgpack.packb(model))
    with pytest.raises(ValueError, match=r"'softmax': 0.* only .* is known"):
        Tagger(tmp_path)
