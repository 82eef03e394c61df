"""Languages go by the names that people know them by; others are refused with a list of what there is."""

from __future__ import annotations

import pytest

from kokoro_lab.errors import LanguageError
from kokoro_lab.model.voices import LANGUAGE_OF_PREFIX
from kokoro_lab.text.language import SPOKEN, english_of, resolve_language


@pytest.mark.parametrize(
    ("tag", "canonical"),
    [
        ("en", "en-us"),
        ("EN_GB", "en-gb"),
        (" es-ES ", "es"),
        ("fr-FR", "fr"),
        ("pt", "pt-br"),
        ("pt-BR", "pt-br"),
        ("ja-JP", "ja"),
        ("j", "ja"),
    ],
)
def test_a_language_has_several_names(tag: str, canonical: str) -> None:
    assert resolve_language(tag) == canonical


@pytest.mark.parametrize("tag", ["", "de", "zh", "en-au", "klingon", "es-419", "pt-pt"])
def test_others_are_refused_with_what_there_is(tag: str) -> None:
    with pytest.raises(LanguageError, match="en-us, en-gb, es, fr, it, pt-br, hi, ja"):
        resolve_language(tag)


def test_every_voice_but_the_chinese_ones_has_its_language() -> None:
    assert {tag for tag in LANGUAGE_OF_PREFIX.values() if tag != "zh"} == set(SPOKEN)


def test_english_is_the_requests_then_the_voices_then_american() -> None:
    assert english_of("en-gb", "en-us") == "en-gb"
    assert english_of("es", "en-gb") == "en-gb"
    assert english_of("es", None) == "en-us"
