"""eSpeak's languages: words run together as they do, each keeps its place, nothing is lost."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kokoro_lab.datatypes import Fallback, Word
from kokoro_lab.g2p.espeak import EspeakEnglish, EspeakG2P, LetterG2P, divided
from kokoro_lab.g2p.vocab import encode
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.language import SPOKEN

TEXTS = {
    "en-us": "The small boats, a-sailing, didn't stop.",
    "en-gb": "The small boats, a-sailing, didn't stop.",
    "es": "¿Qué tal? El pingüino come — ¡sí, señora! — 50 kilos de pan (blanco).",
    "fr": "Les amis sont allés à l'école ; aujourd'hui, qu'est-ce que c'est ?",
    "it": "C'è un'altra città nell'isola, perché gli gnocchi…",
    "pt-br": "O pão não está bom; amanhã dá-me às vezes.",
    "hi": "नमस्ते दुनिया, मैं ठीक हूँ। भारत में क्षमा।",
    "ja": "こんにちは、さくら。",
    "zh": "你好，世界。",
}


def read(g2p: EspeakG2P | LetterG2P, text: str) -> tuple[list[Word], list[Fallback]]:
    fallbacks: list[Fallback] = []
    return g2p(AlignedText.of(text), fallbacks.append), fallbacks


@pytest.mark.parametrize("language", SPOKEN)
def test_every_word_is_spoken_in_its_place(language: str) -> None:
    text = TEXTS[language]
    words, fallbacks = read(EspeakG2P(language), text)
    if language != "zh":  # whose tones it gives as digits, which is said
        assert fallbacks == []
    assert [text[w.start : w.end] for w in words] == [w.text for w in words]
    heard = "".join(w.text for w in words)
    assert heard == "".join(c for c in text if not c.isspace() and c not in "¿¡")
    for w in words:
        assert w.language == language
        assert len(encode(w.phonemes)) == len(w.phonemes)
        assert any(c.isalpha() for c in w.phonemes) == any(c.isalnum() for c in w.text)


def test_french_words_run_together_and_each_keeps_its_own() -> None:
    words, _ = read(EspeakG2P("fr"), "Les amis ? Les, amis.")
    assert [w.phonemes for w in words[:3]] == ["lez", "amˈi", "?"]
    assert words[3].phonemes == "lˈe"
    assert not words[1].space_after  # the space before a French mark is no pause


@pytest.mark.parametrize("language", ["fr", "es", "it", "pt"])
def test_letters_that_espeak_says_by_number_are_read_without_a_mark(language: str) -> None:
    g2p = EspeakG2P(language)
    assert [w.phonemes for w in read(g2p, "Trần Muḥammad")[0]] == [
        w.phonemes for w in read(g2p, "Trân Muhammad")[0]
    ]


def test_numbers_do_not_end_the_sentence() -> None:
    words, _ = read(EspeakG2P("es"), "Tengo 1.234,56 euros y 21 años")
    assert [w.text for w in words if w.text.isalpha()] == ["Tengo", "euros", "y", "años"]


def test_another_script_is_reported_with_its_place() -> None:
    words, fallbacks = read(EspeakG2P("es"), "di Привет ahora")
    assert len(words) == 3
    assert {(f.start, f.end) for f in fallbacks} == {(3, 9)}


def test_a_very_long_word_is_said_to_its_end() -> None:
    for g2p in (EspeakG2P("es"), EspeakG2P("hi")):
        (word,), _ = read(g2p, "bado" * 100)
        assert word.phonemes.replace("ˈ", "").replace("ˌ", "").count("b") + word.phonemes.count("β") >= 95
    assert len(EspeakEnglish(british=False)("xkcd" * 50) or "") > 400
    assert "".join(divided("bado" * 50)) == "bado" * 50
    assert divided("antidisestablishmentarianism") == ["antidisestablishmentarianism"]


def test_many_threads_read_what_one_reads() -> None:
    g2p = EspeakG2P("es")
    lines = [f"Los {i} barcos pequeños no llegan al puerto número {i}." for i in range(60)]
    alone = [read(g2p, line)[0] for line in lines]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda line: read(g2p, line)[0], lines)) == alone


@pytest.mark.parametrize(("language", "text"), [("es", "Año 2, sí."), ("hi", "नमक ५।"), ("en-gb", "Zoo 9.")])
def test_letters_are_the_last_level(language: str, text: str) -> None:
    words, fallbacks = read(LetterG2P(language), text)
    assert [w.text for w in words] == text.split()
    assert {w.source for w in words} == {"characters"}
    assert words[-1].phonemes.endswith(".")
    assert fallbacks == []
    assert [f.start for f in read(LetterG2P(language), "a 漢")[1]] == [2]


def test_a_process_that_is_killed_leaves_no_library_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    english, spanish = EspeakEnglish(british=False), EspeakG2P("es")
    assert english("zyxl")
    assert read(spanish, "hola")[0]
    made = list(tmp_path.iterdir())
    assert len(made) >= 2
    assert not [file for folder in made for file in folder.iterdir()]
