"""Brakes: what holds a run of ONNX Runtime between two of our operators, until another run is over.

A run that is held keeps its place and its memory, and computes the same samples when it goes on. Nodes that
are ONNX Runtime's own or an accelerator's do not stand still.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path


class Brake:
    """Holds what one thread runs; a context around its runs, entered in that thread.

    Made by what `brakes_of` returns. A run that is held for 2 s goes on by itself.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._word = ctypes.c_int32()

    def __enter__(self) -> None:
        self._library.kokoro_brake(ctypes.byref(self._word))

    def __exit__(self, *_: object) -> None:
        self._library.kokoro_brake(None)

    def hold(self) -> None:
        """Let the run stand still before its next operator."""
        self._word.value = 1

    def let_go(self) -> None:
        """Let the run go on."""
        self._word.value = 0


def brakes_of(library: Path | None) -> Callable[[], Brake] | None:
    """Makes brakes for runs with the operators of `library`; None if there is no library."""
    if library is None:
        return None
    loaded = ctypes.CDLL(str(library))
    return lambda: Brake(loaded)
