"""A line that fails: a TCP proxy between a server and its clients, on this machine.

What a client says goes through as it is. What the server says is delayed, held up, slowed down, swallowed or
cut off, as a scenario's faults of the `transport` seam have it. After Shopify's toxiproxy, whose toxics do as
much from a process of its own.
"""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from urllib.parse import urlsplit

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.faults.draws import Holds
from kokoro_lab.lab.faults.injector import Struck
from kokoro_lab.lab.faults.scenario import (
    AnyFault,
    Bursts,
    ConnectionCut,
    ConnectionSilent,
    Scenario,
    Throttled,
)

LOOPBACK = "127.0.0.1"
BLOCK_BYTES = 4_096
"""The most that is passed on at a time."""
CONNECT_S = 10.0
LOOK_S = 0.1
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER on, for no time: closing sends a reset, as when a machine goes away."""


class FaultProxy:
    """One proxy, for any number of connections. Made by `fault_proxy`.

    Parameters
    ----------
    url : str
        The server's, such as `http://127.0.0.1:8880`.
    faults : sequence of Fault
        Of the `transport` seam. Those that end a connection strike once; those after it stand.
    seed : int
    total_bytes : int
        How long an answer is, so that a share of it is known.

    Attributes
    ----------
    url : str
        Where clients connect to.
    """

    def __init__(self, url: str, faults: Sequence[AnyFault], seed: int, total_bytes: int) -> None:
        parts = urlsplit(url)
        if parts.hostname is None or parts.port is None:
            raise ParameterError(
                f"{url!r} names no server.", field="url", value=url, allowed="http://127.0.0.1:8880"
            )
        self._upstream = parts.hostname, parts.port
        self._faults = faults
        self._seed = seed
        self._total_bytes = total_bytes
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._sockets: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._struck: list[Struck] = []
        self._listening = socket.create_server((LOOPBACK, 0))
        self._listening.settimeout(LOOK_S)
        self.url = f"http://{LOOPBACK}:{self._listening.getsockname()[1]}"
        self._accepting = self._start(self._accept)

    @property
    def struck(self) -> list[Struck]:
        """What has been put in, and at which byte of its connection."""
        with self._lock:
            return list(self._struck)

    def close(self) -> None:
        """End every connection, and wait for who carried it."""
        self._over.set()
        self._accepting.join(CONNECT_S)  # first: whom it lets in now would be left open
        with self._lock:
            open_ones = list(self._sockets)
        for one in open_ones:
            self._end(one)
        for thread in self._threads:
            thread.join(CONNECT_S)
        self._listening.close()

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                client, _ = self._listening.accept()
            except OSError:  # nobody came, or who did has left already (macOS says so here)
                continue
            try:
                server = socket.create_connection(self._upstream, CONNECT_S)
            except OSError:
                self._reset(client)
                continue
            server.settimeout(None)
            for one in (client, server):
                with suppress(OSError):  # macOS refuses it where the other end has left; then reading says so
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._sockets |= {client, server}
            left = threading.Event()
            self._start(partial(self._up, client, server, left))
            self._start(partial(self._down, server, client, left))

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
        """What ends this connection now, if something does that has not ended another one."""
        for fault in self._faults:
            if isinstance(fault, ConnectionCut | ConnectionSilent):
                drawn = random.Random(f"{self._seed} share")
                at = round(drawn.uniform(fault.from_share, fault.to_share) * self._total_bytes)
                with self._lock:
                    strikes = carried + coming > at and all(one.kind != fault.kind for one in self._struck)
                    if strikes:
                        self._struck.append(Struck(fault.kind, carried))
                if strikes:
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
            self._struck.append(Struck(kind, at))

    def _start(self, work: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=work, name="fault-proxy", daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _reset(self, connection: socket.socket) -> None:
        with suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            connection.shutdown(socket.SHUT_RD)  # or who still reads from it would keep it open
        connection.close()

    def _end(self, connection: socket.socket) -> None:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()


@contextmanager
def fault_proxy(url: str, scenario: Scenario, total_bytes: int) -> Iterator[FaultProxy]:
    """A proxy in front of the server at `url` with the scenario's faults of the line, closed after the block.

    Parameters
    ----------
    total_bytes : int
        Length of an answer as it goes over the line.

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
