"""What an operator asks for: description, figures, sessions, caches, benchmarks, debugging."""

from __future__ import annotations

import gc
import json
import logging
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flask import Flask
from flask.testing import FlaskClient
from prometheus_client.parser import text_string_to_metric_families

from kokoro_lab.config import Settings
from kokoro_lab.datatypes import SAMPLE_RATE_HZ, AudioChunk
from kokoro_lab.lab.bench.timing import InProcess, measure_considerately
from kokoro_lab.serve import create_app
from kokoro_lab.server.health import operations
from kokoro_lab.server.health.background import WarmUp, needed_pre_buffer_s
from kokoro_lab.server.health.lifecycle import begin_to_stop
from kokoro_lab.server.health.logs import JsonLines
from kokoro_lab.server.health.objectives import ServedRequest
from kokoro_lab.server.requests.slots import Slots
from kokoro_lab.speech.engine import Engine
from kokoro_lab.speech.stream import SpeechStream
from tests.server.conftest import SETTINGS, state_of, wait_until
from tests.server.scripted import Scripted

URL = "/v1/audio/speech"
TEXT = "The first sentence is long enough to stand alone. And so, I should think, is the second one of them."
KEY = {"Authorization": "Bearer sesame"}


# ----------------------------------------------------------------------------------------- openapi


def references(node: Any) -> Iterator[str]:
    """Every `$ref` below `node`."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for child in node.values():
            yield from references(child)
    elif isinstance(node, list):
        for child in node:
            yield from references(child)


def test_the_document_is_the_same_in_every_process() -> None:
    code = (
        "import json; from kokoro_lab.server.requests.speech_request import SpeechRequest; "
        "print(json.dumps(SpeechRequest.model_json_schema()))"
    )
    first, second = (
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    )
    assert first == second


def test_every_route_is_described(app: Flask, client: FlaskClient) -> None:
    paths = client.get("/openapi.json").json["paths"]
    for rule in app.url_map.iter_rules():
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}:
            operation = paths[re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)][method.lower()]
            assert operation["summary"]
            done = [answer for status, answer in operation["responses"].items() if status < "3"]
            assert done
            assert all("X-Request-Id" in answer["headers"] for answer in operation["responses"].values())
            assert rule.endpoint.startswith("websocket.") or all(answer["content"] for answer in done)


def test_the_key_is_asked_for_where_one_is_set(make_app: Callable[..., Flask], client: FlaskClient) -> None:
    def locks(client: FlaskClient) -> tuple[set[str], Any]:
        document = client.get("/openapi.json").json
        locked = {
            f"{method} {path}"
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
            if operation.get("security") == [{"key": []}]
        }
        return locked, document["components"].get("securitySchemes")

    assert locks(client) == (set(), None)
    assert locks(make_app(api_key="sesame").test_client()) == (
        {
            "post /v1/audio/speech",
            "delete /v1/audio/speech/{stream_id}",
            "get /v1/audio/speech/ws",
            "get /v1/audio/speech/realtime",
            "get /v1/text-to-speech/{voice_id}/stream-input",
            "get /v1/text-to-speech/{voice_id}/multi-stream-input",
            "post /benchmarks",
            "post /session-reset",
            "post /performance/clear_cache",
        },
        {"key": {"type": "http", "scheme": "bearer"}},
    )


def test_what_is_no_id_is_no_path_and_a_plain_request_is_sent_to_the_websocket(client: FlaskClient) -> None:
    for name in ("ws", "realtime", "a b", "ä", "a" * 65):
        assert client.post("/session-reset", headers={"X-Request-Id": name}).headers["X-Request-Id"] != name
        assert client.delete(f"{URL}/{name}").status_code in (404, 405)
    assert client.delete(f"{URL}/a:b").json["error"]["message"].startswith("There is no synthesis")
    answer = client.get(f"{URL}/ws")
    assert (answer.status_code, answer.headers["Upgrade"]) == (426, "websocket")
    assert answer.json["error"]["code"] == "upgrade_required"


@pytest.mark.parametrize("trials", [True, "2", 2.5, 1e300])
def test_only_a_whole_number_of_trials_is_one(client: FlaskClient, trials: Any) -> None:
    assert client.post("/benchmarks", json={"trials": trials}).status_code == 400


def test_every_reference_leads_somewhere(client: FlaskClient) -> None:
    document = client.get("/openapi.json").json
    assert document["openapi"] == "3.1.0"
    names = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    found = set(references(document))
    assert len(found) > 15
    assert found <= names


def test_the_request_is_described_by_the_model_that_validates_it(client: FlaskClient) -> None:
    schema = client.get("/openapi.json").json["components"]["schemas"]["SpeechRequest"]
    assert schema["additionalProperties"] is False
    assert {"input", "voice", "response_format", "speed", "ephemeral", "text", "format", "lang"} <= set(
        schema["properties"]
    )
    number, text, null = schema["properties"]["speed"]["anyOf"]
    assert (number["minimum"], number["maximum"], null) == (0.25, 4.0, {"type": "null"})
    for written, fits in (("1.0", True), ("0.25", True), ("4", True), ("0.2", False), ("4.1", False)):
        assert bool(re.search(text["pattern"], written)) is fits
    assert schema["oneOf"] == [{"required": ["input"]}, {"required": ["text"]}]


# ----------------------------------------------------------------------------------------- figures


def test_metrics_are_what_prometheus_reads_and_agree_with_status(client: FlaskClient) -> None:
    assert client.post(URL, json={"input": TEXT}).data
    client.post(URL, json={"input": ""})
    answer = client.get("/metrics")
    assert answer.content_type.startswith("text/plain; version=0.0.4")
    samples = {
        (s.name, s.labels.get("outcome")): s.value
        for family in text_string_to_metric_families(answer.text)
        for s in family.samples
    }
    assert samples["kokoro_requests_total", "completed"] == 1
    assert samples["kokoro_requests_total", "invalid"] == 1
    assert samples["kokoro_ttfa_seconds_count", None] == 1
    assert samples["kokoro_rtf_count", None] == 1
    assert (
        samples["kokoro_chunk_gap_seconds_count", None] == client.get("/status").json["chunk_gap_s"]["count"]
    )
    assert samples["kokoro_ready", None] == 1
    assert samples["kokoro_active", None] == 0
    assert samples["kokoro_resident_memory_bytes", None] > 1e7


def test_a_stream_under_way_is_in_status_with_its_fill_levels(client: FlaskClient) -> None:
    answer = client.post(URL, json={"input": TEXT}, buffered=False, headers={"X-Request-Id": "mine"})
    body = iter(answer.response)
    for _ in range(4):
        next(body)
    (session,) = client.get("/status").json["sessions"]
    assert session == client.get("/session-status").json["running"][0] | {"age_s": session["age_s"]} | {
        "fill": session["fill"]
    }
    assert (session["request_id"], session["characters"]) == ("mine", len(TEXT))
    assert session["speaking"] is True
    assert session["chunks"] >= 2
    assert set(session["fill"]) == {"prepared_segments", "held_samples", "lead_s"}
    answer.close()
    assert client.get("/status").json["sessions"] == []


def test_a_stream_says_its_chunk_length_and_what_to_hold_back(make_app: Callable[..., Flask]) -> None:
    def advice(**settings: Any) -> tuple[str, str, str, bytes]:
        answer = make_app(**settings).test_client().post(URL, json={"input": TEXT, "response_format": "pcm"})
        names = ("X-Kokoro-Mode", "X-Kokoro-Chunk-Ms", "X-Kokoro-Pre-Buffer-Ms")
        mode, chunk_ms, pre_buffer_ms = (answer.headers[name] for name in names)
        return mode, chunk_ms, pre_buffer_ms, answer.data

    *normal, samples = advice()
    assert normal == ["normal", "50", "100"]
    for mode, chunk_ms in (("reduce-ttfa", "40"), ("avoid-underrun", "100"), ("stability-first", "100")):
        *degraded, same = advice(degrade=mode)
        assert degraded[:2] == [mode, chunk_ms]
        assert same == samples, "a mode changes no sample"


def test_a_slow_server_holds_the_first_sound_back_and_says_so(
    make_app: Callable[..., Flask], caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app(degrade="avoid-underrun")
    client, state = app.test_client(), state_of(app)
    state.degrader.objectives.note(ServedRequest("completed", needed_s=0.15))
    assert client.get("/status").json["degrade"]["held_back_ms"] == 100
    with caplog.at_level(logging.INFO, "kokoro_lab"):
        assert client.post(URL, json={"input": TEXT}).data
        client.post(URL, json={"input": TEXT, "stream": False})
    stream, file = [
        entry for r in caplog.records if (entry := json.loads(JsonLines().format(r))).get("outcome")
    ]
    assert (stream["held_back_ms"], file["held_back_ms"]) == (100, None)
    assert stream["ttfa_s"] >= 0.1, "what a listener waits for"


def test_slow_speech_is_warned_of_and_degrades(make_app: Callable[..., Flask]) -> None:
    client = make_app(slo_rtf=1e-9, slo_ttfa_s=600).test_client()  # however busy this machine is
    for _ in range(10):
        assert client.post(URL, json={"input": "Hello."}).data
    status = client.get("/status").json
    (warned,) = status["slo"]["warnings"]
    assert warned["objective"] == "rtf p95"
    assert "KOKORO_VARIANT=int8" in warned["remedy"]
    assert status["degrade"]["mode"] == "stability-first"
    assert status["degrade"]["admitted"] == 1


def test_a_file_says_what_it_cost(client: FlaskClient) -> None:
    answer = client.post(URL, json={"input": TEXT, "stream": False})
    assert float(answer.headers["X-Kokoro-RTF"]) > 0
    assert float(answer.headers["X-Kokoro-TTFA-Ms"]) > 0


# -------------------------------------------------------------------------------- sessions, caches


def test_a_reset_stops_what_runs_and_begins_the_figures_anew(app: Flask, decoder: Scripted) -> None:
    state = state_of(app)
    client = app.test_client()
    assert client.post(URL, json={"input": "Hello."}).data
    decoder.gate.clear()
    with ThreadPoolExecutor(1) as pool:
        whole = pool.submit(lambda: app.test_client().post(URL, json={"input": TEXT, "stream": False}))
        wait_until(lambda: len(state.syntheses.under_way()) == 1)
        assert client.post("/session-reset", json={"request_id": "another"}).json["stopped"] == []
        reset = client.post("/session-reset").json
        decoder.gate.set()
        answer = whole.result()
    assert (len(reset["stopped"]), reset["figures_reset"]) == (1, True)
    assert (answer.status_code, answer.json["error"]["code"]) == (409, "cancelled")
    assert state.slots.active == 0
    requests = client.get("/status").json["requests"]
    assert (requests["cancelled"], requests["completed"]) == (1, 0)


@pytest.mark.parametrize("body", [{"request": "a"}, {"request_id": 5}, [], "x"])
def test_a_reset_that_cannot_be_read_stops_nothing(client: FlaskClient, body: Any) -> None:
    answer = client.post("/session-reset", json=body)
    assert answer.status_code == 400
    assert set(answer.json["error"]) == {"message", "type", "param", "code"}


def test_caches_are_cleared_and_counted(client: FlaskClient) -> None:
    client.post(URL, json={"input": "Hello."})
    assert client.post("/performance/clear_cache").json["cleared"]["voices"] >= 1
    assert set(client.post("/performance/clear_cache").json["cleared"].values()) == {0}


def test_operators_need_the_key_where_one_is_set(make_app: Callable[..., Flask]) -> None:
    client = make_app(api_key="sesame", development_mode=True).test_client()
    for path in ("/session-reset", "/performance/clear_cache", "/benchmarks"):
        assert client.post(path, json={}).status_code == 401
    for path in ("/debug/stacks", "/debug/memory"):
        assert client.get(path).status_code == 401
        assert client.get(path, headers=KEY).status_code == 200
    for path in ("/openapi.json", "/metrics", "/session-status", "/benchmarks"):
        assert client.get(path).status_code == 200


def test_debugging_is_not_there_unless_it_is_switched_on(client: FlaskClient) -> None:
    assert client.get("/debug/stacks").status_code == client.get("/debug/memory").status_code == 404


# --------------------------------------------------------------------------------------- ephemeral


def test_nothing_is_kept_of_an_ephemeral_request(
    make_app: Callable[..., Flask], engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = replace(engine.parts, config=replace(engine.config, first_audio_ttl_s=300))
    monkeypatch.setattr(engine, "parts", parts)
    monkeypatch.setattr(engine, "first_audio", parts.first_audio)
    client = make_app().test_client()
    assert client.post(URL, json={"input": TEXT, "ephemeral": True}).data
    assert engine.first_audio.figures() == {"hits": 0, "misses": 0, "entries": 0, "ttl_s": 300}
    assert make_app(ephemeral=True).test_client().post(URL, json={"input": TEXT}).data
    assert engine.first_audio.figures()["entries"] == 0
    engine.front_end.cache.clear()
    assert client.post(URL, json={"input": TEXT, "ephemeral": True, "stream": False}).data
    assert engine.front_end.cache.figures()["entries"] == 0
    assert client.post(URL, json={"input": TEXT}).data
    assert engine.first_audio.figures()["entries"] == 1


# ----------------------------------------------------------------------------------------- warm-up


@pytest.fixture
def soon_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Background work begins as soon as nobody is served."""
    monkeypatch.setattr("kokoro_lab.server.health.background.QUIET_S", 0.0)


def test_the_warm_up_has_stages_and_says_which(client: FlaskClient) -> None:
    health = client.get("/health").json
    assert health["status"] == "ok"
    assert set(health["stages_s"]) == {"voice", "text", "model"}
    assert "stage" not in health


def test_other_languages_are_loaded_when_nobody_is_served(
    make_app: Callable[..., Flask], soon_idle: None
) -> None:
    client = make_app(aggressive_warming=True).test_client()
    wait_until(lambda: client.get("/status").json["warm_up"]["languages"].get("en-gb") == "warm")


def test_what_can_wait_is_not_loaded_beside_who_asks_as_soon_as_it_is_warm(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads, quiet_s = [], 1.0  # other servers of this process may be loading, too
    monkeypatch.setattr(WarmUp, "_warm_others", lambda *_: loads.append(threading.current_thread()))
    monkeypatch.setattr("kokoro_lab.server.health.background.QUIET_S", quiet_s)
    slots = Slots(1)
    time.sleep(quiet_s)  # nobody came while it was loaded
    warm_up = WarmUp({"weights": 0.1})
    thread = warm_up.start(engine, "hum", slots, every_language=True)
    wait_until(lambda: warm_up.state == "ok")
    slot = slots.take()
    time.sleep(1.5 * quiet_s)
    assert thread not in loads
    slot.release()
    wait_until(lambda: thread in loads)


def test_the_warm_up_makes_way_for_who_came_meanwhile(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    warmed: list[str] = []
    monkeypatch.setattr(engine, "warm", lambda voice, **_: warmed.append(voice))
    slots, heard = Slots(1), threading.Event()
    slot = slots.take()
    warm_up = WarmUp({"weights": 0.1})
    warm_up.start(engine, "hum", slots, spoken=heard.is_set)
    wait_until(lambda: warm_up.stages.current == "model")
    assert (warm_up.state, warmed) == ("warming", []), (
        "nobody has been heard yet, so it is not said to be ready"
    )
    heard.set()
    wait_until(lambda: warm_up.state == "ok")
    assert warmed == []
    assert set(warm_up.stages.finished_s) == {"weights", "voice", "text", "model"}
    slot.release()
    another = WarmUp()
    another.start(engine, "hum", slots, spoken=heard.is_set)
    wait_until(lambda: another.complete)
    assert warmed == ["hum"]


@pytest.mark.parametrize(("compute_s", "rehearsals"), [(0.19, 0), (0.21, 1)])
def test_a_slow_machine_rehearses_and_a_quick_one_is_ready_at_once(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, compute_s: float, rehearsals: int
) -> None:
    report = replace(engine.warm("hum"), compute_s=compute_s, audio_s=1.0)
    monkeypatch.setattr(engine, "warm", lambda voice, **_: report)
    needed: list[float] = []
    warm_up = WarmUp()
    warm_up.rehearsed = needed.append
    warm_up.start(engine, "hum", Slots(1))
    wait_until(lambda: warm_up.state == "ok")
    assert len(needed) == rehearsals
    assert all(needed_s >= 0 for needed_s in needed)


def test_a_rehearsal_is_broken_off_and_counts_for_nothing_when_a_client_comes(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = replace(engine.warm("hum"), compute_s=1.0, audio_s=1.0)
    monkeypatch.setattr(engine, "warm", lambda voice, **_: report)
    slots, streams = Slots(1), []
    stream_of = engine.stream

    def with_a_client(text: str, **options: Any) -> Any:
        streams.append(stream_of(text, **options))
        slots.take()
        return streams[-1]

    monkeypatch.setattr(engine, "stream", with_a_client)
    needed: list[float] = []
    warm_up = WarmUp()
    warm_up.rehearsed = needed.append
    warm_up.start(engine, "hum", slots)
    wait_until(lambda: warm_up.state == "ok")
    assert len(streams) == 1
    assert not streams[0].is_computed
    assert needed == []


@pytest.mark.parametrize("rehearses", [False, True])
def test_a_server_that_is_stopped_breaks_its_warm_up_off(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, rehearses: bool
) -> None:
    """A process waits for native code for 5 s at most, and then aborts."""
    stream_of, quick = SpeechStream.__next__, replace(engine.warm("hum"), compute_s=1.0, audio_s=1.0)
    under_way, go_on, handed_out = threading.Event(), threading.Event(), []

    def slow(stream: SpeechStream) -> AudioChunk:
        chunk = stream_of(stream)
        handed_out.append(chunk)
        under_way.set()
        go_on.wait()
        return chunk

    monkeypatch.setattr(SpeechStream, "__next__", slow)
    if rehearses:
        monkeypatch.setattr(engine, "warm", lambda voice, **_: quick)
    state = state_of(create_app(engine, Settings(**{**SETTINGS, "degrade": "auto"})))
    assert under_way.wait(60)
    timer = begin_to_stop(state, 600)
    go_on.set()
    wait_until(lambda: state.warm_up.complete)
    timer.cancel()
    assert len(handed_out) == 1
    assert state.warm_up.state == "failed"
    assert state.warm_up.reason == "The server was stopped before it was warm."


def test_a_rehearsal_needs_what_its_latest_chunk_needed() -> None:
    now_s = [0.0]

    def spoken() -> Iterator[AudioChunk]:
        for chunk_id, came_s in enumerate((5.0, 5.05, 5.3, 5.31)):
            now_s[0] = came_s
            yield AudioChunk(np.zeros(2400, np.float32), SAMPLE_RATE_HZ, 0, chunk_id, 0.1 * chunk_id)

    # The third chunk is due 0.2 s after the first, and comes 0.1 s later; the fourth is in time again
    assert needed_pre_buffer_s(spoken(), lambda: now_s[0]) == pytest.approx(0.1)


def test_in_a_process_of_its_own_memory_is_watched_and_what_stays_is_no_garbage(engine: Engine) -> None:
    try:
        # As much as no process has: this one is not to be cleaned up, let alone replaced
        settings = Settings(**{**SETTINGS, "memory_limit_mb": 10**9})
        app = create_app(engine, settings, own_process=True)
        wait_until(lambda: state_of(app).warm_up.state == "ok")
        assert gc.get_freeze_count() > 10_000
        wait_until(lambda: state_of(app).watchdog.figures()["warm_mb"] is not None)
        assert state_of(app).watchdog.state == "ok"
    finally:
        gc.unfreeze()


# -------------------------------------------------------------------------------------- benchmarks


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where benchmarks are kept, instead of in the repository."""
    monkeypatch.setattr("kokoro_lab.lab.results.results_folder", lambda: tmp_path)
    monkeypatch.setattr(
        "kokoro_lab.lab.results.new_run_folder", lambda name: tmp_path / name / "20260101T000000Z-abcd"
    )
    return tmp_path


def test_a_benchmark_is_spoken_in_the_background_kept_and_listed(
    client: FlaskClient, results: Path, soon_idle: None
) -> None:
    assert client.get("/benchmarks").json == {
        "runs": [],
        "skipped": [],
        "current": None,
        "schedule": None,
    }
    assert client.get("/benchmarks/latest").status_code == 404
    begun = client.post("/benchmarks", json={"preset": "short", "trials": 2})
    assert begun.status_code == 202
    assert begun.json["state"] in ("waiting", "running")
    wait_until(lambda: client.get("/benchmarks").json["current"]["state"] == "finished")
    listed = client.get("/benchmarks").json
    (run,) = listed["runs"]
    assert run["run_id"] == begun.json["run_id"]
    assert listed["current"]["finished_trials"] == 2
    latest = client.get("/benchmarks/latest").json
    assert len(latest["trials"]) == 2
    assert latest == client.get(f"/benchmarks/{run['run_id']}").json
    assert json.loads((results / "bench" / run["run_id"] / "result.json").read_text())["asked"]["trials"] == 2
    # It is none of the listeners' figures
    assert client.get("/status").json["requests"]["total"] == 0


@pytest.mark.parametrize("name", ["..", "%2e%2e%2fsecret", "20260101T000000Z-ffff", "x"])
def test_no_other_file_can_be_asked_for(client: FlaskClient, results: Path, name: str) -> None:
    (results / "result.json").write_text("{}")
    assert client.get(f"/benchmarks/{name}").status_code == 404


@pytest.mark.parametrize(
    "body", [{"trials": 0}, {"trials": 31}, {"preset": "epic"}, {"voice": "nobody"}, {"x": 1}]
)
def test_a_wrong_benchmark_is_refused(client: FlaskClient, results: Path, body: dict[str, Any]) -> None:
    assert client.post("/benchmarks", json=body).status_code == 400
    assert client.get("/benchmarks").json["current"] is None


def test_a_benchmark_is_refused_while_somebody_is_served_and_where_it_is_switched_off(
    app: Flask, client: FlaskClient, make_app: Callable[..., Flask], results: Path
) -> None:
    slot = state_of(app).slots.take()
    assert client.post("/benchmarks", json={}).status_code == 409
    slot.release()
    assert make_app(skip_benchmarking=True).test_client().post("/benchmarks", json={}).status_code == 403


def test_a_trial_makes_way_for_a_request_and_is_begun_again(engine: Engine) -> None:
    asked = iter([False, True])  # somebody comes during the first trial
    waits: list[None] = []
    trials, disturbed = measure_considerately(
        InProcess(engine, "hum", cached=False),
        [TEXT, f"Another one. {TEXT}"],
        wait=lambda: waits.append(None),
        wanted=lambda: next(asked, False),
    )
    assert ([t.text_number for t in trials], disturbed, len(waits)) == ([0, 1], 1, 3)
    assert trials[0].audio_s > 1


def test_no_garbage_is_collected_while_frames_of_threads_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CPython 3.11 holds a lock of the interpreter then: a destructor that waits would wait for ever."""
    enabled: list[bool] = []
    monkeypatch.setattr(operations.sys, "_current_frames", lambda: enabled.append(gc.isenabled()) or {})
    assert operations._frames() == {}
    assert (enabled, gc.isenabled()) == ([False], True)
