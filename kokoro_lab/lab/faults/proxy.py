"""A faulty network line: a TCP proxy between a server and its clients on this machine.

Bytes from a client pass unchanged. Bytes from the server are delayed, stalled, throttled, dropped or cut off
by a scenario's faults of the `transport` seam. Modelled on Shopify's toxiproxy, which does the same in a
process of its own.
"""

from __future__ import annotations

import random
import socket
import socketserver
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.faults.injector import Strike
from kokoro_lab.lab.faults.scenario import (
    AnyFault,
    Bursts,
    ConnectionCut,
    ConnectionSilent,
    Holds,
    Scenario,
    Throttled,
)

LOOPBACK = "127.0.0.1"
BLOCK_BYTES = 4_096
"""The most bytes that are passed on at a time."""
CONNECT_S = 10.0
LOOK_S = 0.1
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER on, for no time: closing sends a reset, as when a machine goes away."""


class FaultProxy(socketserver.ThreadingTCPServer):
    """One proxy, for any number of connections. Made by `fault_proxy`.

    Parameters
    ----------
    url : str
        The server's address, such as `http://127.0.0.1:8880`.
    faults : sequence of Fault
        Faults of the `transport` seam. A fault that ends a connection strikes once; later connections are not
        ended.
    seed : int
    total_bytes : int
        Length of an answer in bytes, from which the byte is computed at which a fault strikes.

    Attributes
    ----------
    url : str
        The address to which clients connect.
    """

    def __init__(self, url: str, faults: Sequence[AnyFault], seed: int, total_bytes: int) -> None:
        parts = urlsplit(url)
        if parts.hostname is None or parts.port is None:
            raise ParameterError(
                f"{url!r} names no server.", field="url", value=url, allowed="http://127.0.0.1:8880"
            )
        super().__init__((LOOPBACK, 0), socketserver.BaseRequestHandler)
        self.url = f"http://{LOOPBACK}:{self.server_address[1]}"
        self._upstream = parts.hostname, parts.port
        self._faults = faults
        self._seed = seed
        self._total_bytes = total_bytes
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._sockets: set[socket.socket] = set()
        self._struck: list[Strike] = []
        self._accepting = threading.Thread(target=self.serve_forever, args=(LOOK_S,), name="fault-proxy")
        self._accepting.start()

    @property
    def struck(self) -> list[Strike]:
        """The faults that struck, and at which byte of their connections."""
        with self._lock:
            return list(self._struck)

    def close(self) -> None:
        """End every connection, and wait for its threads."""
        self._over.set()
        self.shutdown()
        self._accepting.join()
        with self._lock:
            open_ones = list(self._sockets)
        for one in open_ones:
            self._end(one)
        self.server_close()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Carry one connection, in a thread of its own, to its end."""
        try:
            server = socket.create_connection(self._upstream, CONNECT_S)
        except OSError:
            self._reset(request)
            return
        server.settimeout(None)
        for one in (request, server):
            with suppress(OSError):  # macOS refuses it where the other end has left; then reading says so
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._sockets |= {request, server}
        if self._over.is_set():  # the thread that ended the others may have missed these
            self._end(request)
            self._end(server)
        left = threading.Event()
        up = threading.Thread(target=self._up, args=(request, server, left), name="fault-proxy")
        up.start()
        self._down(server, request, left)
        up.join()

    def _up(self, client: socket.socket, server: socket.socket, left: threading.Event) -> None:
        with suppress(OSError):
            while block := client.recv(BLOCK_BYTES):
                server.sendall(block)
        left.set()
        self._end(server)

    def _down(self, server: socket.socket, client: socket.socket, left: threading.Event) -> None:
        carried, silent = 0, False
        holds = [Holds(fault, self._seed) for fault in self._faults if isinstance(fault, Bursts)]
        with suppress(OSError):
            while block := server.recv(BLOCK_BYTES):
                ending = None if silent else self._ending(carried, len(block))
                if isinstance(ending, ConnectionCut):
                    self._reset(client)
                    break
                silent = silent or isinstance(ending, ConnectionSilent)
                if silent:
                    continue
                self._slowed(len(block), carried, holds)
                client.sendall(block)
                carried += len(block)
        if silent:
            left.wait()
        self._end(server)
        self._end(client)

    def _ending(self, carried: int, coming: int) -> ConnectionCut | ConnectionSilent | None:
        """The fault that ends this connection now; None if there is none, or if it has ended an earlier
        connection."""
        for fault in self._faults:
            if isinstance(fault, ConnectionCut | ConnectionSilent):
                drawn = random.Random(f"{self._seed} share")
                at = round(drawn.uniform(fault.from_share, fault.to_share) * self._total_bytes)
                with self._lock:
                    if carried + coming > at and all(one.kind != fault.kind for one in self._struck):
                        self._struck.append(Strike(fault.kind, carried))
                        return fault
        return None

    def _slowed(self, coming: int, carried: int, holds: Sequence[Holds]) -> None:
        wait_s = sum(coming / fault.bytes_per_s for fault in self._faults if isinstance(fault, Throttled))
        if wait_s and not carried:
            self._tell("throttled", carried)
        held_s = sum(one.next_s(time.monotonic()) for one in holds)
        if held_s:
            self._tell("bursts", carried)
        self._over.wait(wait_s + held_s)

    def _tell(self, kind: str, at: int) -> None:
        with self._lock:
            self._struck.append(Strike(kind, at))

    def _reset(self, connection: socket.socket) -> None:
        with suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            connection.shutdown(socket.SHUT_RD)  # else a thread that still reads from it would keep it open
        connection.close()

    def _end(self, connection: socket.socket) -> None:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()


@contextmanager
def fault_proxy(url: str, scenario: Scenario, total_bytes: int) -> Iterator[FaultProxy]:
    """A proxy in front of the server at `url` with the scenario's faults of the line, closed after the `with`
    block.

    Parameters
    ----------
    total_bytes : int
        Length of an answer in bytes, as it goes over the line.

    Raises
    ------
    ParameterError
        `url` names no server.
    """
    proxy = FaultProxy(url, scenario.of_seam("transport"), scenario.seed, total_bytes)
    try:
        yield proxy
    finally:
        proxy.close()
