"""Benchmarks at intervals: one begins when nobody is served, and a turn that would disturb is skipped."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.routes import running
from kokoro_lab.lab.routes.benchmarks import benchmarks_of
from kokoro_lab.lab.routes.running import BenchmarkRequest, Schedule
from kokoro_lab.server.state import ServerState
from tests.server.conftest import state_of, wait_until
from tests.server.scripted import Scripted

LONG_S = 3_600.0


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where benchmarks are kept; short ones, that begin as soon as nobody is served."""
    numbers = iter(range(100))
    monkeypatch.setattr("kokoro_lab.lab.results.results_folder", lambda: tmp_path)
    monkeypatch.setattr(
        "kokoro_lab.lab.results.new_run_folder",
        lambda name: tmp_path / name / f"20260101T000000Z-{next(numbers):04x}",
    )
    monkeypatch.setattr(running, "ASKED", BenchmarkRequest(preset="short", trials=1))
    monkeypatch.setattr("kokoro_lab.server.health.background.QUIET_S", 0.0)
    return tmp_path


@pytest.fixture
def state(app: Flask) -> ServerState:
    return state_of(app)


@pytest.fixture
def schedule(app: Flask, state: ServerState) -> Iterator[Schedule]:
    """One whose turns a test takes itself."""
    benchmarks = benchmarks_of(app)
    found = Schedule(benchmarks, "hum", LONG_S)
    benchmarks.schedule = found
    yield found
    found.stop()


def ended(client: FlaskClient) -> bool:
    current = client.get("/benchmarks").json["current"]
    return current is not None and current["state"] in ("finished", "failed")


def test_a_turn_is_measured_kept_and_shown(client: FlaskClient, schedule: Schedule, results: Path) -> None:
    assert schedule.take_turn()
    wait_until(lambda: ended(client))
    shown = client.get("/benchmarks").json
    assert shown["current"]["scheduled"] is True
    assert shown["current"]["state"] == "finished"
    assert shown["runs"][0]["asked"]["scheduled"] is True
    assert (shown["schedule"]["begun"], shown["schedule"]["skipped"]) == (1, 0)
    assert shown["schedule"]["interval_s"] == LONG_S
    assert 0 < shown["schedule"]["next_in_s"] <= LONG_S
    kept = json.loads((results / "bench" / shown["runs"][0]["run_id"] / "result.json").read_text())
    assert len(kept["trials"]) == 1


def test_a_turn_is_skipped_while_somebody_is_served(
    client: FlaskClient, state: ServerState, schedule: Schedule
) -> None:
    slot = state.slots.take()
    assert not schedule.take_turn()
    shown = client.get("/benchmarks").json
    assert shown["current"] is None
    assert shown["schedule"]["skipped"] == 1
    assert shown["schedule"]["last_skip"] == running.LIVE
    slot.release()
    assert schedule.take_turn()
    wait_until(lambda: ended(client))


def test_a_turn_is_skipped_for_as_long_as_a_reader_turns_the_page(
    state: ServerState, schedule: Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kokoro_lab.server.health.background.QUIET_S", 60.0)
    state.slots.take().release()
    assert not schedule.take_turn()
    assert schedule.state.last_skip == running.LIVE


def test_a_trial_that_a_request_disturbs_is_begun_again(
    client: FlaskClient, state: ServerState, schedule: Schedule, decoder: Scripted
) -> None:
    decoder.gate.clear()  # the trial hangs in its first segment
    assert schedule.take_turn()
    wait_until(lambda: client.get("/benchmarks").json["current"]["state"] == "running")
    slot = state.slots.take()
    decoder.gate.set()
    wait_until(lambda: client.get("/benchmarks").json["current"]["state"] == "waiting")
    assert client.get("/benchmarks").json["current"]["finished_trials"] == 0
    slot.release()
    wait_until(lambda: ended(client))
    current = client.get("/benchmarks").json["current"]
    assert (current["state"], current["finished_trials"], current["disturbed"]) == ("finished", 1, 1)


def test_a_turn_is_skipped_while_another_benchmark_or_the_warm_up_is_under_way(
    client: FlaskClient, app: Flask, state: ServerState, schedule: Schedule, decoder: Scripted
) -> None:
    decoder.gate.clear()
    assert schedule.take_turn()
    assert not schedule.take_turn()
    assert schedule.state.last_skip == running.ANOTHER
    decoder.gate.set()
    wait_until(lambda: ended(client))
    early = Schedule(benchmarks_of(app), "hum", LONG_S, ready=lambda: False)
    assert not early.take_turn()
    assert early.state.last_skip == running.WARMING


def test_turns_are_taken_at_intervals_and_one_that_fails_is_not_the_last(
    app: Flask, state: ServerState, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(name: str) -> Path:
        raise ParameterError("There is no folder for results.")

    monkeypatch.setattr("kokoro_lab.lab.results.new_run_folder", nowhere)
    often = Schedule(benchmarks_of(app), "hum", 0.01)
    thread = often.start()
    wait_until(lambda: often.state.skipped >= 3)
    often.stop()
    thread.join(10)
    assert not thread.is_alive()
    assert often.state.last_skip == "There is no folder for results."


def test_the_server_measures_by_itself_only_where_it_is_told_to(make_app: Callable[..., Flask]) -> None:
    assert benchmarks_of(make_app()).schedule is None
    assert benchmarks_of(make_app(benchmark_interval_s=LONG_S, skip_benchmarking=True)).schedule is None
    told = benchmarks_of(make_app(benchmark_interval_s=LONG_S)).schedule
    assert told is not None
    assert told.state.interval_s == LONG_S
    told.stop()


def test_a_server_with_an_interval_begins_a_benchmark_without_being_asked(
    make_app: Callable[..., Flask],
) -> None:
    app = make_app(benchmark_interval_s=0.05)
    client = app.test_client()
    wait_until(lambda: client.get("/benchmarks").json["schedule"]["begun"] > 0)
    schedule = benchmarks_of(app).schedule
    assert schedule is not None
    schedule.stop()
    wait_until(lambda: ended(client))
    assert client.get("/benchmarks").json["runs"]
