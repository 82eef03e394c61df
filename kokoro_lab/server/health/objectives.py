"""Compares the last requests with the service level objectives, and names remedies for a missed one."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kokoro_lab.config import STAGED, Settings
from kokoro_lab.server.health.figures import Outcome, percentiles
from kokoro_lab.server.openapi.schemas import Objective

if TYPE_CHECKING:
    # For type checking alone: gunicorn's master process must not load ONNX Runtime before it forks
    from kokoro_lab.speech.engine import Engine

log = logging.getLogger(__name__)

RECENT = 50
"""Number of requests that are evaluated: few enough that an improvement shows soon."""
RECENT_S = 600.0
"""Requests that are older than this do not count."""
ENOUGH = 10
"""The fewest requests that are judged. With fewer, the 95th percentile is the one slow request after a
pause."""


@dataclass(frozen=True, slots=True)
class ServedRequest:
    """What a listener noticed of one request.

    Parameters
    ----------
    outcome : Outcome
    ttfa_s : float or None
        None for files, for first audio from the cache, and for requests without sound.
    rtf : float or None
        None unless the speech was complete; also None for a resumed stream.
    underruns : int
        Chunks that came later than a player with the advised pre-buffer needed them.
    needed_s : float or None
        The pre-buffer in seconds with which no chunk would have come late, had the first sound not been held
        back. None for files, and where the first sound was not computed for this request.
    held_back_s : float
        How long the first sound was held back.
    shared : bool
        Whether another request was being served meanwhile.
    """

    outcome: Outcome
    ttfa_s: float | None = None
    rtf: float | None = None
    underruns: int = 0
    needed_s: float | None = None
    held_back_s: float = 0.0
    shared: bool = False


class ObjectiveWatch:
    """Looks at the last requests, and warns once when an objective begins to be missed. Thread-safe.

    Parameters
    ----------
    ttfa_s, rtf : float
        Limits of the 95th percentiles.
    remedies : callable
        Takes the name of an objective, `ttfa_s` or `rtf`, and whether requests were served at the same time;
        returns a remedy.
    clock : callable
        Returns the time in seconds; a test passes its own clock.
    """

    def __init__(
        self,
        ttfa_s: float,
        rtf: float,
        remedies: Callable[[str, bool], str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = {"ttfa_s": ttfa_s, "rtf": rtf}
        self._remedies = remedies
        self._clock = clock
        self._lock = threading.Lock()
        self._served: deque[tuple[float, ServedRequest]] = deque(maxlen=RECENT)
        self._missed: frozenset[str] = frozenset()

    def note(self, served: ServedRequest) -> None:
        """Add a request that has ended."""
        with self._lock:
            self._served.append((self._clock(), served))
        self._speak_up()

    def forget(self) -> None:
        """Forget the last requests."""
        with self._lock:
            self._served.clear()
            self._missed = frozenset()

    def recent(self, count: int = RECENT) -> Sequence[ServedRequest]:
        """The last requests: at most `count`, and only recent ones."""
        since_s = self._clock() - RECENT_S
        with self._lock:
            return [served for at_s, served in self._served if at_s >= since_s][-count:]

    def warnings(self) -> list[Objective]:
        """The objectives that are missed now."""
        missed = []
        for name, limit in self._limits.items():
            known = [(v, s.shared) for s in self.recent() if (v := getattr(s, name)) is not None]
            values = [value for value, _ in known]
            p95 = percentiles(values)["p95"]
            if len(values) >= ENOUGH and p95 is not None and p95 > limit:
                # Whether the slow requests, not just any, were served beside another one
                shared = any(beside for value, beside in known if value > limit)
                missed.append(
                    Objective(
                        objective=f"{name} p95",
                        value=p95,
                        limit=limit,
                        count=len(values),
                        remedy=self._remedies(name, shared),
                    )
                )
        return missed

    def figures(self) -> dict[str, object]:
        """The objectives and the missed ones, for `/status`."""
        return {
            "limits": {f"{name} p95": limit for name, limit in self._limits.items()},
            "warnings": [warned.model_dump() for warned in self.warnings()],
        }

    def _speak_up(self) -> None:
        now = {warned.objective: warned for warned in self.warnings()}
        with self._lock:
            before, self._missed = self._missed, frozenset(now)
        for name in now.keys() - before:
            w = now[name]
            log.warning(
                "%s is %.3f over the last %d, above %g. %s", name, w.value, w.count, w.limit, w.remedy
            )
        for name in before - now.keys():
            log.info("%s is within its limit again.", name)


def remedies(engine: Engine, settings: Settings) -> Callable[[str, bool], str]:
    """A function that returns the first remedy for `ttfa_s` or `rtf` that has not been applied yet.

    Its second argument is whether requests were served at the same time.
    """
    config = engine.config

    def remedy(objective: str, shared: bool) -> str:
        if config.variant not in STAGED:
            return "This variant runs as one graph: set KOKORO_VARIANT=int8, which speaks window by window."
        if config.variant != "int8":
            return "Set KOKORO_VARIANT=int8: it takes about 0.6 of the computing time of fp32."
        if config.native == "off":
            return "Unset KOKORO_NATIVE: our own operators need fewer multiplications."
        if config.threads == 1:
            return "Unset KOKORO_THREADS, so that every core is used."
        if settings.concurrency > 1 and shared:
            return "Lower KOKORO_CAPACITY, so that fewer are admitted at a time."
        if objective == "ttfa_s":
            return "Keep other programs off the machine, and begin texts with a short sentence."
        return "Keep other programs off the machine; `kokoro-lab bench profile` shows where the time goes."

    return remedy
