"""A socket to which two threads may write, and which is shut down if a write stalls."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

CHECKS = 8
"""How often a write is checked within its time limit."""
CRUMBS_BYTES = 65_536
"""Bytes to read at a time, when they are only dropped."""


class WatchedSocket:
    """A socket for simple-websocket, with the lock and the time limit that simple-websocket lacks.

    simple-websocket sends from two threads without a lock, ignores how many bytes were sent, and waits
    without limit for a client that does not read. Here a message is sent whole, or the connection is shut
    down.

    Parameters
    ----------
    connection : socket.socket
        The connection, which is made blocking.
    stall_s : float
        How long sending one message may take.
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
        """Send all of `data`.

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
        """Do nothing: the server closes the connection. The watch ends with `shutdown` or `release`."""

    def release(self) -> None:
        """End the watch and leave the connection open, with `stall_s` as the time limit of each call: the
        server may still answer over it."""
        self._over.set()
        with suppress(OSError):  # it is closed
            self._connection.settimeout(self._stall_s)

    def take_leave(self, reader: threading.Thread, within_s: float) -> None:
        """Shut down sending, read what the client still sends until it closes, and end the connection.

        Closing earlier would reset the connection, and the client would lose what it has not read yet (RFC
        6455, section 7.1.1). `reader` is simple-websocket's thread, which may end before it has read the
        client's closing frame.
        """
        until_s = time.monotonic() + within_s
        reader.join(within_s)
        with suppress(OSError):  # the client has gone, or takes too long
            self._connection.shutdown(socket.SHUT_WR)
            while (left_s := until_s - time.monotonic()) > 0:
                self._connection.settimeout(left_s)
                if not self._connection.recv(CRUMBS_BYTES):
                    break
        self.shutdown()

    def shutdown(self, how: int = socket.SHUT_RDWR, /) -> None:
        """Shut the connection down in both directions, which wakes every thread that waits on it."""
        self._over.set()
        with suppress(OSError):  # the client was quicker
            self._connection.shutdown(how)

    def _watch(self) -> None:
        while not self._over.wait(self._stall_s / CHECKS):
            since_s = self._since_s
            if since_s is not None and time.monotonic() - since_s > self._stall_s:
                self.cut = True
                self.shutdown()
