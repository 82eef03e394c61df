"""Our server, started for a benchmark in a process of its own and ended with it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import psutil

from kokoro_lab.config import PREFIX
from kokoro_lab.errors import KokoroLabError

LOOPBACK = "127.0.0.1"
START_S = 300.0
"""Loading takes seconds; on a machine that has no weights yet, they are fetched first."""
SHUTDOWN_S = 10
"""For streams that are under way when it is ended."""
STOP_S = 20.0
"""Longer than that."""
POLL_S = 0.05
LOG_CHARACTERS = 800

_LISTENING = re.compile(rf"Listening at: http://{re.escape(LOOPBACK)}:(\d+)")


class ServerFailed(KokoroLabError):
    """The server that the benchmark started did not become ready."""

    code = "server_failed"


@dataclass(frozen=True, slots=True)
class OwnServer:
    """A server that is ready."""

    url: str
    process: psutil.Process


@contextmanager
def own_server(
    settings: Mapping[str, Any], command: Sequence[str] | None = None, cwd: Path | None = None
) -> Iterator[OwnServer]:
    """Start a server on a free port of the loopback, wait until it is warm, and end it after the block.

    Parameters
    ----------
    settings : mapping
        Fields of `Settings` in which it differs from what the environment says.
    command : sequence of str, optional
        What to run; `kokoro-lab serve` unless given.
    cwd : Path, optional
        Where to run it.

    Raises
    ------
    ServerFailed
        It ended, or was not ready in time; with the end of its log.
    """
    # The kernel picks the port: one that was found to be free could be taken until the server binds it.
    # No key, since whoever runs this is the only client.
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
            port = _ready_port(process, log)
            yield OwnServer(f"http://{LOOPBACK}:{port}", psutil.Process(process.pid))
        finally:
            _end(process)


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
    connection = HTTPConnection(LOOPBACK, port, timeout=10)
    try:
        connection.request("GET", "/health")
        return str(json.loads(connection.getresponse().read())["status"])
    except (OSError, HTTPException):
        return "starting"
    finally:
        connection.close()


def _failed(what: str, said: str) -> ServerFailed:
    return ServerFailed(
        f"The server {what}. Its log ends: {said[-LOG_CHARACTERS:].strip()}",
        mend="`kokoro-lab serve` shows all of it; `kokoro-lab doctor` checks what it needs.",
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """By its own id, so that no other server on this machine is touched; its workers by theirs."""
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        workers = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.wait()
        for worker in workers:  # left alone, one would speak on for as long as it may
            with suppress(psutil.NoSuchProcess):
                worker.kill()
