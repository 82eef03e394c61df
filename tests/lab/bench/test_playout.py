"""The bench counts what a listener would notice."""

from __future__ import annotations

import pytest

from kokoro_lab.lab.bench.trial import Playout, play


@pytest.mark.parametrize(
    ("arrivals", "expected"),
    [
        ([0.0, 0.05, 0.10], Playout(0, 0.0, 0.0)),
        ([0.0, 0.14, 0.20], Playout(0, 0.0, 0.09)),  # within the pre-buffer
        ([0.0, 0.25, 0.30], Playout(1, 0.10, 0.20, 0.10)),  # once late, then the clock has moved
        ([0.0, 0.25, 0.50], Playout(2, 0.30, 0.20, 0.20)),
        ([], Playout(0, 0.0, 0.0)),
    ],
)
def test_a_late_chunk_is_an_underrun(arrivals: list[float], expected: Playout) -> None:
    found = play(arrivals, [0.05] * len(arrivals))
    assert found.underruns == expected.underruns
    assert found.late_s == pytest.approx(expected.late_s)
    assert found.longest_gap_s == pytest.approx(expected.longest_gap_s)
    assert found.longest_silence_s == pytest.approx(expected.longest_silence_s)
