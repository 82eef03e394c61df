"""Whether a client has left: looked at while its request waits, and watched while its file is computed."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

LOOK_S = 0.1
"""How often a `ClientWatch` looks at its connection."""
HALF_CLOSED_S = 5.0
"""How long a file is computed for a client that has closed its side of the connection. Most of these clients
have left, but some have only nothing more to send and wait for their answer. The server cannot tell which
before it sends bytes."""


def has_left(connection: socket.socket) -> bool:
    """Whether the client has closed its side; leaves the bytes that it sent unread."""
    try:
        return _has_closed(connection)
    except OSError:
        return True


def _has_closed(connection: socket.socket) -> bool:
    """As `has_left`, but raises OSError if the connection was reset."""
    # Polled first, because `recv` waits for the socket's time limit whatever its flags
    readable = select.poll()
    readable.register(connection, select.POLLIN)
    return bool(readable.poll(0)) and not connection.recv(1, socket.MSG_PEEK)


class ClientWatch:
    """Watches, in a thread and as a context, whether the client of an answer that is computed has left.

    As long as the server sends nothing, nothing else tells that. A client that resets its connection has left
    at once, and one that closes its side, after `HALF_CLOSED_S`.

    Parameters
    ----------
    connection : socket.socket or None
        None, under another WSGI server than ours, is not watched.
    leave : callable
        Called once the client has left.
    clock : callable
        Returns the time in seconds; a test passes its own clock.

    Attributes
    ----------
    left : bool
        Whether the client has left.
    """

    def __init__(
        self,
        connection: socket.socket | None,
        leave: Callable[[], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.left = False
        self._connection = connection
        self._leave = leave
        self._clock = clock
        self._closed_s: float | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="client", daemon=True)

    def look(self) -> bool:
        """Look at the connection once; returns whether the client has left."""
        assert self._connection is not None
        try:
            closed = _has_closed(self._connection)
        except OSError:
            return True
        if not closed:
            return False
        if self._closed_s is None:
            self._closed_s = self._clock()
        return self._clock() - self._closed_s >= HALF_CLOSED_S

    def __enter__(self) -> Self:
        if self._connection is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._connection is not None:
            self._thread.join()  # else it might look at the next connection with the same number

    def _watch(self) -> None:
        while not self._over.wait(LOOK_S):
            if self.look():
                self.left = True
                self._leave()
                return
