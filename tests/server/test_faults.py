"""A server that has faults put into it says so, and its listeners miss nothing."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from flask import Flask
from flask.testing import FlaskClient

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bench.client import Transport, receive
from kokoro_lab.lab.bench.persistent import SpeechSource, listen
from kokoro_lab.lab.bench.received import ReceivedStream, differences
from kokoro_lab.lab.faults import Scenario, load_scenarios
from kokoro_lab.lab.faults.proxy import fault_proxy
from kokoro_lab.lab.faults.scenario import Losses
from kokoro_lab.lab.routes.faults import injected
from tests.lab.faults import made
from tests.server.conftest import RunningServer, running

TEXT = " ".join(
    [
        "The kettle is on, and the window is open to the garden behind the house.",
        "Nobody is in, and nobody has been all day.",
        "Rain fell on the quiet town until the morning.",
    ]
)
BODY = {"input": TEXT, "voice": "hum", "response_format": "pcm", "sample_rate": 24_000}


def test_without_the_setting_nothing_can_be_put_in(client: FlaskClient) -> None:
    assert client.post("/debug/faults", json={}).status_code == 404
    assert client.get("/status").json["faults"] is None


def test_a_server_that_has_them_says_so(
    make_app: Callable[..., Flask], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "kokoro_lab"):
        client = make_app(faults="disk_full").test_client()
    assert "Faults are put in on purpose: disk_full. The disk is full." in caplog.text
    assert client.get("/status").json["faults"] == {"scenario": "disk_full", "struck": 0}
    client.post("/debug/faults", json={"scenario": None})
    assert client.get("/status").json["faults"] == {"scenario": None, "struck": 0}


def test_a_wrong_one_is_refused(make_app: Callable[..., Flask]) -> None:
    with pytest.raises(ParameterError, match="no fault scenario 'goblins'"):
        make_app(faults="goblins")
    client = make_app(faults="ready").test_client()
    answer = client.post("/debug/faults", json={"scenario": {"name": "x"}})
    assert answer.status_code == 400
    assert answer.json["error"]["param"] == "title"


def test_who_puts_them_in_needs_the_key(make_app: Callable[..., Flask]) -> None:
    client = make_app(faults="ready", api_key="sesame").test_client()
    assert client.get("/debug/faults").status_code == 401


def test_an_engine_without_them_is_itself() -> None:
    engine: Any = object()
    assert injected(engine, "") == (engine, None)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running(tmp_path_factory.mktemp("faulty"), faults="ready", queue=4) as found:
        yield found


def put_in(server: RunningServer, scenario: Scenario | None) -> dict[str, Any]:
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    fields = {"scenario": scenario and json.loads(scenario.model_dump_json())}
    head = {"Content-Type": "application/json"}
    connection.request("POST", "/debug/faults", json.dumps(fields), head)
    answer = connection.getresponse()
    assert answer.status == 200
    found: dict[str, Any] = json.loads(answer.read())
    connection.close()
    return found


def journal(server: RunningServer) -> dict[str, Any]:
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    connection.request("GET", "/debug/faults")
    found: dict[str, Any] = json.loads(connection.getresponse().read())
    connection.close()
    return found


def source(kind: Transport, url: str) -> SpeechSource:
    return partial(receive, kind, url, BODY)


@pytest.fixture(scope="module")
def whole(faulty: RunningServer) -> ReceivedStream:
    put_in(faulty, None)
    return listen(source("sse", faulty.url), patience_s=5.0)


def test_the_journal_tells_what_was_spoken(faulty: RunningServer, whole: ReceivedStream) -> None:
    put_in(faulty, None)
    listen(source("sse", faulty.url), patience_s=5.0)
    (spoken,) = journal(faulty)["spoken"]
    assert spoken["samples"] == whole.samples
    assert [TEXT[a:b] for a, b in spoken["words"]][:3] == ["The", "kettle", "is"]


def test_a_chunk_that_is_lost_in_the_server_breaks_bare_bytes_off(
    faulty: RunningServer, whole: ReceivedStream
) -> None:
    put_in(faulty, made.scenario(made.LOST_IN_QUEUE))
    heard = listen(source("http", faulty.url), goes_on=False, patience_s=5.0)
    put_in(faulty, None)
    assert not heard.complete
    assert "IncompleteRead" in str(heard.breaks[0])
    assert whole.pcm.startswith(heard.pcm)


@pytest.mark.parametrize("kind", ["sse", "websocket"])
def test_a_chunk_that_is_lost_in_the_server_is_asked_for_again(
    faulty: RunningServer, whole: ReceivedStream, kind: Transport
) -> None:
    put_in(faulty, made.scenario(made.LOST_IN_QUEUE))
    heard = listen(source(kind, faulty.url), patience_s=5.0)
    put_in(faulty, None)
    assert heard.complete
    assert len(heard.breaks) >= 2
    assert differences(heard.pcm, whole.pcm) == (0, 0)


@pytest.mark.parametrize("kind", ["http", "sse", "websocket"])
@pytest.mark.parametrize("fault", [made.PROVIDER_LOST, made.ALLOCATION_FAILS, made.FULL, made.BURSTS])
def test_a_fault_of_the_server_costs_no_word(
    faulty: RunningServer, whole: ReceivedStream, kind: Transport, fault: dict[str, object]
) -> None:
    put_in(faulty, made.scenario(fault))
    heard = listen(source(kind, faulty.url), patience_s=5.0)
    struck = journal(faulty)["strikes"]
    put_in(faulty, None)
    assert struck
    assert heard.complete, heard.breaks
    assert differences(heard.pcm, whole.pcm) == (0, 0)
    assert bool(heard.breaks) == (fault in (made.PROVIDER_LOST, made.ALLOCATION_FAILS))


@pytest.mark.parametrize("kind", ["sse", "websocket"])
def test_the_error_of_a_fault_is_clear(faulty: RunningServer, kind: Transport) -> None:
    said = []
    for fault in (made.PROVIDER_LOST, made.ALLOCATION_FAILS, made.LOST_IN_QUEUE):
        put_in(faulty, made.scenario(fault))
        said.append(str(listen(source(kind, faulty.url), goes_on=False, patience_s=5.0).breaks[0]))
    put_in(faulty, None)
    assert "A provider was lost on purpose" in said[0]
    assert "KOKORO_MEMORY_ARENA_SIZE_MB" in said[1]
    assert "not enough to speak this" in said[1]
    assert "was lost on its way through the server" in said[2]


@pytest.mark.parametrize("kind", ["http", "sse", "websocket"])
@pytest.mark.parametrize("fault", [made.CUT, made.SILENT, made.BURSTS_ON_LINE, made.THROTTLED])
def test_a_fault_of_the_line_costs_no_word(
    faulty: RunningServer, whole: ReceivedStream, kind: Transport, fault: dict[str, object]
) -> None:
    with fault_proxy(faulty.url, made.scenario(fault), len(whole.pcm)) as proxy:
        heard = listen(source(kind, proxy.url), patience_s=1.0)
        assert proxy.struck
    assert heard.complete, heard.breaks
    assert differences(heard.pcm, whole.pcm) == (0, 0)
    if fault in (made.CUT, made.SILENT):
        assert len(heard.breaks) >= 1


@pytest.mark.parametrize("kind", ["sse", "websocket"])
def test_chunks_that_are_lost_on_the_line_are_missed_and_come(
    faulty: RunningServer, whole: ReceivedStream, kind: Transport
) -> None:
    scenario = made.scenario(made.LOST_ON_LINE)
    (fault,) = scenario.of_seam("transport")
    losses = Losses(fault, scenario.seed)  # type: ignore[arg-type]
    heard = listen(
        source(kind, faulty.url),
        line=lambda frames: (frame for frame in frames if not losses.next()),
        patience_s=5.0,
    )
    assert heard.complete
    assert heard.breaks
    assert differences(heard.pcm, whole.pcm) == (0, 0)


def test_every_scenario_of_the_repository_can_be_put_in(faulty: RunningServer) -> None:
    for scenario in load_scenarios():
        assert put_in(faulty, scenario)["scenario"] == scenario.name
    put_in(faulty, None)


def test_a_file_may_be_named(tmp_path: Path, make_app: Callable[..., Flask]) -> None:
    path = tmp_path / "made.json"
    path.write_text(made.scenario(made.CUT).model_dump_json())
    assert make_app(faults=str(path)).test_client().get("/status").json["faults"]["scenario"] == "made"
