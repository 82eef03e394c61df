"""The text front end is quick by the sentence, and a long text costs it no more at its end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kokoro_lab.bench.front_end import (
    WARM_SENTENCES,
    Stretch,
    long_text,
    prose,
    read_alone,
    read_long,
    time_sentences,
)
from kokoro_lab.errors import ParameterError
from kokoro_lab.g2p.frontend import FrontEnd

LONG, STRETCH = 48_000, 6_000
GROWTH_MB = 8.0
"""Of resident memory over the second half; a megabyte of text that was kept would be 100."""


@pytest.fixture(scope="module")
def front_end() -> FrontEnd:
    found = FrontEnd()
    found.warm("en-us")
    return found


def test_there_is_prose_enough_for_a_95th_percentile() -> None:
    assert len(prose()) >= 300
    assert len(set(prose())) == len(prose())


def test_every_sentence_is_read_once_and_none_from_the_cache(front_end: FrontEnd) -> None:
    sentences = prose()[: WARM_SENTENCES + 5]
    hits = front_end.cache.figures()["hits"]
    times = time_sentences(front_end, [*sentences, sentences[-1]], "en-us")
    assert [each.characters for each in times] == [len(s) for s in sentences[WARM_SENTENCES:]]
    assert all(0 < each.cpu_ms < 1000 and each.wall_ms > 0 for each in times)
    assert front_end.cache.figures()["hits"] == hits


def test_too_few_sentences_are_refused(front_end: FrontEnd) -> None:
    with pytest.raises(ParameterError, match="too few"):
        time_sentences(front_end, prose()[:WARM_SENTENCES], "en-us")


def test_a_long_text_never_says_the_same_sentence_again() -> None:
    text = long_text(["One two three.", "Four five six."], 5_000)
    sentences = text.split(". ")
    assert 5_000 <= len(text) < 5_100
    assert len(set(sentences)) == len(sentences)


def test_a_text_without_ends_has_none() -> None:
    text = long_text(["Yes, it is!", "No: it isn't."], 1_000, ends=False)
    assert text.replace(" ", "").isalpha()
    assert text.islower()


@pytest.mark.parametrize("ends", [True, False], ids=["sentences", "no sentence end"])
def test_a_long_text_costs_no_more_at_its_end(front_end: FrontEnd, ends: bool) -> None:
    text = long_text(prose(), LONG, ends=ends)
    stretches = list(read_long(front_end, text, "en-us", STRETCH))
    assert stretches[-1].until == len(text)
    half = len(stretches) // 2
    first, second = stretches[1:half], stretches[half:]
    assert _cost(second) < 1.5 * _cost(first)
    assert stretches[-1].rss_mb - stretches[half - 1].rss_mb < GROWTH_MB


def _cost(stretches: list[Stretch]) -> float:
    """Seconds computed a stretch: the median, since another process may have had the caches."""
    return sorted(each.cpu_s for each in stretches)[len(stretches) // 2]


def test_figures_are_kept_with_the_conditions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kokoro_lab.bench.front_end.new_run_folder", lambda _: tmp_path)
    path, lines = read_alone(prose()[: WARM_SENTENCES + 10], "en-us")
    record = json.loads(path.read_text("utf-8"))
    assert len(record["sentences"]) == 10
    assert record["summary"]["cpu_ms"]["p50"] <= record["summary"]["cpu_ms"]["p95"]
    assert "10 sentences in en-us" in lines[0]
