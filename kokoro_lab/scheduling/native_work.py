"""Delays the end of a process until its threads have left native code.

Python stops a thread at once that returns from native code while the interpreter shuts down. The bindings of
ONNX Runtime (C++) then abort the process ("terminate called without an active exception"), and its exit code
is that of a crash.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

LONGEST_WAIT_S = 5.0
"""The longest wait for native code, longer than any call takes that does not hang."""

_count = 0
_none_left = threading.Condition()


@contextmanager
def native_work() -> Iterator[None]:
    """A process that ends waits for the end of this block, if a daemon thread is in it."""
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
    """A pause within a block of `native_work`: while the thread waits here, the process may end."""
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


os.register_at_fork(after_in_child=_forget)  # after a fork, there is only the thread that forked
