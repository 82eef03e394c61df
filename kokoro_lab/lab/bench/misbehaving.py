"""Clients as there are: one that leaves in mid-stream, one that stops reading."""

from __future__ import annotations

import json
import random
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import cycle, islice
from urllib.parse import urlsplit

from kokoro_lab.errors import KokoroLabError
from kokoro_lab.lab.bench.frames import frames

STALLS_S = 12.0
"""Longer than the server puts up with."""
PAUSE_S = 2.0
"""Between two of them."""
LEAVES_BEFORE = 40
"""Frames, at the most, that are heard by who leaves."""
BUFFER_BYTES = 4_096
"""Of the socket that is not read, so that the server notices soon."""


@contextmanager
def misbehaving(
    url: str, text: str, voice: str, *, seed: int = 0, pause_s: float = PAUSE_S
) -> Iterator[Counter[str]]:
    """Inside, one client after another comes that leaves or stalls, by turns.

    Gives the count of each: `left`, `stalled`, and `refused` where the server said no or had gone.

    Parameters
    ----------
    text : str
        Long, so that who stalls does not get all of it into a buffer.
    """
    found: Counter[str] = Counter()
    over = threading.Event()
    draw = random.Random(seed)

    def come() -> None:
        for kind in cycle(("left", "stalled")):
            try:
                if kind == "left":
                    _leave(url, text, voice, draw.randrange(1, LEAVES_BEFORE))
                else:
                    _stall(url, text, voice, over)
                found[kind] += 1
            except (KokoroLabError, OSError):
                found["refused"] += 1
            if over.wait(pause_s):
                return

    thread = threading.Thread(target=come, name="misbehaving", daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def _leave(url: str, text: str, voice: str, heard: int) -> None:
    with closing(frames("sse", url, {"input": text, "voice": voice, "response_format": "pcm"})) as stream:
        for _ in islice(stream, heard):
            pass


def _stall(url: str, text: str, voice: str, over: threading.Event) -> None:
    parts = urlsplit(url)
    body = json.dumps({"input": text, "voice": voice, "response_format": "pcm"}).encode()
    head = (
        f"POST /v1/audio/speech HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        connection.connect((parts.hostname, parts.port))
        connection.sendall(head.encode() + body)
        connection.recv(64)
        over.wait(STALLS_S)
