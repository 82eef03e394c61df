"""English is read as a person would, nothing is lost, and nothing raises."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kokoro_lab.datatypes import Fallback, Segment
from kokoro_lab.errors import LanguageError, TextError
from kokoro_lab.g2p import english_words, espeak
from kokoro_lab.g2p.english import EnglishG2P, locate
from kokoro_lab.g2p.english_words import EnglishToken
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.g2p.vocab import encode, symbols
from kokoro_lab.text.aligned import AlignedText


def read(front_end: FrontEnd, text: str, language: str = "en-us") -> tuple[list[Segment], list[Fallback]]:
    fallbacks: list[Fallback] = []
    return list(front_end.segments(text, language, fallbacks.append)), fallbacks


def phonemes(front_end: FrontEnd, text: str, language: str = "en-us") -> str:
    return " ".join(s.phonemes for s in read(front_end, text, language)[0])


def test_the_vocabulary_is_the_models() -> None:
    assert len(symbols()) == 114
    assert encode("həlˈO") == (50, 83, 54, 156, 31)
    with pytest.raises(KeyError):
        encode("❓")


@pytest.mark.parametrize(
    ("curly", "straight"),
    [
        ("don’t", "don't"),
        ("wasn’t", "wasn't"),
        ("couldn’t", "couldn't"),
        ("she’s", "she's"),
        ("‘tis", "'tis"),
    ],
)
def test_curly_apostrophes_keep_their_negation(front_end: FrontEnd, curly: str, straight: str) -> None:
    said = phonemes(front_end, f"It {curly} so.")
    assert said == phonemes(front_end, f"It {straight} so.")
    if curly.endswith("n’t"):
        assert said != phonemes(front_end, f"It {curly.removesuffix('n’t')} so.")
        assert "nt" in said.replace("ᵊ", "")


def test_a_letter_among_letters_is_no_article(front_end: FrontEnd) -> None:
    assert phonemes(front_end, "AT&T.").startswith("ˈA ")
    assert phonemes(front_end, "A man.").startswith("ɐ ")


def test_letters_of_names_that_espeak_says_by_number_are_read_without_their_marks(
    front_end: FrontEnd,
) -> None:
    assert phonemes(front_end, "Muḥammad met Trần.") == phonemes(front_end, "Muhammad met Tran.")
    (segment,), _ = read(front_end, "Ms. Trần.")
    assert [word.text for word in segment.words] == ["Miz", "Trần", "."]
    for marked in map(chr, range(0x1E00, 0x1F00)):
        assert espeak.plainer(marked) < "\u1e00" or unicodedata.normalize("NFD", marked) == marked
        assert len(espeak.plainer(marked)) == len(espeak.plainer(marked, marks=False)) == 1


def test_wasnt_says_its_n_and_t(front_end: FrontEnd) -> None:
    assert "wˈʌzᵊnt" in phonemes(front_end, "It wasn’t me.")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Hello there.", "həlˈO ðˈɛɹ."),
        ("It is 1999.", "nˌInˈtin nˈInti nˈIn"),
        ("The 21st door.", "twˈɛnti fˈɜɹst"),
        ("It cost $5.", "fˈIv dˈɑləɹz"),
        ("NASA and the FBI.", "nˈæsə"),
        ("½ of it", "hˈæf"),
        ("∑ of all", "sˈʌm"),
        ("👍", "θˈʌmz"),
    ],
)
def test_read_as(front_end: FrontEnd, text: str, said: str) -> None:
    found = phonemes(front_end, text)
    for sound in said.split():
        assert sound.replace("ˌ", "").replace("ˈ", "") in found.replace("ˌ", "").replace("ˈ", "")


def test_a_currency_is_said_once(front_end: FrontEnd) -> None:
    assert phonemes(front_end, "It cost $5.").count("dˈɑləɹ") == 1


def test_british_is_not_american(front_end: FrontEnd) -> None:
    assert phonemes(front_end, "The bath.", "en-gb") != phonemes(front_end, "The bath.", "en-us")


def test_en_means_american(front_end: FrontEnd) -> None:
    assert phonemes(front_end, "The bath.", "en") == phonemes(front_end, "The bath.", "en-us")


def test_an_unknown_language_says_which_there_are(front_end: FrontEnd) -> None:
    with pytest.raises(LanguageError, match="en-us, en-gb"):
        read(front_end, "Hallo.", "qaa")  # a tag that no language will ever have


def test_an_unknown_word_goes_to_espeak_and_says_so(front_end: FrontEnd) -> None:
    segments, _ = read(front_end, "The flarbizunk sleeps.")
    sources = {w.text: w.source for s in segments for w in s.words}
    assert sources["flarbizunk"] == "espeak"
    assert sources["sleeps"] == "misaki"


@pytest.mark.parametrize(("text", "span"), [("read 한국 now", (5, 7)), ("say Привет now", (4, 10))])
def test_another_script_is_reported_with_its_place(
    front_end: FrontEnd, text: str, span: tuple[int, int]
) -> None:
    segments, fallbacks = read(front_end, text)
    assert len([w for s in segments for w in s.words]) == 3
    assert span in {(f.start, f.end) for f in fallbacks}


def test_without_espeak_characters_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kokoro_lab.g2p.espeak.EspeakEnglish.__call__", lambda self, word: None)
    segments, fallbacks = read(FrontEnd(), "The flarbizunk sleeps at ½ past ☂.")
    words = {w.text: w for s in segments for w in s.words}
    assert words["flarbizunk"].source == "characters"
    assert words["flarbizunk"].phonemes.count(" ") >= 9  # ten letters, each by its name
    assert any(f.reason == "read by characters" and (f.start, f.end) == (4, 14) for f in fallbacks)


def test_what_has_no_sound_is_reported_with_its_place(
    front_end: FrontEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kokoro_lab.g2p.espeak.EspeakEnglish.__call__", lambda self, word: None)
    _, fallbacks = read(front_end, "one \ue123 two")
    assert [(f.start, f.end) for f in fallbacks if "not spoken" in f.reason] == [(4, 5)]


def test_a_word_that_misaki_raises_on_costs_only_itself() -> None:
    text = f"before {'5' * 400} after"  # such a number never gets past the normalisation
    fallbacks: list[Fallback] = []
    words = [word.text for word in EnglishG2P("en-us")(AlignedText.of(text), fallbacks.append)]
    assert words[0] == "before"
    assert words[-1] == "after"
    assert (7, 407) in {(f.start, f.end) for f in fallbacks}


def test_offsets_point_into_the_original(front_end: FrontEnd) -> None:
    text = "“I don’t know,” said Dr. Smith’s café-owner — 12% of 5'6 👍🏽!"
    segments, _ = read(front_end, text)
    words = [w for s in segments for w in s.words]
    for word in words:
        original = text[word.start : word.end]
        assert original in (word.text, word.text.replace("'", "’"), "Dr.", "12%", "5'6", "👍🏽")
    assert {text[w.start : w.end] for w in words} >= {"Dr.", "12%", "👍🏽", "know", "said"}
    assert [w.start for w in words] == sorted(w.start for w in words)


@given(st.text(max_size=200))
@settings(deadline=None, max_examples=150)
def test_nothing_raises_and_every_symbol_is_known(text: str) -> None:
    try:
        segments, _ = read(SHARED, text)
    except TextError:
        return
    for segment in segments:
        assert len(segment.token_ids) == len(segment.phonemes)
        assert 0 <= segment.start <= segment.end <= len(text)


SHARED = FrontEnd()


@given(
    st.lists(
        st.sampled_from(["alpha", "charlie,", "delta;", "echo.", "foxtrot!", "golf?", "(hotel)", "India’s"]),
        min_size=1,
        max_size=80,
    )
)
@settings(deadline=None, max_examples=40)
def test_every_word_is_in_the_segments(words: list[str]) -> None:
    segments, fallbacks = read(SHARED, " ".join(words))
    heard = "".join(w.text for s in segments for w in s.words)
    wanted = "".join(words).replace("’", "'")
    strip = str.maketrans("", "", "(),;.!?")
    assert heard.translate(strip) == wanted.translate(strip)
    assert not fallbacks


def test_two_thousand_characters_without_a_stop_lose_nothing(front_end: FrontEnd) -> None:
    words = ("the quick brown fox jumps over lazy dogs near seven grey stones " * 32)[:2000].split()
    segments, _ = read(front_end, " ".join(words))
    assert [w.text for s in segments for w in s.words] == words
    assert all(len(s.token_ids) <= 510 for s in segments)


def test_a_hundred_kilobytes_are_read_a_segment_at_a_time(front_end: FrontEnd) -> None:
    text = "The cat sat on the mat, and then it slept for a while. " * 1900
    segments = front_end.segments(text, "en-us", lambda _: None)
    first = next(segments)
    assert first.words[0].text == "The"  # the other 1,899 sentences have not been looked at


@pytest.mark.parametrize("text", ["", "   ", "\n\t\n", "\u200b\ufeff"])
def test_nothing_gives_no_segment(front_end: FrontEnd, text: str) -> None:
    assert read(front_end, text)[0] == []


def test_lines_of_a_list_end_like_sentences(front_end: FrontEnd) -> None:
    assert phonemes(front_end, "Milk\nEggs\nBread").count(".") == 3


def test_many_threads_read_what_one_reads(front_end: FrontEnd) -> None:
    lines = [f"The flarbizunk number {i} isn’t a quorzle of {i} dranks." for i in range(40)]
    alone = [phonemes(front_end, line) for line in lines]
    front_end.cache.clear()  # or nothing would be read again
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda line: phonemes(front_end, line), lines)) == alone


@pytest.mark.parametrize(
    ("text", "token", "at", "place"),
    [
        ("a b", "b", 1, (2, 3)),
        ("5'6 x", "56", 0, (0, 3)),
        ("abc", "xyz", 1, (1, 1)),
    ],
)
def test_tokens_are_located(text: str, token: str, at: int, place: tuple[int, int]) -> None:
    assert locate(text, token, at) == place


def test_fixture_texts_need_no_fallback_but_for_names(front_end: FrontEnd) -> None:
    from kokoro_lab.lab.fixtures import load_texts

    for text in load_texts():
        segments, fallbacks = read(front_end, text.text)
        assert segments
        assert [f for f in fallbacks if "not spoken" in f.reason or "vocabulary" in f.reason] == []


ROWS = ("1/", "A1", "'", "a-", "1,000,", "10:", "IV ", "a@b.", "!?")


@pytest.mark.parametrize("row", ROWS)
def test_what_misaki_looks_up_grows_with_the_text_and_not_faster(
    row: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks up every run of neighbouring parts of a word, and joins each run first."""
    g2p = EnglishG2P("en-us")
    joined: list[int] = []
    join = english_words._joined

    def counted(parts: Sequence[EnglishToken]) -> EnglishToken:
        joined.append(len(parts))
        return join(parts)

    monkeypatch.setattr(english_words, "_joined", counted)
    work = []
    for size in (200, 400, 800):
        joined.clear()
        words = g2p(AlignedText.of((row * size)[:size]), lambda _: None)
        assert words
        work.append(sum(joined))
    assert work[1] <= 2.3 * work[0] + 500
    assert work[2] <= 2.3 * work[1] + 500
    assert work[2] < 100 * 800
