"""Spanish abbreviations that end in a full stop do not end a sentence; sentences still end."""

from __future__ import annotations

import pytest

from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.segment import sentences
from kokoro_lab.text.sentence_joins import rejoined


def cut(text: str, language: str = "es") -> list[str]:
    return [sentence.text.text for sentence in sentences(AlignedText.of(text), language)]


@pytest.mark.parametrize(
    "text",
    [
        "El 2.º izquierda.",
        "D.ª Ana y D. Juan.",
        "Los JJ. OO. de París.",
        "En 476 d. C. cayó Roma.",
        "Nos vemos a las 5 p. m. en casa.",
        "El 15 ene. 2020 nevó.",
        "Los arts. 3 y 4.",
        "Hay aprox. 30.",
        "El F.B.I. investiga.",
    ],
)
def test_the_sentence_goes_on(text: str) -> None:
    assert cut(text) == [text]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Llegó. Comió. Se fue.", ["Llegó.", "Comió.", "Se fue."]),
        ("¿Vienes? Ya. Ana viene.", ["¿Vienes?", "Ya.", "Ana viene."]),
        ("Sale a las 5 p. m. Luego cena.", ["Sale a las 5 p. m.", "Luego cena."]),
        ("Somos 21. Ellos, 30.", ["Somos 21.", "Ellos, 30."]),
        ("Lista\nUno\nDos", ["Lista", "Uno", "Dos"]),
    ],
)
def test_sentences_still_end(text: str, parts: list[str]) -> None:
    assert cut(text) == parts


def test_other_languages_keep_their_borders() -> None:
    assert list(rejoined([(0, 3), (3, 6)], "D. Ana", "en-us")) == [(0, 3), (3, 6)]
    assert list(rejoined([(0, 3), (3, 6)], "D. Ana", "es")) == [(0, 6)]
