"""The conditions of a measurement: versions, commit, machine."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from kokoro_lab._version import __version__
from kokoro_lab.engine_config import usable_cores
from kokoro_lab.errors import ParameterError

SAMPLE_CHANGERS = ("onnxruntime", "numpy", "misaki", "phonemizer", "espeakng-loader")
"""Packages of which another version may give other samples."""
TESTED_COMMIT, TESTED_DIRTY = "git_commit", "git_dirty"
"""The properties in the tests' report that hold commit and changes, as `git_state` finds them."""


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    return (
        ("kokoro-lab", __version__),
        ("python", platform.python_version()),
        *((name, _version_of(name)) for name in SAMPLE_CHANGERS),
    )


def _version_of(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # misaki, on Python 3.13
        return "not installed"


def versions() -> dict[str, str]:
    """Versions of the packages that can change a sample."""
    return dict(_versions())


def repository_root() -> Path:
    """The checkout that holds `notebooks/` and `fixtures/`: around the working folder, else around this file.

    Raises
    ------
    ParameterError
        kokoro-lab was installed without its repository, and there is no repository around the working folder.
    """
    for start in (Path.cwd(), Path(__file__).parent):
        for folder in (start, *start.parents):
            if (folder / "notebooks").is_dir() and (folder / "fixtures").is_dir():
                return folder
    raise ParameterError(
        "This needs the kokoro-lab repository, which is not around the working folder.",
        field="working folder",
        value=str(Path.cwd()),
        mend="Clone the repository and call this from inside it.",
    )


def git_state() -> dict[str, Any]:
    """Commit of the checkout and whether it has changes; nulls where there is no git.

    Outputs of a notebook are no change. So `git diff` is asked, which applies the filter that strips them;
    `git status` may not.
    """

    def git(*words: str) -> str | None:
        return _answer(["git", *words], cwd=repository_root())

    changed, added = git("diff", "--name-only", "HEAD"), git("ls-files", "--others", "--exclude-standard")
    return {"commit": git("rev-parse", "HEAD"), "dirty": None if changed is None else bool(changed or added)}


def machine() -> dict[str, Any]:
    """The facts of the machine on which absolute times depend."""
    return {
        "cpu": _cpu_name(),
        "architecture": platform.machine(),
        "cores": usable_cores(),
        "niceness": os.nice(0) if hasattr(os, "nice") else None,
        "system": platform.platform(),
    }


@cache
def _cpu_name() -> str:
    brand = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]  # `platform` says only `arm`
    if platform.system() == "Darwin" and (told := _answer(brand)):
        return told
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _answer(command: list[str], cwd: Path | None = None) -> str | None:
    """What a program prints; None if it is not there, fails or hangs."""
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
