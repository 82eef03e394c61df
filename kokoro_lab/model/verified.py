"""That a file on disk is the one its SHA-256 promises, without hashing 325 MB at every start.

`verified.json` beside the weights keeps digest, size and modification time of each file that was
hashed. A file that differs from its record in size or time, or has none, is hashed again before use.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from kokoro_lab.errors import IntegrityError, WeightsError
from kokoro_lab.model.catalogue import WeightFile
from kokoro_lab.model.joining import sha256_of


def verified(file: WeightFile, folder: Path, command: str = "kokoro-lab fetch") -> Path:
    """The path of `file` below `folder`, hashed unless it has not changed since it was.

    `command` is what fetches it, for those who lack it.

    Raises
    ------
    WeightsError
        The file is not there or cannot be read.
    IntegrityError
        Its bytes are wrong.
    """
    path = folder / file.name
    try:
        size, mtime_ns = size_and_time(path)
        if size is None:
            raise WeightsError(f"{file.name} is not in {folder}.", field=file.name, mend=f"Run `{command}`.")
        seen = {"sha256": file.sha256, "bytes": size, "mtime_ns": mtime_ns}
        if _records(folder).get(file.name) == seen:
            return path
        # 325 MB take some tenths of a second to hash: too much for every start, little for a touched file
        entry = hashed(path) if size == file.bytes else None
    except OSError as error:
        raise WeightsError(f"{path} cannot be read: {error.strerror}.", field=file.name) from error
    if entry is None or not is_right(file, entry):
        raise IntegrityError(
            f"{path} does not hold the bytes that its SHA-256 promises; it is not used.",
            field=file.name,
            mend=f"Run `{command} --force`.",
        )
    record(folder, {file.name: entry})
    return path


def hashed(path: Path) -> dict[str, Any] | None:
    """What goes on record for the file at `path`; None if there is none."""
    size, mtime_ns = size_and_time(path)  # before hashing: a file that changes meanwhile will not match again
    if size is None:
        return None
    return {"sha256": sha256_of(path), "bytes": size, "mtime_ns": mtime_ns}


def is_right(file: WeightFile, entry: Mapping[str, Any]) -> bool:
    """Whether what was hashed is `file`."""
    return (entry["sha256"], entry["bytes"]) == (file.sha256, file.bytes)


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
    """Add entries to the record, or strike off those that are None. Two writers cost a re-hash, no more."""
    before = _records(folder)
    after = {name: entry for name, entry in {**before, **entries}.items() if entry is not None}
    if after == before:
        return
    temporary = folder / f"verified.json.{uuid.uuid4().hex}.tmp"
    # A cache that may only be read works too: its files are then hashed at each start
    with suppress(OSError):
        try:
            temporary.write_text(json.dumps(after, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            os.replace(temporary, folder / "verified.json")
        finally:
            temporary.unlink(missing_ok=True)
