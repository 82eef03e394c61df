"""Handles Ctrl-C while another process does the work: that process is asked to stop, then killed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

PATIENCE_S = 3.0
"""Seconds after which a run that has not stopped is asked again. If it runs on for as long again, it is
killed."""


class Interrupts:
    """A context in which Ctrl-C raises nothing in this process; `stop` is called instead.

    Outside the main thread, where Python handles no signal, the context does nothing.

    Parameters
    ----------
    stop : callable
        Called in a thread of its own with False; if the context still runs after `PATIENCE_S`, with False
        again, and at last with True, to stop by force.

    Attributes
    ----------
    asked : bool
        Whether there was a Ctrl-C.
    """

    def __init__(self, stop: Callable[[bool], None]) -> None:
        self.asked = False
        self._stop = stop
        self._over = threading.Event()
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, *_: object) -> None:
        if not self.asked:  # terminal and parent process may both send it
            self.asked = True
            threading.Thread(target=self._insist, name="interrupt", daemon=True).start()

    def _insist(self) -> None:
        for by_force in (False, False, True):
            self._stop(by_force)
            if self._over.wait(PATIENCE_S):
                return
