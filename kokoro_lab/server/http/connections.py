"""Which connections are open, what each of them waits for, and which has to go for another."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

from gunicorn.workers.gthread import TConn

from kokoro_lab.server.http.framing import Incoming

State = Literal["idle", "head", "body", "leaving", "served", "closed"]
"""The stage of its next request; or its last answer is given and the client's end awaited; or it is with the
pool of threads."""
Reason = Literal[
    "answered", "by_client", "silent", "late_head", "late_body", "refused", "crowded_out", "memory"
]
WAITING: tuple[State, ...] = ("idle", "head", "body", "leaving")


class Connection(TConn):  # type: ignore[misc]
    """One client's connection; gunicorn's, which is neither to wait for bytes nor to parse them itself."""

    def __init__(self, cfg: Any, sock: socket.socket, client: Any, server: Any, most_body_bytes: int) -> None:
        super().__init__(cfg, sock, client, server)
        self.initialized = self.data_ready = True
        self.parser = self.incoming = Incoming(cfg, client, most_body_bytes)
        self.state: State = "idle"
        self.reason: Reason = "answered"
        self.deadline_s = 0.0
        self.held_bytes = 0
        self.drained_bytes = 0


class Connections:
    """The books of the thread that polls; others may ask for `figures`.

    Parameters
    ----------
    most : int
        Open connections.
    most_held_bytes : int
        What all of them hold together of requests that are not answered yet.
    threads : int
        Of the pool; only said.
    """

    def __init__(self, most: int, most_held_bytes: int, threads: int) -> None:
        self.most = most
        self.most_held_bytes = most_held_bytes
        self._threads = threads
        self._held_bytes = 0
        self._open = 0
        self._accepted = 0
        # Both in the order of a dict: whose deadline is next, and who has been silent longest
        self._waiting: dict[State, dict[Connection, None]] = {state: {} for state in WAITING}
        self._silent: dict[Connection, None] = {}
        self._closed: Counter[Reason] = Counter()

    def add(self, connection: Connection, deadline_s: float) -> None:
        """One has come, and said nothing yet."""
        self._open += 1
        self._accepted += 1
        self.awaits(connection, "idle", deadline_s)

    def awaits(self, connection: Connection, state: State, deadline_s: float) -> None:
        """It is in `state` now. All that are in one are given the same time, so that they stay in order."""
        self._waiting.get(connection.state, {}).pop(connection, None)
        connection.state, connection.deadline_s = state, deadline_s
        self._waiting[state][connection] = None
        if state != "leaving" or connection not in self._silent:
            self.heard(connection)

    def heard(self, connection: Connection) -> None:
        """It is the last now of those who are silent."""
        self._silent.pop(connection, None)
        self._silent[connection] = None

    def serves(self, connection: Connection) -> None:
        """It waits for nothing: a request of it is with the pool."""
        self._waiting[connection.state].pop(connection, None)
        self._silent.pop(connection, None)
        connection.state = "served"

    def holds(self, connection: Connection) -> bool:
        """Take note of what it holds. Whether all may hold so much."""
        self._held_bytes += len(connection.incoming) - connection.held_bytes
        connection.held_bytes = len(connection.incoming)
        return self._held_bytes <= self.most_held_bytes

    def forgets(self, connection: Connection) -> None:
        """What it holds will not be needed any more."""
        self._held_bytes -= connection.held_bytes
        connection.held_bytes = 0

    def closes(self, connection: Connection) -> None:
        """It is gone, for the reason that it has."""
        self._waiting.get(connection.state, {}).pop(connection, None)
        self._silent.pop(connection, None)
        self.forgets(connection)
        connection.state = "closed"
        self._open -= 1
        self._closed[connection.reason] += 1

    def longest_silent(self, *, holding: bool = False) -> Connection | None:
        """Of those that wait, or of those among them that hold bytes."""
        return next((one for one in self._silent if one.held_bytes or not holding), None)

    def late(self, now_s: float) -> Iterator[Connection]:
        """Those whose time is over; each must be closed, or wait for something else, before the next."""
        for queue in self._waiting.values():
            while (first := next(iter(queue), None)) is not None and first.deadline_s <= now_s:
                yield first

    def hasten(self, deadline_s: float) -> None:
        """Whoever waits has no more time than this."""
        for connection in self._silent:
            connection.deadline_s = min(connection.deadline_s, deadline_s)

    @property
    def full(self) -> bool:
        return self._open >= self.most

    def figures(self) -> dict[str, Any]:
        """For `/status`."""
        waiting = {state: len(self._waiting[state]) for state in WAITING}
        reading = waiting["head"] + waiting["body"]
        return {
            "most": self.most,
            "open": self._open,
            "idle": waiting["idle"],
            "reading": reading,
            "leaving": waiting["leaving"],
            "served": max(0, self._open - sum(waiting.values())),
            "threads": self._threads,
            "held_bytes": self._held_bytes,
            "most_held_bytes": self.most_held_bytes,
            "accepted": self._accepted,
            "closed": dict(self._closed),
        }
