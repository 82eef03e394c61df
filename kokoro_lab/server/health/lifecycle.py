"""Start and stop of the server process: answers while the engine still loads, and the end of streams.

The worker listens at once. `/health` says how far loading is; other requests wait, so that a client that
comes back after a crash is served as soon as possible and need not retry. Their number is limited; a further
request is refused, and may come back later.

At SIGTERM, streams may finish. The clients of the streams that do not finish in time are told that they can
resume:

    SIGTERM → new requests are refused → `KOKORO_SHUTDOWN_S` → the rest get `server_stopping`, and end

A client can resume such a stream, or one that was cut off, on the next server from the last chunk that it has
(see `resume`). This server stores nothing for that.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterable
from typing import Any

from flask import Flask, Response
from gunicorn.arbiter import Arbiter

from kokoro_lab._version import __version__
from kokoro_lab.config import Settings
from kokoro_lab.errors import KokoroLabError, Unavailable
from kokoro_lab.scheduling.native_work import native_work
from kokoro_lab.server.health.background import Stages
from kokoro_lab.server.http import errors, guard
from kokoro_lab.server.openapi.schemas import Health
from kokoro_lab.server.state import ServerState, state_of

log = logging.getLogger(__name__)

LOADING = "server_loading"
LOADED_AFTER_S = 2
STOPPING = "server_stopping"
GOODBYE_S = 3.0
"""How long before the end of `KOKORO_SHUTDOWN_S` the remaining listeners get their message. A connection that
does not take it is cut after `syntheses.GRACE_S`."""
NEXT_SERVER_AFTER_S = 5
"""`Retry-After` of a server that stops: about the time in which the next server loads."""
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


MakeApp = Callable[[Stages], Flask]


class Doorstep:
    """A WSGI application that answers until the real one is loaded, and then passes requests on to it.

    Parameters
    ----------
    make : callable
        Makes the application, and notes its steps in `Stages`; called in a thread by `open`.
    settings : Settings
    end : callable
        Ends the process with an exit code if `make` fails, so that gunicorn's master does not retry.
    """

    def __init__(self, make: MakeApp, settings: Settings, end: Callable[[int], None] | None = None) -> None:
        self._make = make
        self._settings = settings
        self._end = end or _end_process
        self._made = threading.Event()
        self._app: Flask | None = None
        self._stopping_s: float | None = None
        self._connections: Callable[[], dict[str, Any]] | None = None
        self._lock = threading.Lock()
        # As many as there are threads, less those that `/health` needs
        self._seats = threading.BoundedSemaphore(settings.concurrency + settings.queue)
        self._door = self._front_door()
        self.stages = Stages()

    @property
    def most_body_bytes(self) -> int:
        """The longest body of a request."""
        return guard.max_body_bytes(self._settings)

    def open(
        self, worker: int = 1, connections: Callable[[], dict[str, Any]] | None = None
    ) -> threading.Thread:
        """Begin to make the application. `worker` is the number of this process among those that the server
        has had.

        `connections` returns the figures of open connections.
        """
        self._connections = connections
        thread = threading.Thread(target=self._run, args=(worker,), name="loading", daemon=True)
        thread.start()
        return thread

    def begin_to_stop(self, within_s: float) -> None:
        """Refuse new requests, and give requests under way `within_s` to end."""
        with self._lock:
            self._stopping_s = within_s
            if self._app is not None:
                begin_to_stop(state_of(self._app), within_s)
        self._made.set()  # requests that wait for the application are refused

    def application(self) -> Flask | None:
        """Wait for the application; returns it, or None if it takes longer than a request may wait."""
        if self._app is None:
            self._wait()
        return self._app

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = guard.path_within(self._settings.root_path, environ.get("PATH_INFO", ""))
        app = self._app if path.rstrip("/") == "/health" else self.application()
        return (self._door if app is None else app).wsgi_app(environ, start_response)

    def _wait(self) -> None:
        if self._seats.acquire(blocking=False):
            try:
                self._made.wait(self._settings.first_audio_deadline_s)
            finally:
                self._seats.release()

    def _run(self, worker: int) -> None:
        try:
            with native_work():
                app = self._make(self.stages)
        except KokoroLabError as error:
            end_with(error, self._end)
        except Exception:
            log.exception("Loading failed.")
            self._end(Arbiter.WORKER_BOOT_ERROR)
        else:
            state = state_of(app)
            state.worker, state.connections = worker, self._connections
            with self._lock:
                self._app = app
                if self._stopping_s is not None:
                    begin_to_stop(state, self._stopping_s)
            self._made.set()

    def _front_door(self) -> Flask:
        door = Flask("kokoro_lab", static_folder=None)
        errors.register(door)
        guard.register(door, self._settings)

        def health() -> tuple[dict[str, Any], int]:
            answer = Health(
                status="warming",
                stage=self.stages.current,
                stages_s=self.stages.finished_s,
                version=__version__,
                variant=self._settings.variant,
            )
            return answer.model_dump(exclude_none=True), 503

        def come_back(**_: str) -> Response:
            raise still_loading()

        door.add_url_rule("/health", view_func=health)
        door.add_url_rule("/", view_func=come_back, methods=_METHODS)
        door.add_url_rule("/<path:path>", view_func=come_back, methods=_METHODS)
        return door


def still_loading() -> Unavailable:
    """The error for a request that comes before the engine is loaded."""
    return Unavailable("The engine is still being loaded.", retry_after_s=LOADED_AFTER_S, code=LOADING)


def begin_to_stop(state: ServerState, within_s: float) -> threading.Timer:
    """Refuse new requests, and end those still being served `GOODBYE_S` before `within_s` is over."""
    state.admission.refuse(
        Unavailable(
            "This server is being stopped.",
            retry_after_s=NEXT_SERVER_AFTER_S,
            code=STOPPING,
            mend="Ask the next one in a few seconds.",
        ),
        for_good=True,
    )
    state.warm_up.end()
    under_way = len(state.syntheses.under_way())
    log.info("Stopping: nothing new is taken, %d under way may go on for %g s.", under_way, within_s)
    timer = threading.Timer(max(within_s - GOODBYE_S, within_s / 2), say_goodbye, (state,))
    timer.daemon = True
    timer.start()
    return timer


def say_goodbye(state: ServerState) -> None:
    """End the requests still under way, with a message where the transport has one."""
    reason = Unavailable(
        "This server stops now; the speech is not at its end.",
        retry_after_s=NEXT_SERVER_AFTER_S,
        code=STOPPING,
        mend="Send the same request to the next server, with the last id and token if you have any.",
    )
    stopped = state.syntheses.interrupt(reason)
    if stopped:
        log.warning("Stopped %d streams before their end; they can be resumed.", len(stopped))


def replace_this_worker() -> None:
    """End this process as by SIGTERM; gunicorn's master starts another one."""
    os.kill(os.getpid(), signal.SIGTERM)


def _end_process(code: int) -> None:
    """End the process at once: `sys.exit` would end only the calling thread."""
    logging.shutdown()
    os._exit(code)


def end_with(error: KokoroLabError, end: Callable[[int], None] = _end_process) -> None:
    """Say why the server cannot run, and end the process; gunicorn's master ends as well."""
    log.error("Error: %s", error)
    end(Arbiter.APP_LOAD_ERROR)
