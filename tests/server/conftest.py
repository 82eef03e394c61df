"""A server on the humming voice: in this process for the shapes of answers, in its own for real clients."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from flask import Flask
from flask.testing import FlaskClient

from kokoro_lab.config import Settings
from kokoro_lab.serve import create_app
from kokoro_lab.server.state import EXTENSION, ServerState
from kokoro_lab.speech.engine import Engine
from tests.server import scripted

ROOT = Path(__file__).parents[2]
CONCURRENCY, MAX_INPUT_CHARS = 2, 20_000
ALLOWED_ORIGIN = "http://listed.example"
START_S = 180
SETTINGS = {
    "host": "127.0.0.1",
    "port": 0,
    "voice": "hum",
    "concurrency": CONCURRENCY,
    "queue": 0,
    "capacity": 1e6,  # what a hum costs on a machine that does much else decides nothing
    "max_input_chars": MAX_INPUT_CHARS,
    "allowed_origins": ALLOWED_ORIGIN,
}


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return scripted.engine(tmp_path_factory.mktemp("hum") / "hum.onnx")


@pytest.fixture
def decoder(engine: Engine) -> Iterator[scripted.Scripted]:
    assert isinstance(engine.decoder, scripted.Scripted)
    yield engine.decoder
    engine.decoder.gate.set()


@pytest.fixture
def make_app(engine: Engine) -> Callable[..., Flask]:
    """Applications in this process, warm, that share one engine; settings by keyword."""

    def make(**changed: Any) -> Flask:
        app = create_app(engine, Settings(**{**SETTINGS, **changed}))
        wait_until(lambda: state_of(app).warm_up.state == "ok", START_S)
        return app

    return make


@pytest.fixture
def app(make_app: Callable[..., Flask]) -> Flask:
    return make_app()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


def state_of(app: Flask) -> ServerState:
    state = app.extensions[EXTENSION]
    assert isinstance(state, ServerState)
    return state


def wait_until(true: Callable[[], bool], timeout_s: float = 60) -> None:
    """Fails if it does not come true."""
    deadline = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)


@dataclass(frozen=True)
class RunningServer:
    """gunicorn in a process of its own."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def speech_url(self) -> str:
        return f"{self.url}/v1/audio/speech"

    def status(self) -> dict[str, Any]:
        answer: dict[str, Any] = httpx2.get(f"{self.url}/status").raise_for_status().json()
        return answer

    def openai(self, **options: Any) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key="any", **options)


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running(tmp_path_factory.mktemp("server")) as found:
        yield found


@pytest.fixture(scope="module")
def server(shared_server: RunningServer) -> RunningServer:
    """One for all, since it takes seconds to start; nobody is being served."""
    wait_until(lambda: shared_server.status()["active"] == 0)
    return shared_server


@contextmanager
def running(
    folder: Path, checkout: Path = ROOT, *, patient: bool = False, **changed: Any
) -> Iterator[RunningServer]:
    """The server on the humming voice, its model and log in `folder`; settings by keyword.

    One that is `patient` waits for heads and bodies as long as the product does. It is run in `checkout`,
    whose results it lists. It degrades only if it is told to: however busy this machine is, chunks are as
    long and slots as many.
    """
    log = folder / "log"
    settings = {**SETTINGS, "degrade": "off", "shutdown_s": 10, **changed}
    variables = {f"KOKORO_{name.upper()}": str(value) for name, value in settings.items()}
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.server.tiny_server", str(folder / "hum.onnx")),
                *(["patient"] if patient else []),
            ],
            cwd=checkout,
            env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
            stdout=sink,
            stderr=sink,
        )
    try:
        listening = re.compile(r"Listening at: http://127\.0\.0\.1:(\d+)")

        def port() -> int | None:
            assert process.poll() is None, log.read_text()
            found = listening.search(log.read_text())
            return int(found[1]) if found else None

        wait_until(lambda: port() is not None, START_S)
        found = RunningServer(process, port() or 0, log)
        wait_until(lambda: httpx2.get(f"{found.url}/health", timeout=START_S).status_code == 200, START_S)
        yield found
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
