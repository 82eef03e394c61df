"""Paired word errors: what is counted, what may pass, and what must not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kokoro_lab.lab.gates import abx, intelligibility
from kokoro_lab.lab.gates.intelligibility import Remembering
from kokoro_lab.lab.gates.speaking import SpokenPair
from kokoro_lab.lab.listening import PassagePair
from kokoro_lab.metrics.intelligibility import Recogniser
from kokoro_lab.speech.engine import Engine

pytest.importorskip("jiwer", reason="word errors need the extra `quality`, which is not installed")

TEXTS = (
    "the quiet harbour lay under a thin grey morning mist",
    "nobody remembered where the old ladder had been put",
    "seven brown hens walked slowly along the garden wall",
    "she counted the empty bottles and wrote down a number",
)
WORD = 100


class Scribe:
    """Reads samples as words: a word is so many samples that all hold its index in the text."""

    def __init__(self) -> None:
        self.asked = 0

    def transcribe(self, samples: np.ndarray, sample_rate_hz: int, language: str = "en") -> str:
        self.asked += 1
        words = [word for text in TEXTS for word in text.split()]
        return " ".join(words[int(index)] for index in samples[::WORD])


def clip(text: int) -> np.ndarray:
    before = sum(len(other.split()) for other in TEXTS[:text])
    return np.repeat(np.arange(before, before + len(TEXTS[text].split()), dtype=np.float32), WORD)


def pairs(candidates: Mapping[int, np.ndarray] | None = None) -> list[SpokenPair]:
    """Every text with itself, or with what stands in `candidates`."""
    candidates = candidates or {}
    return [
        SpokenPair(
            f"text {i}",
            "hum",
            PassagePair(f"text {i}", clip(i), candidates.get(i, clip(i)), 24_000),
            said,
            slice(3 * WORD, 4 * WORD),
        )
        for i, said in enumerate(TEXTS)
    ]


def test_rates_are_errors_over_words_and_no_mean_of_rates() -> None:
    table = pd.DataFrame({"words": [1, 11], "word_errors_candidate": [1, 0]})
    assert intelligibility.error_percent(table, "word", "candidate") == pytest.approx(100 / 12)


def test_the_same_words_pass() -> None:
    table = intelligibility.measure(pairs(), Scribe())
    assert [check.value for check in intelligibility.judge(table)] == [0]
    assert all(check.passed for check in intelligibility.judge(table))
    found = intelligibility.figures(table)
    assert found["machine_words_count"] == sum(len(text.split()) for text in TEXTS)
    assert found["machine_word_error_rate_candidate_percent"] == 0
    assert intelligibility.worst(table).empty


def test_a_missed_word_is_counted_in_its_pair_and_in_all_words() -> None:
    table = intelligibility.measure(pairs({1: clip(1)[WORD:]}), Scribe())
    assert list(table.word_errors_candidate) == [0, 1, 0, 0]
    assert list(table.word_errors_reference) == [0, 0, 0, 0]
    found = intelligibility.figures(table)
    words = found["machine_words_count"]
    assert found["machine_word_error_rate_rise_points"] == pytest.approx(100 / words)
    assert found["machine_word_error_rate_candidate_percent"] == pytest.approx(100 / words)
    assert found["machine_word_errors_added_in_a_pair_most_count"] == 1
    (row,) = intelligibility.worst(table).itertuples()
    assert (row.Index, row.heard_candidate) == ("text 1", TEXTS[1].removeprefix("nobody "))


def test_a_word_missed_in_every_clip_fails() -> None:
    table = intelligibility.measure(pairs({i: clip(i)[WORD:] for i in range(4)}), Scribe())
    assert [check.passed for check in intelligibility.judge(table)] == [False]


def test_what_the_reference_is_misheard_as_does_not_count_against_the_candidate() -> None:
    damaged = {i: clip(i)[WORD:] for i in range(4)}
    both = [e._replace(pair=replace(e.pair, reference=e.pair.candidate)) for e in pairs(damaged)]
    table = intelligibility.measure(both, Scribe())
    assert all(check.passed for check in intelligibility.judge(table))
    assert intelligibility.figures(table)["machine_word_error_rate_reference_percent"] > 5


def test_every_fault_put_in_on_purpose_is_caught() -> None:
    # Another voice of a text is not another text: three of them must be found
    again = [each._replace(voice="hum_high") for each in pairs()]
    found = intelligibility.controls([*pairs()[:1], *again], Scribe())
    assert [control.name for control in found if not control.caught] == []
    assert len(found) == 3


def test_a_recogniser_that_hears_nothing_is_found_out() -> None:
    class Deaf:
        def transcribe(self, samples: np.ndarray, sample_rate_hz: int, language: str = "en") -> str:
            return ""

    found = intelligibility.controls(pairs(), Deaf())
    assert [control.caught for control in found] == [True, False, False]


def test_the_same_samples_are_heard_once() -> None:
    scribe = Scribe()
    remembering = Remembering(scribe)
    first = intelligibility.measure(pairs(), remembering)
    assert scribe.asked == len(TEXTS)
    again = intelligibility.measure(pairs(), remembering)
    assert scribe.asked == len(TEXTS)
    assert first.equals(again)


@pytest.mark.test_all
@pytest.mark.model
def test_whisper_catches_what_is_put_in_on_purpose(engine: Engine, recogniser: Recogniser) -> None:
    texts = abx.short_texts("short")[:3]
    spoken = abx.make_pairs(engine, engine, texts, ["af_heart"])
    found = intelligibility.controls(spoken, Remembering(recogniser))
    assert [control.name for control in found if not control.caught] == []
