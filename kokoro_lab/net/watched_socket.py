"""A connection that two threads may write to, and that is cut where a write does not get through."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

CHECKS = 8
"""Looks at a write within the time that it has."""
CRUMBS_BYTES = 65_536
"""Of what is read only to be thrown away, at a time."""


class WatchedSocket:
    """What simple-websocket needs of a socket, with what it leaves out.

    It sends from two threads without a lock, takes no note of how much was sent, and waits for a client that
    does not read until the client goes. Here a message goes out whole or the connection is shut down.

    Parameters
    ----------
    connection : socket.socket
        Made blocking.
    stall_s : float
        How long one message may take.
    """

    def __init__(self, connection: socket.socket, stall_s: float) -> None:
        connection.settimeout(None)
        self._connection = connection
        self._stall_s = stall_s
        self._lock = threading.Lock()
        self._since_s: float | None = None
        self._over = threading.Event()
        self.cut = False
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def send(self, data: bytes) -> int:
        """All of `data`.

        Raises
        ------
        OSError
            The client has gone, or took nothing for too long.
        """
        with self._lock:
            self._since_s = time.monotonic()
            try:
                self._connection.sendall(data)
            finally:
                self._since_s = None
        return len(data)

    def recv(self, size: int) -> bytes:
        return self._connection.recv(size)

    def fileno(self) -> int:
        return self._connection.fileno()

    def close(self) -> None:
        """Nothing: the connection is the server's to close. The watch ends with `shutdown`."""

    def take_leave(self, reader: threading.Thread, within_s: float) -> None:
        """Say no more, take what the client still says until it goes, and end the connection.

        A connection that is closed before is reset, and a reset takes from the client what it has not read
        yet (RFC 6455, section 7.1.1). `reader` is simple-websocket's: it may end before it has read the
        client's goodbye.
        """
        until_s = time.monotonic() + within_s
        reader.join(within_s)
        with suppress(OSError):  # it has gone, or takes too long
            self._connection.shutdown(socket.SHUT_WR)
            while (left_s := until_s - time.monotonic()) > 0:
                self._connection.settimeout(left_s)
                if not self._connection.recv(CRUMBS_BYTES):
                    break
        self.shutdown()

    def shutdown(self, how: int = socket.SHUT_RDWR, /) -> None:
        """End the connection for both sides and whoever waits on it."""
        self._over.set()
        with suppress(OSError):  # the client was quicker
            self._connection.shutdown(how)

    def _watch(self) -> None:
        while not self._over.wait(self._stall_s / CHECKS):
            since_s = self._since_s
            if since_s is not None and time.monotonic() - since_s > self._stall_s:
                self.cut = True
                self.shutdown()
