"""gunicorn's worker for Wyoming: a thread for each connection."""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress
from uuid import uuid4

from gunicorn.workers.base import Worker

from kokoro_lab.server.health.lifecycle import Doorstep, still_loading
from kokoro_lab.server.state import state_of
from kokoro_lab.server.wyoming.conversation import WyomingConversation, say_error

LOOK_S = 0.5
"""How often the worker checks whether it must stop."""


class WyomingWorker(Worker):  # type: ignore[misc]
    """Accepts connections until it is told to stop; those that speak may then finish, as over HTTP.

    If the allowed number of connections is open, further ones wait.
    """

    alive: bool
    wsgi: Doorstep

    def load_wsgi(self) -> None:
        super().load_wsgi()
        self.wsgi.open(self.age)

    def run(self) -> None:
        (listener,) = self.sockets
        listener.settimeout(LOOK_S)
        talks: list[threading.Thread] = []
        while self.alive and os.getppid() == self.ppid:
            talks = [each for each in talks if each.is_alive()]
            if len(talks) >= self.cfg.threads:
                time.sleep(LOOK_S)
                continue
            with suppress(OSError):  # no client has connected, or it has left again
                connection, _ = listener.accept()
                talks.append(threading.Thread(target=self._talk, args=(connection,), daemon=True))
                talks[-1].start()
        listener.close()
        until_s = time.monotonic() + self.cfg.graceful_timeout
        self.wsgi.begin_to_stop(self.cfg.graceful_timeout)
        for each in talks:
            each.join(max(0.0, until_s - time.monotonic()))

    def _talk(self, connection: socket.socket) -> None:
        with connection:
            app = self.wsgi.application()
            if app is None:
                say_error(connection, still_loading(), uuid4().hex)
                return
            with app.app_context():
                WyomingConversation(connection, state_of(app)).run()
