"""Reads lexicon files: TSV or CSV with a header row, or JSON. An error names the file and the line."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kokoro_lab.datatypes import LexiconEntry
from kokoro_lab.errors import LexiconError
from kokoro_lab.g2p.lexicon_entries import FIELDS, checked, refuse_duplicates

SUFFIXES = (".tsv", ".csv", ".json")
MAX_FILE_BYTES = 1_000_000
MAX_FILE_ENTRIES = 20_000
COMMENT = "#"
_SPACE = re.compile(r"[ \t\n\r]*")
_REQUIRED = frozenset(FIELDS[:3])

Row = tuple[int, Any]
"""The number of a line, counted from 1, and the entry on that line, unchecked."""


def read_lexicon(path: Path) -> tuple[LexiconEntry, ...]:
    """All entries of a file, whose suffix names its format.

    TSV and CSV begin with a row that names their columns; lines that begin with `#` are comments. JSON is
    a list of objects. All are UTF-8.

    Raises
    ------
    LexiconError
        The file cannot be read, is too large, or has a wrong entry: `words.tsv, line 3: ...`.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise _refused(path, "a lexicon of this type cannot be read", allowed=", ".join(SUFFIXES))
    text = _text(path)
    entries: list[tuple[str, LexiconEntry]] = []
    for line, row in reader(path, text):
        if len(entries) >= MAX_FILE_ENTRIES:
            raise _refused(path, f"more than {MAX_FILE_ENTRIES} entries", line=line)
        where = f"{path.name}, line {line}"
        entries.append((where, checked(row, where, field=str(path))))
    refuse_duplicates(entries, field=str(path))
    return tuple(entry for _, entry in entries)


def _refused(path: Path, what: str, *, line: int | None = None, allowed: str | None = None) -> LexiconError:
    where = path.name if line is None else f"{path.name}, line {line}"
    return LexiconError(f"{where}: {what}.", field=str(path), value=path.name, allowed=allowed)


def _text(path: Path) -> str:
    try:
        # else opening a named pipe could wait for ever
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _refused(path, "not a file")
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise _refused(path, f"cannot be read: {error.strerror}") from error
    if len(data) > MAX_FILE_BYTES:
        raise _refused(path, "too large", allowed=f"up to {MAX_FILE_BYTES // 1_000_000} MB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _refused(path, "not UTF-8", line=line) from error


def _tsv(path: Path, text: str) -> Iterator[Row]:
    lines = (line.removesuffix("\r").split("\t") for line in text.split("\n"))
    return _table(path, enumerate(lines, 1))


def _csv(path: Path, text: str) -> Iterator[Row]:
    return _table(path, _csv_rows(path, text))


def _csv_rows(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        for row in reader:
            yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise _refused(path, f"not CSV: {error}", line=line) from error


def _table(path: Path, rows: Iterable[tuple[int, list[str]]]) -> Iterator[Row]:
    """Each row as a mapping from the column names, which the first row has, to the row's cells. Comments and
    empty lines are passed over."""
    names: list[str] | None = None
    for line, cells in rows:
        if not any(cells) or cells[0].startswith(COMMENT):
            continue
        if names is None:
            names = _header(path, line, [cell.strip() for cell in cells])
        elif len(cells) > len(names):
            raise _refused(path, f"{len(cells)} cells under {len(names)} columns", line=line)
        else:
            yield line, dict(zip(names, (cell.strip() for cell in cells), strict=False))
    if names is None:
        raise _refused(path, "without a header row", allowed=", ".join(FIELDS))


def _header(path: Path, line: int, names: list[str]) -> list[str]:
    lacking = sorted(_REQUIRED - set(names))
    if lacking:
        raise _refused(path, f"the column {lacking[0]!r} is missing", line=line, allowed=", ".join(FIELDS))
    for name in names:
        if name not in FIELDS or names.count(name) > 1:
            what = (
                f"the column {name[:40]!r} is there twice" if name in FIELDS else f"no column {name[:40]!r}"
            )
            raise _refused(path, what, line=line, allowed=", ".join(FIELDS))
    return names


def _json(path: Path, text: str) -> Iterator[Row]:
    """The objects of a list, one by one, each with its line number."""
    decoder = json.JSONDecoder(object_pairs_hook=_without_twins)
    at = _past_space(text, 0)
    line, counted = 1, 0
    if text[at : at + 1] != "[":
        raise _refused(path, "not a list of objects", allowed=f"a list of objects with {', '.join(FIELDS)}")
    at = _past_space(text, at + 1)
    closed = text[at : at + 1] == "]"
    while not closed:
        line, counted = line + text.count("\n", counted, at), at
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            line = getattr(error, "lineno", line)
            raise _refused(path, f"not JSON: {getattr(error, 'msg', error)}", line=line) from error
        yield line, value
        at = _past_space(text, at)
        closed = text[at : at + 1] == "]"
        if not closed and text[at : at + 1] != ",":
            raise _refused(path, "not JSON: a comma or the end of the list is missing", line=line)
        at = at if closed else _past_space(text, at + 1)
    if _past_space(text, at + 1) != len(text):
        raise _refused(path, "not JSON: something follows the list", line=line)


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name[:40]!r} is there twice in one object")
        found[name] = value
    return found


def _past_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


_READERS = {".tsv": _tsv, ".csv": _csv, ".json": _json}
