"""Starts our server in a process of its own for a benchmark, and speaks to it over HTTP."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psutil

from kokoro_lab.config import PREFIX
from kokoro_lab.errors import KokoroLabError, SynthesisError
from kokoro_lab.lab.bench.client import answered, ask, receive, speech_request
from kokoro_lab.lab.bench.received import samples_of
from kokoro_lab.lab.bench.trial import Listener

LOOPBACK = "127.0.0.1"
START_S = 300.0
"""The longest wait until a server is ready. Loading takes seconds, and missing weights are fetched first."""
SHUTDOWN_S = 10
"""Seconds that streams under way may still take when the server is stopped."""
STOP_S = 20.0
"""Seconds after which a server that was sent SIGTERM is killed; longer than `SHUTDOWN_S`."""
POLL_S = 0.05
LEFT_S = 10.0
"""A server that still computes this long after its last client has left has failed."""
LOG_CHARACTERS = 800

_END_WITH_STARTER = "import os, signal, sys; sys.stdin.read(); os.kill(int(sys.argv[1]), signal.SIGTERM)"
"""Code of a watching process, which reads from a pipe that is closed when the benchmark's process ends, and
then stops the server."""

_LISTENING = re.compile(rf"Listening at: http://{re.escape(LOOPBACK)}:(\d+)")


class ServerFailed(KokoroLabError):
    """The server that the benchmark started did not become ready."""

    code = "server_failed"


@dataclass(frozen=True, slots=True)
class OwnServer:
    """A server that is ready to speak, and its process."""

    url: str
    process: psutil.Process

    def facts(self) -> dict[str, Any]:
        """The facts that the server states: its model, provider, and number of threads."""
        status = ask(self.url, "GET", "/status")
        kept = (
            *("variant", "model_sha256", "requested_provider", "active_provider", "threads", "concurrency"),
            "conversion",
        )
        return {name: status.get(name) for name in kept}

    @property
    def active(self) -> int:
        """The number of syntheses under way."""
        return int(ask(self.url, "GET", "/status")["active"])

    def forget(self) -> None:
        """Empty the server's caches, as if it had spoken nothing before."""
        ask(self.url, "POST", "/performance/clear_cache")

    def left_behind(self) -> int:
        """The number of syntheses still under way some seconds after all clients have left."""
        until_s = time.monotonic() + LEFT_S
        while (active := self.active) and time.monotonic() < until_s:
            time.sleep(POLL_S)
        return active


StartServer = Callable[..., AbstractContextManager[OwnServer]]
"""A function that takes settings, and returns a context with a warm server."""


class OverHttp:
    """A `Speaker` of benchmarks that has a running server speak: each text is a `POST /v1/audio/speech` on a
    new connection.

    Parameters
    ----------
    server : OwnServer
    voice : str
        A name, or a blend.
    streamed : bool
        Whether the answer is a stream; otherwise it is a whole file.
    response_format : {"pcm", "wav"}
        The header of WAV is skipped.
    """

    name = "kokoro-lab http"

    def __init__(
        self,
        server: OwnServer,
        voice: str,
        *,
        streamed: bool = True,
        response_format: Literal["pcm", "wav"] = "pcm",
    ) -> None:
        self.streamed = streamed
        self.process = server.process
        self.facts = server.facts
        self._server = server
        self._how = {"voice": voice, "response_format": response_format, "stream": streamed}

    def warm(self) -> None:
        self.speak("Ready.", Listener())

    def speak(self, text: str, listener: Listener) -> None:
        """Speak `text`.

        Raises
        ------
        SynthesisError
            The server answered with an error, or broke off.
        """
        body = speech_request(text, "") | self._how
        with closing(receive("http", self._server.url, body)) as chunks:
            for chunk in chunks:
                listener.gets_bytes()
                if chunk.data:
                    listener.hears(samples_of(chunk.data))
                if listener.satisfied:
                    break
        if listener.satisfied and self._server.left_behind():  # the next text must find it idle
            raise SynthesisError(f"The server still computes {LEFT_S:g} s after its listener left.")


@contextmanager
def own_server(
    settings: Mapping[str, Any], command: Sequence[str] | None = None, cwd: Path | None = None
) -> Iterator[OwnServer]:
    """Start a server on a free port of the loopback, wait until it is warm, and end it after the `with`
    block.

    The server also ends if this process is killed inside the `with` block.

    Parameters
    ----------
    settings : mapping
        Fields of `Settings` that differ from the environment's.
    command : sequence of str, optional
        The command that starts the server; `kokoro-lab serve` unless given.
    cwd : Path, optional
        The folder to run it in.

    Raises
    ------
    ServerFailed
        The server ended, or was not ready in time; the error has the end of its log.
    """
    # The kernel picks the port: one that was found to be free could be taken until the server binds it.
    # No key, since the benchmark is the only client.
    chosen = {
        "host": LOOPBACK,
        "port": 0,
        "allowed_hosts": LOOPBACK,
        "api_key": "",
        "shutdown_s": SHUTDOWN_S,
        **settings,
    }
    variables = {f"{PREFIX}{name.upper()}": str(value) for name, value in chosen.items()}
    with tempfile.TemporaryDirectory(prefix="kokoro-bench-") as folder:
        log = Path(folder) / "server.log"
        with log.open("wb") as sink:
            process = subprocess.Popen(
                command or [sys.executable, "-m", "kokoro_lab", "serve"],
                cwd=cwd,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
            )
        try:
            with _ended_with_starter(process.pid):
                port = _ready_port(process, log)
                yield OwnServer(f"http://{LOOPBACK}:{port}", psutil.Process(process.pid))
        finally:
            _end(process)


@contextmanager
def _ended_with_starter(pid: int) -> Iterator[None]:
    """A context in which another process watches this one, and ends process `pid` if this one is killed.

    The watching process has a session of its own, so that neither a closing terminal nor Ctrl-C ends it.
    """
    watching = subprocess.Popen(
        [sys.executable, "-S", "-c", _END_WITH_STARTER, str(pid)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield
    finally:
        watching.kill()
        watching.communicate()


def _ready_port(process: subprocess.Popen[bytes], log: Path) -> int:
    deadline_s = time.monotonic() + START_S
    while time.monotonic() < deadline_s:
        said = log.read_text("utf-8", "replace")
        if process.poll() is not None:
            raise _failed(f"ended with exit code {process.returncode}", said)
        listening = _LISTENING.search(said)
        state = _state(int(listening[1])) if listening else "starting"
        if listening and state == "ok":
            return int(listening[1])
        if state == "failed":
            raise _failed("could not speak its first word", said)
        time.sleep(POLL_S)
    raise _failed(f"was not ready after {START_S:.0f} s", log.read_text("utf-8", "replace"))


def _state(port: int) -> str:
    """What `/health` says: `ok`, `warming` or `failed`; `starting` while nobody answers."""
    try:
        with answered(f"http://{LOOPBACK}:{port}", "GET", "/health", timeout_s=10) as (answer, _):
            return str(json.loads(answer.read())["status"])
    except SynthesisError:
        return "starting"


def _failed(what: str, said: str) -> ServerFailed:
    return ServerFailed(
        f"The server {what}. Its log ends: {said[-LOG_CHARACTERS:].strip()}",
        mend="`kokoro-lab serve` shows all of it; `kokoro-lab doctor` checks what it needs.",
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a server and its workers by their process ids, so that no other server on this machine is
    touched."""
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        workers = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.wait()
        for worker in workers:  # a worker without its master would finish its streams first
            with suppress(psutil.NoSuchProcess):
                worker.kill()
