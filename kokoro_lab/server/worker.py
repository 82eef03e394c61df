"""gunicorn's worker, with a time limit on what it reads before the application is asked."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

HEAD_S = 10.0
"""In which the head of a request must have arrived, counted from its first byte."""


class PatientWorker(ThreadWorker):  # type: ignore[misc]
    """Serves from threads. A client that sends its head a byte at a time keeps one only for `HEAD_S`.

    gunicorn waits for the first byte outside of the pool, but for the rest of the head inside, without end:
    a dozen such clients would take every thread.
    """

    def handle(self, conn: Any) -> Any:
        conn.impatience = threading.Timer(HEAD_S + self._first_byte_s(conn), _hang_up, (conn.sock,))
        conn.impatience.daemon = True
        conn.impatience.start()
        try:
            return super().handle(conn)
        finally:
            conn.impatience.cancel()

    def handle_request(self, req: Any, conn: Any) -> Any:
        conn.impatience.cancel()  # from here on, the application has limits of its own
        return super().handle_request(req, conn)

    @staticmethod
    def _first_byte_s(conn: Any) -> float:
        """A new connection may first be waited for, up to gunicorn's own limit."""
        return 0.0 if conn.initialized else 5.0


def _hang_up(connection: socket.socket) -> None:
    with suppress(OSError):  # the client was quicker
        connection.shutdown(socket.SHUT_RDWR)
