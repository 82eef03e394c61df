"""The playback daemon: takes speech over a WebSocket on the loopback and plays it.

The daemon uses the standard library's HTTP server and simple-websocket: one path needs no framework, and only
the server may import Flask.
"""

from __future__ import annotations

import json
import logging
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType
from typing import Any

from simple_websocket import ConnectionClosed, Server
from simple_websocket import ConnectionError as HandshakeFailed

from kokoro_lab._version import __version__
from kokoro_lab.config import Settings
from kokoro_lab.config import settings as environment
from kokoro_lab.errors import ParameterError
from kokoro_lab.net.origins import allowed_hosts, answers_to, listed, same_origin
from kokoro_lab.net.watched_socket import WatchedSocket
from kokoro_lab.playback import protocol
from kokoro_lab.playback.conversation import PlayerConversation
from kokoro_lab.playback.deck import Deck, running
from kokoro_lab.playback.pipe import make_fifo, play_fifo
from kokoro_lab.playback.sinks import Sink
from kokoro_lab.playback.stream import Event
from kokoro_lab.scheduling.priority import enter_playback

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
CLIENTS = 16
"""Connections at a time; each takes a few threads."""
STALL_S = 5.0
"""Seconds after which a client that receives nothing is disconnected. Speech that the client has sent is
played."""
HEARTBEAT_S = 1.0
POLL_S = 0.020
"""Seconds after which audio that waits for room is offered to the deck again. A client's messages are read at
once."""
MESSAGE_BYTES = 16 * 2**20
"""The largest message: half a minute of PCM as the Raycast client writes it, with ten characters for a
byte."""
WAITING_BYTES = 2**20
"""How many bytes of a client's audio are read while the deck's ring buffer is full. After that, the client's
socket is not read until the buffer has room."""
GOODBYE_S = 1.0


class _GatedSocket(WatchedSocket):
    """A socket that reads only while its gate is open; else simple-websocket would buffer all that a client
    sends."""

    def __init__(self, *arguments: Any) -> None:
        self.gate = threading.Event()
        self.gate.set()
        super().__init__(*arguments)

    def recv(self, size: int) -> bytes:
        self.gate.wait()
        return super().recv(size)

    def shutdown(self, *arguments: Any) -> None:
        self.gate.set()
        super().shutdown(*arguments)


class Daemon:
    """Serves the clients of one deck.

    Parameters
    ----------
    sink : Sink
        Where speech goes.
    settings : Settings
        Hold the allowed hosts and web origins.
    options
        Options of the `Deck`.
    """

    def __init__(self, sink: Sink, settings: Settings, **options: Any) -> None:
        self.deck = Deck(sink, tell=self._tell, qos=settings.qos, **options)
        self.hosts = allowed_hosts(settings.model_copy(update={"host": LOOPBACK}))
        self.origins = frozenset(listed(settings.allowed_origins))
        self._lock = threading.Lock()
        self._clients: set[PlayerConversation] = set()
        self.seats = threading.BoundedSemaphore(CLIENTS)
        self._since_s = time.monotonic()

    def health(self) -> dict[str, Any]:
        """The answer of `/health`."""
        status = protocol.status_data(self.deck.status())
        return {
            "status": "healthy",
            "timestamp": round(1000 * time.time()),
            "uptime": time.monotonic() - self._since_s,
            "version": __version__,
            "audioProcessor": {**status.pop("performance"), "player": status},
            "clients": len(self._clients),
        }

    def talk(self, ws: Server, watched: _GatedSocket) -> None:
        """Serve one client until it goes."""
        enter_playback(self.deck.qos)
        outbox: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        teller = threading.Thread(target=_send_all, args=(ws, outbox), name="teller", daemon=True)
        teller.start()
        client = PlayerConversation(self.deck, outbox.put)
        with self._lock:
            self._clients.add(client)
        client.tell_status()
        try:
            self._listen(ws, client, watched)
        finally:
            with self._lock:
                self._clients.discard(client)
            outbox.put(None)
            teller.join()
            client.leave()
            while client.work():  # audio of it that found no room yet is still played
                time.sleep(POLL_S)

    def _listen(self, ws: Server, client: PlayerConversation, watched: _GatedSocket) -> None:
        beat_s = time.monotonic()
        waits = False
        while True:
            message = ws.receive(timeout=POLL_S if waits else HEARTBEAT_S)
            if message is not None:
                client.hear(message)
            waits = client.work()
            if client.waiting_bytes > WAITING_BYTES:
                watched.gate.clear()
            else:
                watched.gate.set()
            if time.monotonic() - beat_s >= HEARTBEAT_S:
                beat_s = time.monotonic()
                client.beat()

    def _tell(self, event: Event) -> None:
        if event.error is not None:
            log.error("%s", event.error)
        with self._lock:
            clients = list(self._clients)
        for client in clients:
            client.tell(event)


def _send_all(ws: Server, outbox: queue.SimpleQueue[str | None]) -> None:
    """Send a client its messages, in a thread of its own, so that a client that does not read cannot delay
    playing."""
    with suppress(ConnectionClosed, OSError):
        while (message := outbox.get()) is not None:
            ws.send(message)


class _Door(BaseHTTPRequestHandler):
    """The HTTP handler: checks Host and Origin, answers `/health`, and opens WebSockets."""

    protocol_version = "HTTP/1.1"
    timeout = STALL_S
    disable_nagle_algorithm = True  # messages are small, and clients wait for some, such as "stopped"
    server: _Listener

    def do_GET(self) -> None:
        host = self.headers.get("Host", "").lower()
        origin = self.headers.get("Origin")
        daemon = self.server.deck_daemon
        if not answers_to(host, daemon.hosts):
            self._answer(400, {"error": "This player does not answer to that Host."})
        elif origin is not None and origin not in daemon.origins and not same_origin(origin, host):
            self._answer(403, {"error": "KOKORO_ALLOWED_ORIGINS does not list this web origin."})
        elif self.headers.get("Upgrade", "").lower() == "websocket":
            self._upgrade(daemon)
        elif self.path.partition("?")[0] == "/health":
            self._answer(200, daemon.health())
        else:
            self._answer(426, {"error": "A WebSocket is spoken here; /health tells how it stands."})

    def _upgrade(self, daemon: Daemon) -> None:
        self.close_connection = True
        if not daemon.seats.acquire(blocking=False):
            self._answer(503, {"error": f"All {CLIENTS} clients that may be here at a time are."})
            return
        watched = _GatedSocket(self.connection, STALL_S)
        headers = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in self.headers.items()}
        try:
            ws = Server({**headers, "werkzeug.socket": watched}, max_message_size=MESSAGE_BYTES)
            with suppress(ConnectionClosed, OSError):
                daemon.talk(ws, watched)
            with suppress(ConnectionClosed, OSError):
                ws.close()
            watched.gate.set()
            watched.take_leave(ws.thread, GOODBYE_S)
        except (HandshakeFailed, OSError):
            log.info("A client went before it was let in.")
        finally:
            watched.shutdown()
            daemon.seats.release()

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-Daemon-Version", __version__)
        if status == 426:
            self.send_header("Upgrade", "websocket")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: Any) -> None:
        log.debug(*arguments)


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    deck_daemon: Daemon

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.info("A connection broke off.", exc_info=True)


@contextmanager
def listening(daemon: Daemon, port: int) -> Iterator[int]:
    """A context in which clients are served on a port of the loopback; 0 takes a free port.

    Raises
    ------
    ParameterError
        The port is taken.
    """
    try:
        listener = _Listener((LOOPBACK, port), _Door)
    except OSError as error:
        raise ParameterError(
            f"Port {port} cannot be listened on: {error.strerror or error}.",
            field="port",
            value=port,
            mend="Another player may be running; end it, or choose another port.",
        ) from error
    listener.deck_daemon = daemon
    thread = threading.Thread(target=listener.serve_forever, args=(0.1,), name="listener")
    thread.start()
    try:
        with running(daemon.deck):
            yield listener.server_port
    finally:
        listener.shutdown()
        thread.join()
        listener.server_close()


def main(
    sink: Sink,
    port: int | None = None,
    *,
    pipe: Path | None = None,
    pre_buffer_s: float | None = None,
    say: Callable[[str], None],
) -> None:
    """Serve clients until SIGINT or SIGTERM.

    Parameters
    ----------
    sink : Sink
        Opened at once: see `Deck.open`.
    port : int, optional
        The port, by default that of the settings.
    pipe : Path, optional
        A FIFO to be played too; made if it does not exist.
    pre_buffer_s : float, optional
        A fixed pre-buffer; by default it is learnt.
    say : callable
        Called with a line when the player is ready.

    Raises
    ------
    PlaybackError
        The sink does not open, and no other player can replace it.
    ParameterError
        The port is taken, or `pipe` is no FIFO.
    """
    settings = environment()
    daemon = Daemon(sink, settings)
    daemon.deck.open()
    if pre_buffer_s is not None:
        daemon.deck.hold_back(pre_buffer_s)
    over = threading.Event()

    def leave(number: int, frame: FrameType | None) -> None:
        over.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, leave)
    with listening(daemon, settings.player_port if port is None else port) as port:
        if pipe is not None:
            reader = threading.Thread(
                target=play_fifo, args=(daemon.deck, make_fifo(pipe), over), name="pipe", daemon=True
            )
            reader.start()
            say(f"Playing what is written to {pipe}.")
        say(f"Listening at: ws://{LOOPBACK}:{port}")
        over.wait()
