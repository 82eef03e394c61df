"""Languages go by the names that people know them by; others are refused with a list of what there is."""

from __future__ import annotations

import re

import pytest

from kokoro_lab.errors import LanguageError
from kokoro_lab.text.language import SPOKEN, english_of, resolve_language, schema_pattern, understood
from kokoro_lab.weights.voices import LANGUAGE_OF_PREFIX


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
        ("A", "en-us"),
        ("eng", "en-us"),
        ("spa_ES", "es"),
        ("en-Latn-GB", "en-gb"),
        ("ja-Jpan-JP", "ja"),
        ("zh-Hans", "zh"),
        ("zh_CN", "zh"),
        ("cmn", "zh"),
        ("chi", "zh"),
        ("z", "zh"),
    ],
)
def test_a_language_has_several_names(tag: str, canonical: str) -> None:
    assert understood(tag) == (canonical, None)


@pytest.mark.parametrize(
    ("tag", "read_as"),
    [
        ("es-MX", "es"),
        ("es-419", "es"),
        ("es_ar", "es"),
        ("fr-CA", "fr"),
        ("pt-PT", "pt-br"),
        ("en-AU", "en-gb"),
        ("en-IN", "en-gb"),
        ("en-CA", "en-us"),
        ("en-001", "en-us"),
        ("EN-us-POSIX", "en-us"),
        ("hi-Latn", "hi"),
        ("zh-TW", "zh"),
    ],
)
def test_a_region_that_has_no_reading_is_read_as_its_language_and_that_is_said(
    tag: str, read_as: str
) -> None:
    found, instead = understood(tag)
    assert found == resolve_language(tag) == read_as
    assert instead == f"{tag} is read as {read_as}: there is no reading of its own for it"


@pytest.mark.parametrize("tag", ["es-MX", "EN_GB", "e", "B", "jpn", "pt-PT", "en-us", "en-Latn-US"])
def test_the_schema_knows_what_is_understood(tag: str) -> None:
    assert re.search(schema_pattern(), tag)


@pytest.mark.parametrize("tag", ["", "qaa", "qaa-Kore", "x", "en-", "en--us", "es-!", "enus", "e-mx"])
def test_the_schema_knows_what_is_not_understood(tag: str) -> None:
    assert not re.search(schema_pattern(), tag)
    with pytest.raises(LanguageError):
        understood(tag)


@pytest.mark.parametrize("tag", ["", "qaa", "qaa-AT", "qaa-Kore", "y", "yue", "klingon", "en-", "es-!!"])
def test_others_are_refused_with_what_there_is(tag: str) -> None:
    with pytest.raises(LanguageError, match="en-us, en-gb, es, fr, it, pt-br, hi, ja, zh"):
        resolve_language(tag)


def test_every_voice_has_its_language() -> None:
    assert set(LANGUAGE_OF_PREFIX.values()) == set(SPOKEN)


def test_english_is_the_requests_then_the_voices_then_american() -> None:
    assert english_of("en-gb", "en-us") == "en-gb"
    assert english_of("es", "en-gb") == "en-gb"
    assert english_of("es", None) == "en-us"
