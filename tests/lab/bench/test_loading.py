"""Listeners at once are served as one alone is, and what is not in time is told."""

from __future__ import annotations

import math
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kokoro_lab.lab.bench import loading
from kokoro_lab.lab.bench.load_verdict import controls, curve, judge, printed
from kokoro_lab.lab.bench.loading import Load, crowds_for, measure_load
from kokoro_lab.lab.bench.own_server import OwnServer, own_server
from kokoro_lab.lab.bench.soak import SoakReading
from kokoro_lab.lab.results import failed

TEXTS = [
    "Three boats came back before noon, and it was more than they had hoped for.",
    "Rain fell on the quiet town until the morning.",
]


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    """Two listeners of a voice that hums, then some who come by chance."""
    hum = tmp_path_factory.mktemp("hum") / "hum.onnx"
    command = [sys.executable, "-m", "tests.server.tiny_server", str(hum), "patient"]

    def start(settings: dict[str, Any]) -> Any:
        return own_server({"voice": "hum", "first_audio_ttl_s": 0, **settings}, command, Path.cwd())

    readings = [SoakReading(str(number), text, "hum") for number, text in enumerate(TEXTS)]
    long_readings = [SoakReading("long", f"{TEXTS[0]} Slow. " * 12, "hum")]
    return measure_load(start, readings, long_readings, [2], 4, [0.02])


@pytest.mark.test_all
def test_listeners_are_served_and_others_are_refused(load: Load) -> None:
    assert [one.name for one in load.crowds] == ["1 listener", "2 listeners", "2% by chance"]
    assert not failed(judge(load, decides=False))
    alone, two, _ = load.crowds
    assert set(alone.streams.listener) == {0}
    assert set(two.streams.listener) == {0, 1}
    assert (two.streams.rtf > 0.5).all(), "they take what they play"
    assert two.cpu_s > 0
    assert two.own_cpu_s > 0
    assert len(load.refused_s) == loading.REFUSALS
    assert load.ran["model_sha256"] == "hum"
    assert math.isfinite(curve(load).to_numpy().sum())
    assert any("should be borne" in line for line in printed(load))


@pytest.mark.test_all
def test_a_server_that_really_stands_still_is_noticed(load: Load) -> None:
    assert all(control.caught for control in controls(load))
    assert (load.stalled.streams.ttfa_s > 0.9 * loading.STANDS_S).all()


@pytest.mark.parametrize(
    ("answers", "slept_s", "refused"),
    [((math.nan,), [], 0), ((2.0, 1.0, math.nan), [2.0, 1.0], 2), ((2.0, 60.0), [2.0], 1)],
)
def test_who_is_refused_comes_back_when_told_to(
    monkeypatch: pytest.MonkeyPatch, answers: tuple[float, ...], slept_s: list[float], refused: int
) -> None:
    told, slept = iter(answers), list[float]()
    monkeypatch.setattr(
        loading, "listened", lambda *one, **_: {"at_s": one[4], "ttfa_s": 0.1, "retry_after_s": next(told)}
    )
    monkeypatch.setattr("kokoro_lab.lab.bench.loading.time.sleep", slept.append)
    monkeypatch.setattr("kokoro_lab.lab.bench.loading.time.monotonic", lambda: sum(slept))
    ask = partial(loading._persistent, OwnServer("http://127.0.0.1:1", None))  # type: ignore[arg-type]
    one = ask(SoakReading("0", "A.", "hum"), "http", 0, 7.0)
    assert (slept, one["refused"]) == (slept_s, refused)
    assert (one["at_s"], one["ttfa_s"]) == (7.0, pytest.approx(sum(slept_s) + 0.1)), "of the first request"
    assert next(told, None) is None


def test_the_curve_goes_beyond_what_should_be_borne() -> None:
    assert crowds_for(12) == [3, 6, 9, 12, 15, 18]
    assert crowds_for(1) == [1, 2]
    assert crowds_for(0) == [1]
