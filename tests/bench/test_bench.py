"""The bench counts what a listener would notice."""

from __future__ import annotations

import pytest

from kokoro_lab.bench.playout import Playout, play
from kokoro_lab.bench.timing import PRESETS, measure, summary, texts_of
from kokoro_lab.engine import Engine


@pytest.mark.parametrize(
    ("arrivals", "expected"),
    [
        ([0.0, 0.05, 0.10], Playout(0, 0.0, 0.0)),
        ([0.0, 0.14, 0.20], Playout(0, 0.0, 0.09)),  # within the pre-buffer
        ([0.0, 0.25, 0.30], Playout(1, 0.10, 0.20)),  # once late, then the clock has moved
        ([0.0, 0.25, 0.50], Playout(2, 0.30, 0.20)),
        ([], Playout(0, 0.0, 0.0)),
    ],
)
def test_a_late_chunk_is_an_underrun(arrivals: list[float], expected: Playout) -> None:
    found = play(arrivals, [0.05] * len(arrivals), pre_buffer_s=0.1)
    assert found.underruns == expected.underruns
    assert found.late_s == pytest.approx(expected.late_s)
    assert found.longest_gap_s == pytest.approx(expected.longest_gap_s)


def test_texts_are_distinct_and_of_the_length_asked_for() -> None:
    sentences = [
        "The cat sat on the mat, and slept.",
        "Nobody came.",
        "Rain fell on the quiet town all night.",
    ]
    for characters in PRESETS.values():
        texts = list(texts_of(sentences, characters, 8, seed=1))
        assert all(0.7 * characters <= len(t) <= 1.2 * characters + 1 for t in texts)
        assert len(set(texts)) > 4
    assert list(texts_of(sentences, 140, 3, seed=1)) == list(texts_of(sentences, 140, 3, seed=1))


@pytest.mark.parametrize("streamed", [True, False])
def test_a_trial_is_a_synthesis(hum: Engine, streamed: bool) -> None:
    trials = measure(hum, ["The kettle is on.", "Nobody is in."], "hum", streamed=streamed, progress=False)
    assert len(trials) == 2
    for trial in trials:
        assert 0 < trial.ttfa_s <= trial.wall_s + 0.01
        assert trial.audio_s > 0.5
        assert trial.streamed is streamed
    assert {"ttfa_s", "rtf", "underruns", "rss_growth_mb"} <= set(summary(trials).index)
