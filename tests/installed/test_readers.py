"""A paced reader and one that stopped reading, beside a new request, on the real weights."""

from __future__ import annotations

import json
import socket
import time
from contextlib import closing
from uuid import uuid4

import pytest

from tests.installed.command import READY_S, Served
from tests.installed.test_request_log import line_of

ARTICLE = "Somebody reads a long article to a friend who listens by the fire. " * 300
BYTES_PER_S = 48_000
FITS_S = 5.0
"""More speech than the buffers between computing and a reader hold: 128 kB, and some chunks."""
HEARD_S, AT_ONCE_S = 10, 0.1


def reading(served: Served, request_id: str) -> socket.socket:
    """A connection on which the article comes as raw audio, with a small buffer of its own."""
    body = json.dumps({"input": ARTICLE, "voice": "af_heart", "response_format": "pcm"})
    head = "POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += f"X-Request-Id: {request_id}\r\nContent-Length: {len(body)}\r\n\r\n"
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(READY_S)
    connection.connect(("127.0.0.1", served.port))
    connection.sendall((head + body).encode())
    assert connection.recv(1000).startswith(b"HTTP/1.1 200")
    return connection


@pytest.mark.test_all
def test_a_reader_is_thought_to_have_in_hand_and_gets_computed_no_more_than_fits_in_between(
    served: Served,
) -> None:
    stopped_id, paced_id = uuid4().hex, uuid4().hex
    with closing(reading(served, stopped_id)), closing(reading(served, paced_id)) as paced:
        for _ in range(round(HEARD_S / AT_ONCE_S)):
            left = round(AT_ONCE_S * BYTES_PER_S)
            while left > 0:
                left -= len(paced.recv(left))
            time.sleep(AT_ONCE_S)
        assert served.speak("Here is somebody new.").status_code == 200
        (found,) = [each for each in served.status()["sessions"] if each["request_id"] == paced_id]
    assert found["fill"]["lead_s"] < FITS_S
    heard_s = {}
    for request_id in (stopped_id, paced_id):
        line = line_of(served, request_id)
        heard_s[request_id] = line["chunks"] * line["chunk_ms"] / 1000
    assert heard_s[stopped_id] < FITS_S
    assert heard_s[paced_id] > HEARD_S
