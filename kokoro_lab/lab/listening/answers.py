"""One listener's answers in one file: a line each, on the disk before the next question is asked.

    {"test": "<sha256 of the plan>", "listener": "ada", "trials": 40}
    {"trial": 0, "answer": "B", "plays": {"A": 1, "B": 2, "X": 2}, "heard_s": {"A": 2.1, "B": 3.0, "X": 4.2},
     "at": "2026-11-20T09:30:00+00:00"}

A line holds the answer, but not whether it is right: the plan tells that when all trials are answered.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from kokoro_lab.errors import AnswersError, ParameterError
from kokoro_lab.lab.listening.plan import Letter

SUFFIX = ".jsonl"
LISTENER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")


@dataclass(slots=True)
class AnswerFile:
    """A file of answers, open for one listener to resume where they stopped. Made by `open_answers`.

    Parameters
    ----------
    path : Path
        The file. The folder of the file must exist.
    test : str
        SHA-256 of the plan.
    listener : str
    trials : int
        Number of trials in the test.
    letters : list of str
        "A" or "B" for each trial answered, in order.
    whole_bytes : int
        Length of the lines that are whole, in bytes. Bytes after them are a line that was not written to its
        end, as in a power cut.
    seen_bytes : int
        Length of the file, in bytes, when this object last read or wrote it.
    """

    path: Path
    test: str
    listener: str
    trials: int
    letters: list[Letter] = field(default_factory=list)
    whole_bytes: int = 0
    seen_bytes: int = 0

    @property
    def complete(self) -> bool:
        """Whether every trial is answered."""
        return len(self.letters) == self.trials

    @property
    def note(self) -> str:
        """Why a damaged last line of the file was left out; empty if the last line is whole."""
        if self.whole_bytes == self.seen_bytes:
            return ""
        return (
            f"The last line of {self.path.name} was cut off while it was being written. It is left out, and "
            f"trial {len(self.letters) + 1} is asked again."
        )

    def require(self, test: str) -> None:
        """Refuse the file if it belongs to another test than `test`.

        Raises
        ------
        AnswersError
            The file holds answers to another test.
        """
        if self.test != test:
            raise AnswersError.of(
                self.path,
                f"{self.path.name} holds {len(self.letters)} answers to another test ({self.test[:12]}, not "
                f"{test[:12]}): other sounds, another seed or another number of trials.",
                "Give the parameters that it was begun with, or a new folder for the new test.",
            )

    def append(
        self, letter: Letter, plays: Mapping[str, int], heard_s: Mapping[str, float] | None = None
    ) -> None:
        """Write one more answer, to the disk itself and not only to the system's cache.

        Parameters
        ----------
        letter : {"A", "B"}
        plays : mapping
            How often the listener started each of A, B and X, or switched to it.
        heard_s : mapping, optional
            For each of A, B and X, the seconds of it that were heard.

        Raises
        ------
        AnswersError
            The file was changed since it was read, as by another window.
        """
        seen = self.path.stat().st_size if self.path.exists() else -1
        if seen != self.seen_bytes:
            mend = "Close the other window, and load this one again: it goes on after the last answer."
            raise AnswersError.of(self.path, f"{self.path.name} was changed by somebody else.", mend)
        at = datetime.now(UTC).isoformat(timespec="seconds")
        heard = {"heard_s": {name: round(value, 3) for name, value in heard_s.items()}} if heard_s else {}
        self._write({"trial": len(self.letters), "answer": letter, "plays": dict(plays), **heard, "at": at})
        self.letters.append(letter)

    def _write(self, row: Mapping[str, Any]) -> None:
        line = json.dumps(row).encode() + b"\n"
        with self.path.open("r+b" if self.whole_bytes else "xb") as file:
            file.seek(self.whole_bytes)
            file.truncate()  # what was cut off when the power went
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self.whole_bytes += len(line)
        self.seen_bytes = self.whole_bytes


def check_listener(listener: str) -> str:
    """Return a listener's name, if a file can have it.

    Raises
    ------
    ParameterError
        A file cannot have this name.
    """
    if not LISTENER.fullmatch(listener):
        raise ParameterError(
            f"{listener!r} cannot name a listener.",
            field="listener",
            value=listener,
            allowed="1 to 40 letters without accents, digits, - and _",
        )
    return listener


def open_answers(path: Path, *, test: str, listener: str, trials: int) -> AnswerFile:
    """Read a listener's file, or begin it.

    Raises
    ------
    AnswersError
        The file is damaged, or holds answers to another test.
    """
    if path.exists():
        found = read_answers(path)
        found.require(test)
        return found
    begun = AnswerFile(path, test, listener, trials)
    begun._write({"test": test, "listener": listener, "trials": trials})
    _sync_folder(path.parent)
    return begun


def read_answers(path: Path) -> AnswerFile:
    """Read a file of answers. A last line that is cut off is left out, and `note` says so.

    Raises
    ------
    AnswersError
        Any other line is damaged, or the file holds no answers.
    """
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    rows: list[dict[str, Any]] = []
    whole_bytes = 0
    for number, line in enumerate(lines, 1):
        row = _row(line)
        if row is None and number == len(lines):
            break
        if row is None or not (_is_answer(row, len(rows) - 1) if rows else _is_header(row)):
            raise _damaged(path, number)
        rows.append(row)
        whole_bytes += len(line)
    if not rows:
        raise _damaged(path, 1)
    head = rows[0]
    letters = [row["answer"] for row in rows[1:]]
    if len(letters) > head["trials"]:
        raise _damaged(path, len(rows))
    return AnswerFile(
        path, head["test"], head["listener"], head["trials"], letters, whole_bytes, len(content)
    )


def _row(line: bytes) -> dict[str, Any] | None:
    """The line as an object; None if the line is not complete JSON."""
    if not line.endswith(b"\n"):
        return None
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _is_header(row: Mapping[str, Any]) -> bool:
    kinds = {"test": str, "listener": str, "trials": int}
    return all(isinstance(row.get(name), kind) for name, kind in kinds.items())


def _is_answer(row: Mapping[str, Any], trial: int) -> bool:
    return row.get("trial") == trial and row.get("answer") in get_args(Letter)


def _damaged(path: Path, line: int) -> AnswersError:
    mend = "Bring the file back from a copy, or move it away and take the test again."
    return AnswersError.of(path, f"Line {line} of {path.name} is not a line of a listening test.", mend)


def _sync_folder(folder: Path) -> None:
    """Write a folder's list of names to the disk: until then, a power cut could lose a new file."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
