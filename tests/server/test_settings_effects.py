"""Every setting of the server does what its description says; see `tests/test_settings_effects.py`."""

from __future__ import annotations

import gc
import socket
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask

from kokoro_lab import serve as serving
from kokoro_lab.config import Settings
from kokoro_lab.server.health import logs
from kokoro_lab.speech.engine import Engine
from tests.server.conftest import SETTINGS, state_of, wait_until

URL = "/v1/audio/speech"
Make = Callable[..., Flask]


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """What gunicorn is configured with, by settings; it is not run, and nothing is logged anew."""
    found: list[Any] = []
    monkeypatch.setattr(serving, "configure", lambda kind, verbose: None)
    monkeypatch.setattr(serving._Gunicorn, "run", lambda self: found.append(self.cfg))

    def by(**changed: Any) -> Any:
        serving.serve(lambda begins: pytest.fail("nothing is loaded"), Settings(**{**SETTINGS, **changed}))
        return found.pop()

    return by


def test_gunicorn_listens_where_it_is_told_to(
    configured: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, int]] = []
    listener = serving.listener

    def listening(host: str, port: int, backlog: int, port_setting: str) -> socket.socket:
        asked.append((host, port))
        return listener("127.0.0.1", 0, backlog)

    monkeypatch.setattr(serving, "listener", listening)
    configured(host="127.0.0.9", port=8881)
    configured(host="::1", port=8882)
    assert asked == [("127.0.0.9", 8881), ("::1", 8882)]


def test_gunicorn_has_a_thread_for_each_synthesis_and_each_request_that_waits(
    configured: Callable[..., Any],
) -> None:
    least = configured(concurrency=1, queue=0).threads
    assert configured(concurrency=5, queue=0).threads == least + 4
    assert configured(concurrency=1, queue=9).threads == least + 9


def test_gunicorn_waits_for_streams_as_long_as_it_is_told_to(configured: Callable[..., Any]) -> None:
    assert configured(shutdown_s=77).graceful_timeout == 77


def test_gunicorns_own_lines_are_json_or_for_people(configured: Callable[..., Any]) -> None:
    for kind in ("json", "text"):
        assert configured(log_format=kind).logger_class is logs.OurGunicorn, (
            "it hands its lines to our handler"
        )


def test_a_host_that_is_allowed_is_answered_and_no_other(make_app: Make) -> None:
    client = make_app(allowed_hosts="speech.example").test_client()
    assert client.get("/health", headers={"Host": "speech.example"}).status_code == 200
    assert client.get("/health", headers={"Host": "localhost"}).status_code == 400


def test_who_names_no_voice_hears_the_one_of_the_settings(make_app: Make) -> None:
    answer = make_app(voice="hum_high").test_client().post(URL, json={"input": "Hello."})
    assert answer.headers["X-Kokoro-Voice"] == "hum_high"


def test_chunks_are_those_of_the_profile(make_app: Make) -> None:
    for profile, chunk_ms in (("benchmark", "40"), ("safe", "100")):
        client = make_app(buffer_profile=profile, degrade="off").test_client()
        assert client.post(URL, json={"input": "Hello."}).headers["X-Kokoro-Chunk-Ms"] == chunk_ms


def test_first_audio_that_is_later_than_the_objective_is_warned_of(make_app: Make) -> None:
    client = make_app(slo_ttfa_s=1e-9).test_client()
    for number in range(10):
        assert client.post(URL, json={"input": f"Hello, {number}.", "response_format": "pcm"}).data
    assert "ttfa_s p95" in {warned["objective"] for warned in client.get("/status").json["slo"]["warnings"]}


@pytest.mark.parametrize("defer", [False, True])
def test_what_is_loaded_after_the_start_waits_for_nobody_if_it_is_told_so(
    make_app: Make, engine: Engine, monkeypatch: pytest.MonkeyPatch, defer: bool
) -> None:
    waited: list[object] = []
    monkeypatch.setattr("kokoro_lab.server.health.background.QUIET_S", 0.0)
    monkeypatch.setattr(
        "kokoro_lab.server.health.background.wait_until_idle", lambda slots: waited.append(slots)
    )
    monkeypatch.setattr(type(engine.front_end), "warm", lambda self, tag: None)
    state = state_of(make_app(aggressive_warming=True, defer_background_init=defer))
    wait_until(lambda: state.warm_up.complete)
    assert set(state.warm_up.languages.values()) == {"warm"}
    assert (state.slots in waited) is defer


@pytest.mark.parametrize(
    ("changed", "limit_mb"),
    [({"memory_limit_mb": 10**9}, 10**9), ({"memory_limit_mb": 10**9, "disable_memory_mgmt": True}, 0)],
)
def test_resident_memory_has_the_limit_of_the_settings_or_none(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], limit_mb: float
) -> None:
    given: list[float] = []
    watchdog = serving.Watchdog

    def watched(*arguments: Any, **named: Any) -> Any:
        given.append(arguments[0])
        return watchdog(*arguments, **named)

    monkeypatch.setattr(serving, "Watchdog", watched)
    try:
        app = serving.create_app(engine, Settings(**{**SETTINGS, **changed}), own_process=True)
        wait_until(lambda: state_of(app).warm_up.state == "ok")
    finally:
        gc.unfreeze()
    assert given == [limit_mb]
