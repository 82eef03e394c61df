"""French, Italian, Portuguese and Hindi numbers are read in words of their language."""

from __future__ import annotations

import pytest

from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.normalise import normalise, other, reader


@pytest.mark.parametrize(
    ("language", "written", "said"),
    [
        ("fr", "3 ans et 80 jours", "trois ans et quatre-vingts jours"),
        ("fr", "1 234 567", "un million deux cent trente-quatre mille cinq cent soixante-sept"),
        ("fr", "3,14", "trois virgule quatorze"),
        ("fr", "0,05", "zéro virgule zéro cinq"),
        ("fr", "-5 degrés", "moins cinq degrés"),
        ("fr", "le 1er et la 1re, le 2e", "le premier et la première, le deuxième"),
        ("fr", "12,50 €", "douze euros cinquante centimes"),
        ("fr", "1 €", "un euro"),
        ("fr", "2 000 000 €", "deux millions d'euros"),
        ("fr", "£1", "une livre"),
        ("fr", "50 %", "cinquante pour cent"),
        ("fr", "14h30", "quatorze heures trente"),
        ("fr", "1h", "un h"),
        ("fr", "03/04/2024", "trois avril deux mille vingt-quatre"),
        ("fr", "10-15 jours", "dix à quinze jours"),
        ("fr", "0123", "zéro un deux trois"),
        ("it", "21 anni", "ventuno anni"),
        ("it", "€1", "un euro"),
        ("it", "£1", "una sterlina"),
        ("it", "1.234,5", "milleduecentotrentaquattro virgola cinque"),
        ("it", "2º piano, 2ª porta", "secondo piano, seconda porta"),
        ("it", "14:30", "quattordici ore e trenta"),
        ("it", "01/05/2024", "primo maggio duemilaventiquattro"),
        ("pt-br", "R$ 2,50", "dois reais e cinquenta centavos"),
        ("pt-br", "£2", "duas libras"),
        ("pt-br", "3ª vez", "terceira vez"),
        ("pt-br", "2024-03-05", "cinco de março de dois mil e vinte e quatro"),
        ("pt-br", "1.000.000 €", "um milhão de euros"),
        ("hi", "१२ लोग", "बारह लोग"),
        ("hi", "3.14", "तीन दशमलव चौदह"),
        ("hi", "₹1,23,456.50", "एक लाख तेईस हज़ार चार सौ छप्पन रुपये पचास पैसे"),
        ("hi", "1,00,00,000", "एक करोड़"),
        ("hi", "5वां", "पाँचवाँ"),
        ("hi", "50%", "पचास प्रतिशत"),
        ("hi", "14:30", "चौदह बजकर तीस मिनट"),
    ],
)
def test_read_as(language: str, written: str, said: str) -> None:
    assert normalise(AlignedText.of(written), language).text == said


@pytest.mark.parametrize("language", ["fr", "it", "pt-br", "hi"])
def test_no_digit_is_left(language: str) -> None:
    text = "RTX4090 1.2.3 9" + "9" * 40 + " 31/02/2024 25:61 007 ½ १२ 1e10"
    read = normalise(AlignedText.of(text), language).text
    assert not [c for c in read if c.isdecimal()]


@pytest.mark.parametrize("language", ["fr", "it", "pt-br", "hi"])
def test_words_without_digits_are_left_alone(language: str) -> None:
    text = "Sans chiffres - senza cifre, sem números; बिना अंक!"
    assert normalise(AlignedText.of(text), language).text == text


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("fr", ("moins deux", "dixième", "premier mai", "vingt-deux heures cinq")),
        ("it", ("meno due", "decimo", "primo maggio", "ventidue ore e cinque")),
        ("pt-br", ("menos dois", "décimo", "primeiro de maio", "vinte e duas horas e cinco")),
        ("hi", ("माइनस दो", "दसवाँ", "एक मई", "बाईस बजकर पाँच मिनट")),
    ],
)
def test_say_as_finds_what_it_needs(language: str, said: tuple[str, str, str, str]) -> None:
    found = reader(language)
    assert found is not None
    assert said == (
        found.cardinal(-2),
        found.ordinal(10),
        found.date(None, 5, 1),
        found.time(10, 5, None, "pm"),
    )


@pytest.mark.parametrize("language", ["fr", "it", "pt-br", "hi"])
def test_months_are_named_as_cldr_names_them(language: str) -> None:
    dates = pytest.importorskip("babel.dates", reason="the extra `lab` is not installed")
    months = dates.get_month_names("wide", locale=language.replace("-", "_"))
    assert other.OtherReader(language[:2])._months == dict(months)
