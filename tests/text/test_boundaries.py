"""Sentences end where a reader would stop, in every language that is spoken here."""

from __future__ import annotations

import pytest

from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.boundaries import is_initial
from kokoro_lab.text.sentences import sentences


def cut(text: str, language: str) -> list[str]:
    return [s.text.text for s in sentences(AlignedText.of(text), language)]


@pytest.mark.parametrize(
    ("language", "parts"),
    [
        ("en-us", ["J. R. R. Tolkien wrote vol. 2, pp. 3-4, fig. 7 and eq. 12."]),
        ("en-us", ["Gov. Smith and Sen. Jones met on Mt. Rainier.", "It rained."]),
        ("en-us", ["Wait… Really?", "“Stop!” she said."]),
        ("en-us", ["See the list.", "1. Milk is first.", "2. Eggs are second."]),
        ("en-us", ["It happened in 1999.", "Then it was 3.14 or $1.99."]),
        ("en-us", ["He is No. 1.", "She is not."]),
        ("en-us", ["Op. 131 – VI. Adagio is slow.", "V. Andante is not.", "It was Henry VI.", "Bravo came."]),
        ("en-us", ["The code is Xk9!-77.", "Go!", "No-one came."]),
        ("en-us", ["Come Thurs. 3/6, dep. 6:05.", "He arr. 7:10."]),
        ("es", ["El Sr. García y la Dra. López viven en EE. UU. desde 1999.", "¿Vienes?", "¡Claro!"]),
        ("es", ["No.", "Aquí está.", "No.", "¿Y tú?", "Es el No. 5."]),
        ("it", ["No.", "Ecco il no. 5."]),
        ("es", ["Véase la pág. 5, p. ej. el art. 3.", "Costó 3.500 €."]),
        ("fr", ["M. Dupont et Mme Martin sont partis.", "Il pleut."]),
        ("it", ["Il sig. Rossi e il dott. Bianchi.", "Tutto bene?"]),
        ("pt-br", ["A Sra. Souza mora na Av. Paulista.", "Tudo bem?"]),
        ("hi", ["मैं ठीक हूँ।", "आप कैसे हैं?", "अच्छा।"]),
        ("hi", ["5 ली. दूध और 2 कि.ग्रा. चावल लाओ।", "3 से. रुको।"]),
        ("pt-br", ["Em 3 dez. 2024 choveu.", "Fim."]),
        ("ja", ["第3章はp. 45を見て。"]),
        ("it", ["Vado a S. Francesco.", "Leggo S. Freud e J. R. Tolkien."]),
        ("it", ["Prendo la vitamina C.", "Mangia."]),
        ("it", ["La risposta è B.", "Bravo."]),
        ("pt-br", ["S. Paulo é grande.", "Um livro de J. Amado."]),
        ("fr", ["Un livre de V. Hugo.", "La face B.", "Tournez.", "La note est A.", "Bravo."]),
    ],
)
def test_sentences_of(language: str, parts: list[str]) -> None:
    assert cut(" ".join(parts), language) == parts


@pytest.mark.parametrize("language", ["ja", "en-us"])
def test_japanese_needs_no_space_between_sentences(language: str) -> None:
    parts = ["これは一つ目です。", "次です！", "本当ですか？", "はい…そうです。"]
    assert cut("".join(parts), language) == parts


def test_a_japanese_quotation_goes_on_to_who_said_it() -> None:
    assert cut("「行こう。」と彼は言った。「はい。」", "ja") == ["「行こう。」と彼は言った。", "「はい。」"]


def test_a_wrapped_japanese_line_gets_no_space() -> None:
    line = "吾輩は猫である名前はまだ無いどこで生れたかとんと見当がつかぬ何でも"
    assert cut(f"{line}\n{line}。", "ja") == [f"{line}{line}。"]


def test_a_very_long_japanese_sentence_is_cut_behind_a_mark() -> None:
    clause = "私は昨日とても長い道を歩いて、"
    parts = cut(clause * 80, "ja")
    assert len(parts) > 1
    assert all(part.endswith("、") for part in parts)
    assert "".join(parts) == clause * 80


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
def test_a_spanish_abbreviation_does_not_end_a_sentence(text: str) -> None:
    assert cut(text, "es") == [text]


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
def test_spanish_sentences_still_end(text: str, parts: list[str]) -> None:
    assert cut(text, "es") == parts


@pytest.mark.parametrize("language", ["es", "fr-fr", "it", "pt-br", "en-us"])
def test_no_sentence_begins_with_a_sign_of_a_sum(language: str) -> None:
    assert cut("5! = 120", language) == ["5! = 120"]
    assert len(cut("Ok! Si 5 = 5.", language)) == 2


@pytest.mark.parametrize(
    ("language", "text"),
    [("fr-fr", "Né v. 1855, à Paris."), ("it", "Visto ep. 7 di 10."), ("es", "Visto el ep. 8 hoy.")],
)
def test_a_number_follows_an_abbreviation_in_its_sentence(language: str, text: str) -> None:
    assert cut(text, language) == [text]


def test_an_abbreviation_of_another_language_ends_a_sentence() -> None:
    assert cut("Lo ve Pza. Ana.", "es") == ["Lo ve Pza. Ana."]
    assert cut("Lo ve Pza. Ana.", "en-us") == ["Lo ve Pza.", "Ana."]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Take vitamin C. She does.", ["Take vitamin C.", "She does."]),
        ("It was in the U.S. Nobody knew.", ["It was in the U.S.", "Nobody knew."]),
        ("He met Plan B. Smith there.", ["He met Plan B. Smith there."]),
        ("See Vol. IV and Eq. (5).", ["See Vol. IV and Eq. (5)."]),
        ("He left.⁴ Nobody cared.⁵", ["He left.⁴", "Nobody cared.⁵"]),
        ("The U.S. Army came.", ["The U.S. Army came."]),
        ("The answer is no. I went home.", ["The answer is no.", "I went home."]),
        ("We told him no. She left.", ["We told him no.", "She left."]),
        ("Is it no. 5 or no. I of the set?", ["Is it no. 5 or no. I of the set?"]),
        ("He ate a fig. I saw him.", ["He ate a fig.", "I saw him."]),
        ("Take vol. I of the set.", ["Take vol. I of the set."]),
        ("In ch. I described it.", ["In ch. I described it."]),
        ("in ch. I think so", ["in ch.", "I think so"]),
        ("Open Sat. & Sun. only.", ["Open Sat. & Sun. only."]),
        ("He read a vol. I wanted it.", ["He read a vol.", "I wanted it."]),
        ("We ship to the U.K. Orders over $50 go.", ["We ship to the U.K.", "Orders over $50 go."]),
        ("The U.K. Orders over 50 years came.", ["The U.K. Orders over 50 years came."]),
        ("The call is at 5 p.m. EST on Friday.", ["The call is at 5 p.m. EST on Friday."]),
        ("Doors open 8 p.m. Saturday at noon.", ["Doors open 8 p.m. Saturday at noon."]),
        ("It shut at 5 p.m. Saturday was busy.", ["It shut at 5 p.m.", "Saturday was busy."]),
        ("It is due 5 p.m. March 3 at noon.", ["It is due 5 p.m. March 3 at noon."]),
        ("It shut at 5 p.m. May I go?", ["It shut at 5 p.m.", "May I go?"]),
        ("Bake it 2 hrs. 30 mins. at 180°C.", ["Bake it 2 hrs. 30 mins. at 180°C."]),
        ("It took 5 hrs. 30 people came.", ["It took 5 hrs.", "30 people came."]),
        ("See the approx. value.", ["See the approx. value."]),
    ],
)
def test_a_letter_may_end_an_english_sentence(text: str, parts: list[str]) -> None:
    assert cut(text, "en-us") == parts


def test_a_roman_number_behind_a_name_is_no_initial() -> None:
    assert is_initial("Le opere di S.", "Freud", "it")
    assert not is_initial("Lo disse Carlo V.", "Marco rispose.", "it")
    assert not is_initial("V.", "Marco rispose.", "it")
    assert is_initial("Opere di J. V.", "Freud", "it")


@pytest.mark.parametrize(
    ("text", "language", "parts"),
    [
        ("Lo dice G. Verdi.", "it", ["Lo dice G. Verdi."]),
        ("Preferisco il lato B. Marco no.", "it", ["Preferisco il lato B.", "Marco no."]),
        ("Il a rencontré J. Dupont.", "fr-fr", ["Il a rencontré J. Dupont."]),
        ("F. García dijo que no.", "es", ["F. García dijo que no."]),
        ("Elige el plan B. Marta no.", "es", ["Elige el plan B.", "Marta no."]),
        ("La respuesta es B. Juan lo sabe.", "es", ["La respuesta es B.", "Juan lo sabe."]),
        ("La respuesta correcta: B. Juan lo sabe.", "es", ["La respuesta correcta: B.", "Juan lo sabe."]),
        ("O professor J. Silva mora aqui.", "pt-br", ["O professor J. Silva mora aqui."]),
        ("Auteur : J. Dupont.", "fr-fr", ["Auteur : J. Dupont."]),
    ],
)
def test_a_letter_behind_a_word_that_leads_to_a_person_is_an_initial(
    text: str, language: str, parts: list[str]
) -> None:
    assert cut(text, language) == parts
