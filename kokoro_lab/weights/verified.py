"""Verifies files by SHA-256, without hashing 325 MB at every start.

`verified.json`, beside the weights and beside what is made of them, keeps digest, size and modification time
of each file that was hashed. A file that differs from its record in size or time, or has none, is hashed
again before use.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from kokoro_lab.errors import IntegrityError, WeightsError
from kokoro_lab.weights.catalogue import WeightFile
from kokoro_lab.weights.joining import sha256_of


def verified(file: WeightFile, folder: Path, command: str = "kokoro-lab fetch") -> Path:
    """The path of `file` below `folder`. The file is hashed, unless it has not changed since it last was.

    `command` fetches the file; the error names it if the file is missing.

    Raises
    ------
    WeightsError
        The file is not there or cannot be read.
    IntegrityError
        Its bytes are wrong.
    """
    path = folder / file.name
    try:
        damage = damage_of({file.name: (file.bytes, file.sha256)}, folder, folder)
    except OSError as error:
        raise WeightsError(f"{path} cannot be read: {error.strerror}.", field=file.name) from error
    if damage == f"{file.name} {MISSING}":
        raise WeightsError(f"{file.name} is not in {folder}.", field=file.name, mend=f"Run `{command}`.")
    if damage:
        raise IntegrityError(
            f"{path} does not hold the bytes that its SHA-256 promises; it is not used.",
            field=file.name,
            mend=f"Run `{command} --force`.",
        )
    return path


MISSING = "is missing"
DAMAGED = "does not hold the bytes that its SHA-256 promises"
Promised = Mapping[str, tuple[int, str]]
"""File below a folder → its size in bytes and its SHA-256 in lower-case hex."""


def damage_of(files: Promised, folder: Path, home: Path, *, again: bool = False) -> str:
    """The fault of the first of `files` whose size or digest is wrong; empty if all are right.

    Parameters
    ----------
    files : mapping
        Name of each file below `folder` → its size and SHA-256.
    home : Path
        Folder with the record of hashed files.
    again : bool
        Whether to hash all files, whatever is on record. A wrong file is removed from the record in any case.

    Raises
    ------
    OSError
        A file is there and cannot be read.
    """
    names = {name: os.path.relpath(folder / name, home) for name in files}
    known = {} if again else _records(home)
    entries: dict[str, Any] = {}
    try:
        for name, (size, sha256) in files.items():
            # Before hashing: a file that changes meanwhile will not match again
            found_size, mtime_ns = size_and_time(folder / name)
            if found_size is None:
                return f"{name} {MISSING}"
            entry = {"sha256": sha256, "bytes": size, "mtime_ns": mtime_ns}
            if (found_size, known.get(names[name])) == (size, entry):
                continue
            # 325 MB take some tenths of a second to hash: too much for every start, little for a touched file
            right = found_size == size and sha256_of(folder / name) == sha256
            entries[names[name]] = entry if right else None
            if not right:
                return f"{name} {DAMAGED}"
        return ""
    finally:
        record(home, entries)


def size_and_time(path: Path) -> tuple[int | None, int | None]:
    """Size in bytes and modification time in ns; None for a file that is not there."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None, None
    return status.st_size, status.st_mtime_ns


def _records(folder: Path) -> dict[str, Any]:
    try:
        records = json.loads((folder / "verified.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # no record only means that the files are hashed again
    return records if isinstance(records, dict) else {}


def record(folder: Path, entries: Mapping[str, Any]) -> None:
    """Add entries to the record; strike off those that are None, and those whose files are gone.

    If two processes write at the same time, a file may be hashed again; nothing else happens.
    """
    before = _records(folder)
    changed = {**before, **entries}
    after = {name: entry for name, entry in changed.items() if entry and (folder / name).exists()}
    if after == before:
        return
    from kokoro_lab.containers.plain_json import write_json

    # A cache that may only be read works too: its files are then hashed at each start
    with suppress(OSError):
        write_json(folder / "verified.json", dict(sorted(after.items())))
