"""The same figures for Prometheus: counters and histograms that only grow, and gauges read when asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_TTFA_S = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.0, 5.0, 10.0)
_RTF = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 3.0)
_GAP_S = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


class Meters:
    """What one application counts. Each has a registry of its own, so that several fit into a process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "kokoro_requests", "Requests for speech, by how they ended", ["outcome"], registry=self.registry
        )
        self.ttfa_s = Histogram(
            "kokoro_ttfa_seconds",
            "Accepted request to first speech of a stream, computed and not from the cache",
            buckets=_TTFA_S,
            registry=self.registry,
        )
        self.rtf = Histogram(
            "kokoro_rtf", "Seconds of computing per second of audio", buckets=_RTF, registry=self.registry
        )
        self.gap_s = Histogram(
            "kokoro_chunk_gap_seconds",
            "Time between two chunks beyond the length of the first",
            buckets=_GAP_S,
            registry=self.registry,
        )
        self.underruns = Counter(
            "kokoro_underruns", "Chunks that came later than a player needed them", registry=self.registry
        )

    def gauges(self, read: Callable[[], Mapping[str, tuple[str, float]]]) -> None:
        """Show also what `read` gives when asked: help and value by name."""
        self.registry.register(_Gauges(read))

    def text(self) -> bytes:
        """Everything, in Prometheus' text format."""
        return generate_latest(self.registry)


class _Gauges(Collector):
    def __init__(self, read: Callable[[], Mapping[str, tuple[str, float]]]) -> None:
        self._read = read

    def describe(self) -> Iterable[Metric]:
        """Nothing: their names are known only when they are read."""
        return ()

    def collect(self) -> Iterable[Metric]:
        for name, (says, value) in self._read().items():
            yield GaugeMetricFamily(name, says, value=value)
