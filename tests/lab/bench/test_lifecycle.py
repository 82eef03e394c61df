"""A server that is stopped or crashes under its listeners: who hears what, and that no sample is lost."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from kokoro_lab.errors import GateFailed, SynthesisError
from kokoro_lab.lab.bench.client import Busy, Patience, ServerReportedError
from kokoro_lab.lab.bench.compared import ComparedStreams
from kokoro_lab.lab.bench.lifecycle import (
    SCENARIOS,
    STOPPING,
    conclude,
    ending_of,
    measure_lifecycle,
    printed,
)
from kokoro_lab.lab.bench.own_server import OwnServer, own_server
from kokoro_lab.lab.bench.persistent import listen
from kokoro_lab.lab.bench.received import ReceivedChunk, ReceivedStream
from kokoro_lab.lab.results import open_run

SENTENCE = "This is a slow sentence that stands alone, number {} of stream {}. "
"""Takes half a second to compute, by the script of the voice."""
STREAMS = 4


@pytest.mark.test_all
def test_what_four_listeners_hear_when_the_server_ends(tmp_path: Path, repository: Path) -> None:
    command = [sys.executable, "-m", "tests.server.tiny_server", str(tmp_path / "hum.onnx")]

    def start(settings: Mapping[str, Any]) -> AbstractContextManager[OwnServer]:
        ours = {"voice": "hum", "capacity": 1e6, "concurrency": STREAMS, "degrade": "off"}
        return own_server({**ours, **settings}, command, repository)

    texts = ["".join(SENTENCE.format(n, stream) for n in range(6)) for stream in range(STREAMS)]
    found = measure_lifecycle(start, texts, "hum")
    result = conclude(open_run("bench-lifecycle", tmp_path / "run"), found, STREAMS)
    assert result["verdict"] == "passed"
    assert len(result["controls"]) == 4
    ends = {name: list(rows.ending) for name, rows in found.table.groupby("scenario")}
    assert ends["kill -9 of the worker"] == ["broken off"] * STREAMS
    assert ends["SIGTERM, time enough"] == ["whole"] * STREAMS
    assert ends["SIGTERM, 2 s"] == ["told"] * STREAMS
    assert ends["kill -9 of the master"] == ["whole"] * STREAMS
    assert found.exact.all()
    assert set(found.table.transport) == {"sse", "websocket"}
    assert sum("whole" in line for line in printed(found)) == 1


def served(number: int, **changed: Any) -> dict[str, Any]:
    return {
        "scenario": SCENARIOS[number].name,
        "transport": "sse",
        "audio_s": 9.0,
        "heard_s": 2.0,
        "ending": SCENARIOS[number].expected[0],
        "back_s": 2.0,
        "differing_samples": 0,
        "missing_samples": 0,
        **changed,
    }


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"differing_samples": 1}, "streams_that_differ_count"),
        ({"missing_samples": -600}, "streams_that_differ_count"),
        ({"ending": "told"}, "kill_of_the_worker_unexpected_ends_count"),
        ({"ending": "whole"}, "kill_of_the_worker_broken_off_count"),
        ({"scenario": "another"}, "kill_of_the_worker_broken_off_count"),
    ],
)
def test_one_stream_that_is_amiss_fails_the_run(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    streams = [served(0, **changed), *(served(number) for number in range(1, len(SCENARIOS)))]
    with pytest.raises(GateFailed, match=said):
        conclude(open_run("bench-lifecycle", tmp_path), ComparedStreams(pd.DataFrame(streams), {}, []), 1)
    assert json.loads((tmp_path / "result.json").read_text())["verdict"] == "failed"


def test_a_stream_that_was_never_begun_fails_the_run(tmp_path: Path) -> None:
    found = ComparedStreams(pd.DataFrame(map(served, range(len(SCENARIOS)))), {}, [])
    assert conclude(open_run("bench-lifecycle", tmp_path), found, 1)["verdict"] == "passed"
    with pytest.raises(GateFailed, match="streams_count"):
        conclude(open_run("bench-lifecycle", tmp_path), found, 2)


def test_who_waits_for_a_first_turn_was_not_broken_off() -> None:
    answers = iter([Busy("The server has no slot free."), ReceivedChunk("0.0", b"1234")])

    def source(heard: ReceivedStream, patience: Patience) -> Generator[ReceivedChunk]:
        answer = next(answers)
        if isinstance(answer, Busy):
            raise answer
        yield answer

    heard = listen(source)
    assert (ending_of(heard), heard.pcm) == ("whole", b"1234")


def test_an_error_that_is_no_end_of_the_server_fails_the_run() -> None:
    stopping, other = (ServerReportedError({"message": code, "code": code}) for code in (STOPPING, "other"))
    assert ending_of(ReceivedStream(complete=True, breaks=[stopping])) == "told"
    assert ending_of(ReceivedStream(complete=True, breaks=[SynthesisError("gone"), stopping])) == "broken off"
    with pytest.raises(ServerReportedError, match="other"):
        ending_of(ReceivedStream(complete=True, breaks=[stopping, other]))
    with pytest.raises(SynthesisError, match="gone"):
        ending_of(ReceivedStream(breaks=[SynthesisError("gone")]))
