"""What the lexicon says is said, wherever it is written, and nothing else changes."""

from __future__ import annotations

import timeit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kokoro_lab.datatypes import Fallback, LexiconEntry, Word
from kokoro_lab.errors import TextError
from kokoro_lab.g2p.english import EnglishG2P
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.g2p.lexicon import Lexicon, read_with
from kokoro_lab.g2p.lexicons import default_entries
from kokoro_lab.g2p.protocol import FixedReading
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.normalise.rules import Rule, apply

NGINX = LexiconEntry("en", "nginx", "ˈɛnʤən ˈɛks")


def entries(**phonemes: str) -> list[LexiconEntry]:
    return [LexiconEntry("en", grapheme, phoneme) for grapheme, phoneme in phonemes.items()]


def found(text: str, *rows: LexiconEntry, language: str = "en-us") -> list[tuple[str, str]]:
    return [(text[g.start : g.end], g.phonemes) for g in Lexicon([rows]).find(text, language)]


def words(front_end: FrontEnd, text: str, *rows: LexiconEntry, language: str = "en-us") -> list[Word]:
    lexicon = front_end.lexicons.current().with_request(rows)
    segments = front_end.segments_of(front_end.cleaned(text), language, lambda _: None, lexicon)
    return [word for segment in segments for word in segment.words]


def said(front_end: FrontEnd, text: str, *rows: LexiconEntry, language: str = "en-us") -> dict[str, str]:
    """Phonemes of the words that the lexicon spoke."""
    spoken = words(front_end, text, *rows, language=language)
    return {word.text: word.phonemes for word in spoken if word.source == "lexicon"}


# ------------------------------------------------------------------------------------- finding


def test_the_longest_entry_wins() -> None:
    rows = [
        LexiconEntry("en", g, p)
        for g, p in (("Visual", "a"), ("Visual Studio Code", "b"), ("visual studio", "c"))
    ]
    assert found("Visual Studio Code, Visual Studio and Visual C", *rows) == [
        ("Visual Studio Code", "b"),
        ("Visual Studio", "c"),
        ("Visual", "a"),
    ]


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("nginx", 1),
        ("(nginx)", 1),
        ("nginx-based, “nginx”.", 2),
        ("nginx/nginx", 2),
        ("nginxes", 0),
        ("xnginx", 0),
        ("nginx2", 0),
        ("my_nginx", 0),
        ("engine x", 0),
    ],
)
def test_an_entry_begins_and_ends_with_a_word(text: str, times: int) -> None:
    assert len(found(text, NGINX)) == times


@pytest.mark.parametrize(
    ("grapheme", "text", "times"),
    [
        ("C++", "C++ is not C, but C++17 is C++.", 3),
        (".NET", "The .NET of example.NET", 1),
        ("GPT-4o", "GPT-4o-mini and GPT-4", 1),
        ("Hugging Face", "hugging face, hugging  face", 1),
        ("東京", "東京都は東京", 2),
        ("🍕", "a 🍕🍕", 2),
        ("don't", "Don't, dont", 1),
    ],
)
def test_an_entry_may_hold_marks_spaces_and_any_script(grapheme: str, text: str, times: int) -> None:
    assert len(found(text, LexiconEntry("*", grapheme, "a"))) == times


def test_case_counts_where_the_entry_says_so() -> None:
    by_case = LexiconEntry("en", "IT", "a", ("case",))
    assert found("it IT It", by_case) == [("IT", "a")]
    assert found("NGINX Nginx nginx", NGINX) == [(w, NGINX.phoneme) for w in ("NGINX", "Nginx", "nginx")]
    anyhow = LexiconEntry("en", "it", "b")
    assert found("it IT", anyhow, by_case) == [("it", "b"), ("IT", "a")]


@pytest.mark.parametrize("letter", ["İ", "ß", "ŉ", "ﬁ"])
def test_letters_that_change_their_length_in_lower_case_move_nothing(letter: str) -> None:
    assert found(f"{letter}{letter} nginx", NGINX) == [("nginx", NGINX.phoneme)]
    assert len(found(f"{letter}x", LexiconEntry("*", f"{letter}x", "a"))) == 1


@pytest.mark.parametrize(
    ("phoneme", "american", "british"),
    [("tˈɪktˌɑk", "tˈɪktˌɑks", "tˈɪktˌɑks"), ("kjˈu", "kjˈuz", "kjˈuz"), ("ˈɛks", "ˈɛksᵻz", "ˈɛksɪz")],
)
def test_a_possessive_keeps_its_ending(phoneme: str, american: str, british: str) -> None:
    entry = LexiconEntry("en", "Qt", phoneme)
    assert found("Qt's", entry) == [("Qt's", american)]
    assert found("QT'S x", entry, language="en-gb") == [("QT'S", british)]
    assert found("Qt'sx", entry) == [("Qt", phoneme)]


def test_a_plural_is_known_where_the_entry_says_so() -> None:
    entry = LexiconEntry("en", "LLM", "ˌɛlˌɛlˈɛm", ("plural",))
    assert found("LLMs, LLM, LLMs' LLMs's", entry) == [
        ("LLMs", "ˌɛlˌɛlˈɛmz"),
        ("LLM", "ˌɛlˌɛlˈɛm"),
        ("LLMs", "ˌɛlˌɛlˈɛmz"),
        ("LLMs's", "ˌɛlˌɛlˈɛmz"),
    ]
    assert found("LLMs", LexiconEntry("en", "LLM", "a")) == []


def test_an_accent_comes_before_its_language_and_that_before_any() -> None:
    rows = [
        LexiconEntry("*", "nginx", "a"),
        LexiconEntry("en", "nginx", "b"),
        LexiconEntry("en-gb", "nginx", "c"),
    ]
    assert found("nginx", *rows) == [("nginx", "b")]
    assert found("nginx", *rows, language="en-gb") == [("nginx", "c")]
    assert found("nginx's", *rows, language="es") == [("nginx", "a")]


def test_request_over_user_over_project_over_default() -> None:
    levels = [entries(a="1"), entries(a="2", b="2"), entries(a="3", b="3", c="3")]
    asked = Lexicon(levels[1:]).with_request(levels[0])
    for lexicon in (Lexicon(levels), asked):
        assert [g.phonemes for g in lexicon.find("a b c", "en-us")] == ["1", "2", "3"]
    assert [g.phonemes for g in Lexicon(levels[1:]).find("a b c", "en-us")] == ["2", "2", "3"]


def test_a_longer_entry_below_comes_before_a_shorter_one_above() -> None:
    below = Lexicon([[LexiconEntry("en", "Hugging Face", "b")]])
    asked = below.with_request(entries(hugging="a"))
    assert [g.phonemes for g in asked.find("hugging Hugging Face", "en-us")] == ["a", "b"]


def test_a_version_is_that_of_the_entries() -> None:
    one, two = Lexicon([entries(a="1")]), Lexicon([entries(a="2")])
    assert one.version == Lexicon([entries(a="1")]).version != two.version
    assert one.with_request(()) is one
    assert one.version != one.with_request(entries(a="2")).version != two.version


def test_a_sentence_is_looked_through_fast() -> None:
    lexicon = Lexicon([default_entries()])
    text = "The quick brown fox of the nginx team had been running for an hour, and was tired of it all."
    seconds = timeit.repeat(lambda: lexicon.find(text, "en-us"), number=50, repeat=5)
    assert min(seconds) / 50 < 0.5e-3  # ten times what it takes, for a machine that is busy


# ------------------------------------------------------------------------------------- speaking


def test_a_word_is_said_as_the_request_says(front_end: FrontEnd) -> None:
    text = "We run nginx here."
    spoken = {word.text: word for word in words(front_end, text, LexiconEntry("*", "nginx", "zˈu"))}
    assert spoken["nginx"].phonemes == "zˈu"
    assert spoken["nginx"].source == "lexicon"
    assert text[spoken["nginx"].start : spoken["nginx"].end] == "nginx"
    assert {spoken[word].source for word in ("We", "run", "here")} == {"misaki"}


def test_the_other_words_of_a_sentence_are_said_as_before(front_end: FrontEnd) -> None:
    text = "The lead engineer of zoo read, on 3 May, that “Hugging Face’s” wind tears."
    entry = LexiconEntry("*", "engineer", "zˈu")
    before = [w for w in words(front_end, text) if w.text != "engineer"]
    assert [w for w in words(front_end, text, entry) if w.text != "engineer"] == before


@pytest.mark.parametrize(
    "text",
    [
        "(nginx)",
        "“nginx”",
        "nginx-based",
        "x/nginx",
        "nginx.",
        "the nginx,",
        "Nginx’s",
        "NGINX!",
        "nginx.org",
        "http://nginx.org/x",
    ],
)
def test_a_word_is_said_wherever_it_stands(front_end: FrontEnd, text: str) -> None:
    assert [p[:4] for p in said(front_end, text, LexiconEntry("*", "nginx", "zˈuz")).values()] == ["zˈuz"]


def test_a_part_of_what_misaki_takes_for_one_word_is_set_apart() -> None:
    text = "a foo.nginx$bar, Real Madrid"
    readings = [FixedReading(6, 11, "zˈu"), FixedReading(17, 28, "zˈi zˈA")]
    spoken = EnglishG2P("en-us")(AlignedText.of(text), lambda _: None, readings)
    assert "".join(word.text for word in spoken).replace(" ", "") == text.replace(" ", "")
    assert [(word.text, word.phonemes) for word in spoken if word.source == "lexicon"] == [
        ("nginx", "zˈu"),
        ("Real Madrid", "zˈi zˈA"),
    ]


def test_what_the_lexicon_says_is_not_rewritten_first(front_end: FrontEnd) -> None:
    rows = [
        LexiconEntry("en", g, p)
        for g, p in (("C++", "zˈi"), ("GPT-4o", "zˈu"), ("1/2", "zˈA"), ("🍕", "zˈO"))
    ]
    text = "C++ and GPT-4o, 1/2 and 🍕🍔 in 2 parts."
    assert said(front_end, text, *rows) == {"C++": "zˈi", "GPT-4o": "zˈu", "1/2": "zˈA", "🍕": "zˈO"}
    assert "hamburger" in {word.text for word in words(front_end, text, *rows)}


def test_rules_leave_alone_what_is_kept() -> None:
    digits = Rule("digits", r"\d+(-\d+)?", lambda match: "number")
    text = AlignedText.of("1 GPT-4 2-3 44")
    assert apply(text, [digits]).text == "number GPT-number number number"
    kept = apply(text, [digits], [(2, 7), (10, 11)])
    assert kept.text == "number GPT-4 2-3 number"
    assert [kept.range_of(*text.span(*span)) for span in ((2, 7), (10, 11))] == [(7, 12), (15, 16)]


def test_what_a_rule_wrote_is_looked_up_as_well() -> None:
    pizza = Lexicon([entries(pizza="zˈu")])
    told, given_ = read_with(pizza, AlignedText.of("a 🍕 or a pizza"), "en-us")
    assert [told.text[g.start : g.end] for g in given_] == ["pizza", "pizza"]


def test_words_in_offsets_of_an_original_that_was_cleaned(front_end: FrontEnd) -> None:
    text = "\ufeffIt’s   e\u0301x—nginx’s\u200b “e\u0301x”."
    spoken = [
        w for w in words(front_end, text, NGINX, LexiconEntry("*", "éx", "zˈu")) if w.source == "lexicon"
    ]
    assert [text[w.start : w.end] for w in spoken] == ["e\u0301x", "nginx’s", "e\u0301x"]


def test_the_article_hears_what_follows(front_end: FrontEnd) -> None:
    spoken = {w.text: w.phonemes for w in words(front_end, "the nginx", LexiconEntry("*", "nginx", "ˈɛks"))}
    assert spoken["the"] == "ði"
    spoken = {w.text: w.phonemes for w in words(front_end, "the nginx", LexiconEntry("*", "nginx", "zˈu"))}
    assert spoken["the"] == "ðə"


def test_what_is_given_is_said_even_where_misaki_fails() -> None:
    text = f"a nginx{'5' * 400}, (nginx) b"
    fallbacks: list[Fallback] = []
    readings = [FixedReading(2, 7, "zˈu"), FixedReading(text.index("(") + 1, text.index(")"), "zˈu")]
    spoken = EnglishG2P("en-us")(AlignedText.of(text), fallbacks.append, readings)
    assert [w.text for w in spoken if w.source == "lexicon"] == ["nginx", "nginx"]
    assert "".join(w.text for w in spoken) == text.replace(" ", "")
    assert fallbacks


@given(
    st.lists(
        st.sampled_from(["nginx", "C++", "it's", "Nginx's", ". ", ", ", " ", "-", "$5", "🍕", "(", "”", "é"]),
        max_size=12,
    ),
)
@settings(deadline=None, max_examples=60)
def test_nothing_is_lost_or_moved_beside_what_the_lexicon_says(parts: list[str]) -> None:
    text = "".join(parts)
    rows = (NGINX, LexiconEntry("*", "C++", "zˈu"))
    try:
        spoken = words(SHARED, text, *rows)
    except TextError:
        return
    lexical = [w for w in spoken if w.source == "lexicon"]
    cleaned = SHARED.cleaned(text)
    wanted = Lexicon([rows]).find(cleaned.text, "en-us")
    assert {cleaned.span(g.start, g.end)[0] for g in wanted} <= {word.start for word in lexical}
    assert [w.start for w in spoken] == sorted(w.start for w in spoken)
    for word in lexical:
        original = text[word.start : word.end].lower()
        assert "nginx" in original or "c++" in original


SHARED = FrontEnd()


# ------------------------------------------------------------------------------------- the default


@pytest.mark.parametrize(
    ("text", "american", "british"),
    [
        ("Xiaomi", "ʃˈWmi", "ʃˈWmi"),
        ("Huawei's", "wˈɑwˌAz", "wˈɑːwˌAz"),
        ("Porsche", "pˈɔɹʃə", "pˈɔːʃə"),
        ("IKEA", "Ikˈiə", "Ikˈiːə"),
        ("C#", "sˌi ʃˈɑɹp", "sˌiː ʃˈɑːp"),
    ],
)
def test_names_are_said_as_their_owners_do(
    front_end: FrontEnd, text: str, american: str, british: str
) -> None:
    assert said(front_end, f"It is {text} today.") == {text: american}
    assert said(front_end, f"It is {text} today.", language="en-gb") == {text: british}


def test_an_entry_is_there_because_it_would_be_said_otherwise() -> None:
    accents = {"en": EnglishG2P("en-us"), "en-gb": EnglishG2P("en-gb")}
    others = set()
    english = [entry for entry in default_entries() if entry.lang in accents]
    for entry in english:
        spoken = accents[entry.lang](AlignedText.of(entry.grapheme), lambda _: None)
        before = "".join(word.phonemes + " " * word.space_after for word in spoken).strip()
        if before != entry.phoneme:
            others.add(entry.grapheme)
    assert others == {entry.grapheme for entry in english}
    assert len(others) > 500


@pytest.mark.parametrize(
    "text",
    [
        "The gnu is an antelope, and a gnome is a dwarf.",
        "She was a bombardier, and he wrote a vite, a basic and a lisp.",
        "It is a nice day to go for a swift run in the rust, and to see a julia.",
    ],
)
def test_ordinary_words_are_not_taken_for_names(front_end: FrontEnd, text: str) -> None:
    assert said(front_end, text) == {}
