"""Any text, document and lexicon is read, or refused by an error of ours, and leaves nothing behind."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import count
from typing import Any

import psutil
import pytest

from kokoro_lab.errors import KokoroLabError
from kokoro_lab.speech.engine import Engine
from tests.fuzz.made import LANGUAGES, documents, fuzzed, lexicons, markdown, seeds, texts

GROWTH_MB = 300
"""Beyond what the languages take once they are loaded: caches have bounds, and no input is kept."""


def resident_mb() -> float:
    return float(psutil.Process().memory_info().rss) / 2**20


def read(engine: Engine, text: str, language: str, input_format: str, lexicon: Any = ()) -> None:
    """Spoken by the tiny voice; segments lie within the text, and what is raised is an error of ours."""
    with suppress(KokoroLabError):
        options = {"voice": "hum", "language": language, "input_format": input_format, "lexicon": lexicon}
        stream = engine.stream(text, cached=False, **options)
        for _ in stream:
            pass
        assert all(0 <= s.start <= s.end <= len(text) for s in stream.segments)


@pytest.mark.parametrize("text", seeds("text"), ids=count())
def test_a_text_that_was_found_is_read(hum: Engine, text: str) -> None:
    for language in ("en-us", "es", "ja", "zh"):
        read(hum, text, language, "text")


@pytest.mark.parametrize("document", seeds("ssml"), ids=count())
def test_a_document_that_was_found_is_read(hum: Engine, document: str) -> None:
    read(hum, document, "en-us", "ssml")


@pytest.mark.parametrize("document", seeds("markdown"), ids=count())
def test_markdown_that_was_found_is_read(hum: Engine, document: str) -> None:
    read(hum, document, "en-us", "markdown")


@pytest.mark.parametrize("lexicon", seeds("lexicon"), ids=count())
def test_a_lexicon_that_was_found_is_read_or_refused(hum: Engine, lexicon: str) -> None:
    read(hum, "Does nginx run?", "en-us", "text", json.loads(lexicon))


@pytest.mark.test_long
@pytest.mark.parametrize("language", LANGUAGES)
def test_any_text_is_read(hum: Engine, language: str) -> None:
    for seed in seeds("text"):  # each language and detector that a text may wake is loaded
        read(hum, seed, language, "text")
    before_mb = resident_mb()
    assert fuzzed(texts(), lambda text: read(hum, text, language, "text")) > 10
    assert resident_mb() - before_mb < GROWTH_MB


@pytest.mark.test_long
def test_any_document_is_read(hum: Engine) -> None:
    read(hum, "<speak>Warm.</speak>", "en-us", "ssml")
    before_mb = resident_mb()
    assert fuzzed(documents(), lambda made: read(hum, made, "en-us", "ssml")) > 10
    assert resident_mb() - before_mb < GROWTH_MB


@pytest.mark.test_long
def test_any_markdown_is_read(hum: Engine) -> None:
    for seed in seeds("markdown"):
        read(hum, seed, "en-us", "markdown")
    before_mb = resident_mb()
    assert fuzzed(markdown(), lambda made: read(hum, made, "en-us", "markdown")) > 10
    assert resident_mb() - before_mb < GROWTH_MB


@pytest.mark.test_long
def test_any_lexicon_is_read_or_refused(hum: Engine) -> None:
    before_mb = resident_mb()
    assert fuzzed(lexicons(), lambda made: read(hum, "Does nginx run, a?", "en-us", "text", made)) > 10
    assert resident_mb() - before_mb < GROWTH_MB
