"""What users run: the installed `kokoro-lab`, in a process of its own, on the real weights.

Nothing of the package is called here in the test's own process, and nothing of this checkout is in the
program's environment or folder: a test that starts something else than users start proves nothing.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from kokoro_lab.config import settings

SCRIPT = Path(sys.executable).with_name("kokoro-lab")
MUTATED_COPY = "MUTATED_COPY"
"""Set by `scripts/mutations.py`: the folder of the package that it has broken on purpose."""
STEADY = {"KOKORO_DEGRADE": "off", "KOKORO_CAPACITY": "1000000"}
"""How a server is tested: beside a busy neighbour it would else admit one at a time, or cut other chunks."""
READY_S = 180
"""A start that may have to make graphs first, beside a busy neighbour."""


def clean_environment(**changed: str) -> dict[str, str]:
    """What a new terminal has, and where the weights are: no variable of the test's own run."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    if copy := os.environ.get(MUTATED_COPY):  # that package is on trial, not the installed one
        kept["PYTHONPATH"] = copy
    return {**kept, "LANG": "C.UTF-8", "KOKORO_HOME": str(settings().home), **changed}


@dataclass(frozen=True)
class Installed:
    """The installed command in a folder of its own.

    Parameters
    ----------
    folder : Path
        Where it is run.
    environment : dict, optional
        Variables beside those of `clean_environment`.
    script : Path, optional
        `kokoro-lab`, where it is installed elsewhere than beside these tests.
    """

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    script: Path = SCRIPT

    def run(
        self, *arguments: str, stdin: str = "", timeout_s: float = READY_S, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; `variables` are environment variables of this run alone."""
        return self._ended([str(self.script), *arguments], stdin, timeout_s, variables)

    def shell(
        self, line: str, *, timeout_s: float = READY_S, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a line of a page, pipes and redirections in it."""
        return self._ended(["bash", "-c", line], "", timeout_s, variables)

    def _ended(
        self, command: list[str], stdin: str, timeout_s: float, variables: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.folder,
            env=clean_environment(**{**self.environment, **variables}),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    @contextmanager
    def started(self, *arguments: str, log: str = "log", **variables: str) -> Iterator[Running]:
        """A command that goes on until it is told to end; what it writes is in the file `log`."""
        path = self.folder / log
        with path.open("wb") as sink:
            process = subprocess.Popen(
                [str(self.script), *arguments],
                cwd=self.folder,
                env=clean_environment(**{**self.environment, **variables}),
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=sink,
            )
        try:
            yield Running(process, path)
        finally:
            process.terminate()
            try:
                process.communicate(timeout=40)  # closes its standard input, too
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()

    @contextmanager
    def serving(self, *arguments: str, log: str = "log", **variables: str) -> Iterator[Served]:
        """`kokoro-lab serve` on a port that is free, ready to speak."""
        with self.started("serve", "--port", "0", *arguments, log=log, **{**STEADY, **variables}) as running:
            found = running.awaited(r"Listening at: http://127\.0\.0\.1:(\d+)")
            served = Served(running.process, running.log, int(found[1]))
            deadline = time.monotonic() + READY_S
            while httpx2.get(f"{served.url}/health", timeout=READY_S).status_code != 200:
                assert time.monotonic() < deadline, running.written()
                time.sleep(0.05)
            yield served


@dataclass(frozen=True)
class Running:
    """A command that goes on, and the file that holds all that it writes."""

    process: subprocess.Popen[bytes]
    log: Path

    def written(self) -> str:
        return self.log.read_text("utf-8", errors="replace")

    def awaited(self, pattern: str, timeout_s: float = READY_S) -> re.Match[str]:
        """The first match of `pattern` in what is written; fails if the command ends without it."""
        deadline = time.monotonic() + timeout_s
        while True:
            ended = self.process.poll() is not None
            found = re.search(pattern, self.written())
            if found:
                return found
            assert not ended, self.written()
            assert time.monotonic() < deadline, self.written()
            time.sleep(0.02)


@dataclass(frozen=True)
class Served(Running):
    """A server that is ready."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def speak(self, text: str, headers: dict[str, str] | None = None, **fields: Any) -> httpx2.Response:
        """The answer to a request for speech, whole: WAV unless `response_format` names another."""
        body = {"model": "kokoro", "voice": "af_heart", "input": text, "response_format": "wav", **fields}
        return httpx2.post(f"{self.url}/v1/audio/speech", json=body, headers=headers, timeout=READY_S)

    def lines(self) -> list[dict[str, Any]]:
        """The JSON lines of the log. A line that is no JSON is a failure: nothing else may be written."""
        return [json.loads(line) for line in self.written().splitlines() if line.strip()]

    def status(self) -> dict[str, Any]:
        answer: dict[str, Any] = httpx2.get(f"{self.url}/status", timeout=60).raise_for_status().json()
        return answer
