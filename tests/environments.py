"""Environments of Python beside that of the tests, for what would not go together with it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

from tests.browser import require


def python_with(name: str, wanted: Path) -> Path:
    """The interpreter of an environment with what the file `wanted` lists; made once for each state of it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "kokoro-lab-tests"
    state = hashlib.sha256(wanted.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = cache / f"{name}-{state}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other workers wait for the first one
        if not (folder / "whole").exists():
            venv.create(folder, clear=True, with_pip=True)
            command = [folder / "bin/python", "-m", "pip", "install", "--quiet", "-r", wanted]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            require({f"a package index (pip: {done.stderr[-300:]})": done.returncode == 0})
            (folder / "whole").touch()
    return folder / "bin/python"
