"""Without spaCy and without its module, English is read as misaki reads it."""

from __future__ import annotations

import pytest

from kokoro_lab.g2p.dictionary import Dictionary, Following, stressed
from kokoro_lab.g2p.english_numbers import read_number
from kokoro_lab.g2p.english_words import EnglishToken, read
from kokoro_lab.g2p.tagger import Tagger
from kokoro_lab.lab.fixtures import load_rows
from kokoro_lab.weights.store import english_tagger_path


@pytest.mark.parametrize("language", ["en-us", "en-gb"])
def test_every_text_is_read_as_misaki_reads_it(language: str) -> None:
    tagger, dictionary = Tagger(english_tagger_path()), Dictionary(british=language == "en-gb")
    for row in load_rows("misaki_readings"):
        tokens = [EnglishToken(*token) for token in tagger(row["text"])]
        words = read(tokens, dictionary, "[{}]".format)
        said = "".join((w.phonemes or "") + w.whitespace for w in words)
        assert said == row[language], row["text"]


@pytest.mark.parametrize(
    ("stress", "said"),
    [(None, "pˈAʤˌɪz"), (-2, "pAʤɪz"), (-1, "pˌAʤɪz"), (-0.5, "pˌAʤɪz"), (0.5, "pˈAʤˌɪz"), (2, "pˈAʤˌɪz")],
)
def test_a_stress_is_taken_away_or_added(stress: float | None, said: str) -> None:
    assert stressed("pˈAʤˌɪz", stress) == said
    assert stressed("pAʤɪz", 0.5) == "pˌAʤɪz"
    assert stressed("pAʤɪz", 2) == "pˈAʤɪz"
    assert stressed("pˌAʤɪz", 1) == "pˈAʤɪz"
    assert stressed("pst", 2) == "pst"


@pytest.mark.parametrize("written", ["", "''", "xqzzyk", "5x5", "..", "−5", "1e9"])
def test_what_is_neither_a_word_nor_a_number_is_left_to_others(written: str) -> None:
    dictionary = Dictionary(british=False)
    assert not dictionary.read(written, "NN", Following())
    assert read_number(dictionary, written, None, first=True) is None
