"""Over HTTP, first audio is the first byte of speech: a header and a primer come earlier and do not count."""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Literal

import numpy as np
import psutil
import pytest

from kokoro_lab.containers.pcm import wav_header
from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.errors import SynthesisError
from kokoro_lab.lab.bench.client import Busy, ask
from kokoro_lab.lab.bench.own_server import OverHttp, OwnServer, ServerFailed, own_server
from kokoro_lab.lab.bench.timing import measure
from kokoro_lab.lab.bench.trial import Listener, Trial
from kokoro_lab.speech.chunker import PRIMER_S

SPEECH_AFTER_S = 0.3
SPEECH_S = 0.1

PRIMER = b"\0\0" * round(PRIMER_S * SAMPLE_RATE_HZ)
SPEECH = b"\0\x10" * round(SPEECH_S * SAMPLE_RATE_HZ)


@contextmanager
def late_speaker(head: bytes, *, broken: bool = False) -> Iterator[str]:
    """A server that sends `head` at once, and the speech `SPEECH_AFTER_S` later, in odd fragments; between
    them, what it sends where computing stalls."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self._chunk(head)
            time.sleep(SPEECH_AFTER_S)
            self._chunk(SPEECH[:1001])  # cuts a sample in two
            if broken:
                self.close_connection = True
                return
            self._chunk(PRIMER)  # nothing was ready
            self._chunk(SPEECH[1001:])
            self._chunk(b"")

        def _chunk(self, data: bytes) -> None:
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def heard(
    head: bytes,
    response_format: Literal["pcm", "wav"],
    make_listener: Callable[[], Listener] = Listener,
) -> Trial:
    with late_speaker(head) as url:
        client = OverHttp(OwnServer(url, psutil.Process()), "hum", response_format=response_format)
        listener = make_listener()
        listener.asks()
        client.speak("Hello.", listener)
    return listener.trial(client.name, 0, 6, streamed=True)


def check_first_audio(trial: Trial) -> None:
    """What a right measurement of `late_speaker` says."""
    assert trial.ttfb_s < SPEECH_AFTER_S
    assert trial.ttfa_s >= SPEECH_AFTER_S
    assert trial.audio_s == pytest.approx(SPEECH_S)


HEADS = [("pcm", PRIMER), ("wav", wav_header(SAMPLE_RATE_HZ) + PRIMER), ("wav", wav_header(SAMPLE_RATE_HZ))]


@pytest.mark.parametrize(("response_format", "head"), HEADS, ids=["primer", "header and primer", "header"])
def test_first_audio_is_speech(response_format: Literal["pcm", "wav"], head: bytes) -> None:
    check_first_audio(heard(head, response_format))


def test_control_a_header_that_counts_is_noticed() -> None:
    header_taken_for_samples = heard(wav_header(SAMPLE_RATE_HZ), "pcm")
    with pytest.raises(AssertionError):
        check_first_audio(header_taken_for_samples)


def test_control_a_primer_that_counts_is_noticed() -> None:
    class Careless(Listener):
        def hears(self, samples: Samples) -> None:
            super().hears(np.maximum(samples, np.float32(0.1)))  # all of it sounds like speech

    with pytest.raises(AssertionError):
        check_first_audio(heard(PRIMER, "pcm", Careless))


def test_a_stream_that_breaks_off_is_a_failure() -> None:
    with late_speaker(PRIMER, broken=True) as url, pytest.raises(SynthesisError, match="broke off"):
        OverHttp(OwnServer(url, psutil.Process()), "hum").speak("Hello.", Listener())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Iterator[OwnServer]:
    model = tmp_path_factory.mktemp("hum") / "hum.onnx"
    command = [sys.executable, "-m", "tests.server.tiny_server", str(model)]
    with own_server({"voice": "hum", "capacity": 1e6, "concurrency": 2}, command, repository) as running:
        yield running


@pytest.mark.parametrize("streamed", [True, False])
def test_our_server_is_measured(server: OwnServer, streamed: bool) -> None:
    client = OverHttp(server, "hum", streamed=streamed)
    texts = ["The kettle is on, and the window is open.", "Nobody is in."]
    trials = measure([client], texts, memory_interval_s=0.01)
    for trial in trials:
        assert trial.streamed is streamed
        assert 0 < trial.ttfb_s <= trial.ttfa_s <= trial.wall_s
        assert trial.audio_s > 0.5
        assert trial.rss_start_mb > 50  # the worker's too: the master has no model
    assert client.facts()["model_sha256"] == "hum"


def test_what_the_server_refuses_is_said(server: OwnServer) -> None:
    with pytest.raises(SynthesisError, match="no voice 'nobody'"):
        OverHttp(server, "nobody").warm()


def test_a_busy_server_says_when_to_come_back() -> None:
    class Full(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(429)
            self.send_header("Retry-After", "7")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Full) as full:
        threading.Thread(target=full.handle_request).start()
        with pytest.raises(Busy) as refused:
            ask(f"http://127.0.0.1:{full.server_port}", "POST", "/v1/audio/speech", {})
    assert refused.value.retry_after_s == 7


def test_the_server_ends_with_the_benchmark(tmp_path: Path, repository: Path) -> None:
    command = [sys.executable, "-m", "tests.server.tiny_server", str(tmp_path / "hum.onnx")]
    with own_server({"voice": "hum"}, command, repository) as running:
        processes = [running.process, *running.process.children(recursive=True)]
        port = int(running.url.rpartition(":")[2])
    assert not [p for p in processes if p.is_running()]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


DEAF = """
import json, signal, subprocess, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"status": "ok"}).encode())

signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
server = HTTPServer(("127.0.0.1", 0), Handler)
print(f"Listening at: http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
"""


def test_of_a_server_that_does_not_stop_no_worker_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kokoro_lab.lab.bench.own_server.STOP_S", 0.2)
    with own_server({}, [sys.executable, "-c", DEAF]) as running:
        (worker,) = running.process.children()
    _, alive = psutil.wait_procs([worker], 5)
    assert not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]
    assert not running.process.is_running()


def test_a_server_that_does_not_start_says_why() -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('There are no weights.')"]
    with pytest.raises(ServerFailed, match=r"exit code 1.*There are no weights"), own_server({}, command):
        pytest.fail("it started")
