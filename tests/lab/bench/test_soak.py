"""A soak counts every stream, and no leak, drift or early end passes it."""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from itertools import islice
from pathlib import Path

import httpx2
import pytest

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bench import soak_controls, soak_verdict
from kokoro_lab.lab.bench.client import TRANSPORTS
from kokoro_lab.lab.bench.memory import held_by, watched
from kokoro_lab.lab.bench.own_server import OwnServer, own_server
from kokoro_lab.lab.bench.soak import (
    READERS,
    SoakReading,
    foreign_sentences,
    listened,
    measure_soak,
    readings_of,
    turns,
)
from kokoro_lab.lab.bench.verdicts import SoakPlan, judge

SENTENCES = [
    "The kettle is on, and the window is open to the garden behind the house.",
    "Nobody is in, and nobody has been all day, as far as one can tell from here.",
    "Rain fell on the quiet town until the morning.",
    "Three of the 12 boats came back before noon, which was more than they had hoped for.",
]


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


# ----------------------------------------------------------------------------------------- on servers


def humming(folder: Path) -> AbstractContextManager[OwnServer]:
    command = [sys.executable, "-m", "tests.server.tiny_server", str(folder / "hum.onnx")]
    settings = {"voice": "hum", "capacity": 1e6, "concurrency": 3, "first_audio_ttl_s": 0}
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
    found = measure_soak(server, readings, 0.06, concurrency=2, pace=0, think_s=(0, 0), misbehave=True)
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
        found = measure_soak(mortal, readings, 0.1, pace=0, think_s=(0, 0), ways=ways)
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
    monkeypatch.setattr("kokoro_lab.lab.bench.soak_controls.leaking_controls", list)
    plan = SoakPlan(minutes=0.02, trials=2, voice="hum", pace=0)
    judged = judge(plan, SENTENCES, lambda: nullcontext(server), say=lambda _: None)
    assert judged.passed, judged.lines
    assert judged.path.is_relative_to(tmp_path / "results/bench-soak")
    kept = json.loads(judged.path.read_text())
    assert kept["parameters"]["minutes"] == 0.02
    assert len(kept["controls"]) == len(soak_controls.FAULTS) + len(soak_controls.HARMLESS)
