"""What eSpeak says is written in the model's symbols exactly as misaki writes it."""

from __future__ import annotations

import pytest

from kokoro_lab.g2p import espeak
from kokoro_lab.g2p.espeak import EspeakEnglish, EspeakG2P

misaki = pytest.importorskip("misaki.espeak", reason="misaki is not installed")
WORDS = [
    "bottle",
    "mutton",
    "kitten",
    "button",
    "little",
    "goat",
    "beer",
    "bird",
    "fire",
    "naïve",
    "Łódź",
    "xqzzyk",
    "loch",
    "Nguyen",
    "chateau",
    "vision",
    "judge",
    "choice",
    "cow",
    "buy",
    "day",
    "rouge",
    "singer",
    "written",
    "oil",
    "sure",
    "curtain",
    "vacuum",
    "tuition",
    "Llanelli",
]


@pytest.mark.parametrize("british", [False, True])
def test_english_words_are_misakis(british: bool) -> None:
    from misaki.token import MToken

    theirs, ours = misaki.EspeakFallback(british=british), EspeakEnglish(british=british)
    for word in WORDS:
        said = theirs(MToken(text=word, tag="", whitespace=""))[0]
        assert ours(word) == espeak._SWITCH.sub("", said).strip()


class Says:
    """An eSpeak that says what it is given."""

    def phonemize(self, words: list[str]) -> list[str]:
        return words


@pytest.mark.parametrize("british", [False, True])
@pytest.mark.parametrize(
    "raw", ["bˈʌʔn\u0329", "kˈɪtl\u0329", "lˈɔx", "ɡˈo^ʊst", "nˈɜːɹs", "fe^ə", "iə", "ʲo ʲ ɾ"]
)
def test_what_another_espeak_might_say_is_written_as_misaki_writes_it(raw: str, british: bool) -> None:
    from misaki.token import MToken

    theirs, ours = misaki.EspeakFallback(british=british), EspeakEnglish(british=british)
    theirs.backend = ours._backend = Says()
    assert ours._say(raw) == theirs(MToken(text=raw, tag="", whitespace=""))[0]


def test_each_symbol_is_replaced_as_misaki_does_and_in_its_order() -> None:
    assert list(espeak._ENGLISH.items()) == misaki.EspeakFallback.E2M
    assert list(espeak._OTHERS.items()) == [*misaki.EspeakG2P("es").e2m, ("^", ""), ("-", "")]


@pytest.mark.parametrize(
    ("language", "text"),
    [("es", "Buenos días"), ("fr-fr", "les amis"), ("it", "buongiorno a tutti"), ("pt-br", "bom dia")],
)
def test_a_clause_of_another_language_is_misakis(language: str, text: str) -> None:
    said = misaki.EspeakG2P(language)(text)[0]
    assert EspeakG2P(language.partition("-")[0] if language == "fr-fr" else language)._say(text) == (
        espeak._composed(said)
    )
