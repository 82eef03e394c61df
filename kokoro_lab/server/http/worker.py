"""Our gunicorn worker: one thread polls all connections, and its thread pool only gets complete requests.

It records what each connection waits for, and closes the longest silent one if there are too many.
"""

from __future__ import annotations

import errno
import socket
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from itertools import islice
from selectors import EVENT_READ
from typing import Any, Literal

from gunicorn.workers.gthread import TConn, ThreadWorker
from werkzeug.exceptions import RequestTimeout, ServiceUnavailable

from kokoro_lab.server.health.lifecycle import Doorstep
from kokoro_lab.server.http.errors import refusal
from kokoro_lab.server.http.framing import Incoming

State = Literal["idle", "head", "body", "leaving", "served", "closed"]
"""The state of a connection: how much of its next request has arrived (`idle`, `head`, `body`); `leaving`, if
the last answer was sent and the client has not closed yet; `served`, if the thread pool has its request."""
Reason = Literal[
    "answered", "by_client", "silent", "late_head", "late_body", "refused", "crowded_out", "memory"
]
WAITING: tuple[State, ...] = ("idle", "head", "body", "leaving")
SILENT_S = 60.0
"""Seconds after which a connection without a request is closed."""
HEAD_S = 10.0
"""Seconds from the first byte of a request's head within which the head must have arrived."""
BODY_S = 20.0
"""Seconds from the end of the head within which the body must have arrived: the longest body, 600 kB, at 30
kB/s."""
LEAVING_S = 2.0
"""How long the server waits for a client to close its end. If the server closed at once, a client that still
sends might never read the answer."""
LEAVING_BYTES = 16_777_216
MOST_HELD_BYTES = 67_108_864
"""Bytes of incomplete or unanswered requests that all connections may hold."""
READ_BYTES = 65_536
AT_A_TIME = 50
"""How many connections are accepted or closed before the other connections are served again."""

_FULL = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_LATE: dict[State, tuple[Reason, str]] = {
    "head": ("late_head", "The head of the request did not arrive in time."),
    "body": ("late_body", "The request body did not arrive in time."),
}


class Connection(TConn):  # type: ignore[misc]
    """A client's connection: gunicorn's class, changed so that it neither waits for bytes nor parses them."""

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
    """The connections of the polling thread; other threads may ask for `figures`.

    Parameters
    ----------
    most : int
        The most connections that may be open.
    most_held_bytes : int
        Limit of the bytes that all of them together hold of unanswered requests.
    threads : int
        Size of the thread pool; only for the figures.
    """

    def __init__(self, most: int, most_held_bytes: int, threads: int) -> None:
        self.most = most
        self.most_held_bytes = most_held_bytes
        self._threads = threads
        self._held_bytes = 0
        self._open = 0
        self._accepted = 0
        # Both in dict order: the next deadline first, and the longest silent connection first
        self._waiting: dict[State, dict[Connection, None]] = {state: {} for state in WAITING}
        self._silent: dict[Connection, None] = {}
        self._closed: Counter[Reason] = Counter()

    def add(self, connection: Connection, deadline_s: float) -> None:
        """Add a connection that has sent nothing yet."""
        self._open += 1
        self._accepted += 1
        self.awaits(connection, "idle", deadline_s)

    def awaits(self, connection: Connection, state: State, deadline_s: float) -> None:
        """Record that a connection now waits in `state`. All connections in one state have the same time
        limit, so they are kept in the order in which their time ends."""
        self._waiting.get(connection.state, {}).pop(connection, None)
        connection.state, connection.deadline_s = state, deadline_s
        self._waiting[state][connection] = None
        if state != "leaving" or connection not in self._silent:
            self.heard(connection)

    def heard(self, connection: Connection) -> None:
        """Record that a connection sent something. It is now the one that has been silent for the shortest
        time."""
        self._silent.pop(connection, None)
        self._silent[connection] = None

    def serves(self, connection: Connection) -> None:
        """Record that the pool serves a request of a connection. Meanwhile the connection has no deadline."""
        self._waiting[connection.state].pop(connection, None)
        self._silent.pop(connection, None)
        connection.state = "served"

    def holds(self, connection: Connection) -> bool:
        """Count the bytes that a connection holds; returns whether all connections together are within their
        limit."""
        self._held_bytes += len(connection.incoming) - connection.held_bytes
        connection.held_bytes = len(connection.incoming)
        return self._held_bytes <= self.most_held_bytes

    def forgets(self, connection: Connection) -> None:
        """Count a connection's bytes no longer."""
        self._held_bytes -= connection.held_bytes
        connection.held_bytes = 0

    def closes(self, connection: Connection) -> None:
        """Forget a connection that is closed, and count the reason."""
        self._waiting.get(connection.state, {}).pop(connection, None)
        self._silent.pop(connection, None)
        self.forgets(connection)
        connection.state = "closed"
        self._open -= 1
        self._closed[connection.reason] += 1

    def longest_silent(self, *, holding: bool = False) -> Connection | None:
        """The waiting connection that has been silent longest; with `holding`, only connections that hold
        bytes count."""
        return next((one for one in self._silent if one.held_bytes or not holding), None)

    def late(self, now_s: float) -> Iterator[Connection]:
        """The connections whose time is over; each must be closed, or change its state, before the next is
        asked for."""
        for queue in self._waiting.values():
            while (first := next(iter(queue), None)) is not None and first.deadline_s <= now_s:
                yield first

    def hasten(self, deadline_s: float) -> None:
        """Shorten the time limit of every waiting connection."""
        for connection in self._silent:
            connection.deadline_s = min(connection.deadline_s, deadline_s)

    @property
    def full(self) -> bool:
        return self._open >= self.most

    def figures(self) -> dict[str, Any]:
        """The figures of connections for `/status`."""
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


class PatientWorker(ThreadWorker):  # type: ignore[misc]
    """Serves requests from threads. Silent, slow and half-open connections wait in the poller and occupy no
    thread.

    gunicorn's own worker waits for the first byte in its pool, and reads heads and bodies there without a
    time limit: a dozen slow clients would occupy every thread.

    From SIGTERM on, the worker does not listen any more. gunicorn's own worker would keep its copy of the
    socket open until the last stream has ended. New clients would get no answer and then be cut off, and no
    other server could use the port.
    """

    alive: bool
    nr_conns: int
    wsgi: Doorstep

    def load_wsgi(self) -> None:
        super().load_wsgi()
        most = self.cfg.worker_connections - 1  # one more is accepted, and another closed for it
        self.connections = Connections(most, MOST_HELD_BYTES, self.cfg.threads)
        self.wsgi.open(self.age, self.connections.figures)

    def is_parent_alive(self) -> bool:
        """Whether the master process is alive; without it, the worker stops as at SIGTERM."""
        alive = bool(super().is_parent_alive())
        self.alive = self.alive and alive
        return alive

    def set_accept_enabled(self, enabled: bool) -> None:
        super().set_accept_enabled(enabled)
        if enabled or self.alive:
            return
        for listener in self.sockets:
            listener.close()
        self.wsgi.begin_to_stop(self.cfg.graceful_timeout)

    # ------------------------------------------------------------ what the poller calls, in the main thread

    def accept(self, listener: Any) -> None:
        """Accept new connections. Beyond the limit, the longest silent one is closed for each."""
        for _ in range(AT_A_TIME):
            try:
                sock, address = listener.accept()
            except OSError as error:
                if error.errno in _FULL:
                    self._make_room("crowded_out")
                return  # none is left, or the client has left again
            if self.connections.full and not self._make_room("crowded_out"):
                sock.close()
                continue
            connection = Connection(
                self.cfg, sock, address, listener.getsockname(), self.wsgi.most_body_bytes
            )
            self.nr_conns += 1
            self.connections.add(connection, time.monotonic() + SILENT_S)
            self._poll(connection)

    def murder_keepalived(self, force: bool = False) -> None:
        """Close the connections whose time is over.

        gunicorn calls it after each turn of its loop.
        """
        now_s = float("inf") if force else time.monotonic()
        late = list(islice(self._give_up(now_s), None if force else AT_A_TIME))
        if len(late) == AT_A_TIME:  # the rest in the next turn of the loop, which comes at once
            self.method_queue.defer(lambda: None)

    def finish_request(self, conn: Connection, fs: Future[bool]) -> None:
        """Called when a thread of the pool has answered a request of the connection: wait for the
        connection's next request, or close it."""
        self.connections.forgets(conn)
        try:
            goes_on = fs.result()
            conn.sock.setblocking(False)
        except Exception:  # the future was cancelled, or the socket is closed
            self._close(conn, "answered")
            return
        if not goes_on:
            self._leave(conn, "answered")
            return
        linger_s = SILENT_S if self.alive else min(SILENT_S, LEAVING_S)
        self.connections.awaits(conn, "idle", time.monotonic() + linger_s)
        self._poll(conn)
        self._look(conn)  # look at the bytes that followed the request

    def _cap_keepalive(self, deadline: float) -> None:
        self.connections.hasten(deadline)

    def _poll(self, conn: Connection) -> None:
        self.poller.register(conn.sock, EVENT_READ, partial(self._readable, conn))

    def _readable(self, conn: Connection, sock: socket.socket) -> None:
        if conn.state in ("served", "closed"):  # closed by an earlier event of the same turn
            return
        try:
            data = sock.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if conn.state == "leaving":
            conn.drained_bytes += len(data)
            if not data or conn.drained_bytes > LEAVING_BYTES:
                self._close(conn, conn.reason)
        elif not data:
            self._close(conn, "by_client")
        else:
            conn.incoming.push(data)
            self.connections.heard(conn)
            self._look(conn)

    def _look(self, conn: Connection) -> None:
        """Check whether a connection's next request is complete."""
        try:
            whole = conn.incoming.whole()
        except Exception as error:  # no error may end the worker
            self._refuse(conn, error, "refused")
            return
        if conn.incoming.waits_for_continue:
            conn.incoming.waits_for_continue = False
            with suppress(OSError):
                conn.sock.send(_CONTINUE)
        stage = conn.incoming.stage
        if stage != conn.state:
            span_s = {"idle": SILENT_S, "head": HEAD_S, "body": BODY_S}[stage]
            self.connections.awaits(conn, stage, time.monotonic() + span_s)
        while not self.connections.holds(conn) and self._make_room("memory", holding=True):
            if conn.state == "closed":  # the requests being served hold all bytes that may be held
                return
        if whole and conn.state == "body":
            self.poller.unregister(conn.sock)
            self.connections.serves(conn)
            self.enqueue_req(conn)

    def _give_up(self, now_s: float) -> Any:
        for conn in self.connections.late(now_s):
            if conn.state in _LATE and self.alive:
                reason, words = _LATE[conn.state]
                self._refuse(conn, RequestTimeout(words), reason)
            else:
                self._close(conn, conn.reason if conn.state == "leaving" else "silent")
            yield conn

    def _make_room(self, reason: Reason, *, holding: bool = False) -> bool:
        """Close the longest silent connection; returns whether there was one."""
        conn = self.connections.longest_silent(holding=holding)
        if conn is None:
            return False
        if conn.state in _LATE:
            with suppress(OSError):
                conn.sock.send(refusal(ServiceUnavailable("Others need the place; come back.")))
        self._close(conn, conn.reason if conn.state == "leaving" else reason)
        return True

    def _refuse(self, conn: Connection, error: Exception, reason: Reason) -> None:
        with suppress(OSError):
            conn.sock.send(refusal(error))
        self._leave(conn, reason)

    def _leave(self, conn: Connection, reason: Reason) -> None:
        """Shut down sending, and let the poller wait for the client to close. gunicorn's own worker waits for
        that itself, and serves no other connection meanwhile."""
        try:
            conn.sock.shutdown(socket.SHUT_WR)
            if conn.state == "served":
                self._poll(conn)
        except (OSError, ValueError):  # the client, or the application, has closed it
            self._close(conn, reason)
            return
        conn.reason = reason
        self.connections.forgets(conn)
        self.connections.awaits(conn, "leaving", time.monotonic() + LEAVING_S)

    def _close(self, conn: Connection, reason: Reason) -> None:
        with suppress(KeyError, ValueError, OSError):
            self.poller.unregister(conn.sock)
        conn.reason = reason
        conn.close()
        self.nr_conns -= 1
        self.connections.closes(conn)

    # -------------------------------------------------------------------------- what the pool's threads call

    def handle_error(self, req: Any, client: socket.socket, addr: Any, exc: BaseException) -> None:
        """Answer an error in OpenAI's shape, where gunicorn would answer in HTML."""
        with suppress(OSError):
            client.send(refusal(exc))
