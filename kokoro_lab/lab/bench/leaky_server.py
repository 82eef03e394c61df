"""A small server that keeps something of every stream, on purpose: a soak that does not notice is none.

    python -m kokoro_lab.lab.bench.leaky_server memory

It speaks as much of our API as a listener needs, and hums. Nothing but the standard library is loaded, so
that it is there at once and what it holds is what it keeps.
"""

from __future__ import annotations

import array
import math
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

NOTHING, MEMORY, DESCRIPTORS, THREADS = "nothing", "memory", "a descriptor", "a thread"
KINDS = (NOTHING, MEMORY, DESCRIPTORS, THREADS)
KEPT_BYTES = 2 * 2**20
AUDIO_SAMPLES = 2_400

_kept: list[Any] = []
_HUM = array.array("h", (round(8_000 * math.sin(math.tau * 200 * n / 24_000)) for n in range(AUDIO_SAMPLES)))


class Leaky(BaseHTTPRequestHandler):
    """Answers `GET /health` and `POST /v1/audio/speech`; `kind` is what it keeps."""

    kind = NOTHING

    def do_GET(self) -> None:
        self._answer(b'{"status": "ok"}', "application/json")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        keep(self.kind)
        self._answer(_HUM.tobytes(), "audio/pcm")

    def _answer(self, body: bytes, media: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Nothing: the log is read for the port alone."""


def keep(kind: str) -> None:
    """Keep something for ever."""
    if kind == MEMORY:
        _kept.append(bytearray(b"x" * KEPT_BYTES))
    elif kind == DESCRIPTORS:
        _kept.append(os.open(sys.executable, os.O_RDONLY))
    elif kind == THREADS:
        threading.Thread(target=threading.Event().wait, daemon=True).start()


def main(kind: str) -> None:
    """Serve on a free port of the loopback until told to stop."""
    Leaky.kind = kind
    server = ThreadingHTTPServer(("127.0.0.1", 0), Leaky)
    server.daemon_threads = True
    sys.stdout.write(f"Listening at: http://127.0.0.1:{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
