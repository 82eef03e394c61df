"""The text front end is quick by the sentence, and a long text costs it no more at its end."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import pytest

from kokoro_lab.errors import ParameterError
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.g2p.phoneme_cache import PhonemeCache
from kokoro_lab.lab.bench.front_end import (
    WARM_SENTENCES,
    long_text,
    prose,
    read_alone,
    read_long,
    time_sentences,
)
from kokoro_lab.text.detect import LATIN

LONG, STRETCH = 36_000, 4_000
SHORT = 8_000


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
    assert list(times.characters) == [len(s) for s in sentences[WARM_SENTENCES:]]
    assert times.cpu_ms.between(0, 1000, inclusive="neither").all()
    assert (times.wall_ms > 0).all()
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
    text = long_text(prose(), LONG, ends=ends)[:LONG]  # all stretches alike
    stretches = read_long(front_end, text, "en-us", STRETCH)
    assert stretches.until.iloc[-1] == len(text)
    half = len(stretches) // 2
    # The cheapest: another process may have had the caches of the machine during the others
    assert stretches.cpu_s[half:].min() < 2 * stretches.cpu_s[1:half].min()


@pytest.mark.test_all
def test_nothing_is_kept_of_a_text_that_was_read(
    front_end: FrontEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(front_end, "cache", PhonemeCache(0))  # the one thing that is there to keep them
    for language in LATIN:  # a made-up word may be read as Italian, and the first one loads all of Italian
        front_end.warm(language)
    first, *others = (long_text(prose(), SHORT, seed=seed) for seed in range(1, 5))
    for _ in front_end.segments(first, "en-us", lambda _: None):
        pass
    grown = []
    for text in others:
        before = _objects()
        words = sum(len(segment.words) for segment in front_end.segments(text, "en-us", lambda _: None))
        grown.append(_objects() - before)
    assert min(grown) < words / 4, grown  # another part of the process may have loaded something meanwhile
    before = _objects()
    kept = list(front_end.segments(first, "en-us", lambda _: None))
    assert _objects() - before > words, f"{len(kept)} segments that are kept must show"


def _objects() -> int:
    """How many there are that may hold others."""
    gc.collect()
    return len(gc.get_objects())


def test_figures_are_kept_with_the_conditions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kokoro_lab.lab.bench.front_end.new_run_folder", lambda _: tmp_path)
    path, lines = read_alone(prose()[: WARM_SENTENCES + 10], "en-us")
    record = json.loads(path.read_text("utf-8"))
    assert len(record["sentences"]) == 10
    assert record["summary"]["cpu_ms"]["p50"] <= record["summary"]["cpu_ms"]["p95"]
    assert "10 sentences in en-us" in lines[0]
