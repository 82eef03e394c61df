"""The process that speaks Wyoming: nobody is left without an answer when it starts, stops or breaks."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from wyoming.client import AsyncTcpClient
from wyoming.event import read_event, write_event
from wyoming.info import Describe
from wyoming.tts import Synthesize

from kokoro_lab import serve as serving
from kokoro_lab.config import Settings
from kokoro_lab.errors import SettingsError
from kokoro_lab.serve import SPARE_THREADS
from kokoro_lab.server.http.listening import listener
from kokoro_lab.server.state import SOCKETS
from kokoro_lab.speech.engine import Engine
from tests.server.conftest import CONCURRENCY, ROOT, SETTINGS, START_S, wait_until
from tests.server.test_resume import TEXT
from tests.server.test_speech import pcm_of_stream
from tests.server.wyoming_client import Heard, talk, whole

SLOW = "This is a slow one. " * 12


class Speaking:
    """The server on the humming voice, in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "log"
        variables = {f"KOKORO_{name.upper()}": str(value) for name, value in SETTINGS.items()}
        with self.log.open("wb") as sink:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.server.tiny_server", str(folder / "hum.onnx"), "wyoming"],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}", **variables},
                stdout=sink,
                stderr=sink,
            )
        self.port = int(self.said(r"Wyoming on 127\.0\.0\.1, port (\d+)")[0])

    def said(self, pattern: str, times: int = 1) -> list[str]:
        """What the log holds, once it does so often."""
        wait_until(lambda: len(re.findall(pattern, self.log.read_text())) >= times, START_S)
        return re.findall(pattern, self.log.read_text())


@pytest.fixture
def speaking(tmp_path: Path) -> Iterator[Speaking]:
    found = Speaking(tmp_path)
    try:
        yield found
    finally:
        found.process.kill()
        found.process.wait()


@pytest.mark.test_all
def test_who_comes_early_waits_and_what_is_under_way_at_the_end_is_heard_to_its_end(
    speaking: Speaking, engine: Engine
) -> None:
    assert whole(speaking.port, TEXT).pcm == pcm_of_stream(engine, TEXT), "asked before it was loaded"

    async def work(client: AsyncTcpClient) -> Heard:
        await client.write_event(Synthesize(SLOW).event())
        heard = await Heard().listen(client, "audio-chunk")
        speaking.process.terminate()
        speaking.said("Stopping: nothing new is taken, 1 under way")
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", speaking.port), timeout=10)
        return await heard.listen(client, "audio-stop")

    assert talk(speaking.port, work).pcm == pcm_of_stream(engine, SLOW)
    assert speaking.process.wait(30) == 0
    assert "Traceback" not in speaking.log.read_text()


@pytest.mark.test_all
def test_a_worker_that_dies_is_replaced_and_one_connection_too_many_waits(
    speaking: Speaking, engine: Engine
) -> None:
    seats = CONCURRENCY + SETTINGS["queue"] + SOCKETS + SPARE_THREADS
    opened = [socket.create_connection(("127.0.0.1", speaking.port)) for _ in range(seats)]
    for each in opened:
        write_event(Describe().event(), each.makefile("wb"))
        assert read_event(each.makefile("rb")) is not None
    with socket.create_connection(("127.0.0.1", speaking.port)) as late:
        write_event(Describe().event(), late.makefile("wb"))
        late.settimeout(0.7)
        with pytest.raises(TimeoutError):
            late.recv(1)
        opened.pop().close()
        late.settimeout(30)
        assert read_event(late.makefile("rb")) is not None
    for each in opened:
        each.close()
    os.kill(int(speaking.said(r"Booting worker with pid: (\d+)")[0]), signal.SIGKILL)
    speaking.said(r"Booting worker with pid: (\d+)", times=2)
    assert whole(speaking.port, TEXT).pcm == pcm_of_stream(engine, TEXT)


def test_a_port_that_is_taken_is_said_with_the_variable_that_sets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "configure", lambda kind, verbose: None)  # nothing is logged anew
    with listener("127.0.0.1", 0, 1) as taken:
        settings = Settings(**{**SETTINGS, "port": taken.getsockname()[1]})
        with pytest.raises(SettingsError, match=r"Something else listens there\..*KOKORO_WYOMING_PORT"):
            serving.serve(lambda begins: pytest.fail("nothing is loaded"), settings, wyoming=True)


def test_the_log_says_that_a_key_is_not_asked_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(serving, "configure", lambda kind, verbose: None)
    monkeypatch.setattr(serving._Gunicorn, "run", lambda self: None)
    for key, warnings in (("sesame", 1), ("", 0)):
        caplog.clear()
        serving.serve(
            lambda begins: pytest.fail("loaded"), Settings(**{**SETTINGS, "api_key": key}), wyoming=True
        )
        assert caplog.text.count("KOKORO_API_KEY is ignored") == warnings
