"""Spanish is read as a person would read it out, and what needs no reading is left alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from kokoro_lab.text.normalise import normalise, reader
from kokoro_lab.text.normalise.spanish import agreement, numerals, roman
from kokoro_lab.text.sanitise import sanitise
from kokoro_lab.text.sentences import sentences

CORPUS = Path(__file__).parents[3] / "fixtures" / "texts" / "normalisation_es.jsonl"
PAIRS = [json.loads(line) for line in CORPUS.read_text("utf-8").splitlines()]


def read(text: str) -> str:
    return " ".join(normalise(sentence.text, "es").text for sentence in sentences(sanitise(text), "es"))


def heard(text: str) -> list[str]:
    """What of a text is heard: its words, but every sign that nobody has put into words as well."""
    return regex.findall(r"\w+|[^\w\s.,;:!?¿¡()“”\"'…—-]", text.casefold())


@pytest.mark.parametrize("pair", PAIRS, ids=[f"{pair['category']}: {pair['written']}" for pair in PAIRS])
def test_the_corpus_is_read_as_written_down(pair: dict[str, str]) -> None:
    assert heard(read(pair["written"])) == heard(pair["spoken"])


@pytest.mark.parametrize(
    "text",
    [
        "¿Cómo estás? ¡Muy bien, gracias!",
        "La casa de Ana, en la calle del Pez, es grande; la de Luis, no.",
        "Él dijo: “No lo sé…” y se fue.",
        "¡ATENCIÓN! NO PASAR.",
        "La OTAN, la ONU y la UNESCO.",
        "El vídeo político-social.",
        "Los señores Civil y Mil.",
        "Vivo con Vivi y con Dixi.",
        "Hombres y otros seres: niños.",
        "A mí, a ti, a él.",
        "MIX, MIL Y LID",
    ],
)
def test_what_is_words_already_is_left_alone(text: str) -> None:
    assert read(text) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Compró 3 libros, etc.", "Compró tres libros, etcétera."),
        (
            "Abre a las 17 h. Va a las 9 h, a las 5",
            "Abre a las diecisiete horas. Va a las nueve horas, a las cinco",
        ),
        (
            "De 9.30 a 14.00 h, de 9.30 a 10.5",
            "De nueve y media a catorce horas, de nueve punto treinta a diez punto cinco",
        ),
        ("Lea Juan 3:16-18, a las 3:16", "Lea Juan tres dieciséis a dieciocho, a las tres y dieciséis"),
        (
            "12'50 €, 3'75 euros, 5'30\"",
            "doce con cincuenta euros, tres con setenta y cinco euros, cinco minutos treinta segundos",
        ),
        (
            "Hace -2 1/3 y -2 ½ horas, 2 1/2 tazas",
            "Hace menos dos y un tercio y menos dos horas y media, dos tazas y media",
        ),
        ("50 usd, 120 eur", "cincuenta dólares, ciento veinte euros"),
        (
            "El sr. Ruiz en la avda. del Mar, Ntra. Sra. del Mar",
            "El señor Ruiz en la avenida del Mar, nuestra señora del Mar",
        ),
        ("Los tipos V y VI, la fase II", "Los tipos cinco y seis, la fase dos"),
        ("El grupo D, la clase C", "El grupo D, la clase C"),
        ("José L. García y J. L. Borges", "José L García y J L Borges"),
        ("Luis D. Costa, D. Luis", "Luis D. Costa, don Luis"),
        ("de A. Bravo, plan B. Marta", "de Ah Bravo, plan B. Marta"),
        ("calle Mayor, 12/14", "calle Mayor, doce catorce"),
        ("En la calle Mayor, 3/4 de los bares", "En la calle Mayor, tres cuartos de los bares"),
        ("durante 7 d. más, art. 7 d", "durante siete días más, artículo siete d"),
        ("Capítulo Ⅻ, paso ①", "Capítulo doce, paso uno"),
        ("Viene el Dr. Ruiz. Se va a las 5 p. m.", "Viene el doctor Ruiz. Se va a las cinco de la tarde."),
        ("(véase la pág. 5)", "(véase la página cinco)"),
        ("¿Son 20 €? ¡No, 30!", "¿Son veinte euros? ¡No, treinta!"),
        ("“Hay 2”, dijo.", "“Hay dos”, dijo."),
    ],
)
def test_punctuation_stays_where_it_was(text: str, said: str) -> None:
    assert read(text) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("El 5/12 comí 5/12 de la tarta.", "El cinco de diciembre comí cinco doceavos de la tarta."),
        ("Sevilla 3-1 Betis, 0-1 Alavés", "Sevilla tres a uno Betis, cero a uno Alavés"),
        ("2 veces/semana, 3 km/día", "dos veces a la semana, tres kilómetros por día"),
        (
            "Temp. máx. 35º, mín. 20º; el 3º.",
            "temperatura máxima treinta y cinco grados, mínima veinte grados; el tercero.",
        ),
        (
            "Al 612 345 678 antes de las 9.",
            "Al seis uno dos tres cuatro cinco seis siete ocho antes de las nueve.",
        ),
        ("Ganó 3-1 y leyó las págs. 3-10.", "Ganó tres a uno y leyó las páginas tres a diez."),
        ("32/13/2020", "treinta y dos barra trece barra dos mil veinte"),
        (
            "A las 9:45 la mezcla es 9:75.",
            "A las nueve y cuarenta y cinco la mezcla es nueve a setenta y cinco.",
        ),
        ("Vive en la puerta 3 A.", "Vive en la puerta tres A."),
        ("Hay 5 A en el fusible.", "Hay cinco amperios en el fusible."),
        (
            "900 100 001 habitantes",
            "novecientos millones cien mil un habitantes",
        ),
        ("La ley 8/2020 y el 8/2020.", "La ley ocho barra dos mil veinte y el agosto de dos mil veinte."),
        ("Malcolm X vio la X.", "Malcolm X vio la X."),
        ("Enrique VIII y la fase VIII", "Enrique octavo y la fase ocho"),
        ("La temperatura máx. y el valor máx.", "La temperatura máxima y el valor máximo."),
        ("Presión mín. 2, máx. 3", "Presión mínima dos, máxima tres"),
        ("Suma 52 pts. en casa. Hay 3 pts.", "Suma cincuenta y dos puntos en casa. Hay tres puntos."),
        ("Va con retraso de 25'.", "Va con retraso de veinticinco minutos."),
        ("Dijo 'tengo 25' y 'no'.", "Dijo 'tengo veinticinco' y 'no'."),
        ("Viento del NE, hotel NE", "Viento del noreste, hotel ene e"),
        ("Ayer llegó N. Messi.", "Ayer llegó N Messi."),
        ("Tiene ★★★★☆ y ⭐⭐⭐⭐", "Tiene cuatro de cinco estrellas y cuatro estrellas"),
        ('Dijo "tengo 15" y una tele de 15".', 'Dijo "tengo quince" y una tele de quince pulgadas.'),
    ],
)
def test_context_decides(text: str, said: str) -> None:
    assert read(text) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("3 hab. y 1 hab. doble", "tres habitaciones y una habitación doble"),
        (
            "un pueblo de 8 hab. y 28 hab./km²",
            "un pueblo de ocho habitantes y veintiocho habitantes por kilómetro cuadrado",
        ),
        ("son 120 hab. y más", "son ciento veinte habitantes y más"),
        ("2 comp. cada 8 h, 3 comp./día", "dos comprimidos cada ocho horas, tres comprimidos por día"),
        ("mín. -2º, máx. 18 °C", "mínima menos dos grados, máxima dieciocho grados Celsius"),
        ("mín. 3 h, ángulo máx. 30°", "mínimo tres horas, ángulo máximo treinta grados"),
        ("baño: máx. 30º", "baño: máximo treinta grados"),
        ("viento del O. a 20 km/h", "viento del oeste a veinte kilómetros por hora"),
        ("viento de S. Pedro", "viento de san Pedro"),
        ("30 € netos/hora, sí/no", "treinta euros netos por hora, sí no"),
        ("3 g/24 h, 12 €/100 g", "tres gramos por veinticuatro horas, doce euros por cien gramos"),
        (
            "60 mg/kg/día, 5 ml/kg/h",
            "sesenta miligramos por kilogramo por día, cinco mililitros por kilogramo por hora",
        ),
        ("8 GB/256 GB", "ocho gigabytes doscientos cincuenta y seis gigabytes"),
        ("5! = 120", "cinco factorial igual a ciento veinte"),
        ("PIN 1234, clave 12", "PIN uno dos tres cuatro, clave doce"),
    ],
)
def test_what_stands_beside_a_short_form_decides(text: str, said: str) -> None:
    assert normalise(sanitise(text), "es").text == said


@pytest.mark.parametrize("numeral", ["IIII", "VX", "IC", "XXXX", "VV", "", "ABC", "IVI"])
def test_what_only_looks_roman_is_no_number(numeral: str) -> None:
    assert roman.value_of(numeral) is None


def test_roman_numerals_have_their_values() -> None:
    assert [roman.value_of(each) for each in ("I", "IV", "XIX", "XLIX", "MCMXCIX", "MMXXIV")] == [
        1, 4, 19, 49, 1999, 2024,
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["31/2/2020", "2024-13-05", "0/0/2000", "2023-02-30"])
def test_an_impossible_date_is_not_read_as_one(text: str) -> None:
    assert "de" not in read(text).split()


@pytest.mark.parametrize(
    ("value", "plain", "masculine", "feminine"),
    [
        (1, "uno", "un", "una"),
        (21, "veintiuno", "veintiún", "veintiuna"),
        (200, "doscientos", "doscientos", "doscientas"),
        (541, "quinientos cuarenta y uno", "quinientos cuarenta y un", "quinientas cuarenta y una"),
        (21_000, "veintiún mil", "veintiún mil", "veintiún mil"),
        (300_000, "trescientos mil", "trescientos mil", "trescientas mil"),
        (
            200_000_200,
            "doscientos millones doscientos",
            "doscientos millones doscientos",
            "doscientos millones doscientas",
        ),
        (10**18, "uno" + " cero" * 18, "uno" + " cero" * 18, "uno" + " cero" * 18),
        (-5, "menos cinco", "menos cinco", "menos cinco"),
    ],
)
def test_cardinals_agree(value: int, plain: str, masculine: str, feminine: str) -> None:
    said = [
        numerals.cardinal(value),
        numerals.cardinal(value, gender="m"),
        numerals.cardinal(value, gender="f"),
    ]
    assert said == [plain, masculine, feminine]


@pytest.mark.parametrize(
    ("text", "gender"),
    [
        ("21 casas", "f"), ("21 días", "m"), ("21 problemas", "m"), ("21 manos", "f"),
        ("21 canciones", "f"), ("21 camiones", "m"), ("21 ciudades", "f"), ("21 turistas", "m"),
        ("21 listas", "f"), ("21 veces", "f"), ("21 jueces", "m"), ("21 imágenes", "f"),
        ("21 grandes obras", "f"), ("21 crisis", "f"), ("21 más", None), ("21 de mayo", None), ("21", None),
        ("21, casas", None), ("21 es poco", None),
    ],
)  # fmt: skip
def test_the_noun_behind_gives_its_gender(text: str, gender: str | None) -> None:
    assert agreement.gender_behind(text, 0, 2, one=False) == gender


def test_a_number_that_names_does_not_agree() -> None:
    assert read("la página 200 y las 200 páginas") == "la página doscientos y las doscientas páginas"


def test_who_knows_what_a_number_is_can_say_so() -> None:
    spanish = reader("es-mx")
    assert spanish is not None
    assert spanish.cardinal(22) == "veintidós"
    assert spanish.ordinal(22) == "vigésimo segundo"
    assert spanish.date(2024, 3, 1) == "primero de marzo de dos mil veinticuatro"
    assert spanish.date(None, 3, 2) == "dos de marzo"
    assert spanish.date(1999, None, None) == "mil novecientos noventa y nueve"
    assert spanish.time(14, 30, None, None) == "catorce treinta"
    assert spanish.time(2, 30, None, "pm") == "dos y media de la tarde"
    assert spanish.time(0, None, None, None) == "cero horas"


def test_what_is_said_points_to_what_was_written() -> None:
    original = "Cuesta 12,50 € hoy."
    [sentence] = sentences(sanitise(original), "es")
    said = normalise(sentence.text, "es")
    at = said.text.index("doce")
    start, end = said.span(at, at + len("doce euros con cincuenta céntimos"))
    assert original[start:end] == "12,50 €"


@example("#A0.0")
@given(st.text(alphabet="0123456789.,:/-–ºª°%€$'\"+×=#@ aAeEsSXIVkmhpy\n", max_size=60))
def test_no_digit_is_left_and_nothing_raises(text: str) -> None:
    assert not regex.search(r"[0-9]", read(text))


@given(st.integers(0, 10**21))
def test_every_number_has_words(value: int) -> None:
    assert regex.fullmatch(r"[\p{Ll} ]+", read(str(value)))
