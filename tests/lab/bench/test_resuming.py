"""Streams that break are gone on with, on this server or the next one, and a lost sample is a failure."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from kokoro_lab.errors import GateFailed, SynthesisError
from kokoro_lab.lab.bench.client import RESUMABLE, Busy, receive
from kokoro_lab.lab.bench.own_server import OwnServer, own_server
from kokoro_lab.lab.bench.received import ReceivedChunk, to_the_end
from kokoro_lab.lab.bench.resuming import Resumes, conclude
from kokoro_lab.lab.bench.verdicts import ResumePlan, StartServer, judge
from kokoro_lab.lab.results import open_run

SENTENCES = [
    "The kettle is on, and the window is open to the garden behind the house.",
    "Nobody is in, and nobody has been all day, as far as one can tell from here.",
    "Rain fell on the quiet town until the morning.",
    "Yes.",
    "Three of the 12 boats came back before noon, which was more than they had hoped for.",
]
STREAMS = 12


@pytest.fixture
def start(tmp_path: Path, repository: Path) -> StartServer:
    command = [sys.executable, "-m", "tests.server.tiny_server", str(tmp_path / "hum.onnx")]
    return partial(own_server, {"voice": "hum", "capacity": 1e6, "concurrency": 2}, command, repository)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty one, whose results are seen by nobody."""
    for folder in ("notebooks", "fixtures"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.test_all
def test_streams_of_both_transports_go_on_here_and_on_the_next_server(
    start: StartServer, checkout: Path
) -> None:
    plan = ResumePlan(trials=STREAMS, voice="hum", preset="medium", seed=5)
    judged = judge(plan, SENTENCES, start, say=lambda _: None)
    result = json.loads(judged.path.read_text())
    streams = result["streams"]
    assert [one["number"] for one in streams] == list(range(STREAMS))
    assert {(one["transport"], one["restarted"]) for one in streams} == {
        (transport, restarted) for transport in ("sse", "websocket") for restarted in (False, True)
    }
    assert sum(one["restarted"] for one in streams) == STREAMS // 2
    assert all(0 < one["cut_s"] < one["audio_s"] for one in streams)
    assert all((one["differing_samples"], one["missing_samples"]) == (0, 0) for one in streams)
    assert len({one["cut_s"] for one in streams}) > STREAMS // 2, "cut at different places"
    passed = {check["name"]: check["passed"] for check in result["checks"]}
    passed.pop("latency_p95_s")  # says how busy this machine is
    assert all(passed.values()), passed
    assert all(control["caught"] for control in result["controls"])
    assert len(result["controls"]) == 4
    assert judged.path.is_relative_to(checkout / "results/bench-resume")


def resumed(number: int, **changed: object) -> dict[str, object]:
    return {
        "number": number,
        "transport": "sse",
        "restarted": number % 4 >= 2,
        "characters": 40,
        "audio_s": 3.0,
        "cut_s": 1.0,
        "latency_s": 0.2,
        "refusals": 0,
        "differing_samples": 0,
        "missing_samples": 0,
        **changed,
    }


@pytest.mark.parametrize(
    ("changed", "asked", "said"),
    [
        ({"differing_samples": 1}, 4, "streams_that_differ_count"),
        ({"missing_samples": 1}, 4, "streams_that_differ_count"),
        ({"missing_samples": -1200}, 4, "streams_that_differ_count"),
        ({"latency_s": 9.0}, 4, "latency_p95_s"),
        ({"restarted": False}, 4, "restarted_streams_count"),
        ({}, 5, "streams_count"),
    ],
)
def test_one_stream_that_is_amiss_fails_the_run(
    tmp_path: Path, changed: dict[str, object], asked: int, said: str
) -> None:
    streams = [*map(resumed, range(3)), resumed(3, **changed)]
    found = Resumes(pd.DataFrame(streams), {"variant": "hum"}, [], [2.0])
    with pytest.raises(GateFailed, match=said):
        conclude(open_run("bench-resume", tmp_path), found, asked)
    assert json.loads((tmp_path / "result.json").read_text())["verdict"] == "failed"


def test_streams_that_are_whole_pass(tmp_path: Path) -> None:
    found = Resumes(pd.DataFrame(map(resumed, range(4))), {"variant": "hum"}, [], [2.0])
    assert conclude(open_run("bench-resume", tmp_path), found, 4)["verdict"] == "passed"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Iterator[OwnServer]:
    model = tmp_path_factory.mktemp("hum") / "hum.onnx"
    command = [sys.executable, "-m", "tests.server.tiny_server", str(model)]
    with own_server(
        {"voice": "hum", "capacity": 1e6, "concurrency": 1, "queue": 0}, command, repository
    ) as running:
        yield running


BODY = {"input": " ".join(SENTENCES), "voice": "hum", "response_format": "pcm"}


@pytest.mark.test_all
def test_both_transports_give_the_same_frames(server: OwnServer) -> None:
    heard = {name: to_the_end(receive(name, server.url, BODY)) for name in RESUMABLE}
    assert heard["sse"].pcm == heard["websocket"].pcm
    assert heard["sse"].back["last_id"] == heard["websocket"].back["last_id"]
    assert heard["sse"].back["resume"].split(".")[2:] == heard["websocket"].back["resume"].split(".")[2:]
    assert len(heard["sse"].arrivals_s) > 20


@pytest.mark.parametrize("transport", ["sse", "websocket"])
def test_what_a_server_refuses_is_told(server: OwnServer, transport: str) -> None:
    with pytest.raises(SynthesisError, match="no voice 'nobody'"):
        list(receive(transport, server.url, {**BODY, "voice": "nobody"}))  # type: ignore[arg-type]


@pytest.mark.parametrize("transport", ["sse", "websocket"])
def test_no_slot_is_told_apart_from_a_failure(server: OwnServer, transport: str) -> None:
    held = holding_the_slot(server)
    with pytest.raises(Busy):
        list(receive(transport, server.url, BODY))  # type: ignore[arg-type]
    held.close()


def holding_the_slot(server: OwnServer) -> Generator[ReceivedChunk]:
    """A stream that waits for its reader. The slot of the one before is free a moment after its end."""
    for _ in range(100):
        held = receive("websocket", server.url, {**BODY, "credit": 1})
        with suppress(Busy):
            next(held)
            return held
        time.sleep(0.1)
    raise AssertionError("the slot was never free")


@pytest.mark.parametrize("transport", ["sse", "websocket"])
def test_a_server_that_is_not_there_is_a_failure(transport: str) -> None:
    with pytest.raises(SynthesisError, match="broke off"):
        list(receive(transport, "http://127.0.0.1:9", BODY))  # type: ignore[arg-type]
