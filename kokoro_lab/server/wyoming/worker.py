"""gunicorn's worker for Wyoming: a thread for each connection."""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress
from selectors import EVENT_READ, DefaultSelector
from uuid import uuid4

from gunicorn.workers.base import Worker
from werkzeug.exceptions import TooManyRequests

from kokoro_lab.server.health.lifecycle import Doorstep, still_loading
from kokoro_lab.server.state import EXTENSION
from kokoro_lab.server.wyoming.conversation import WyomingConversation, say_error

LOOK_S = 0.5
"""How soon it notices that it is to stop."""


class WyomingWorker(Worker):  # type: ignore[misc]
    """Takes connections until it is told to stop; then those that speak may go on, as over HTTP."""

    alive: bool
    wsgi: Doorstep

    def load_wsgi(self) -> None:
        super().load_wsgi()
        self.wsgi.open(self.age)

    def run(self) -> None:
        (listener,) = self.sockets
        talks: list[threading.Thread] = []
        with DefaultSelector() as selector:
            selector.register(listener, EVENT_READ)
            while self.alive and os.getppid() == self.ppid:
                self.notify()
                if not selector.select(LOOK_S):
                    continue
                talks = [each for each in talks if each.is_alive()]
                with suppress(OSError):  # who knocked has left again
                    connection, _ = listener.accept()
                    full = len(talks) >= self.cfg.threads
                    talks.append(threading.Thread(target=self._talk, args=(connection, full), daemon=True))
                    talks[-1].start()
        listener.close()
        until_s = time.monotonic() + self.cfg.graceful_timeout
        self.wsgi.begin_to_stop(self.cfg.graceful_timeout)
        for each in talks:
            each.join(max(0.0, until_s - time.monotonic()))

    def _talk(self, connection: socket.socket, full: bool) -> None:
        with connection:
            app = None if full else self.wsgi.application()
            if app is not None:
                with app.app_context():
                    WyomingConversation(connection, app.extensions[EXTENSION]).run()
            elif full:
                refused = "As many connections are open as may be: come back in a second."
                say_error(connection, TooManyRequests(refused), uuid4().hex)
            else:
                say_error(connection, still_loading(), uuid4().hex)
