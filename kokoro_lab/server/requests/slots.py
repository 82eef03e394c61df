"""Slots: how many syntheses may be under way, which requests wait for a slot, and which are refused.

A synthesis holds a slot while it is under way, however slowly its client reads. `scheduling.deadlines`
decides which synthesis computes at a moment.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from werkzeug.exceptions import HTTPException, TooManyRequests

from kokoro_lab.errors import Unavailable
from kokoro_lab.scheduling.round_robin import RoundRobin

RETRY_AFTER_S = 1
LOOK_S = 0.1
"""How often a waiting request checks whether its client is still connected."""


class ClientLeft(HTTPException):
    """The client closed its connection before its answer began. The status is nginx' 499; nobody reads the
    answer."""

    code = 499
    name = "Client Closed Request"
    description = "The client closed its connection before its answer began."


class _Ticket(NamedTuple):
    """A request that waits. `since` is the round in which it came (see `RoundRobin`)."""

    client: str
    since: int
    number: int
    fits: Callable[[Sequence[Any]], bool]


class Slots:
    """A number of slots, and a short queue of requests that wait for one.

    Waiting clients take turns, and one client's requests keep their order. A request that could not be served
    in time beside those under way lets later ones pass. If the queue is full, one request is refused at
    once: the last request of the client that has most requests in the queue.

    Parameters
    ----------
    count : int
        Number of slots.
    queue : int
        Requests that may wait.

    Attributes
    ----------
    limit : int
        The present number of slots: `count`, or fewer in a degrade mode.
    """

    def __init__(self, count: int, queue: int = 0) -> None:
        self.count = count
        self.queue = queue
        self.limit = count
        self._held: list[Slot] = []
        self._waiting: list[_Ticket] = []
        self._robin = RoundRobin()
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._idle_since_s = time.monotonic()

    @property
    def active(self) -> int:
        """Slots that are taken now."""
        return len(self._held)

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._waiting)

    def restrict(self, limit: int) -> None:
        """Change the number of slots, between 1 and `count`. Syntheses under way go on."""
        with self._changed:
            self.limit = min(max(limit, 1), self.count)
            self._changed.notify_all()

    def take(
        self,
        wait_s: float = 0.0,
        gone: Callable[[], bool] = lambda: False,
        *,
        holder: Any = None,
        client: str = "",
        fits: Callable[[Sequence[Any]], bool] = lambda held: True,
        come_back_s: Callable[[int], float] = lambda before: RETRY_AFTER_S,
    ) -> Slot:
        """A slot, which its holder must release.

        Parameters
        ----------
        wait_s : float
            How long to wait in the queue.
        gone : callable
            Returns whether the client has left.
        holder : object
            The synthesis that takes it.
        client : str
            The client for whom it is taken.
        fits : callable
            Takes the present holders; returns whether this one can be served beside them.
        come_back_s : callable
            Takes the number of requests that wait before this one; returns in how many seconds a slot will be
            free.

        Raises
        ------
        werkzeug.exceptions.TooManyRequests
            No slot is free and the queue is full, or `wait_s` is over.
        ClientLeft
            `gone` became true.
        """
        until_s = time.monotonic() + wait_s
        with self._changed:
            ticket = _Ticket(client, self._robin.round, next(self._numbers), fits)
            self._waiting.append(ticket)
            try:
                if self._first() is not ticket and len(self._waiting) > self.queue:
                    self._waiting.remove(self._last())
                    self._changed.notify_all()
                while self._first() is not ticket:
                    left_s = until_s - time.monotonic()
                    if left_s <= 0 or ticket not in self._waiting:
                        raise self._full(come_back_s)
                    self._changed.wait(min(left_s, LOOK_S))
                    if gone():
                        raise ClientLeft
                self._robin.serve(client, ticket.since)
                self._held.append(slot := Slot(self, holder))
                return slot
            finally:
                if ticket in self._waiting:
                    self._waiting.remove(ticket)
                self._changed.notify_all()  # the request that is first now may go

    def idle(self, since_s: float = 0.0) -> bool:
        """Whether nobody has been served, and nobody has waited, for `since_s` seconds."""
        with self._changed:
            quiet_s = time.monotonic() - self._idle_since_s
            return not self._held and not self._waiting and quiet_s >= since_s

    def _turn(self, ticket: _Ticket) -> tuple[int, int]:
        return self._robin.round_of(ticket.client, ticket.since), ticket.number

    def _last(self) -> _Ticket:
        """The last request of the client with most requests in the queue."""
        count = Counter(each.client for each in self._waiting)
        return max(self._waiting, key=lambda each: (count[each.client], each.number))

    def _first(self) -> _Ticket | None:
        """The waiting request that may go now."""
        if len(self._held) >= self.limit:
            return None
        held = [slot.holder for slot in self._held]
        return min((each for each in self._waiting if each.fits(held)), key=self._turn, default=None)

    def _full(self, come_back_s: Callable[[int], float]) -> TooManyRequests:
        waiting = len(self._waiting)
        return TooManyRequests(
            f"{len(self._held)} syntheses are under way, no more can be served in time, and {waiting} wait.",
            retry_after=max(RETRY_AFTER_S, math.ceil(come_back_s(waiting))),
        )

    def _give_back(self, slot: Slot) -> None:
        with self._changed:
            self._held.remove(slot)
            self._idle_since_s = time.monotonic()
            self._changed.notify_all()


class Slot:
    """A taken slot. Releasing it twice counts once."""

    def __init__(self, slots: Slots, holder: Any = None) -> None:
        self.holder = holder
        self._slots = slots
        self._lock = threading.Lock()
        self._held = True

    def release(self) -> None:
        with self._lock:
            held, self._held = self._held, False
        if held:
            self._slots._give_back(self)


class Admission:
    """The reasons for which the server refuses new requests; requests under way continue. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reasons: dict[str, Unavailable] = {}

    @property
    def reasons(self) -> list[str]:
        """Codes of the reasons in force; empty if new requests are admitted."""
        with self._lock:
            return list(self._reasons)

    def refuse(self, reason: Unavailable, *, for_good: bool = False) -> None:
        """Refuse new requests from now on, for a reason that its code identifies. A reason `for_good` is
        reported before temporary reasons: with a temporary reason, a client would come back to this
        server."""
        with self._lock:
            others = {code: other for code, other in self._reasons.items() if code != reason.code}
            own = {reason.code: reason}
            self._reasons = {**own, **others} if for_good else {**others, **own}

    def admit(self, code: str) -> None:
        """End the refusal for the reason `code`. If there is none, this does nothing."""
        with self._lock:
            self._reasons.pop(code, None)

    def check(self) -> None:
        """Raise if new requests are refused.

        Raises
        ------
        Unavailable
            The first of the reasons in force.
        """
        with self._lock:
            reason = next(iter(self._reasons.values()), None)
        if reason is not None:
            # A new exception each time: a raised one keeps its stack frames alive
            raise Unavailable(
                reason.message, retry_after_s=reason.retry_after_s, code=reason.code, mend=reason.mend
            )
