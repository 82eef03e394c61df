"""What a real systemd makes of the service, installed in a folder with spaces and letters beyond ASCII.

It is a manager of a user's, in namespaces of its own, so that nothing of this machine's own is told anything.
What launchd is told: `server/test_service.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from kokoro_lab.server.service.supervisor import Service
from kokoro_lab.server.service.systemd import Systemd
from tests.browser import require
from tests.documentation import block
from tests.installed.command import READY_S, SCRIPT, STEADY, clean_environment
from tests.installed.elsewhere import installed_into

ANALYZE = shutil.which("systemd-analyze")
MANAGER = shutil.which("systemd", path="/usr/lib/systemd:/lib/systemd")
PLACE = "Zoë's Dienst (100%)/ein schöner Ort"
SPOKEN = "The kettle is on, and the window is open. " * 12
pytestmark = [
    pytest.mark.test_all,
    pytest.mark.skipif(sys.platform != "linux", reason="systemd is of Linux"),
]
# The first process of the namespaces has to be another one: there, systemd is the whole system's
STARTED = """\
mount -t tmpfs tmpfs /run
mkdir -p -m 700 /run/systemd/system "$XDG_RUNTIME_DIR"
"$0" --user --log-target=console &
wait
"""


@pytest.mark.parametrize("name", ["a b", "Zoë", "100% of %h", "$HOME", "Zoë's", '"quoted"', "back\\n"])
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path, name: str) -> None:
    require({"systemd-analyze (Debian: apt-get install systemd)": ANALYZE})
    program = tmp_path / name / "kokoro-lab"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "kokoro-lab.service"
    unit.write_text(Systemd().text(Service((str(program), "serve"), {"PATH": f"/{name}"}, 40)), "utf-8")
    assert_nothing_is_wrong(unit)


def test_systemd_finds_nothing_wrong_with_the_unit_for_home_assistant(tmp_path: Path) -> None:
    require({"systemd-analyze (Debian: apt-get install systemd)": ANALYZE})
    unit = tmp_path / "kokoro-wyoming.service"
    unit.write_text(block("[Service]").replace("%h/kokoro/bin/kokoro-lab", str(SCRIPT)), "utf-8")
    assert_nothing_is_wrong(unit)


def assert_nothing_is_wrong(unit: Path) -> None:
    done = subprocess.run(
        [str(ANALYZE), "--user", "verify", str(unit)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(unit.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@dataclass(frozen=True)
class Session:
    """A session of a user's, with a manager, beside all that runs on this machine."""

    process: int
    program: Path
    environment: dict[str, str]

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["nsenter", "--target", str(self.process), "--mount", "--pid", "--", *command],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=READY_S,
            check=False,
        )

    def service(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run(str(self.program), "service", *arguments)

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.service("status", "--json").stdout)
        return found

    def healthy(self, *, but: str = "") -> dict[str, Any]:
        """The status, once it runs and is healthy and its state is another one than `but`."""
        deadline = time.monotonic() + READY_S
        while (found := self.status())["health"] != 200 or not found["running"] or found["state"] == but:
            assert time.monotonic() < deadline, found
            time.sleep(0.2)
        return found


@contextmanager
def session_of(program: Path, home: Path) -> Iterator[Session]:
    said = {**STEADY, "KOKORO_SHUTDOWN_S": "150"}  # a busy machine speaks slower than real time
    environment = clean_environment(HOME=str(home), XDG_RUNTIME_DIR="/run/user/0", **said)
    own = ["--mount", "--pid", "--fork", "--mount-proc", "--propagation", "private", "--kill-child"]
    log = home / "manager.log"
    with log.open("wb") as sink:
        holder = subprocess.Popen(
            ["unshare", *own, "sh", "-c", STARTED, str(MANAGER)], env=environment, stdout=sink, stderr=sink
        )
    try:
        children = Path(f"/proc/{holder.pid}/task/{holder.pid}/children")
        deadline = time.monotonic() + 20
        while not (found := children.read_text().split()) or not any(
            Path(f"/proc/{found[0]}/root/run/user/0/systemd").glob("private")
        ):
            assert holder.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield Session(int(found[0]), program, environment)
    finally:
        with suppress(ProcessLookupError):
            holder.kill()  # and with it, all in its namespaces
        holder.wait()


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    require(
        {
            "systemd (Debian: apt-get install systemd)": MANAGER,
            "what makes namespaces, as root": os.geteuid() == 0 and shutil.which("unshare"),
        }
    )
    folder = tmp_path_factory.mktemp("service")
    program = installed_into(folder / PLACE, folder)
    with session_of(program, folder) as session:
        yield session


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
        return number


@pytest.mark.model
def test_it_is_started_speaks_to_its_end_and_is_removed(session: Session, port: int) -> None:
    done = session.service("install", "--port", str(port))
    assert done.returncode == 0, done.stderr
    before = session.healthy()
    assert session.status()["state"] == before["state"]
    assert session.service("install", "--port", str(port)).stdout.startswith("kept")
    assert session.healthy() == before, "the same process speaks on"
    process = before["state"].partition("process ")[2].rstrip(")")
    shown = session.run("cat", f"/proc/{process}/environ").stdout.split("\0")
    assert f"KOKORO_PORT={port}" in shown
    assert "KOKORO_DEGRADE=off" in shown
    body = {"model": "kokoro", "voice": "af_heart", "input": SPOKEN, "response_format": "pcm", "stream": True}
    asked = {"url": f"{before['address']}v1/audio/speech", "json": body, "timeout": READY_S}
    whole = httpx2.post(**asked).content
    with ThreadPoolExecutor(1) as other, httpx2.stream("POST", **asked) as answer:
        chunks = answer.iter_bytes()
        heard = next(chunks)
        removed = other.submit(session.service, "remove")
        heard += b"".join(chunks)
        assert removed.result().returncode == 0, removed.result().stderr
    assert heard == whole, "what was being spoken is spoken to its end"
    assert session.status() == {"file": None}
    assert "kokoro-lab" not in session.run("systemctl", "--user", "list-units", "--all").stdout


@pytest.mark.model
def test_it_is_started_again_when_it_was_killed(session: Session, port: int) -> None:
    assert session.service("install", "--port", str(port)).returncode == 0
    before = session.healthy()["state"]
    session.run("kill", "-9", before.partition("process ")[2].rstrip(")"))
    assert session.healthy(but=before)["running"]
    assert session.service("remove").returncode == 0


def test_a_port_that_is_taken_is_said_by_install(session: Session) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = session.service("install", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 3
    assert "journalctl --user -u kokoro-lab" in done.stderr
    assert session.status()["state"] == "failed (failed, exit-code)"
    assert session.service("remove").returncode == 0
