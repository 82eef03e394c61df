"""Inline marks mean what SSML does; what only looks like one is read as it is written, and that is said."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kokoro_lab.datatypes import Fallback
from kokoro_lab.errors import InputError, TextError, VoiceError
from kokoro_lab.text.ssml import Outside, SsmlDocument, parse, parse_inline
from kokoro_lab.text.ssml.document import DocumentBuilder


def look_up(voice: str) -> str:
    if voice not in ("v", "w"):
        raise VoiceError(f"There is no voice {voice!r}.")
    return "es"


def sounds(phonemes: str) -> str:
    if "?" in phonemes:
        raise InputError("There is no such sound.")
    return phonemes


def read(source: str) -> tuple[SsmlDocument, list[Fallback]]:
    noted: list[Fallback] = []
    return parse_inline(source, "en-us", noted.append, Outside(sounds, look_up)), noted


def test_marks_are_followed_and_not_spoken() -> None:
    source = "One [pause:1.5s]two [Kokoro](/kˈO/). [voice:v] Three [pause: 250ms ] [voice:w]four"
    found, noted = read(source)
    assert [(p.text.text, p.turn and p.turn.voice) for p in found.passages] == [
        *(("One  two Kokoro.", None), ("Three", "v"), ("four", "w"))
    ]
    assert [(source[each.offset :][:6], each.duration_s) for each in found.breaks] == [
        *(("[pause", 1.5), ("[pause", 0.25))
    ]
    assert [(source[i:j], phonemes) for i, j, phonemes in found.readings] == [("Kokoro", "kˈO")]
    assert noted == []


@pytest.mark.parametrize(
    ("mark", "reason"),
    [
        ("[pause:soon]", "cannot be followed"),
        ("[pause:11s]", "cannot be followed"),
        ("[pause:]", "cannot be followed"),
        ("[voice:nobody]", "There is no voice 'nobody'"),
        ("[voice: ]", "needs the attribute 'name'"),
        ("[word](/?/)", "There is no such sound"),
        ("[word](//)", "needs the attribute 'ph'"),
    ],
)
def test_what_cannot_be_followed_is_read_and_said(mark: str, reason: str) -> None:
    found, noted = read(f"a {mark} b [voice:v]c")
    assert [p.text.text for p in found.passages] == [f"a {mark} b", "c"]
    (said,) = noted
    assert (said.stage, said.start, said.end) == ("text", 2, 2 + len(mark))
    assert reason in said.reason
    assert found.passages[-1].turn == ("v", "es")


@pytest.mark.parametrize(
    "text", ["[pause]", "[voice]", "[a](b)", "[a](/b", "[pause:1s", "[a\nb](/c/)", "[]", ""]
)
def test_what_looks_like_none_is_text(text: str) -> None:
    found, noted = read(f"x {text} y")
    assert found.text.text == f"x {text} y"
    assert noted == []


def test_pauses_without_an_end_are_read() -> None:
    found, noted = read("a" + "[pause:10s]" * 7 + "b[pause:10s]")
    assert len(found.breaks) == 7
    assert [said.start for said in noted] == [1 + 6 * 11]


def test_a_voice_ends_where_the_next_one_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    open_elements: list[list[str]] = []
    finish = DocumentBuilder.document

    def document(builder: DocumentBuilder) -> SsmlDocument:
        open_elements.append([element.name for element in builder.elements])
        return finish(builder)

    monkeypatch.setattr(DocumentBuilder, "document", document)
    found, _ = read("[voice:v]a [voice:w]b " * 100)
    assert len(found.passages) == 200
    assert open_elements == [["speak", "voice"]]


def test_lines_are_kept() -> None:
    assert read("One\nTwo[pause:1s]\n\nThree")[0].text.text == "One\nTwo \n\nThree"


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(TextError):
        read(b"a")  # type: ignore[arg-type]


MARKS = [
    "[pause:1s]",
    "[pause:x]",
    "[voice:v]",
    "[voice:w]",
    "[voice:x]",
    "[a](/b/)",
    "[a](/?/)",
    "[",
    "](/",
    "/)",
]


@given(st.lists(st.sampled_from([*MARKS, "word ", "\n", ". ", ":"]), max_size=20))
def test_nothing_is_lost_and_places_are_right(parts: list[str]) -> None:
    source = "".join(parts)
    loose = source.replace("[a](/b/)", "").replace("[a](/?/)", "")
    assume("](/" not in loose or "[" not in loose.rpartition("](/")[0])  # else the pieces are a reading, too
    found, noted = read(source)
    text = found.text
    assert list(text.starts) == sorted(text.starts)
    assert text.text.count("word") == source.count("word")
    assert len(found.breaks) == source.count("[pause:1s]")
    assert len(noted) == source.count("[pause:x]") + source.count("[voice:x]") + source.count("[a](/?/)")


def test_a_document_of_marks_is_that_of_ssml() -> None:
    inline, _ = read("One[pause:1s]two [x](/kˈO/). [voice:v]Three")
    ssml = parse(
        "<speak>One<break time='1s'/>two <phoneme ph='kˈO'>x</phoneme>. "
        "<voice name='v'>Three</voice></speak>",
        "en-us",
        outside=Outside(sounds, look_up),
    )
    assert [(p.text.text, p.turn) for p in inline.passages] == [(p.text.text, p.turn) for p in ssml.passages]
