"""From the first moment of a process to its last: nobody is left without an answer."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import Client

from kokoro_lab.config import Settings
from kokoro_lab.errors import Unavailable, WeightsError
from kokoro_lab.server.health.background import Stages
from kokoro_lab.server.health.lifecycle import Doorstep, begin_to_stop, say_goodbye
from tests.server.conftest import SETTINGS, RunningServer, running, state_of, wait_until
from tests.server.events import read_events
from tests.server.scripted import Scripted

URL = "/v1/audio/speech"
TEXT = "The first sentence is long enough to stand alone. And so, I should think, is the second one of them."
SLOW = "This is a slow one. " * 6


# ------------------------------------------------------------------------------- while it is loaded


class Loading:
    """A doorstep whose application is made when the test says so."""

    def __init__(self, app: Flask, **settings: Any) -> None:
        self.go_on = threading.Event()
        self.ended_with: list[int] = []
        self.error: Exception | None = None
        self.doorstep = Doorstep(
            lambda begins: self._made(begins, app),
            Settings(**{**SETTINGS, **settings}),
            self.ended_with.append,
        )
        self.client = Client(self.doorstep)
        self.thread = self.doorstep.open(worker=3)

    def _made(self, begins: Stages, app: Flask) -> Flask:
        begins("weights")
        begins("graphs")
        assert self.go_on.wait(30)
        if self.error is not None:
            raise self.error
        begins.end()
        return app


@pytest.fixture
def loading(app: Flask) -> Iterator[Loading]:
    found = Loading(app, concurrency=1, queue=1)
    wait_until(lambda: found.doorstep.stages.current == "graphs")
    yield found
    found.go_on.set()
    found.thread.join(10)


def test_while_loading_health_is_answered_and_says_how_far_it_is(loading: Loading) -> None:
    answer = loading.client.get("/health")
    assert answer.status_code == 503
    assert (answer.json["status"], answer.json["stage"]) == ("warming", "graphs")
    assert set(answer.json["stages_s"]) == {"weights"}
    loading.go_on.set()
    wait_until(lambda: loading.client.get("/health").status_code == 200)


def test_while_loading_too_no_strange_host_is_answered(loading: Loading) -> None:
    assert loading.client.get("/health", headers={"Host": "evil.example"}).status_code == 400


def test_a_request_that_comes_while_loading_is_served_once_it_is_loaded(loading: Loading) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: loading.client.post(URL, json={"input": TEXT}).status_code)
        time.sleep(0.1)
        assert not waiting.done()
        loading.go_on.set()
        assert waiting.result(30) == 200
    assert loading.client.get("/status").json["worker"] == {"pid": os.getpid(), "number": 3}


def test_only_so_many_wait_and_a_further_one_is_told_to_come_back(loading: Loading) -> None:
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(lambda: loading.client.get("/status").status_code) for _ in range(2)]

        def refused() -> bool:
            # Its own turn to wait may come before one of theirs: it is let go when the test lets all go
            return loading.doorstep._seats._value == 0  # type: ignore[attr-defined]

        wait_until(refused)
        answer = loading.client.post(URL, json={"input": TEXT})
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
        assert answer.json["error"]["code"] == "server_loading"
        loading.go_on.set()
        assert [future.result(30) for future in waiting] == [200, 200]


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (WeightsError("The weights are not there."), 4, "Error: The weights are not there."),
        (RuntimeError("a bug"), 3, ""),
    ],
)
def test_what_cannot_be_loaded_ends_the_server(
    app: Flask, error: Exception, code: int, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = Loading(app)
    found.error = error
    found.go_on.set()
    found.thread.join(10)
    assert found.ended_with == [code]
    assert said in caplog.text


def test_a_server_that_is_stopped_while_it_loads_takes_nothing(loading: Loading, app: Flask) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: loading.client.post(URL, json={"input": TEXT}).status_code)
        loading.doorstep.begin_to_stop(30)
        assert waiting.result(10) == 503, "nobody waits for what will not be"
    loading.go_on.set()
    loading.thread.join(10)
    assert state_of(app).admission.reasons == ["server_stopping"]


def test_stages_are_timed_one_after_another() -> None:
    stages = Stages()
    stages("weights")
    time.sleep(0.02)
    stages("graphs")
    assert stages.current == "graphs"
    assert set(stages.finished_s) == {"weights"}
    stages.end()
    assert stages.current is None
    assert stages.finished_s["weights"] >= 0.02


# ----------------------------------------------------------------------------- while it is stopped


def test_stopping_refuses_what_is_new_and_lets_the_rest_finish(app: Flask, client: FlaskClient) -> None:
    whole = client.post(URL, json={"input": TEXT, "response_format": "pcm"}).data
    answer = client.post(URL, json={"input": TEXT, "response_format": "pcm"}, buffered=False)
    body = iter(answer.response)
    heard = [next(body)]
    timer = begin_to_stop(state_of(app), 600)
    refused = client.post(URL, json={"input": TEXT})
    assert (refused.status_code, refused.json["error"]["code"]) == (503, "server_stopping")
    assert int(refused.headers["Retry-After"]) > 0
    assert b"".join([*heard, *body]) == whole
    timer.cancel()


def test_one_that_is_short_of_memory_and_stops_says_that_it_stops(app: Flask, client: FlaskClient) -> None:
    """Who is told of memory alone would come back to this server, and not to the next one."""
    admission = state_of(app).admission
    short = Unavailable("The server is short of memory.", retry_after_s=5, code="memory_short")
    admission.refuse(short)
    timer = begin_to_stop(state_of(app), 600)
    for _ in range(2):
        assert client.post(URL, json={"input": TEXT}).json["error"]["code"] == "server_stopping"
        admission.admit("memory_short")
        admission.refuse(short)
    timer.cancel()


def test_who_waits_for_a_slot_when_the_server_stops_is_told_at_once(
    make_app: Callable[..., Flask], decoder: Scripted
) -> None:
    app = make_app(concurrency=1, queue=1)
    state = state_of(app)
    held = state.slots.take()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: app.test_client().post(URL, json={"input": TEXT}))
        wait_until(lambda: state.slots.waiting == 1)
        timer = begin_to_stop(state, 600)
        answer = waiting.result(10)
    held.release()
    timer.cancel()
    assert (answer.status_code, answer.json["error"]["code"]) == (503, "server_stopping")
    assert state.figures.summary()["requests"]["rejected"] == 1


def test_when_the_time_is_over_events_end_with_words_and_can_be_gone_on_with(
    app: Flask, client: FlaskClient
) -> None:
    body = {"input": f"{TEXT} {TEXT}", "response_format": "pcm", "stream_format": "sse"}

    def deltas(lines: Iterator[str]) -> list[Any]:
        return [e for e in read_events(lines) if e.data.get("type") == "speech.audio.delta"]

    whole = b"".join(e.audio for e in deltas(iter(client.post(URL, json=body).text.splitlines())))
    answer = client.post(URL, json=body, buffered=False)
    answered = iter(answer.response)
    said = [next(answered).decode() for _ in range(12)]
    say_goodbye(state_of(app))
    said += [data.decode() for data in answered]
    events = list(read_events(iter("".join(said).splitlines())))
    assert events[-1].data["error"]["code"] == "server_stopping"
    heard = deltas(iter("".join(said).splitlines()))
    token = next(e.data["resume"] for e in reversed(heard) if e.data.get("resume"))
    rest = client.post(URL, json={**body, "last_id": heard[-1].id, "resume": token})
    joined = b"".join(e.audio for e in [*heard, *deltas(iter(rest.text.splitlines()))])
    assert joined == whole
    summary = client.get("/status").json["requests"]
    assert (summary["cancelled"], summary["failed"]) == (1, 0), "an end that was meant is no failure"


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running(tmp_path_factory.mktemp("stopped"), shutdown_s=60) as found:
        yield found


@pytest.mark.test_all
def test_a_stopped_server_gives_its_port_back_while_its_last_stream_is_heard(stopped: RunningServer) -> None:
    """One test for a server that can be stopped once."""
    worker = stopped.status()["worker"]["pid"]
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: alive_worker(stopped) not in (None, worker), 120)
    assert stopped.status()["worker"]["number"] == 2, "a crash is seen"
    socket_client = websocket(stopped)
    with httpx2.stream(
        "POST", stopped.speech_url, json={"input": SLOW, "response_format": "pcm"}, timeout=60
    ) as answer:
        body = answer.iter_raw()
        next(body)
        stopped.process.send_signal(signal.SIGTERM)
        wait_until(lambda: refuses_connections(stopped.port), 20)
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", stopped.port))
            other.listen()
        said = json.loads(socket_client.recv())
        assert said["error"]["code"] == "server_stopping", "who says nothing on a WebSocket is told at once"
        socket_client.close()
        assert sum(len(data) for data in body) > 24_000, "whole: it would raise if it broke off"
    assert stopped.process.wait(30) == 0


def alive_worker(server: RunningServer) -> int | None:
    try:
        return int(server.status()["worker"]["pid"])
    except httpx2.TransportError:
        return None


def refuses_connections(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def websocket(server: RunningServer) -> Any:
    from websocket import create_connection

    return create_connection(f"ws://127.0.0.1:{server.port}{URL}/ws", timeout=20)


PROGRAM = """
from flask import Flask
from kokoro_lab.config import settings
from kokoro_lab.serve import serve
from kokoro_lab.server.requests.slots import Admission, Slots
from kokoro_lab.server.state import EXTENSION
from kokoro_lab.server.health.lifecycle import replace_this_worker
from kokoro_lab.server.requests.syntheses import Syntheses
import os, types

def make_app(begins):
    app = Flask("trivial")
    admission = Admission()
    app.extensions[EXTENSION] = types.SimpleNamespace(
        worker=0, admission=admission, syntheses=Syntheses(Slots(1), admission, settings())
    )
    app.add_url_rule("/pid", "pid", view_func=lambda: str(os.getpid()))
    app.add_url_rule("/replace", "replace", view_func=lambda: str(replace_this_worker()))
    return app

serve(make_app, settings())
"""


def test_a_worker_that_has_itself_replaced_is(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], env={**os.environ, "KOKORO_PORT": "0"}, stdout=sink, stderr=sink
        )
    try:
        wait_until(lambda: "Listening at" in log.read_text())
        found = re.search(r"Listening at: (http://[\d.:]+)", log.read_text())
        assert found is not None
        before = httpx2.get(f"{found[1]}/pid", timeout=30).text
        assert httpx2.get(f"{found[1]}/replace", timeout=30).status_code == 200
        wait_until(lambda: httpx2.get(f"{found[1]}/pid", timeout=30).text != before)
        assert process.poll() is None
    finally:
        process.terminate()
        process.wait(20)
