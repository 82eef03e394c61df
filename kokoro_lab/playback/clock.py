"""The time by which speech is played: the machine's, or one that a test moves."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Seconds that only grow, from any origin."""

    def now_s(self) -> float: ...

    def sleep(self, duration_s: float) -> None: ...


class RealClock:
    """The machine's, which does not jump when its date is set."""

    def now_s(self) -> float:
        return time.monotonic()

    def sleep(self, duration_s: float) -> None:
        time.sleep(max(0.0, duration_s))


class VirtualClock:
    """Sleeping moves it and takes no time: ten minutes of speech are played in seconds."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def now_s(self) -> float:
        return self._now_s

    def sleep(self, duration_s: float) -> None:
        self._now_s += max(0.0, duration_s)
