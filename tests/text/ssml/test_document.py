"""What a document says and how: its text, styles, languages and breaks in place, or a clear error."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kokoro_lab.datatypes import PLAIN, SpeakingStyle
from kokoro_lab.errors import LexiconError, SsmlError
from kokoro_lab.text.ssml import Outside, SsmlDocument, parse
from kokoro_lab.text.ssml.grammar import EMPHASIS


def document(inside: str, attributes: str = "") -> tuple[str, SsmlDocument]:
    source = f"<speak{attributes}>{inside}</speak>"
    return source, parse(source, "en-us")


def style_of(inside: str, word: str) -> SpeakingStyle:
    source, found = document(inside)
    at = source.index(word)
    return found.styles.at(at, at + len(word))


def test_text_is_what_is_between_the_tags() -> None:
    _, found = document("Fish <emphasis>&amp;</emphasis>\n  chips<!-- cheap -->, <![CDATA[<hot>]]>.")
    assert found.text.text == "Fish & chips, <hot>."


def test_paragraphs_and_sentences_are_borders() -> None:
    _, found = document(
        "Zero<p><s>One. Or so</s> <s>Two</s></p><prosody rate='fast'><p>Three</p></prosody>Four"
    )
    assert [(p.text.text, p.ends, p.marked) for p in found.passages] == [
        ("Zero", "paragraph", False),
        ("One. Or so", "sentence", True),
        ("Two", "paragraph", True),
        ("Three", "paragraph", False),
        ("Four", "paragraph", False),
    ]
    assert found.text.text == "Zero\n\nOne. Or so\nTwo\n\nThree\n\nFour"


def test_words_point_into_the_source() -> None:
    source, found = document("<p>Caf\u0065\u0301 &amp; <say-as interpret-as='ordinal'> 3rd </say-as> bar</p>")
    text = found.text
    at = text.text.index("Café")
    assert source[slice(*text.span(at, at + 4))] == "Cafe\u0301"
    at = text.text.index("third")
    assert source[slice(*text.span(at, at + 5))] == " 3rd "


def test_words_of_say_as_do_not_run_into_their_neighbours() -> None:
    _, found = document(
        "5<say-as interpret-as='cardinal'>3</say-as>m, (<say-as interpret-as='cardinal'>4</say-as>)."
    )
    assert found.text.text == "5 three m, (four)."


def test_a_break_keeps_words_apart() -> None:
    source, found = document("one<break time='250ms'/>two <break strength='none'/>three<break/>")
    assert found.text.text == "one two three"
    assert [b.duration_s for b in found.breaks] == [0.25, 0.0, 0.75]
    assert [source[b.offset :][:6] for b in found.breaks] == ["<break"] * 3


def test_the_time_of_a_break_comes_before_its_strength() -> None:
    _, found = document("a<break strength='x-strong' time='1s'/>b")
    assert found.breaks[0].duration_s == 1.0


def test_a_style_holds_for_what_is_inside() -> None:
    inside = "one <prosody rate='150%' pitch='+4st'>two <break/> three</prosody> four"
    fast = SpeakingStyle(rate=1.5, pitch_scale=pytest.approx(2 ** (4 / 12)))
    assert style_of(inside, "one") == style_of(inside, "four") == PLAIN
    assert style_of(inside, "two") == style_of(inside, "three") == fast


def test_prosody_in_prosody_composes() -> None:
    inside = "<prosody rate='150%' pitch='+10%'>one <prosody rate='80%' pitch='-20%'>two</prosody></prosody>"
    found = style_of(inside, "two")
    assert (found.rate, found.pitch_scale) == pytest.approx((1.2, 0.88))


def test_emphasis_goes_on_top_of_prosody_and_the_inner_one_counts() -> None:
    inside = (
        "<prosody rate='150%'><emphasis level='strong'>one <emphasis level='none'>two</emphasis> "
        "<emphasis level='reduced'>three</emphasis></emphasis></prosody> <emphasis>four</emphasis>"
    )
    fast = SpeakingStyle(rate=1.5)
    assert style_of(inside, "one") == fast.around(EMPHASIS["strong"])
    assert style_of(inside, "two") == fast
    assert style_of(inside, "three") == fast.around(EMPHASIS["reduced"])
    assert style_of(inside, "four") == EMPHASIS["moderate"]


def test_a_word_that_is_half_inside_takes_the_style_of_most_of_it() -> None:
    inside = "un<emphasis>believ</emphasis>able"
    source, found = document(inside)
    at = source.index("un<")
    assert found.styles.at(at, source.index("able") + 4) == EMPHASIS["moderate"]
    assert found.styles.at(at, at + 3) == PLAIN


def test_languages_hold_for_what_is_inside() -> None:
    inside = "one <lang xml:lang='en-GB'>two</lang> <p xml:lang='en'>three</p><s>four</s>"
    source, found = document(inside, " xml:lang='en_GB'")
    for word, tongue in {"one": "en-gb", "two": "en-gb", "three": "en-us", "four": "en-gb"}.items():
        assert found.languages.at(source.index(word), source.index(word) + 3) == tongue
    assert document("one")[1].languages.at(0, 9) is None


@pytest.mark.parametrize(
    ("source", "place", "element", "attribute", "said"),
    [
        ("<p>a</p>", (1, 1), "p", None, "must begin with <speak>"),
        ("<speak>\n<audio src='x'/></speak>", (2, 1), "audio", None, "no element <audio>"),
        ("<speak><Break/></speak>", (1, 8), "Break", None, "no element <Break>"),
        ("<speak xmlns:x='urn:x'><x:p/></speak>", (1, 24), "{urn:x}p", None, "no element"),
        ("<speak xmlns='urn:x'/>", (1, 1), "{urn:x}speak", None, "must begin with <speak>"),
        ("<speak><speak/></speak>", (1, 8), "speak", None, "must not stand inside"),
        ("<speak><p><p/></p></speak>", (1, 11), "p", None, "must not stand inside"),
        ("<speak><p><emphasis><s/></emphasis></p></speak>", (1, 21), "s", None, "must not stand inside"),
        (
            "<speak><s><prosody rate='fast'><p/></prosody></s></speak>",
            (1, 32),
            "p",
            None,
            "must not stand inside",
        ),
        ("<speak><break>a</break></speak>", (1, 8), "break", None, "must be empty"),
        ("<speak><break><p/></break></speak>", (1, 15), "p", None, "must not stand inside"),
        (
            "<speak><say-as interpret-as='cardinal'><p/></say-as></speak>",
            (1, 40),
            "p",
            None,
            "must not stand",
        ),
        ("<speak onload='x'/>", (1, 1), "speak", "onload", "no attribute 'onload'"),
        ("<speak version='2.0'/>", (1, 1), "speak", "version", "version='2.0'"),
        ("<speak><break time='250'/></speak>", (1, 8), "break", "time", "time='250'"),
        ("<speak><break time='11s'/></speak>", (1, 8), "break", "time", "up to 10s"),
        ("<speak><break strength='huge'/></speak>", (1, 8), "break", "strength", "x-weak"),
        ("<speak><prosody>a</prosody></speak>", (1, 8), "prosody", None, "at least one"),
        ("<speak><prosody rate='+10%'>a</prosody></speak>", (1, 8), "prosody", "rate", "without a sign"),
        (
            "<speak><prosody volume='loud'>a</prosody></speak>",
            (1, 8),
            "prosody",
            "volume",
            "no attribute 'volume'",
        ),
        ("<speak><prosody pitch='x'>a</prosody></speak>", (1, 8), "prosody", "pitch", "x-low"),
        ("<speak><emphasis level='extreme'>a</emphasis></speak>", (1, 8), "emphasis", "level", "reduced"),
        ("<speak><lang>a</lang></speak>", (1, 8), "lang", "xml:lang", "needs the attribute"),
        ("<speak><p xml:lang='tlh'>a</p></speak>", (1, 8), "p", "xml:lang", "'tlh'"),
        ("<speak><p lang='en'>a</p></speak>", (1, 8), "p", "lang", "no attribute 'lang'"),
        ("<speak><say-as>1</say-as></speak>", (1, 8), "say-as", "interpret-as", "needs the attribute"),
        ("<speak>\n <phoneme>a</phoneme></speak>", (2, 2), "phoneme", "ph", "needs the attribute 'ph'"),
        ("<speak><phoneme ph=' '>a</phoneme></speak>", (1, 8), "phoneme", "ph", "needs the attribute 'ph'"),
        ("<speak><phoneme alphabet='x' ph='a'>a</phoneme></speak>", (1, 8), "phoneme", "alphabet", "ipa"),
        ("<speak><phoneme ph='a'>a<break/></phoneme></speak>", (1, 25), "break", None, "only text in"),
        ("<speak>a\n<mark/></speak>", (2, 1), "mark", "name", "needs the attribute 'name'"),
        ("<speak><mark name='a'>b</mark></speak>", (1, 8), "mark", None, "<mark> must be empty"),
        ("<speak>a\n<voice>b</voice></speak>", (2, 1), "voice", "name", "needs the attribute 'name'"),
        ("<speak><voice name='a' age='7'/></speak>", (1, 8), "voice", "age", "no attribute 'age'"),
        (
            "<speak><sub alias='a'>\n<voice name='b'/></sub></speak>",
            (2, 1),
            "voice",
            None,
            "must not stand inside of <sub>",
        ),
        (
            f"<speak>{''.join(f'<voice name={chr(39)}v{i}{chr(39)}/>' for i in range(65))}</speak>",
            (1, 8 + 10 * 18 + 54 * 19),
            "voice",
            "name",
            "one voice too many",
        ),
        ("<speak>a\n<sub>W3C</sub></speak>", (2, 1), "sub", "alias", "needs the attribute 'alias'"),
        ("<speak><sub alias='a'><p/></sub></speak>", (1, 23), "p", None, "must not stand inside of <sub>"),
        (
            "<speak>\n<say-as interpret-as='telephone'>55x</say-as></speak>",
            (2, 1),
            "say-as",
            None,
            "no telephone number",
        ),
        (
            "<speak><say-as interpret-as='money'>1</say-as></speak>",
            (1, 8),
            "say-as",
            "interpret-as",
            "cardinal",
        ),
        (
            "<speak><say-as interpret-as='date' format='ydm'>1</say-as></speak>",
            (1, 8),
            "say-as",
            "format",
            "format='ydm'",
        ),
        (
            "<speak><say-as interpret-as='cardinal' format='mdy'>1</say-as></speak>",
            (1, 8),
            "say-as",
            "format",
            "no format with",
        ),
        (
            "<speak>\n<say-as interpret-as='date' format='ymd'>2023-02-29</say-as></speak>",
            (2, 1),
            "say-as",
            None,
            "no such date",
        ),
        ("<speak><say-as interpret-as='cardinal'/></speak>", (1, 8), "say-as", None, "no whole number"),
        (
            "<speak><prosody rate='200%'><prosody rate='110%'>a</prosody></prosody></speak>",
            (1, 29),
            "prosody",
            "rate",
            "comes to 220%",
        ),
        (
            "<speak><prosody pitch='x-high'><prosody pitch='+10%'>a</prosody></prosody></speak>",
            (1, 32),
            "prosody",
            "pitch",
            "comes to 16",
        ),
    ],
)
def test_an_error_says_where_what_and_what_is_allowed(
    source: str, place: tuple[int, int], element: str, attribute: str | None, said: str
) -> None:
    with pytest.raises(SsmlError) as caught:
        parse(source, "en-us")
    error = caught.value
    assert ((error.line, error.column), error.element) == (place, element)
    if attribute is not None:
        assert error.attribute == attribute
    assert said in str(error)
    assert error.allowed
    assert error.field == "input"


TAGS = st.sampled_from(
    ["<p>", "</p>", "<s>", "</s>", "<emphasis>", "</emphasis>", "<break/>", "<prosody rate='fast'>",
     "</prosody>", "<lang xml:lang='en'>", "</lang>", "<say-as interpret-as='cardinal'>", "</say-as>", "12",
     "<sub alias='as it. Is'>", "</sub>", "<phoneme ph='a b'>", "</phoneme>", "word ",
     "<voice name='v'>", "</voice>", "<mark name='m'/>",
     "&amp;", " ", "\n", "<!-- x -->", "<![CDATA[y]]>", "&", "<", "<audio/>", "é", ". "]
)  # fmt: skip


@given(st.lists(TAGS, max_size=25))
@settings(deadline=None)
def test_whatever_is_put_together_is_read_or_refused(parts: list[str]) -> None:
    source = f"<speak>{''.join(parts)}</speak>"
    try:
        found = parse(source, "en-us")
    except SsmlError:
        return
    text = found.text
    assert list(text.starts) == sorted(text.starts)
    assert all(0 <= start <= end <= len(source) for start, end in zip(text.starts, text.ends, strict=True))
    assert len(found.breaks) == source.count("<break/>")
    starts = [start for start, _, _ in found.styles.items]
    assert starts == sorted(starts)


@given(st.data())
@settings(deadline=None)
def test_a_damaged_document_is_read_or_refused(data: st.DataObject) -> None:
    source = (
        "<speak version='1.1'><p>One <emphasis level='strong'>two</emphasis>, <break time='1s'/> "
        "<say-as interpret-as='date' format='mdy'>3/5/2024</say-as>.</p></speak>"
    )
    at = data.draw(st.integers(0, len(source)))
    gone = data.draw(st.integers(0, 6))
    put = data.draw(st.text(alphabet="<>&;'\"=/ a1\x00\ud800é", max_size=3))
    with suppress(SsmlError):
        parse(source[:at] + put + source[at + gone :], "en-us")


def test_an_alias_is_spoken_and_points_to_what_it_stands_for() -> None:
    source, found = document("5<sub alias='World  Wide\tWeb'> W3C </sub>s, <sub alias='it'/>")
    assert found.text.text == "5 World Wide Web s, it"
    spans = {found.text.span(at, at + 1) for at in range(2, 16)}
    assert [source[i:j] for i, j in spans] == [" W3C "]


def test_phonemes_hold_for_what_they_stand_for_as_one_word() -> None:
    source, found = document("a<phoneme alphabet='ipa' ph='x y'>Dr. No_1!</phoneme>b <phoneme ph='z'/>.")
    assert found.text.text == "a Dr No 1 b z."
    assert [(source[i:j], phonemes) for i, j, phonemes in found.readings] == [
        ("Dr. No_1!", "x y"),
        ("p", "z"),
    ]


def test_a_voice_has_its_turn_in_its_own_language() -> None:
    inside = (
        "<s>He said <voice name='v'>Yes. <voice name='w' xml:lang='fr'>Oui</voice>No</voice> now.</s>"
        "<lang xml:lang='ja'>a <voice name='v'><say-as interpret-as='cardinal'>1</say-as></voice></lang>"
    )
    source = f"<speak>{inside}</speak>"
    languages = {"v": "es", "w": "it"}
    found = parse(source, "en-us", outside=Outside(language_of=languages.__getitem__))
    assert [(p.text.text, p.turn and p.turn.voice, p.marked) for p in found.passages] == [
        *(("He said", None, True), ("Yes.", "v", True), ("Oui", "w", True), ("No", "v", True)),
        *(("now.", None, True), ("a", None, False), ("uno", "v", False)),
    ]
    at = {word: source.index(word) for word in ("Yes", "Oui", "No", "now")}
    assert {word: found.languages.at(i, i + 2) for word, i in at.items()} == {
        **{"Yes": None, "Oui": "fr", "No": None, "now": None}
    }
    assert found.turns.at(at["No"], at["No"] + 2) == ("v", "es")
    assert found.turns.at(at["now"], at["now"] + 2) is None


def test_marks_name_places_and_part_no_word() -> None:
    source, found = document("a<mark name='one'/>b <mark name=' two '/><p/>")
    assert found.text.text == "ab"
    assert [(source[mark.offset :][:5], mark.name) for mark in found.marks] == [
        ("<mark", "one"),
        ("<mark", "two"),
    ]


def test_what_is_looked_up_outside_is_refused_with_its_place() -> None:
    def look_up(_: str) -> str:
        raise LexiconError("there is no such sound.", allowed="others", mend="Write x.")

    with pytest.raises(SsmlError) as caught:
        parse("<speak>\n a <phoneme ph='q'>b</phoneme></speak>", "en-us", outside=Outside(look_up))
    error = caught.value
    assert (error.line, error.column, error.attribute, error.value) == (2, 4, "ph", "q")
    assert str(error).endswith("<phoneme ph='q'>: there is no such sound. Allowed: others. Write x.")


def refused(inside: str) -> SsmlError:
    with pytest.raises(SsmlError) as caught:
        document(inside)
    return caught.value


TEN = "<break time='10s'/>"


def test_breaks_in_a_row_come_to_a_minute_at_most() -> None:
    _, found = document(f"a{6 * TEN}b{6 * TEN}")
    assert len(found.breaks) == 12
    error = refused(f"a\n{6 * TEN}\n <break time='1ms'/>b")
    assert (error.line, error.column, error.element, error.attribute) == (3, 2, "break", "time")
    assert error.value == "60.001s"
    assert error.allowed == "up to 60s of breaks in a row, and up to 600s in a document"


@pytest.mark.parametrize("between", [" ", ", ", "…", "\n\n", "<p> </p>", "!?", "<!-- a -->"])
def test_what_nobody_says_does_not_end_a_row_of_breaks(between: str) -> None:
    assert refused(f"a{between.join([TEN] * 7)}b").value == "70s"


@pytest.mark.parametrize("between", ["a", "7", "&amp;", "€", "<say-as interpret-as='cardinal'>7</say-as>"])
def test_what_somebody_says_ends_it(between: str) -> None:
    assert len(document(f"a{between.join([TEN] * 7)}b")[1].breaks) == 7


def test_breaks_of_a_document_come_to_ten_minutes_at_most() -> None:
    assert len(document("a".join([TEN] * 60))[1].breaks) == 60
    error = refused("a\n".join([*[TEN] * 60, "<break strength='weak'/>"]))
    assert (error.line, error.column, error.attribute, error.value) == (61, 1, "strength", "600.5s")
