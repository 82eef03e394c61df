"""Who may compute now, who waits, and who is told to come back, and why."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from werkzeug.exceptions import HTTPException, TooManyRequests

from kokoro_lab.errors import Unavailable

RETRY_AFTER_S = 1
LOOK_S = 0.1
"""How often a request that waits looks whether its client is still there."""


class ClientLeft(HTTPException):
    """The client closed its connection while its request waited. nginx' code: nobody reads the answer."""

    code = 499
    name = "Client Closed Request"
    description = "The client closed its connection while its request waited."


class Slots:
    """Syntheses that may run at a time, and a short queue for those that come meanwhile.

    First come, first served. Where the queue is full too, a request is told at once to come back.

    Parameters
    ----------
    count : int
        Syntheses at a time.
    queue : int
        Requests that may wait.

    Attributes
    ----------
    active : int
        Slots that are taken now.
    limit : int
        Syntheses admitted at a time now: `count`, or fewer in a degrade mode.
    """

    def __init__(self, count: int, queue: int = 0) -> None:
        self.count = count
        self.queue = queue
        self.limit = count
        self.active = 0
        self._waiting: deque[object] = deque()
        self._changed = threading.Condition()
        self._idle_since_s = time.monotonic()

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._waiting)

    def restrict(self, limit: int) -> None:
        """Admit `limit` at a time from now on, at least 1 and at most `count`. What runs goes on."""
        with self._changed:
            self.limit = min(max(limit, 1), self.count)
            self._changed.notify_all()

    def take(self, wait_s: float = 0.0, gone: Callable[[], bool] = lambda: False) -> Slot:
        """A slot, which its holder must release.

        Parameters
        ----------
        wait_s : float
            How long to wait in the queue.
        gone : callable
            Whether the client has left meanwhile.

        Raises
        ------
        werkzeug.exceptions.TooManyRequests
            All are taken and the queue is full, or `wait_s` is over.
        ClientLeft
            `gone` became true.
        """
        until_s = time.monotonic() + wait_s
        with self._changed:
            if self.active < self.limit and not self._waiting:
                return self._given()
            if len(self._waiting) >= self.queue:
                raise self._full()
            ticket = object()
            self._waiting.append(ticket)
            try:
                while self._waiting[0] is not ticket or self.active >= self.limit:
                    left_s = until_s - time.monotonic()
                    if left_s <= 0:
                        raise self._full()
                    self._changed.wait(min(left_s, LOOK_S))
                    if gone():
                        raise ClientLeft
                return self._given()
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()  # who is first now may go

    def idle(self, since_s: float = 0.0) -> bool:
        """Whether nobody has been served, and nobody has waited, for `since_s` seconds."""
        with self._changed:
            quiet_s = time.monotonic() - self._idle_since_s
            return not self.active and not self._waiting and quiet_s >= since_s

    def _given(self) -> Slot:
        self.active += 1
        return Slot(self)

    def _full(self) -> TooManyRequests:
        return TooManyRequests(
            f"All {self.limit} syntheses that may run at a time are running, and {len(self._waiting)} wait.",
            retry_after=RETRY_AFTER_S,
        )

    def _give_back(self) -> None:
        with self._changed:
            self.active -= 1
            self._idle_since_s = time.monotonic()
            self._changed.notify_all()


class Slot:
    """One taken slot. Releasing it twice gives back one."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._lock = threading.Lock()
        self._held = True

    def release(self) -> None:
        with self._lock:
            held, self._held = self._held, False
        if held:
            self._slots._give_back()


class Admission:
    """Reasons for which the server takes nothing new just now; what is under way goes on. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reasons: dict[str, Unavailable] = {}

    @property
    def reasons(self) -> list[str]:
        """Codes of the reasons in force; none if everything is taken."""
        with self._lock:
            return list(self._reasons)

    def refuse(self, reason: Unavailable, *, for_good: bool = False) -> None:
        """Take nothing new from now on, for this reason; it is known by its code. One that is `for_good` is
        told before those that pass: who hears of those alone would come back to here."""
        with self._lock:
            others = {code: other for code, other in self._reasons.items() if code != reason.code}
            own = {reason.code: reason}
            self._reasons = {**own, **others} if for_good else {**others, **own}

    def admit(self, code: str) -> None:
        """That reason is over. That it was none before is no error."""
        with self._lock:
            self._reasons.pop(code, None)

    def check(self) -> None:
        """Before something new is begun.

        Raises
        ------
        Unavailable
            The first reason of those in force.
        """
        with self._lock:
            reason = next(iter(self._reasons.values()), None)
        if reason is not None:
            # A new one for each: a raised exception holds on to the frames that it passed
            raise Unavailable(
                reason.message, retry_after_s=reason.retry_after_s, code=reason.code, mend=reason.mend
            )
