"""The syntheses under way: found by id, stopped by id, and one at a time for a client with a name."""

from __future__ import annotations

import re
import socket
import threading
import time
from contextlib import suppress
from typing import Protocol

from kokoro_lab.errors import ParameterError

CLIENT = re.compile(r"[A-Za-z0-9._:-]{1,64}")
"""How a client may call itself."""
LONGEST_ID = 64
"""Characters of a request's id."""
END_S = 10.0
"""How long one waits for a synthesis to end that was stopped: a window takes less, on any machine."""
SEND_S = 0.5
"""How long one waits for a client to take what is being sent, before its connection is cut."""
POLL_S = 0.01


class CuttableSocket(Protocol):
    """As much of a socket as it takes to cut it."""

    def shutdown(self, how: int, /) -> None: ...


class Live:
    """One synthesis under way.

    Parameters
    ----------
    stream_id : str
        By which it alone can be stopped; the request's id.
    client : str or None
        Whose it is, if they said so.
    asked_id : str
        The id that the client gave it, by which it can be stopped, too: another one may have had it before.

    Attributes
    ----------
    stop : threading.Event
        Set when it is to end; whoever computes looks at it after each window.
    connection : CuttableSocket or None
        Shut down if it hangs in a send.
    sending : bool
        Whether it waits for its client, and not for its computing.
    """

    def __init__(self, stream_id: str, client: str | None, asked_id: str) -> None:
        self.stream_id = stream_id
        self.asked_id = asked_id
        self.client = client
        self.stop = threading.Event()
        self.connection: CuttableSocket | None = None
        self.sending = False
        self._ended = threading.Event()

    @property
    def stopped(self) -> bool:
        """Whether somebody has stopped it."""
        return self.stop.is_set()

    def cancel(self) -> None:
        """Have it end, and wait until its slot is free, or for `END_S`."""
        self.stop.set()
        now_s = time.monotonic()
        until_s, computed_s = now_s + END_S, now_s
        while not self._ended.wait(POLL_S) and (now_s := time.monotonic()) < until_s:
            if not self.sending:
                computed_s = now_s
            elif now_s - computed_s > SEND_S and self.connection is not None:
                with suppress(OSError):
                    self.connection.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """It has come to its end, and its slot is free."""
        self._ended.set()


class LiveStreams:
    """What is being spoken now. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._live: dict[str, Live] = {}

    def enter(self, stream_id: str, client: str | None) -> Live:
        """Enter a synthesis, after those of the same client have been stopped: the latest one wins.

        Where another one under way has the id, it gets one with a number behind it: `a.2` for `a`.

        Raises
        ------
        ParameterError
            The client's name is none.
        """
        if client is not None and not CLIENT.fullmatch(client):
            raise ParameterError(
                "This is no name for a client.",
                field="client",
                value=client[:40],
                allowed="1 to 64 letters, digits, points, colons, dashes and underscores",
            )
        with self._lock:
            live = Live(self._free(stream_id), client, stream_id)
            older = [other for other in self._live.values() if client is not None and other.client == client]
            self._live[live.stream_id] = live
        until_s = time.monotonic() + END_S
        for other in older:
            other.stop.set()
        for other in older:
            if time.monotonic() < until_s:
                other.cancel()
        return live

    def leave(self, live: Live) -> None:
        """Its slot is free: forget it."""
        with self._lock:
            self._live.pop(live.stream_id, None)
        live.end()

    def stop(self, stream_id: str) -> list[str]:
        """Stop every synthesis under way that has this id, or was given it; says the ids of those."""
        with self._lock:
            found = [one for one in self._live.values() if stream_id in (one.stream_id, one.asked_id)]
        for live in found:
            live.stop.set()
        for live in found:
            live.cancel()
        return [live.stream_id for live in found]

    def _free(self, asked_id: str) -> str:
        stream_id, number = asked_id, 1
        while stream_id in self._live:
            number += 1
            ending = f".{number}"
            stream_id = asked_id[: LONGEST_ID - len(ending)] + ending
        return stream_id
