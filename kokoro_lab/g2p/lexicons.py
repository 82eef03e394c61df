"""The lexicons of a process: the package's own, the project's and the user's, read again when they change."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from platformdirs import user_config_path

from kokoro_lab.config import settings
from kokoro_lab.datatypes import Fallback, LexiconEntry
from kokoro_lab.errors import LexiconError
from kokoro_lab.g2p.lexicon import Lexicon
from kokoro_lab.g2p.lexicon_files import SUFFIXES, read_lexicon

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.5
STEM = "lexicon"

_Mark = tuple[str, int, int, int]
"""Identifies a version of a file: its path, time of change, size and inode."""


@cache
def default_entries() -> tuple[LexiconEntry, ...]:
    """The package's own entries: names of brands, products and techniques that the G2P would get wrong."""
    with as_file(files(__package__) / "lexicon_default.tsv") as path:
        return read_lexicon(path)


class _WatchedFile:
    """One level of the lexicon: the last valid content of its file. If `path` is given, that is the file, and
    it must exist. Otherwise it is a lexicon in `folder`, if there is one."""

    def __init__(self, name: str, path: Path | None, folder: Path | None) -> None:
        self.name = name
        self.entries: tuple[LexiconEntry, ...] = ()
        self.problem: str | None = None
        self.missing = False
        self._expected = path is not None
        usual = [] if folder is None else [folder / f"{STEM}{suffix}" for suffix in SUFFIXES]
        self._paths = usual if path is None else [path]
        self._seen: list[_Mark] | None = None

    def look(self) -> bool:
        """Read the file if it has changed; returns whether it had."""
        marks = list(self._marks())
        if marks == self._seen:
            return False
        self._seen = marks
        try:
            self.entries = self._read(*(Path(mark[0]) for mark in marks))
            self.problem, self.missing = None, False
        except LexiconError as error:
            self.problem, self.missing = error.message, not marks
            log.warning(
                "The %s's lexicon (%s) is not taken, its %d entries from before stay: %s",
                self.name,
                self._paths[0],
                len(self.entries),
                error,
            )
        return True

    def _read(self, *found: Path) -> tuple[LexiconEntry, ...]:
        if len(found) > 1:
            names = " and ".join(path.name for path in found)
            raise LexiconError(f"{names} are both there.", field=str(found[0]), mend="Keep one of them.")
        for path in found:
            entries = read_lexicon(path)
            log.info("%d entries of the %s's lexicon read from %s", len(entries), self.name, path)
            return entries
        if self._expected:
            self.entries = ()  # a file that was deleted has no entries
            raise LexiconError(f"{self._paths[0].name}: there is no such file.", field=str(self._paths[0]))
        return ()

    def _marks(self) -> Iterator[_Mark]:
        for path in self._paths:
            try:
                stat = path.stat()
            except OSError:
                continue
            yield str(path), stat.st_mtime_ns, stat.st_size, stat.st_ino


@dataclass(frozen=True, slots=True)
class _Snapshot:
    lexicon: Lexicon
    problems: tuple[Fallback, ...]
    said: tuple[str, ...]


class Lexicons:
    """The lexicons of user, project and package, in this order, re-read when their files change. Thread-safe.

    If a changed file is invalid, its earlier entries stay in use, and the log and each utterance report it
    until the file is mended.

    Parameters
    ----------
    project, user : Path, optional
        Lexicon files. By default `lexicon.tsv`, `.csv` or `.json` in the working folder (project) and in the
        user's configuration folder, if they exist.
    look_every_s : float
        Seconds between two checks of the files.
    """

    def __init__(
        self, project: Path | None = None, user: Path | None = None, *, look_every_s: float = LOOK_EVERY_S
    ) -> None:
        self._files = (
            _WatchedFile("user", user, _configuration_folder()),
            _WatchedFile("project", project, Path()),
        )
        self._look_every_s = look_every_s
        self._lock = threading.Lock()
        self._snapshot = self._read_anew(None)
        self._looked_s = time.monotonic()

    @classmethod
    def from_settings(cls) -> Lexicons:
        """The lexicons that the environment names."""
        return cls(settings().project_lexicon, settings().user_lexicon)

    def current(self) -> Lexicon:
        """The lexicon by the files' present content. It never changes: an utterance keeps the one with which
        it began."""
        return self._looked().lexicon

    def problems(self) -> tuple[Fallback, ...]:
        """The lexicon files that are invalid, and why: words may be read by their older entries. A missing
        file is no problem here; the log and `figures` report it."""
        return self._looked().problems

    def figures(self) -> dict[str, Any]:
        """The version of the lexicon, the number of entries of each level, and the problems."""
        snapshot = self._looked()
        entries = {file.name: len(file.entries) for file in self._files}
        return {
            "version": snapshot.lexicon.version,
            "entries": entries | {"default": len(default_entries())},
            "problems": list(snapshot.said),
        }

    def _looked(self) -> _Snapshot:
        # A thread that comes while another checks the files uses the present lexicon
        if time.monotonic() - self._looked_s >= self._look_every_s and self._lock.acquire(blocking=False):
            try:
                self._snapshot = self._read_anew(self._snapshot)
                self._looked_s = time.monotonic()
            finally:
                self._lock.release()
        return self._snapshot

    def _read_anew(self, last: _Snapshot | None) -> _Snapshot:
        changed = [file.look() for file in self._files]
        if last and not any(changed):
            return last
        levels = [*(file.entries for file in self._files), default_entries()]
        problems = [
            (file, f"the {file.name}'s lexicon is not taken as it is: {file.problem}")
            for file in self._files
            if file.problem
        ]
        told = tuple(Fallback("lexicon", reason) for file, reason in problems if not file.missing)
        return _Snapshot(Lexicon(levels), told, tuple(reason for _, reason in problems))


def _configuration_folder() -> Path | None:
    """The user's configuration folder; None for a user without a home folder."""
    try:
        return user_config_path("kokoro-lab", appauthor=False).expanduser()
    except RuntimeError:
        return None
