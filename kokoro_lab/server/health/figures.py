"""Counts and percentiles of the last requests, for `/status` and for Prometheus, without the warm-up."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from math import ceil
from typing import Any, Literal

import prometheus_client as prometheus
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kokoro_lab.text.tables import entries, rows

PROMETHEUS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

WINDOW = 200
"""Requests that the percentiles look back on: enough that p95 is not just the slowest one."""

GAPS = 2_000
"""Gaps between chunks that the percentiles look back on: those of some 100 s of speech."""

Outcome = Literal["completed", "failed", "expired", "cancelled", "rejected", "invalid"]
OUTCOMES: tuple[Outcome, ...] = ("completed", "failed", "expired", "cancelled", "rejected", "invalid")
Measure = Literal["ttfa_s", "ttfa_file_s", "ttfb_s", "rtf", "chunk_gap_s"]
"""The names of the measures. TTFB and TTFA are separate, and so are the TTFA of files and of streams: a file
is computed completely before its first byte is sent."""
MEASURES: tuple[Measure, ...] = ("ttfa_s", "ttfa_file_s", "ttfb_s", "rtf", "chunk_gap_s")

_METRICS = {row["metric"]: row for row in rows(__package__, "metrics.tsv")}
"""What `/metrics` says of each metric for Prometheus; for a histogram also its measure and its buckets."""


class ServerFigures:
    """Counts of outcomes, and rolling percentiles of what was measured. Thread-safe.

    Outcomes are `completed`; `failed`: by an error of the server, before or after the first byte; `expired`:
    it took longer than allowed; `cancelled`: the client left, stopped reading or stopped it; `rejected`: no
    slot was free; `invalid`: the request was wrong.

    Measures are: `ttfa_s`, seconds from a request's acceptance to the first bytes of speech of a stream;
    `ttfa_file_s`, the same for a file; `ttfb_s`, seconds from acceptance to the first byte of a stream, which
    belongs to its header or to the silence before the speech; `rtf`, seconds of computing per second of
    audio, for completed syntheses; `chunk_gap_s`, seconds between two chunks less the length of the first, 0
    if the second was early.

    Each object has a Prometheus registry of its own, so that one process can hold several servers.

    Parameters
    ----------
    window : int
        How many of the last values of each kind are kept.
    """

    def __init__(self, window: int = WINDOW) -> None:
        self.window = window
        self._lock = threading.Lock()
        self._outcomes: Counter[Outcome] = Counter()
        self._last: dict[Measure, deque[float]] = {
            name: deque(maxlen=GAPS if name == "chunk_gap_s" else window) for name in MEASURES
        }
        self._underruns = self._streams_dry = self._stalls = 0
        self._registry = prometheus.CollectorRegistry()
        self._requests = prometheus.Counter(
            "kokoro_requests", _METRICS["kokoro_requests"]["says"], ["outcome"], registry=self._registry
        )
        self._histograms = {
            row["measure"]: prometheus.Histogram(
                name, row["says"], buckets=entries(row["buckets"]), registry=self._registry
            )
            for name, row in _METRICS.items()
            if row["measure"]
        }
        self._late_chunks = prometheus.Counter(
            "kokoro_underruns", _METRICS["kokoro_underruns"]["says"], registry=self._registry
        )

    def measured(self, name: Measure, value: float) -> None:
        """Add a value of a measure."""
        with self._lock:
            self._last[name].append(value)
        if name in self._histograms:
            self._histograms[name].observe(value)

    def stalled(self) -> None:
        """Count a stall: no audio was ready for so long that the client got a keep-alive."""
        with self._lock:
            self._stalls += 1

    def ended(self, outcome: Outcome, underruns: int = 0) -> None:
        """Count a request that ended, and the chunks for which a player would have waited."""
        with self._lock:
            self._outcomes[outcome] += 1
            self._underruns += underruns
            self._streams_dry += underruns > 0
        self._requests.labels(outcome).inc()
        self._late_chunks.inc(underruns)

    def forget(self) -> None:
        """Reset all figures, except those for Prometheus, whose counters never fall."""
        with self._lock:
            for values in self._last.values():
                values.clear()
            self._outcomes.clear()
            self._underruns = self._streams_dry = self._stalls = 0

    def summary(self) -> dict[str, Any]:
        """All figures, as plain data for JSON. Percentiles of no values are None."""
        with self._lock:
            counts = {outcome: self._outcomes[outcome] for outcome in OUTCOMES}
            return {
                "requests": {"total": sum(counts.values()), **counts},
                "stalls": self._stalls,
                "window": self.window,
                **{name: percentiles(values) for name, values in self._last.items()},
                "underruns": self._underruns,
                "streams_with_underruns": self._streams_dry,
            }

    def add_gauges(self, read: Callable[[], Mapping[str, float]]) -> None:
        """Add gauges for Prometheus, whose values by name `read` returns when it is asked."""
        self._registry.register(_Gauges(read))

    def for_prometheus(self) -> bytes:
        """All figures, in Prometheus' text format."""
        return prometheus.generate_latest(self._registry)


class _Gauges(Collector):
    def __init__(self, read: Callable[[], Mapping[str, float]]) -> None:
        self._read = read

    def describe(self) -> Iterable[Metric]:
        """Describe no gauge: their names are known only when they are read."""
        return ()

    def collect(self) -> Iterable[Metric]:
        for name, value in self._read().items():
            yield GaugeMetricFamily(name, _METRICS[name]["says"], value=value)


def percentiles(values: Iterable[float]) -> dict[str, float | int | None]:
    """p50 and p95 by nearest rank, so that each is a measured value, and the number of values.

    With fewer than 20 values, as `count` shows, p95 is the largest of them.
    """
    ordered = sorted(values)
    if not ordered:
        return {"p50": None, "p95": None, "count": 0}
    p50, p95 = (ordered[ceil(share * len(ordered)) - 1] for share in (0.50, 0.95))
    return {"p50": round(p50, 4), "p95": round(p95, 4), "count": len(ordered)}
