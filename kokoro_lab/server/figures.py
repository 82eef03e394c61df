"""How the last requests went. The warm-up is not among them."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterable
from math import ceil
from typing import Any, Literal

from kokoro_lab.server.meters import Meters

WINDOW = 200
"""Requests that the percentiles look back on: enough that p95 is not just the slowest one."""

GAPS = 2_000
"""Gaps between chunks that the percentiles look back on: those of some 100 s of speech."""

Outcome = Literal["completed", "failed", "expired", "cancelled", "rejected", "invalid"]
OUTCOMES: tuple[Outcome, ...] = ("completed", "failed", "expired", "cancelled", "rejected", "invalid")


class ServerFigures:
    """Counts of outcomes, and rolling percentiles of what was measured. Thread-safe.

    Outcomes are `completed`; `failed`, on our side, before or after the first byte; `expired`, it took longer
    than it may; `cancelled`, the client left, stopped reading or was stopped; `rejected`, no slot was free;
    `invalid`, the request was wrong.

    Parameters
    ----------
    window : int
        How many of the last values of each kind are kept.
    """

    def __init__(self, window: int = WINDOW) -> None:
        self.window = window
        self.meters = Meters()
        self._lock = threading.Lock()
        self._outcomes: Counter[Outcome] = Counter()
        # TTFB and TTFA are never mixed, nor a file's TTFA, for which all of it must be made, with a stream's
        self._ttfb_s: deque[float] = deque(maxlen=window)
        self._ttfa_s: deque[float] = deque(maxlen=window)
        self._ttfa_file_s: deque[float] = deque(maxlen=window)
        self._rtf: deque[float] = deque(maxlen=window)
        self._gap_s: deque[float] = deque(maxlen=GAPS)
        self._underruns = self._streams_dry = self._stalls = 0

    def count(self, outcome: Outcome) -> None:
        """A request has come to its end."""
        with self._lock:
            self._outcomes[outcome] += 1
        self.meters.requests.labels(outcome).inc()

    def first_byte(self, ttfb_s: float) -> None:
        """Seconds from the accepted request to the first byte of a stream, which is header or primer."""
        with self._lock:
            self._ttfb_s.append(ttfb_s)

    def first_audio(self, ttfa_s: float, *, streamed: bool) -> None:
        """Seconds from the accepted request to the first bytes of speech."""
        with self._lock:
            (self._ttfa_s if streamed else self._ttfa_file_s).append(ttfa_s)
        if streamed:
            self.meters.ttfa_s.observe(ttfa_s)

    def stalled(self) -> None:
        """Nothing was ready to be sent for so long that the client had to be told to wait."""
        with self._lock:
            self._stalls += 1

    def synthesised(self, rtf: float) -> None:
        """Seconds of computing per second of audio, of a synthesis that came to its end."""
        with self._lock:
            self._rtf.append(rtf)
        self.meters.rtf.observe(rtf)

    def gap(self, gap_s: float) -> None:
        """Seconds between two chunks beyond the length of the first; 0 if the second was early."""
        with self._lock:
            self._gap_s.append(gap_s)
        self.meters.gap_s.observe(gap_s)

    def underran(self, chunks: int) -> None:
        """Of a stream that has ended, the chunks that a player would have waited for."""
        with self._lock:
            self._underruns += chunks
            self._streams_dry += chunks > 0
        self.meters.underruns.inc(chunks)

    def forget(self) -> None:
        """Begin anew, but for `/metrics`, where counters never fall."""
        with self._lock:
            for values in (self._ttfb_s, self._ttfa_s, self._ttfa_file_s, self._rtf, self._gap_s):
                values.clear()
            self._outcomes.clear()
            self._underruns = self._streams_dry = self._stalls = 0

    def summary(self) -> dict[str, Any]:
        """Everything, as plain data for JSON. Percentiles of no values are None."""
        with self._lock:
            counts = {outcome: self._outcomes[outcome] for outcome in OUTCOMES}
            return {
                "requests": {"total": sum(counts.values()), **counts},
                "stalls": self._stalls,
                "window": self.window,
                "ttfa_s": percentiles(self._ttfa_s),
                "ttfa_file_s": percentiles(self._ttfa_file_s),
                "ttfb_s": percentiles(self._ttfb_s),
                "rtf": percentiles(self._rtf),
                "chunk_gap_s": percentiles(self._gap_s),
                "underruns": self._underruns,
                "streams_with_underruns": self._streams_dry,
            }


def percentiles(values: Iterable[float]) -> dict[str, float | int | None]:
    """p50 and p95 by nearest rank, so that each is a value that occurred, and how many there are.

    With fewer than 20 values p95 is the largest of them: `count` tells.
    """
    ordered = sorted(values)
    if not ordered:
        return {"p50": None, "p95": None, "count": 0}
    p50, p95 = (ordered[ceil(share * len(ordered)) - 1] for share in (0.50, 0.95))
    return {"p50": round(p50, 4), "p95": round(p95, 4), "count": len(ordered)}
