"""Clients that leave in mid-stream or stop reading, as a disturbance of other listeners."""

from __future__ import annotations

import json
import random
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from itertools import cycle, islice
from urllib.parse import urlsplit

from kokoro_lab.errors import KokoroLabError
from kokoro_lab.lab.bench.client import SPEECH_PATH, Body, receive, speech_request

STALLS_S = 12.0
"""How many seconds a stalling client does not read: longer than the server waits for it."""
MISBEHAVING_EVERY_S = 2.0
LEAVES_BEFORE = 40
"""A leaving client hears fewer chunks than this."""
BUFFER_BYTES = 4_096
"""The size of a stalling client's socket buffer, small so that the server notices soon."""


@contextmanager
def misbehaving(url: str, text: str, voice: str, *, seed: int = 0) -> Iterator[Counter[str]]:
    """A context in which one client after another comes and, in turn, leaves in mid-stream or stops reading.

    Yields their counts: `left`, `stalled`, and `refused` if the server refused or had gone.

    Parameters
    ----------
    text : str
        A long text, so that a stalled client's buffer cannot hold all of the speech.
    """
    found: Counter[str] = Counter()
    over = threading.Event()
    draw = random.Random(seed)
    body = speech_request(text, voice)

    def come() -> None:
        for kind in cycle(("left", "stalled")):
            try:
                if kind == "left":
                    with closing(receive("sse", url, body)) as stream:
                        for _ in islice(stream, draw.randrange(1, LEAVES_BEFORE)):
                            pass
                else:
                    _stall(url, body, over)
                found[kind] += 1
            except (KokoroLabError, OSError):
                found["refused"] += 1
            if over.wait(MISBEHAVING_EVERY_S):
                return

    thread = threading.Thread(target=come, name="misbehaving", daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def _stall(url: str, body: Body, over: threading.Event) -> None:
    connection = HTTPConnection(urlsplit(url).netloc)
    with socket.socket() as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        wire.connect((connection.host, connection.port))
        connection.sock = wire
        connection.request("POST", SPEECH_PATH, json.dumps(body), {"Content-Type": "application/json"})
        wire.recv(64)
        over.wait(STALLS_S)
