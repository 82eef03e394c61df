"""Benchmarks that the server begins by itself, at intervals, if nobody is being served then."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kokoro_lab.errors import KokoroLabError
from kokoro_lab.lab.routes.benchmark_schemas import BenchmarkRequest
from kokoro_lab.server.health import background
from kokoro_lab.server.requests.slots import Slots

if TYPE_CHECKING:
    from kokoro_lab.lab.routes.benchmarks import Benchmarks

log = logging.getLogger(__name__)

ASKED = BenchmarkRequest(preset="medium", trials=5)
"""The same every time, so that the results can be laid side by side."""
WARMING, LIVE, ANOTHER = (
    "the server was warming up",
    "somebody was being served",
    "another benchmark was under way",
)


class Schedule:
    """One benchmark an interval, or none where that would disturb: a turn that is missed is not made up for.

    Parameters
    ----------
    benchmarks : Benchmarks
        Who measures. It gives up a trial, and begins it again later, when a request comes meanwhile.
    slots : Slots
        Where live requests are seen.
    voice : str
        Who speaks.
    interval_s : float
        From one turn to the next, over 0.
    ready : callable
        Whether the warm-up is over.

    Attributes
    ----------
    begun, skipped : int
        Turns so far.
    last_skip : str or None
        Why the last one that was missed was.
    """

    def __init__(
        self,
        benchmarks: Benchmarks,
        slots: Slots,
        voice: str,
        interval_s: float,
        ready: Callable[[], bool] = lambda: True,
    ) -> None:
        self.interval_s = interval_s
        self.begun = 0
        self.skipped = 0
        self.last_skip: str | None = None
        self._benchmarks = benchmarks
        self._slots = slots
        self._voice = voice
        self._ready = ready
        self._next_s = time.monotonic() + interval_s
        self._over = threading.Event()

    def start(self) -> threading.Thread:
        """Take turns in a thread of its own, the first one after an interval."""
        thread = threading.Thread(target=self._run, name="benchmark-schedule", daemon=True)
        thread.start()
        return thread

    def stop(self) -> None:
        """Take no further turn. A benchmark under way goes on."""
        self._over.set()

    def take_turn(self) -> bool:
        """Begin a benchmark now, unless that would disturb; whether it began."""
        reason = self._obstacle()
        if reason is None:
            self.begun += 1
            return True
        self.skipped += 1
        self.last_skip = reason
        log.info("A scheduled benchmark was skipped: %s", reason)
        return False

    def figures(self) -> dict[str, Any]:
        """For `/benchmarks`."""
        return {
            "interval_s": self.interval_s,
            "next_in_s": round(max(self._next_s - time.monotonic(), 0.0), 1),
            "begun": self.begun,
            "skipped": self.skipped,
            "last_skip": self.last_skip,
        }

    def _run(self) -> None:
        while not self._over.wait(self.interval_s):
            self._next_s = time.monotonic() + self.interval_s
            self.take_turn()

    def _obstacle(self) -> str | None:
        """Why none can begin; None if one has."""
        if not self._ready():
            return WARMING
        if not self._slots.idle(background.QUIET_S):
            return LIVE
        try:
            state = self._benchmarks.begin(ASKED, self._voice, scheduled=True)
        except (KokoroLabError, OSError) as error:  # there is no folder for results, or it cannot be written
            return str(error)
        return ANOTHER if state is None else None
