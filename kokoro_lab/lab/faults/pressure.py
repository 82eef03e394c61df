"""Faults of the whole process: memory that is taken away, and a disk that takes nothing."""

from __future__ import annotations

import errno
import os
import sys
import threading
from typing import Any

from kokoro_lab.lab.faults.scenario import DiskRefuses

_ERRORS = {"full": errno.ENOSPC, "unwritable": errno.EROFS}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_NO_FILES = ("/dev/", "/proc/")
"""What is opened for writing there is no file on a disk."""


def ballast(size_mb: int) -> bytearray:
    """Memory that is really taken: every page of it has been written to."""
    return bytearray(b"\x01") * (size_mb << 20)


class Disk:
    """Refuses whatever this process would open for writing, or make a folder of, while it is told to.

    By an audit hook of the interpreter (PEP 578), so that no code of ours need know of it. Such a hook stays
    until the process ends, so there is one, made at the first refusal. What is open already can be written
    to, and libraries that are not in Python open what they like.
    """

    def __init__(self) -> None:
        self._refused: dict[int, str] = {}
        self._hooked = False
        self._lock = threading.Lock()

    def refuse(self, fault: DiskRefuses) -> None:
        """From now on, with the error of `fault`."""
        with self._lock:
            if not self._hooked:
                sys.addaudithook(self._hear)
                self._hooked = True
            self._refused[id(fault)] = fault.because

    def allow(self, fault: DiskRefuses) -> None:
        """Not any more."""
        self._refused.pop(id(fault), None)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        because = next(iter(tuple(self._refused.values())), None)
        if because is None or event not in ("open", "os.mkdir"):
            return
        path = args[0]
        if isinstance(path, int) or os.fsdecode(path).startswith(_NO_FILES):
            return
        if event == "open" and not (args[2] or 0) & _WRITING:
            return
        number = _ERRORS[because]
        raise OSError(number, os.strerror(number), os.fsdecode(path))


DISK = Disk()
"""The process's: a hook can never be taken out again."""
