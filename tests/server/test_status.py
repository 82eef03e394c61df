"""What the server says about itself, and that it is so."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from flask import Flask
from flask.testing import FlaskClient

from kokoro_lab.config import Settings
from kokoro_lab.datatypes import Fallback
from kokoro_lab.serve import create_app
from kokoro_lab.server.health.figures import ServerFigures, percentiles
from kokoro_lab.sessions.guarded_session import Placement
from kokoro_lab.speech.engine import Engine
from kokoro_lab.weights.voices import reading_voices
from tests.server.conftest import SETTINGS, RunningServer, state_of, wait_until
from tests.server.scripted import Scripted

URL = "/v1/audio/speech"
TEXT = "The first sentence is long enough to stand alone. And so, I should think, is the second one of them."


def test_health_is_answered_while_warming_and_says_so(engine: Engine, decoder: Scripted) -> None:
    decoder.gate.clear()
    app = create_app(engine, Settings(**SETTINGS))
    client = app.test_client()
    answer = client.get("/health")
    assert (answer.status_code, answer.json["status"]) == (503, "warming")
    wait_until(lambda: client.get("/health").json["stage"] == "model")
    assert client.get("/status").json["status"] == "warming"
    decoder.gate.set()
    wait_until(lambda: client.get("/health").status_code == 200)
    assert client.get("/health").json["status"] == "ok"
    assert client.get("/status").json["warm_up_s"] > 0


def test_health_says_why_the_warm_up_failed(engine: Engine) -> None:
    client = create_app(engine, Settings(**{**SETTINGS, "voice": "nobody"})).test_client()
    wait_until(lambda: client.get("/health").json["status"] == "failed")
    answer = client.get("/health")
    assert answer.status_code == 503
    assert "nobody" in answer.json["reason"]


def test_status_names_the_engine_and_starts_from_nothing(client: FlaskClient) -> None:
    status = client.get("/status").json
    assert status["variant"] == "fp32"
    assert status["model_sha256"] == "hum"
    assert status["requested_provider"] == "auto"
    assert status["active_provider"] == "CPUExecutionProvider"
    assert status["threads"] == 1
    assert status["voices"] == 54
    assert status["memory_rss_mb"] > 10
    assert status["uptime_s"] >= 0
    assert status["versions"]["kokoro-lab"]
    assert status["lexicon"]["entries"]["default"] > 500
    assert status["lexicon"]["problems"] == []
    # The warm-up is over, and is in none of the figures
    nothing = {"p50": None, "p95": None, "count": 0}
    assert status["ttfa_s"] == status["ttfa_file_s"] == status["ttfb_s"] == status["rtf"] == nothing
    assert status["requests"]["total"] == 0


def test_status_and_headers_say_which_provider_was_given_up(
    client: FlaskClient, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    placement = client.get("/status").json["placement"]
    assert placement["requested"] == "auto"
    assert placement["active"] == placement["stages"]["model"] == "CPUExecutionProvider"
    assert placement["fallbacks"] == []
    reason = "vocoder: CPUExecutionProvider instead of CoreMLExecutionProvider, lost in run 10: EPFail"
    stages = {"prosody": "CPUExecutionProvider", "vocoder": "CPUExecutionProvider"}
    lost = Placement("coreml", "it was asked for", stages, {}, (Fallback("provider", reason),))
    monkeypatch.setattr(engine, "parts", replace(engine.parts, placement=lambda: lost))
    status = client.get("/status").json
    assert status["active_provider"] == "CPUExecutionProvider"
    assert status["placement"] == {
        "requested": "coreml",
        "active": "CPUExecutionProvider",
        "because": "it was asked for",
        "stages": stages,
        "nodes": {},
        "fallbacks": [reason],
    }
    assert "kokoro_provider_fallbacks 1.0" in client.get("/metrics").text
    answer = client.post(URL, json={"input": TEXT, "stream": False})
    assert answer.headers["X-Kokoro-Provider"] == "CPUExecutionProvider"
    assert answer.headers["X-Kokoro-Fallbacks"] == "provider=1"


def test_status_tells_streams_from_files_and_first_bytes_from_first_audio(client: FlaskClient) -> None:
    for stream in (True, True, False):
        assert client.post(URL, json={"input": TEXT, "stream": stream}).data
    status = client.get("/status").json
    assert [status[f]["count"] for f in ("ttfa_s", "ttfa_file_s", "ttfb_s", "rtf")] == [2, 1, 2, 3]
    assert status["requests"] == {
        "total": 3,
        "completed": 3,
        "failed": 0,
        "expired": 0,
        "cancelled": 0,
        "rejected": 0,
        "invalid": 0,
    }
    assert 0 < status["ttfb_s"]["p50"] <= status["ttfa_s"]["p95"] < 10
    assert 0 < status["rtf"]["p50"] < 10


def test_ttfa_is_the_time_of_the_speech_and_not_of_the_header(app: Flask, client: FlaskClient) -> None:
    answer = client.post(URL, json={"input": TEXT, "response_format": "wav"}, buffered=False)
    body = iter(answer.response)
    next(body)
    figures = state_of(app).figures
    assert figures.summary()["ttfb_s"]["count"] == 1
    assert figures.summary()["ttfa_s"]["count"] == 0
    next(body)
    assert figures.summary()["ttfa_s"]["count"] == 1
    answer.close()


def test_a_listener_who_leaves_stops_the_computing_and_is_counted(
    app: Flask, client: FlaskClient, decoder: Scripted
) -> None:
    state = state_of(app)
    answer = client.post(URL, json={"input": f"{TEXT} " * 5}, buffered=False)
    body = iter(answer.response)
    for _ in range(3):
        next(body)
    decoded = decoder.decoded
    assert state.slots.active == 1
    answer.close()
    answer.close()
    assert state.slots.active == 0
    assert decoder.decoded == decoded
    summary = state.figures.summary()
    assert summary["requests"]["cancelled"] == summary["requests"]["total"] == 1
    assert summary["rtf"]["count"] == 0


def test_a_listener_who_leaves_before_the_first_byte_frees_the_slot(app: Flask, client: FlaskClient) -> None:
    client.post(URL, json={"input": TEXT}, buffered=False).close()
    assert state_of(app).slots.active == 0
    assert state_of(app).figures.summary()["requests"]["cancelled"] == 1


@pytest.mark.parametrize("text", ["", "Bang.", "Boom."])
def test_every_request_has_one_outcome(client: FlaskClient, text: str) -> None:
    client.post(URL, json={"input": text, "stream": False})
    requests = client.get("/status").json["requests"]
    assert requests["total"] == 1
    assert requests["failed" if text else "invalid"] == 1


def test_a_request_too_many_is_rejected_at_once_and_counted(app: Flask, decoder: Scripted) -> None:
    decoder.gate.clear()
    state = state_of(app)
    with ThreadPoolExecutor(2) as pool:
        waiting = [
            pool.submit(lambda: app.test_client().post(URL, json={"input": "Hello.", "stream": False}))
            for _ in range(2)
        ]
        wait_until(lambda: state.slots.active == 2)
        answer = app.test_client().post(URL, json={"input": "Hello."})
        assert answer.status_code == 429
        assert int(answer.headers["Retry-After"]) >= 1
        assert "x-should-retry" not in answer.headers
        assert answer.json["error"]["code"] == "rate_limit_exceeded"
        assert app.test_client().get("/health").status_code == 200
        decoder.gate.set()
        assert [future.result().status_code for future in waiting] == [200, 200]
    assert state.figures.summary()["requests"]["rejected"] == 1
    assert state.slots.active == 0


def test_voices_are_listed_for_openwebui_and_for_raycast(client: FlaskClient) -> None:
    voices = client.get("/v1/audio/voices").json["voices"]
    assert [voice["id"] for voice in voices] == client.get("/voices").json["voices"] == list(reading_voices())
    assert {
        "id": "af_heart",
        "name": "Heart (en-us, female)",
        "language": "en-us",
        "gender": "female",
    } in voices
    assert {"bm_george": "George (en-gb, male)"}.items() <= {v["id"]: v["name"] for v in voices}.items()
    assert len({voice["name"] for voice in voices}) == 54


def test_models_are_listed_for_openai_and_for_openwebui(client: FlaskClient) -> None:
    models = client.get("/v1/models").json
    assert models["object"] == "list"
    names = [model["id"] for model in models["data"]]
    assert {"fp32", "kokoro", "tts-1"} <= set(names)
    assert all(set(model) == {"id", "object", "created", "owned_by"} for model in models["data"])
    assert client.get("/v1/audio/models").json == {"models": [{"id": name} for name in names]}


def test_the_openai_sdk_lists_the_models(server: RunningServer) -> None:
    with server.openai() as sdk:
        assert "kokoro" in [model.id for model in sdk.models.list()]


def test_percentiles_are_values_that_occurred() -> None:
    assert percentiles([]) == {"p50": None, "p95": None, "count": 0}
    assert percentiles([3.0]) == {"p50": 3.0, "p95": 3.0, "count": 1}
    assert percentiles([5, 1, 4, 2, 3]) == {"p50": 3, "p95": 5, "count": 5}
    assert percentiles(range(1, 101)) == {"p50": 50, "p95": 95, "count": 100}


def test_figures_roll() -> None:
    figures = ServerFigures(window=3)
    for rtf in (9.0, 1.0, 2.0, 3.0):
        figures.measured("rtf", rtf)
    assert figures.summary()["rtf"] == {"p50": 2.0, "p95": 3.0, "count": 3}


def test_figures_may_be_written_and_read_from_many_threads() -> None:
    figures = ServerFigures()

    def write() -> None:
        for _ in range(500):
            figures.measured("rtf", 1.0)
            figures.ended("completed")
            figures.summary()

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert figures.summary()["requests"]["completed"] == 2000


def test_status_says_what_was_remembered_and_which_languages_are_loaded(
    client: FlaskClient, engine: Engine
) -> None:
    before = client.get("/status").json["phoneme_cache"]
    for _ in range(2):
        assert client.post(URL, json={"input": TEXT, "stream": False}).data
    status = client.get("/status").json
    assert status["phoneme_cache"]["hits"] - before["hits"] >= 2
    assert 0 < status["phoneme_cache"]["bytes"] <= status["phoneme_cache"]["max_bytes"]
    assert "en-us" in status["languages_loaded"]
    engine.clear_caches()
    assert client.get("/status").json["phoneme_cache"]["entries"] == 0
    assert client.get("/status").json["first_audio_cache"]["entries"] == 0


def test_the_mode_of_detection_is_checked(client: FlaskClient) -> None:
    answer = client.post(URL, json={"input": TEXT, "detect_languages": "guess"})
    assert answer.status_code == 400
    assert "auto, scripts, off" in answer.json["error"]["message"]
    assert client.post(URL, json={"input": TEXT, "detect_languages": "off", "stream": False}).data
