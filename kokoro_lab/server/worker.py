"""gunicorn's worker, with a time limit on what it reads before the application is asked, and a clean end."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

from kokoro_lab.server.doorstep import Doorstep

HEAD_S = 10.0
"""In which the head of a request must have arrived, counted from its first byte."""


class PatientWorker(ThreadWorker):  # type: ignore[misc]
    """Serves from threads. A client that sends its head a byte at a time keeps one only for `HEAD_S`.

    gunicorn waits for the first byte outside of the pool, but for the rest of the head inside, without end:
    a dozen such clients would take every thread.

    From SIGTERM on it listens no more. gunicorn leaves its copy of the socket open until the last stream has
    ended: who connects meanwhile would wait, unanswered, and be cut off in the end, and no other server could
    have the port.
    """

    alive: bool

    def load_wsgi(self) -> None:
        super().load_wsgi()
        if isinstance(self.wsgi, Doorstep):
            self.wsgi.open(self.age)

    def is_parent_alive(self) -> bool:
        """Whether the master is; without it, this is a stop like any other."""
        alive = bool(super().is_parent_alive())
        self.alive = self.alive and alive
        return alive

    def set_accept_enabled(self, enabled: bool) -> None:
        super().set_accept_enabled(enabled)
        if enabled or self.alive:
            return
        for listener in self.sockets:
            listener.close()
        if isinstance(self.wsgi, Doorstep):
            self.wsgi.begin_to_stop(self.cfg.graceful_timeout)

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
