"""The Containerfile: its steps are carried out in a small Debian, and its server is run as a container is."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kokoro_lab.weights.store import weights_home
from tests.browser import require
from tests.installed import containerfile
from tests.installed.command import READY_S

KEPT = Path("/var/tmp/kokoro-lab-container")
"""A Debian takes two minutes to make, and is the same next time."""
CACHE = "/cache"
SPEAKS = """
from urllib.request import Request, urlopen
body = b'{"model": "kokoro", "voice": "af_heart", "input": "Hello there.", "response_format": "wav"}'
request = Request("http://127.0.0.1:8880/v1/audio/speech", body, {"Content-Type": "application/json"})
answer = urlopen(request, timeout=60)
print(answer.status, len(answer.read()))
"""
WRITES = """
for folder in / /opt/kokoro /usr /etc; do touch $folder/it 2>/dev/null && echo $folder; done
touch /cache/it
"""


@pytest.fixture
def work() -> Iterator[Path]:
    """Roots weigh gigabytes: they are not left, as temporary folders of tests are."""
    with tempfile.TemporaryDirectory(prefix="kokoro-lab-", dir=KEPT.parent) as folder:
        yield Path(folder)


@pytest.mark.test_long
@pytest.mark.model
def test_its_server_speaks_read_only_and_without_rights(repository: Path, work: Path) -> None:
    tools = ("debootstrap", "unshare", "nsenter", "setpriv", "ip")
    require(
        {
            **{f"{tool} (Debian: apt-get install {tool})": shutil.which(tool) for tool in tools},
            "a Debian of which this is root": os.geteuid() == 0 and shutil.which("apt-get"),
        }
    )
    image = containerfile.built(repository / "Containerfile", containerfile.debian(KEPT / "base"), work)
    size = subprocess.run(["du", "-sm", str(image.root / "opt")], capture_output=True, text=True, check=True)
    print(f"kokoro-lab and what it needs: {size.stdout.split()[0]} MB")
    volume = work / "volume"
    shutil.copytree(weights_home() / "weights", volume / "weights")
    subprocess.run(["chown", "-R", "1000:1000", str(volume)], check=True)
    log = work / "log"
    with containerfile.running(image, volume, CACHE, log) as server:
        deadline = time.monotonic() + READY_S
        while containerfile.beside(server, image.as_user(image.health)).returncode:
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(1)
        spoken = containerfile.beside(server, image.as_user(["python", "-c", SPEAKS]))
        status, size_bytes = spoken.stdout.split()
        assert (status, int(size_bytes) > 20_000) == ("200", True), spoken.stderr + log.read_text()
        doctor = containerfile.beside(server, image.as_user(["kokoro-lab", "doctor"])).stdout
        assert "(prebuilt by" in doctor, "no compiler is there, and it speaks at full speed"
        written = containerfile.beside(server, image.as_user(["/bin/sh", "-c", WRITES]))
        assert (written.returncode, written.stdout) == (0, ""), "the volume alone can be written to"
        rights = Path(f"/proc/{server.pid}/status").read_text()
        assert "Uid:\t1000\t1000\t1000\t1000" in rights
        assert "CapEff:\t0000000000000000" in rights
        assert "NoNewPrivs:\t1" in rights
        server.send_signal(signal.SIGTERM)
        assert server.wait(40) == 0, log.read_text()
    assert {path.name for path in volume.iterdir()} == {"weights", "derived", "it"}
