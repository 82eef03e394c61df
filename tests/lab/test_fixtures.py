"""What gates read: the fixtures by all voices that are asked, and one Mandarin sentence by a voice of it."""

from __future__ import annotations

import logging

import pytest

from kokoro_lab.errors import MissingExtra
from kokoro_lab.lab import fixtures
from kokoro_lab.lab.fixtures import FixtureText, load_texts, mandarin_texts, read_by, read_in

ENGLISH = FixtureText("one", "prose", "The kettle is on.")
OWN = FixtureText("two", "news", "水开了。", reader="zf_xiaoxiao")


def test_every_voice_reads_every_text_but_one_with_a_reader() -> None:
    assert read_by([OWN, ENGLISH], ["af_heart", "bf_emma"]) == [
        (ENGLISH, "af_heart"),
        (ENGLISH, "bf_emma"),
        (OWN, "zf_xiaoxiao"),
    ]


@pytest.mark.parametrize(
    ("text", "voice", "language"),
    [
        ("水开了。", "zf_xiaoxiao", "zh"),
        ("The kettle is on.", "zf_xiaoxiao", "en-us"),
        ("水开了。", "bf_emma", "en-gb"),
    ],
)
def test_a_mandarin_voice_reads_han_in_mandarin(text: str, voice: str, language: str) -> None:
    assert read_in(text, voice) == language


def test_gates_have_a_mandarin_sentence_where_mandarin_is_installed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(fixtures, "require", lambda *_: None)
    (text,) = mandarin_texts()
    assert read_in(text.text, text.reader) == "zh"

    def nothing(extra: str, *modules: str) -> None:
        raise MissingExtra(extra, modules[0])

    monkeypatch.setattr(fixtures, "require", nothing)
    with caplog.at_level(logging.WARNING):
        assert mandarin_texts() == []
    assert "No Mandarin is judged: it is not installed." in caplog.text


def test_held_out_sentences_are_in_no_other_fixture() -> None:
    held_out = load_texts("held_out_zh")
    assert len(held_out) >= 150
    assert all(12 <= len(text.text) <= 40 for text in held_out)
    folder = fixtures.repository_root() / "fixtures" / "texts"
    others = "".join(f.read_text("utf-8") for f in folder.iterdir() if f.stem != "held_out_zh")
    assert not [text.text for text in held_out if text.text in others]
