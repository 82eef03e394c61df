"""Time is counted for the stage that computes, and for none while it waits for somebody."""

from __future__ import annotations

from itertools import count

import pytest

from kokoro_lab.scheduling.stopwatch import Stopwatch


def test_who_waits_computes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = count()
    monkeypatch.setattr("kokoro_lab.scheduling.stopwatch.time.perf_counter", lambda: float(next(seconds)))
    watch = Stopwatch()
    with watch("text"), watch.waiting("text"):  # from 0 to 3, and from 1 to 2
        pass
    assert watch.stages_s == {"text": 2.0}
    assert watch.busy_s == 2.0


def test_who_is_held_computes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = count()
    monkeypatch.setattr("kokoro_lab.scheduling.stopwatch.time.perf_counter", lambda: float(next(seconds)))
    watch = Stopwatch()
    with watch("model"):  # from 0 to 1
        pass
    watch.stood_still("model", 0.25)
    assert watch.stages_s == {"model": 0.75}
    assert watch.busy_s == 0.75
