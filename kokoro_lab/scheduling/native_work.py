"""A process ends once its threads are out of native code.

A thread that comes back into Python while the interpreter ends is ended there and then. The bindings of ONNX
Runtime (C++) and of the detector of languages (Rust) abort the process at that: "terminate called without an
active exception", by exit code a crash.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

LONGEST_WAIT_S = 5.0
"""What hangs keeps no process from ending: longer than any one call into native code takes that does not."""

_count = 0
_none_left = threading.Condition()


@contextmanager
def native_work() -> Iterator[None]:
    """A process that is to end waits for the end of this block, if a daemon thread is in it."""
    global _count
    with _none_left:
        _count += 1
    try:
        yield
    finally:
        with _none_left:
            _count -= 1
            _none_left.notify_all()


@contextmanager
def waiting_for_others() -> Iterator[None]:
    """Within such a block: nothing native is done while the thread waits."""
    global _count
    with _none_left:
        _count -= 1
        _none_left.notify_all()
    try:
        yield
    finally:
        with _none_left:
            _count += 1


def _wait() -> None:
    with _none_left:
        _none_left.wait_for(lambda: _count <= 0, LONGEST_WAIT_S)


# Before what is registered with `atexit`, such as taking away eSpeak's folder, which a thread may be filling
getattr(threading, "_register_atexit", atexit.register)(_wait)


def _forget() -> None:
    global _count, _none_left
    _count, _none_left = 0, threading.Condition()


os.register_at_fork(after_in_child=_forget)  # it has no thread but the one that forked
