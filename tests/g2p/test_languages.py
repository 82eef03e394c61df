"""Any text in any mixture of languages is read, each run by its own G2P, and nothing of it is lost."""

from __future__ import annotations

import json
import sys
import time
import unicodedata
from collections import Counter
from pathlib import Path

import psutil
import pytest
import regex
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kokoro_lab.datatypes import Fallback, Segment, Word
from kokoro_lab.errors import LanguageError, TextError
from kokoro_lab.extras import MISAKI
from kokoro_lab.g2p import speakers
from kokoro_lab.g2p.frontend import FrontEnd, Languages
from kokoro_lab.g2p.phoneme_cache import PhonemeCache
from kokoro_lab.g2p.vocab import encode
from kokoro_lab.lab.fixtures import load_texts
from kokoro_lab.text import language as language_module
from kokoro_lab.text.language import SPOKEN, why_not_read
from kokoro_lab.text.segment import FIRST_TOKENS, LEAST_TOKENS, MAX_TOKENS

SPOKEN_LETTER = regex.compile(r"[\p{Latin}\p{Hiragana}\p{Katakana}\p{Han}\p{Devanagari}&&\p{L}]", regex.V1)
HERE = [language for language in SPOKEN if why_not_read(language) is None]
LEAST_RIGHT = 0.95
LONGEST_S = 2.0


def read(
    front_end: FrontEnd, text: str, language: str | Languages = "en-us"
) -> tuple[list[Word], list[Fallback], list[Segment]]:
    fallbacks: list[Fallback] = []
    segments = list(front_end.segments_of(front_end.cleaned(text), language, fallbacks.append))
    return [word for segment in segments for word in segment.words], fallbacks, segments


@pytest.mark.parametrize(
    ("language", "text", "said"),
    [
        ("en-us", "The bath.", "ðə bˈæθ."),
        ("en-gb", "The bath.", "ðə bˈɑːθ."),
        ("es", "¿Qué tal, señora?", "kˈe tˈal, seɲˈoɾa?"),
        ("fr", "Les amis sont là.", "lez amˈi sˈɔ̃ lˈa."),
        ("it", "Che bella città!", "ke bˈɛlla ʧitːˈa!"),
        ("pt-br", "Bom dia.", "bˈoŋ ʤˈiæ."),
        ("hi", "नमस्ते दुनिया।", "nəmˈʌsteː dˈʊnɪjˌaː."),
    ],
)
def test_each_language_has_its_g2p(front_end: FrontEnd, language: str, text: str, said: str) -> None:
    words, fallbacks, segments = read(front_end, text, language)
    assert " ".join(segment.phonemes for segment in segments) == said
    assert {word.language for word in words} == {language}
    assert fallbacks == []


def test_a_british_voice_reads_english_its_way_in_any_text(front_end: FrontEnd) -> None:
    text = "मैं bath में हूँ।"
    accents = {
        accent: next(w for w in read(front_end, text, Languages("hi", accent))[0] if w.text == "bath")
        for accent in ("en-gb", "en-us", None)
    }
    assert {accent: word.language for accent, word in accents.items()} == {
        "en-gb": "en-gb",
        "en-us": "en-us",
        None: "en-us",
    }
    assert accents["en-gb"].phonemes != accents["en-us"].phonemes


def test_marked_languages_are_heeded(front_end: FrontEnd) -> None:
    text = "The word chat is French."
    words, _, _ = read(front_end, text, Languages("en-us", forced=[(9, 13, "fr")]))
    assert {word.text: word.language for word in words}["chat"] == "fr"
    assert next(word for word in words if word.text == "chat").phonemes == "ʃˈa"


def test_a_language_is_loaded_when_it_is_needed_and_not_before() -> None:
    front_end = FrontEnd()
    assert front_end.speakers.loaded() == ()
    read(front_end, "Hola.", "es")
    assert front_end.speakers.loaded() == ("es",)
    front_end.warm("fr")
    assert front_end.speakers.loaded() == ("es", "fr")


def test_without_its_extra_japanese_is_refused_with_the_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fugashi", None)
    monkeypatch.delitem(sys.modules, "misaki.cutlet", raising=False)
    front_end = FrontEnd()
    with pytest.raises(LanguageError, match=r"fugashi.*pip install 'kokoro-lab\[ja\]'"):
        read(front_end, "こんにちは。", "ja")
    words, fallbacks, _ = read(front_end, "read 日本 now")
    assert [word.text for word in words] == ["read", "日本", "now"]
    assert (fallbacks[0].stage, fallbacks[0].start, fallbacks[0].end) == ("language", 5, 7)
    with pytest.raises(LanguageError):
        read(front_end, "read 日本 now", Languages("en-us", forced=[(5, 7, "ja")]))


def test_without_its_extra_mandarin_is_refused_with_the_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jieba", None)
    front_end = FrontEnd()
    with pytest.raises(LanguageError, match=r"jieba.*pip install 'kokoro-lab\[zh\]'"):
        read(front_end, "你好。", "zh")
    words, fallbacks, _ = read(front_end, "say 你们 now")
    assert [word.text for word in words] == ["say", "你们", "now"]
    assert (fallbacks[0].stage, fallbacks[0].start, fallbacks[0].end) == ("language", 4, 6)


@pytest.mark.parametrize("pair", ["en-es", "en-ja"])
def test_mixed_sentences_are_spoken_by_the_right_g2p(
    front_end: FrontEnd, repository: Path, pair: str
) -> None:
    if pair == "en-ja" and "ja" not in HERE:
        pytest.skip("there is no Japanese G2P here")
    sources = {"en-us": {"misaki", "espeak"}, "es": {"espeak"}, "ja": {"misaki", "espeak"}}
    path = repository / "fixtures/texts/code_switching.jsonl"
    count: Counter[bool] = Counter()
    for line in map(json.loads, path.read_text("utf-8").splitlines()):
        if line["pair"] != pair:
            continue
        text = "".join(run for _, run in line["runs"])
        meant = [language for language, run in line["runs"] for _ in run]
        for word in read(front_end, text, line["language"])[0]:
            if any(c.isalpha() for c in word.text):
                right = word.language == meant[word.start] and word.source in sources[word.language]
                count[right] += 1
    assert count[True] / count.total() >= LEAST_RIGHT


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("es", "Mi hermano ha comprado una casa vieja que necesita un tejado nuevo y mucha paciencia."),
        ("fr", "Mon frère a acheté une vieille maison qui a besoin d'un nouveau toit et de patience."),
        ("it", "Mio fratello ha comprato una vecchia casa che ha bisogno di un tetto nuovo e di pazienza."),
        ("pt-br", "Meu irmão comprou uma casa velha que precisa de um telhado novo e de muita paciência."),
        ("hi", "मेरे भाई ने शहर में एक पुराना घर खरीदा है जिसको नई छत की ज़रूरत है और बहुत धैर्य की भी।"),
        pytest.param(
            "ja",
            "私の兄は昨年の春に海の近くの古い家を買って屋根を直しながらゆっくりと暮らしています。",
            marks=pytest.mark.skipif("ja" not in HERE, reason="there is no Japanese G2P here"),
        ),
        pytest.param(
            "zh",
            "我哥哥去年春天在海边买了一座老房子因为屋顶坏了所以他一边修理一边慢慢地生活",
            marks=pytest.mark.skipif("zh" not in HERE, reason="there is no Mandarin G2P here"),
        ),
    ],
)
def test_a_long_first_sentence_begins_with_a_short_segment(
    front_end: FrontEnd, language: str, text: str
) -> None:
    words, _, segments = read(front_end, text, language)
    assert len(segments) > 1
    aimed_at = max(FIRST_TOKENS, 1.4 * LEAST_TOKENS.get(language, 0))
    assert len(segments[0].token_ids) <= aimed_at + 5
    assert 0.08 <= segments[0].pause_after_s <= 0.12
    assert "".join(w.text for w in words) == "".join(text.split())


@pytest.mark.parametrize("language", HERE)
@pytest.mark.parametrize("letter", ["x", "ba", "क", "あ", "们"])
def test_five_thousand_letters_without_a_space_are_all_spoken(
    front_end: FrontEnd, language: str, letter: str
) -> None:
    text = (letter * 5000)[:5000]
    for needed in HERE:  # the letters may be of another language, and the first ones load all of it
        front_end.warm(needed)
    started = time.process_time()
    words, fallbacks, segments = read(front_end, text, language)
    assert time.process_time() - started < 5 * LONGEST_S  # of this process: the machine may be busy
    assert all(len(segment.token_ids) <= MAX_TOKENS for segment in segments)
    assert not unheard(text, words, fallbacks)


def unheard(text: str, words: list[Word], fallbacks: list[Fallback]) -> list[int]:
    """Places of letters of the scripts that are spoken here, of which neither a word nor a fallback tells."""
    told = [False] * len(text)
    for item in (*words, *fallbacks):
        if item.start is not None and item.end is not None:
            told[item.start : item.end] = [True] * (item.end - item.start)
    return [m.start() for m in SPOKEN_LETTER.finditer(text) if not told[m.start()]]


@pytest.mark.parametrize("language", ["en-us", "es", "ja", "it", "zh"])
def test_a_letter_that_is_newer_than_pythons_table_is_said_to_have_no_sound(language: str) -> None:
    """U+31350 is of Unicode 15; Python 3.11 knows 14, and takes it for no letter."""
    fallbacks: list[Fallback] = []
    text = "A \U00031350 b."
    words = [w for s in FrontEnd().segments(text, language, fallbacks.append) for w in s.words]
    assert not unheard(text, words, fallbacks)


SHARED = FrontEnd(cache=PhonemeCache(max_bytes=0))
RUNS = st.one_of(
    st.text(max_size=40),
    st.text(alphabet=st.characters(categories=("L", "M", "N")), max_size=20),
    st.sampled_from(
        [
            "¿Qué tal?",
            "日本語",
            "नमस्ते।",
            "l'été",
            "3.14",
            "$5.99",
            "e\u0301",
            "\n\n",
            " ",
            "…",
            "👍🏽",
            "「はい」",
        ]
    ),
)


@given(st.lists(RUNS, max_size=60), st.integers(1, 40), st.sampled_from(HERE))
@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
def test_any_text_is_read_or_refused_soon_and_no_letter_is_lost(
    runs: list[str], times: int, language: str
) -> None:
    text = ("".join(runs) * times)[:5000]
    for needed in HERE:  # a run may be of any language, and the first one loads all of it
        SHARED.warm(needed)
    started = time.process_time()
    try:
        words, fallbacks, segments = read(SHARED, text, language)
    except TextError:
        return
    assert time.process_time() - started < LONGEST_S  # of this process: the machine may be busy
    assert not unheard(text, words, fallbacks)
    places = [(word.start, word.end) for word in words]
    assert [start for start, _ in places] == sorted(start for start, _ in places)
    for word in words:
        assert 0 <= word.start < word.end <= len(text)
        assert len(encode(word.phonemes)) == len(word.phonemes)
        if word.text.isalpha() and word.text.isascii():
            slice_ = unicodedata.normalize("NFC", text[word.start : word.end])
            assert (
                word.text.lower() in slice_.lower()
                or not slice_.isascii()
                or not slice_.isalpha()
                or slice_.isupper()  # the names of its letters
                or slice_ == "x"  # between digits it is a sign: `3x4`
            )
    for segment in segments:
        assert 0 < len(segment.token_ids) <= MAX_TOKENS
        assert 0 <= segment.start < segment.end <= len(text)


def test_what_was_read_leaves_nothing_behind() -> None:
    """Of 80 kB of English, an hour and a half of speech, less than 10 MB may stay."""
    sentences = [text.text for text in load_texts() if text.kind in ("prose", "long", "short")]
    front_end = FrontEnd(cache=PhonemeCache(max_bytes=100_000))

    def listen(size: int, salt: str) -> None:
        text, k = [], 0
        while sum(map(len, text)) < size:
            text.append(f"{sentences[k % len(sentences)].rstrip('.')} {salt} {k}.")
            k += 1
        for _ in front_end.segments(" ".join(text), "en-us", lambda _: None):
            pass

    listen(20_000, "before")
    before = psutil.Process().memory_info().rss
    listen(80_000, "after")
    assert psutil.Process().memory_info().rss - before < 10 * 2**20


def test_without_misaki_english_is_read_by_espeak_which_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """On Python 3.13, misaki is no part of what pip installs."""
    monkeypatch.setattr(speakers, "find_spec", lambda name: None)
    front_end = FrontEnd()
    words, fallbacks, _ = read(front_end, "Two words. And xqzzyk.")
    assert {word.source for word in words} == {"espeak"}
    assert [(f.reason, f.start, f.end) for f in fallbacks] == [
        (speakers.WITHOUT_MISAKI, 0, 10),
        (speakers.WITHOUT_MISAKI, 11, 22),
    ]
    assert caplog.messages == [f"English is read by eSpeak, since misaki is not installed: {MISAKI}"]
    assert front_end.speakers.known("en-us") is None


@pytest.mark.parametrize("language", ["ja", "zh"])
def test_without_misaki_what_needs_it_says_how_it_is_had(
    monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    monkeypatch.setattr(language_module, "find_spec", lambda name: None if name == "misaki" else object())
    assert why_not_read(language) == f"{language} needs misaki: {MISAKI}"
