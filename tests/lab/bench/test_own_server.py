"""A server that a benchmark started does not outlive the benchmark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from kokoro_lab.lab.bench.own_server import own_server
from tests.server.conftest import wait_until

SERVER = """
import http.server

class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"status": "ok"}')

server = http.server.HTTPServer(("127.0.0.1", 0), Ready)
print(f"Listening at: http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
"""
BENCHMARK = """
import sys, time
from kokoro_lab.lab.bench.own_server import own_server

with own_server({}, [sys.executable, sys.argv[1]]) as server:
    print(server.process.pid, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """What starts a server that is ready at once."""
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    return [sys.executable, str(script)]


def children() -> set[psutil.Process]:
    return set(psutil.Process().children())


def ended(process: psutil.Process) -> bool:
    try:
        return bool(
            process.status() == psutil.STATUS_ZOMBIE
        )  # in a container, nobody may ask for its exit code
    except psutil.NoSuchProcess:
        return True


def test_it_ends_after_the_block_and_with_it_the_process_that_watches(command: list[str]) -> None:
    before = children()
    with own_server({}, command) as server:
        started = children() - before
        assert server.process in started
        assert len(started) == 2
    assert all(map(ended, started))


@pytest.mark.parametrize("how", ["terminate", "kill"])
def test_it_ends_when_who_started_it_is_killed(command: list[str], how: str) -> None:
    with subprocess.Popen([sys.executable, "-c", BENCHMARK, command[1]], stdout=subprocess.PIPE) as benchmark:
        assert benchmark.stdout
        server = psutil.Process(int(benchmark.stdout.readline()))
        family = psutil.Process(benchmark.pid).children()
        assert server in family
        getattr(benchmark, how)()
    wait_until(lambda: all(map(ended, family)))
