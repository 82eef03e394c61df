"""A document's words: breaks cut them, styles and languages find them, and no word is lost."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kokoro_lab.datatypes import PLAIN, LexiconEntry, Segment
from kokoro_lab.errors import SsmlError
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.sentences import marked_sentence, sentences


def segments(front_end: FrontEnd, inside: str) -> tuple[str, list[Segment]]:
    source = f"<speak>{inside}</speak>"
    document = front_end.read(source, "ssml", "en-us")
    return source, list(front_end.segments_of(document, "en-us", lambda _: None))


def cuts(found: list[Segment]) -> list[tuple[str, float | None, float | None]]:
    return [
        (" ".join(word.text for word in each.words), each.break_before_s, each.break_after_s)
        for each in found
    ]


def test_a_break_cuts_a_sentence_and_says_how_long(front_end: FrontEnd) -> None:
    _, found = segments(front_end, "<break time='1s'/>Hello <break time='250ms'/> world<break/>.")
    assert cuts(found) == [("Hello", 1.0, 0.25), ("world", 0.25, 0.75), (".", 0.75, None)]


def test_a_break_behind_all_words_is_kept(front_end: FrontEnd) -> None:
    _, found = segments(front_end, "Hello.<break time='1s'/><break time='2s'/>")
    assert cuts(found) == [("Hello .", None, 3.0)]


def test_a_break_between_sentences_takes_the_place_of_their_pause(front_end: FrontEnd) -> None:
    _, found = segments(front_end, "It is on.<break time='2s'/> It is off.")
    assert cuts(found) == [("It is on .", None, 2.0), ("It is off .", 2.0, None)]


def test_none_takes_back_a_pause_where_there_is_one(front_end: FrontEnd) -> None:
    _, found = segments(front_end, "One, <break strength='none'/> two <break strength='none'/> three. Four.")
    assert cuts(found) == [("One ,", None, 0.0), ("two three . Four .", 0.0, None)]


def test_words_keep_their_place_in_the_source(front_end: FrontEnd) -> None:
    source, found = segments(front_end, "<p>Fish &amp; <emphasis>chips</emphasis>, 5<break/>000</p>")
    words = [word for each in found for word in each.words]
    assert [source[w.start : w.end] for w in words][:5] == ["Fish", "&amp;", "chips", ",", "5"]
    assert {source[w.start : w.end] for w in words[5:]} == {"000"}


def test_numbers_are_not_read_across_a_break(front_end: FrontEnd) -> None:
    read = front_end.describe("<speak>5<break/>000</speak>", "en-us", input_format="ssml")["normalized"]
    assert "thousand" not in read


def test_styles_are_found_by_place(front_end: FrontEnd) -> None:
    _, (found,) = segments(front_end, "It is <prosody rate='150%'>very, very</prosody> good.")
    assert [style.rate for style in found.styles] == [1, 1, 1.5, 1.5, 1.5, 1, 1]


def test_a_document_without_marks_is_read_like_its_text(front_end: FrontEnd) -> None:
    text = "The kettle is on, and the window is open. Dr. Smith paid $3.50 for it at 5 p.m. Nobody is in."
    _, found = segments(front_end, text)
    plain = list(front_end.segments(text, "en-us", lambda _: None))
    assert [s.phonemes for s in found] == [s.phonemes for s in plain]
    assert [s.styles for s in found] == [()] * len(plain)
    assert [s.start - len("<speak>") for s in found] == [s.start for s in plain]


def test_a_language_is_spoken_by_its_own_g2p(front_end: FrontEnd) -> None:
    _, (found,) = segments(front_end, "A bath, a <lang xml:lang='en-GB'>bath</lang> there.")
    spoken = [(w.phonemes, w.language, w.space_after) for w in found.words if w.text == "bath"]
    assert spoken == [("bˈæθ", "en-us", False), ("bˈɑːθ", "en-gb", True)]


def test_a_marked_sentence_is_one_however_it_looks() -> None:
    text = AlignedText.of("He waited. Then  he left")
    assert [each.text.text for each in marked_sentence(text)] == ["He waited. Then he left"]
    assert len(list(sentences(text, "en-us"))) == 2


def test_a_marked_sentence_ends_like_one_without_a_stop(front_end: FrontEnd) -> None:
    _, (found,) = segments(front_end, "<s>He waited</s><s>Then he left</s>")
    assert [word.text for word in found.words if word.phonemes.endswith(".")] == ["waited", "left"]


@pytest.mark.parametrize(
    ("inside", "read"),
    [
        ("<say-as interpret-as='cardinal'>12</say-as> eggs", "twelve eggs"),
        ("the <say-as interpret-as='ordinal'>3</say-as> one", "the third one"),
        ("<say-as interpret-as='cardinal'>1984</say-as> books", "eighty"),
        ("<say-as interpret-as='date' format='mdy'>3/5/2024</say-as>", "march"),
        ("<say-as interpret-as='time'>3:05pm</say-as>", "three"),
        ("<say-as interpret-as='characters'>b2b</say-as>", "b two b"),
        ("<say-as interpret-as='telephone'>2125550123</say-as>", "two one two five"),
        ("<say-as interpret-as='unit'>12 km/h</say-as>", "twelve kilometers per hour"),
        ("<sub alias='5 km'>W3C</sub>", "five kilometers"),
    ],
)
def test_say_as_is_read_by_the_language(front_end: FrontEnd, inside: str, read: str) -> None:
    said = front_end.describe(f"<speak>{inside}</speak>", "en-us", input_format="ssml")
    assert read in said["normalized"].lower()
    assert not any(c.isdigit() for c in said["normalized"])


def test_phonemes_are_said_as_they_are_given(front_end: FrontEnd) -> None:
    japanese = "<lang xml:lang='ja'>日本<phoneme ph='kotʃo'>x</phoneme></lang>"
    inside = f"<phoneme ph='təˈmɑtoʊ'>7 tomato</phoneme>es, {japanese}."
    source, (found,) = segments(front_end, inside)
    given = [(source[w.start : w.end], w.phonemes, w.language) for w in found.words if w.source == "lexicon"]
    assert given == [("7 tomato", "təˈmɑtO", "en-us"), ("x", "koʧo", "ja")]


def test_the_letter_a_is_no_article_among_characters(front_end: FrontEnd) -> None:
    inside = "<speak>code <say-as interpret-as='characters'>A1</say-as></speak>"
    assert "ˈA wˈʌn" in front_end.describe(inside, "en-gb", input_format="ssml")["phonemes"]


def test_each_voice_reads_its_own_language(front_end: FrontEnd) -> None:
    inside = (
        "A bath. <voice name='bf_emma'>A bath. <lang xml:lang='en-US'>A bath.</lang></voice> A bath. "
        "<voice name='ef_dora'>Tengo 3 gatos y un perro.</voice>"
    )
    _, found = segments(front_end, inside)
    assert [(each.voice, each.language) for each in found] == [
        *((None, "en-us"), ("bf_emma", "en-gb"), (None, "en-us"), ("ef_dora", "es"))
    ]
    baths = [(w.phonemes, w.language) for each in found for w in each.words if w.text == "bath"]
    american, british = ("bˈæθ", "en-us"), ("bˈɑːθ", "en-gb")
    assert baths == [american, british, american, american]
    assert "tɾˈes" in found[-1].phonemes
    said = front_end.describe(f"<speak>{inside}</speak>", "en-us", input_format="ssml")
    assert [each.get("voice") for each in said["segments"]] == [None, "bf_emma", None, "ef_dora"]


@pytest.mark.parametrize(
    ("voice", "problem"),
    [
        ("af_hart", "There is no voice 'af_hart'. Did you mean one of af_heart"),
        ("af_heart(", "cannot be read. Allowed: a name, or names with weights"),
        ("af_heart+nobody", "no voice 'nobody'"),
    ],
)
def test_a_voice_that_is_not_there_is_refused(front_end: FrontEnd, voice: str, problem: str) -> None:
    with pytest.raises(SsmlError, match=problem) as caught:
        segments(front_end, f"a\n <voice name='{voice}'>b</voice>")
    assert (caught.value.line, caught.value.column, caught.value.attribute) == (2, 2, "name")


def test_phonemes_come_before_the_lexicon_and_hold_in_their_place_alone(front_end: FrontEnd) -> None:
    entries = [LexiconEntry("*", "exit", "zˈu")]
    inside = "<speak><phoneme ph='ˈɑ'>exit</phoneme> exit <phoneme ph='ˈi'>exit</phoneme> tomato</speak>"
    for _ in range(2):  # the second time from the cache
        said = front_end.describe(inside, "en-us", entries, "ssml")
        assert said["phonemes"].startswith("ˈɑ zˈu ˈi təm")
    plain = front_end.describe(inside.replace("ˈi", "ˈɛ"), "en-us", entries, "ssml")
    assert plain["phonemes"].startswith("ˈɑ zˈu ˈɛ təm")


@pytest.mark.parametrize(
    ("phonemes", "problem"),
    [
        ("gɑt", "'g' .* is not in the vocabulary; write ɡ"),
        ("ʉt", "write u or ɨ"),
        ("a大", "'大' .* is not in the vocabulary. Allowed: .*ʃ"),
        ("ˈˈ", "hold no sound"),
        ("a" * 201, "201 symbols"),
    ],
)
def test_phonemes_that_the_model_does_not_know_are_refused(
    front_end: FrontEnd, phonemes: str, problem: str
) -> None:
    with pytest.raises(SsmlError, match=problem) as caught:
        segments(front_end, f"a\n <phoneme ph='{phonemes}'>b</phoneme>")
    assert (caught.value.line, caught.value.column, caught.value.attribute) == (2, 2, "ph")


def test_what_is_described_says_breaks_and_styles(front_end: FrontEnd) -> None:
    said: dict[str, Any] = front_end.describe(
        "<speak>It <emphasis>is</emphasis><break time='1s'/> on.</speak>", "en-us", input_format="ssml"
    )
    assert [word.get("style", {}).get("gain_db") for word in said["words"]] == [None, 2.5, None, None]
    assert [each.get("break_before_s") for each in said["segments"]] == [None, 1.0]


def document_voice(source: str, offset: int) -> str | None:
    """The innermost voice that is open at an offset."""
    opened: list[str] = []
    for tag in re.finditer("<voice name='(\\w+)'>|</voice>", source[:offset]):
        opened = [*opened, tag[1]] if tag[1] else opened[:-1]
    return opened[-1] if opened else None


PARTS = st.sampled_from(
    ["<p>", "</p>", "<s>", "</s>", "<emphasis>", "</emphasis>", "<break time='1s'/>", "<prosody rate='fast'>",
     "</prosody>", "<lang xml:lang='en-GB'>", "</lang>", "word ", "word", "12 ", "&amp;", " ", ". ", "?", "…",
     "<voice name='bf_emma'>", "<voice name='af_heart'>", "</voice>", "<mark name='m'/>",
     "<phoneme ph='ˈɑzɑ'>A. b</phoneme>", "<phoneme ph='ˈɑzɑ'/>", "<sub alias='Is it. Yes'>x</sub>"]
)  # fmt: skip


@given(st.lists(PARTS, max_size=20))
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_break_is_lost_and_words_stay_in_order(front_end: FrontEnd, parts: list[str]) -> None:
    try:
        source, found = segments(front_end, "".join(parts))
    except SsmlError:
        return
    if not found:
        return
    asked = [found[0].break_before_s or 0, *(each.break_after_s or 0 for each in found)]
    assert sum(asked) == source.count("<break")
    assert [each.break_after_s for each in found[:-1]] == [each.break_before_s for each in found[1:]]
    words = [word for each in found for word in each.words]
    assert [w.start for w in words] == sorted(w.start for w in words)
    assert all(not each.styles or len(each.styles) == len(each.words) for each in found)
    assert sum(w.phonemes.startswith("ˈɑzɑ") for w in words) == source.count("<phoneme")
    for each in found:
        assert all(
            document_voice(source, word.start) == each.voice for word in each.words if word.text.isalnum()
        )
    if "<emphasis>word</emphasis>" in source:
        assert any(style != PLAIN for each in found for style in each.styles)
