"""A soak counts every stream, and no leak, drift or early end passes it."""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import httpx2
import numpy as np
import pandas as pd
import pytest

from kokoro_lab.errors import GateFailed, ParameterError
from kokoro_lab.lab.bench import soak_verdict
from kokoro_lab.lab.bench.client import TRANSPORTS
from kokoro_lab.lab.bench.memory import growth_of, held_by, watched
from kokoro_lab.lab.bench.own_server import OwnServer, own_server
from kokoro_lab.lab.bench.soak import (
    HEARD,
    READERS,
    Soak,
    SoakReading,
    foreign_sentences,
    listened,
    measure_soak,
    readings_of,
    turns,
)
from kokoro_lab.lab.bench.soak_verdict import NOTHING, THREADS, FigureDrift, adjusted, drift
from kokoro_lab.lab.bench.verdicts import SoakPlan, judge
from kokoro_lab.lab.results import NegativeControl, open_run

SENTENCES = [
    "The kettle is on, and the window is open to the garden behind the house.",
    "Nobody is in, and nobody has been all day, as far as one can tell from here.",
    "Rain fell on the quiet town until the morning.",
    "Three of the 12 boats came back before noon, which was more than they had hoped for.",
]


# ----------------------------------------------------------------------------------------- drift


def drift_of(
    at_s: Sequence[float],
    values: Sequence[float],
    groups: Sequence[str],
    run_s: float,
    percentile: float = 50,
) -> FigureDrift:
    return drift(*map(pd.Series, (at_s, values, groups)), run_s, percentile)


def test_a_rise_over_the_second_half_is_measured_with_its_interval() -> None:
    at_s = np.arange(0, 1200, 5.0)
    values = 0.1 * (1 + 0.2 * np.maximum(at_s / 600 - 1, 0))
    found = drift_of(at_s, values, ["one"] * len(at_s), 1200)
    assert found.percent == pytest.approx(20 / 1.1, abs=0.5)  # of the level in the second half
    assert found.low <= found.percent <= found.high
    assert len(found.levels) == 10
    assert drift_of(at_s, values, ["one"] * len(at_s), 1200, 95).percent == pytest.approx(18, abs=1)


def test_noise_has_an_interval_that_holds_no_drift() -> None:
    missed = 0
    for seed in range(40):
        draw = np.random.default_rng(seed)
        at_s = np.sort(draw.uniform(0, 1200, 150))
        found = drift_of(at_s, draw.lognormal(0, 0.1, 150), ["one"] * 150, 1200)
        missed += not found.low <= 0 <= found.high
    assert missed <= 5


def test_groups_are_never_compared_with_each_other() -> None:
    values, groups = pd.Series([1, 1, 2, 50, 50, 50]), pd.Series(list("aaabbb"))
    assert list(adjusted(values, groups)) == [1, 1, 2, 1, 1, 1]


def test_too_few_values_have_no_drift() -> None:
    assert math.isnan(drift_of([1, 50, 100], [1, 1, 1], ["a"] * 3, 100).percent)


# ----------------------------------------------------------------------------------------- what is held


def held(at_s: Sequence[float], rss_mb: object = 600, descriptors: object = 30) -> pd.DataFrame:
    return pd.DataFrame({"at_s": at_s, "rss_mb": rss_mb, "descriptors": descriptors, "threads": 20})


def test_growth_is_counted_after_the_first_minutes_alone() -> None:
    at_s = np.arange(0, 1200, 10)
    assert growth_of(held(at_s, rss_mb=600 + np.minimum(at_s, 300))).rss_mb == 0
    late = growth_of(held(at_s, rss_mb=600 + np.maximum(at_s - 300, 0) / 10))
    assert late.rss_mb == pytest.approx(81, abs=2)
    assert late.rss_mb_an_hour == pytest.approx(360, abs=1)


def test_what_a_stream_under_way_holds_is_no_growth() -> None:
    at_s = np.arange(200)
    assert growth_of(held(at_s, descriptors=30 + at_s % 3)).descriptors == 0


def test_too_few_readings_show_no_growth() -> None:
    assert math.isnan(growth_of(held([0, 1])).rss_mb)
    assert not any(check.passed for check in soak_verdict.judge_growth(growth_of(pd.DataFrame())))


# ----------------------------------------------------------------------------------------- the mix


def test_every_round_holds_every_reading_and_they_meet_every_transport() -> None:
    readings = [SoakReading(str(number), "A.", "hum") for number in range(5)]
    rounds = len(TRANSPORTS) * 4
    drawn = list(islice(turns(readings, seed=1), 5 * rounds))
    for start in range(0, len(drawn), 5):
        assert {reading.name for reading, _ in drawn[start : start + 5]} == set("01234")
    assert {(reading.name, way) for reading, way in drawn} == {
        (r.name, w) for r in readings for w in TRANSPORTS
    }
    assert drawn == list(islice(turns(readings, seed=1), 5 * rounds))


def test_readings_differ_in_length_voice_and_language() -> None:
    found = readings_of(SENTENCES, foreign_sentences(), "af_heart", 10)
    assert len({one.text for one in found}) == 10
    assert {one.name.split()[1] for one in found} == {language for language, _, _ in READERS}
    assert "af_heart" in {one.voice for one in found}
    lengths = {one.name.split()[2]: len(one.text) for one in found}
    assert lengths["short"] < lengths["medium"] < lengths["paragraph"]
    assert readings_of(SENTENCES, foreign_sentences(), "af_heart", 10) == found


def test_texts_that_do_not_suffice_are_an_error() -> None:
    with pytest.raises(ParameterError, match="'es'"):
        readings_of(SENTENCES, {"es": ["Hola."]}, "af_heart", 20)


# ----------------------------------------------------------------------------------------- the verdict


@pytest.mark.parametrize("control", soak_verdict.made_up_controls(), ids=lambda one: one.name)
def test_a_fault_is_caught_and_what_is_harmless_is_not(control: NegativeControl) -> None:
    assert control.caught


ONE = {
    **{"number": 0, "reading": "0", "way": "sse", "at_s": 1.0, "fault": ""},
    **{"samples_count": 9, "sha256": "a", **HEARD, "ttfa_s": 9.0, "rtf": 3.0, "underruns": 5},
}


def short(**changed: object) -> Soak:
    """One of 18 s, with a stream."""
    fields = {
        "run_s": 18.0,
        "concurrency": 1,
        "wholes": pd.DataFrame({"samples_count": [9], "sha256": "a"}, index=["0"]),
        "streams": pd.DataFrame([ONE]),
        "holdings": held(np.arange(18), rss_mb=600 + 50 * np.arange(18)),
        "left_behind": 0,
    }
    return Soak(**{**fields, **changed})  # type: ignore[arg-type]


def test_in_a_short_run_neither_times_nor_memory_decide(tmp_path: Path) -> None:
    result = soak_verdict.conclude(open_run("41_soak", tmp_path), short(), [])
    assert result["verdict"] == "passed"
    told = {one["name"] for one in result["checks"]} | set(result["figures"])
    assert not {name for name in told if "drift" in name or "growth" in name or "underrun" in name}
    assert result["streams"][0]["underruns"] == 5


def test_memory_decides_from_two_minutes_on_and_times_from_ten() -> None:
    growing = held(np.arange(130), rss_mb=600 + np.arange(130))
    names = {c.name: c.passed for c in soak_verdict.judge(short(run_s=130.0, holdings=growing))}
    assert names["rss_growth_mb"] is False
    assert "ttfa_drift_percent" not in names
    good = soak_verdict.made_up()
    assert "ttfa_drift_percent" in {c.name for c in soak_verdict.judge(good)}
    for crowd in (replace(good, concurrency=4), replace(good, misbehaved={"left": 3})):
        assert "underruns_count" not in {c.name for c in soak_verdict.judge(crowd)}


def test_a_stream_that_ends_early_fails_the_run_and_is_told(tmp_path: Path) -> None:
    broken = short(
        streams=pd.DataFrame([ONE, {**ONE, "number": 1, "way": "http", "fault": "The server broke off."}])
    )
    with pytest.raises(GateFailed, match="unexpected_ends_count"):
        soak_verdict.conclude(open_run("41_soak", tmp_path), broken, [])
    kept = json.loads((tmp_path / "result.json").read_text())
    assert kept["streams"][1]["fault"] == "The server broke off."
    assert any("stream 1 over http" in line for line in soak_verdict.printed(broken))


# ----------------------------------------------------------------------------------------- on servers


def test_a_server_that_leaks_is_caught_and_one_that_does_not_is_not() -> None:
    for kind in (NOTHING, THREADS):
        checks = soak_verdict.judge_growth(growth_of(soak_verdict.leaking(kind, 24)))
        assert all(check.passed for check in checks) == (kind == NOTHING)


def humming(folder: Path) -> AbstractContextManager[OwnServer]:
    command = [sys.executable, "-m", "tests.server.tiny_server", str(folder / "hum.onnx")]
    settings = {"voice": "hum", "concurrency": 3, "first_audio_ttl_s": 0}
    return own_server(settings, command, Path(__file__).parents[2])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnServer]:
    with humming(tmp_path_factory.mktemp("hum")) as found:
        yield found


@pytest.mark.test_all
def test_every_transport_carries_the_same_samples(server: OwnServer) -> None:
    reading = SoakReading("0", SENTENCES[0], "hum")
    heard = [listened(server, reading, way) for way in TRANSPORTS]
    assert [one["fault"] for one in heard] == ["", "", ""]
    assert len({(one["samples_count"], one["sha256"]) for one in heard}) == 1
    assert heard[0]["samples_count"] > 24_000


def test_a_stream_that_breaks_off_is_a_fault_and_not_an_end(server: OwnServer) -> None:
    for way in TRANSPORTS:
        one = listened(server, SoakReading("0", f"{SENTENCES[0]} Bang. ", "hum"), way)
        assert one["fault"]
        assert math.isnan(one["ttfa_s"])


def test_listeners_come_for_so_long_among_others_who_misbehave(server: OwnServer) -> None:
    readings = readings_of(SENTENCES, foreign_sentences(), "hum", 4)
    found = measure_soak(
        server, readings, 0.06, concurrency=2, pace=0, think_s=(0, 0), misbehave=True, progress=False
    )
    assert found.run_s >= 3.6
    assert set(found.streams.way) == set(TRANSPORTS)
    assert set(found.streams.fault) == {""}
    assert all(check.passed for check in soak_verdict.judge(found)), [
        str(c) for c in soak_verdict.judge(found)
    ]
    assert found.misbehaved is not None
    assert found.misbehaved["left"] >= 1
    assert len(found.holdings) > 4
    assert found.holdings.threads.iloc[-1] > 1
    assert found.ran["model_sha256"] == "hum"
    assert any(line.startswith("meanwhile") for line in soak_verdict.printed(found))


@pytest.mark.test_all
def test_a_server_that_dies_is_told_by_the_streams_that_it_owed(tmp_path: Path) -> None:
    with humming(tmp_path) as mortal:

        def die() -> None:
            # Two are spoken to know them, and two have been listened to
            while httpx2.get(f"{mortal.url}/status").json()["requests"]["completed"] < 4:
                time.sleep(0.02)
            for one in (*mortal.process.children(), mortal.process):
                one.kill()

        threading.Thread(target=die).start()
        readings = readings_of(SENTENCES, {}, "hum", 2)
        # Not the WebSocket: its library leaves a socket open where a server dies in the handshake
        ways = ("http", "sse")
        found = measure_soak(mortal, readings, 0.1, pace=0, think_s=(0, 0), ways=ways, progress=False)
    assert 0 < len(found.heard) < len(found.streams)
    failed = {check.name for check in soak_verdict.judge(found) if not check.passed}
    assert failed >= {"unexpected_ends_count", "left_behind_count"}


def test_the_process_is_watched_while_it_runs(server: OwnServer) -> None:
    with watched(partial(held_by, server.process), 0.05) as found:
        listened(server, SoakReading("0", SENTENCES[1], "hum"), "http")
    assert len(found) >= 2
    assert all(one["rss_mb"] > 30 and one["descriptors"] > 3 for one in found)


@pytest.mark.test_all
def test_the_command_keeps_a_verdict(
    server: OwnServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from contextlib import nullcontext

    for folder in ("notebooks", "fixtures/texts"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "fixtures/texts/intelligibility.jsonl").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kokoro_lab.lab.bench.soak_verdict.leaking_controls", list)
    plan = SoakPlan(minutes=0.02, trials=2, voice="hum", pace=0)
    judged = judge(plan, SENTENCES, lambda: nullcontext(server), progress=False, say=lambda _: None)
    assert judged.passed, judged.lines
    assert judged.path.is_relative_to(tmp_path / "results/bench-soak")
    kept = json.loads(judged.path.read_text())
    assert kept["parameters"]["minutes"] == 0.02
    assert len(kept["controls"]) == len(soak_verdict.FAULTS) + len(soak_verdict.HARMLESS)
