"""The server: `create_app(engine)` for a notebook, a test or any WSGI server, and `main` for people."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flask import Flask
from gunicorn.app.base import BaseApplication
from gunicorn.errors import AppImportError

from kokoro_lab.config import VARIANTS, EngineConfig, Settings
from kokoro_lab.config import settings as environment
from kokoro_lab.errors import KokoroLabError
from kokoro_lab.server import (
    benchmarks,
    errors,
    faults,
    front_page,
    guard,
    operations,
    speech,
    status,
    websocket,
)
from kokoro_lab.server.background import WarmUp
from kokoro_lab.server.degrade import Degrader
from kokoro_lab.server.logs import JsonGunicorn, configure
from kokoro_lab.server.objectives import Objectives
from kokoro_lab.server.remedies import remedies
from kokoro_lab.server.slots import Slots
from kokoro_lab.server.state import EXTENSION, SOCKETS, ServerState
from kokoro_lab.server.worker import PatientWorker

if TYPE_CHECKING:
    from kokoro_lab.engine import Engine

log = logging.getLogger(__name__)

SPARE_THREADS = 8
"""Beyond one for each synthesis, each request that waits for one and each WebSocket, so that health is
answered and a 429 is given while all are busy."""
GRACEFUL_S = 10
"""How long streams may go on after SIGTERM."""
KEEPALIVE_S = 5


def create_app(
    engine: Engine,
    settings: Settings | None = None,
    *,
    loading_s: float | None = None,
    own_process: bool = False,
) -> Flask:
    """A WSGI application that speaks with `engine`, which it warms up in the background.

    Parameters
    ----------
    engine : Engine
        Any engine; several applications may share one.
    settings : Settings, optional
        Default: what the environment says.
    loading_s : float, optional
        Seconds that making `engine` took, for `/health` and `/status` to show.
    own_process : bool
        Whether the process is there for this alone. Then what the warm-up has loaded is taken out of the
        sight of the collector of garbage, which would hold everybody up while it looks through it.

    Returns
    -------
    flask.Flask
    """
    settings = settings or environment()
    engine, injector = faults.injected(engine, settings.faults)
    app = Flask("kokoro_lab", static_folder=None)
    slots = Slots(settings.concurrency, settings.queue)
    objectives = Objectives(settings.slo_ttfa_s, settings.slo_rtf, remedies(engine, settings))
    state = ServerState(
        engine,
        settings,
        slots,
        Degrader(settings, slots, objectives),
        benchmarks.Benchmarks(engine, slots),
        warm_up=WarmUp(loading_s),
        injector=injector,
    )
    state.figures.meters.gauges(lambda: operations.gauges(state))
    app.extensions[EXTENSION] = state
    errors.register(app)
    guard.register(app, settings)
    app.register_blueprint(speech.blueprint)
    app.register_blueprint(status.blueprint)
    app.register_blueprint(operations.blueprint)
    app.register_blueprint(benchmarks.blueprint)
    app.register_blueprint(front_page.blueprint)
    app.register_blueprint(websocket.blueprint)
    app.config["SOCK_SERVER_OPTIONS"] = websocket.options(settings)
    if injector is not None:
        app.register_blueprint(faults.blueprint)
    if settings.development_mode:
        app.register_blueprint(operations.debugging)
    state.warm_up.start(
        engine,
        settings.voice,
        slots,
        every_language=settings.aggressive_warming,
        defer=settings.defer_background_init,
        own_process=own_process,
    )
    return app


def main(host: str | None = None, port: int | None = None, variant: str | None = None) -> None:
    """Serve until told to stop.

    Parameters
    ----------
    host, port, variant : optional
        Override what the environment says.

    Raises
    ------
    SettingsError
        There is no such variant.
    """
    chosen = {"host": host, "port": port, "variant": variant}
    settings = environment().model_copy(update={k: v for k, v in chosen.items() if v is not None})
    configure(settings.log_format, verbose=settings.verbose_logs)
    EngineConfig(variant=settings.variant)  # refuses a wrong one here, rather than in the worker

    def make_app() -> Flask:
        from kokoro_lab.engine import load_engine

        started_s = time.perf_counter()
        engine = load_engine(settings.variant)
        return create_app(engine, settings, loading_s=time.perf_counter() - started_s, own_process=True)

    serve(make_app, settings)


def serve(make_app: Callable[[], Flask], settings: Settings) -> None:
    """Run gunicorn on `settings.host` and `settings.port`.

    Parameters
    ----------
    make_app : callable
        Called in the worker process. It must be what loads ONNX Runtime: loaded before the fork, it makes
        the worker abort when it exits, and on macOS its frameworks may not survive the fork at all.
    settings : Settings
    """
    host = f"[{settings.host}]" if ":" in settings.host and "[" not in settings.host else settings.host
    options = {
        "bind": f"{host}:{settings.port}",
        "workers": 1,  # one model in memory; a second server is for a second machine
        "worker_class": PatientWorker,
        "threads": settings.concurrency + settings.queue + SOCKETS + SPARE_THREADS,
        # Loading may have to fetch 300 MB first, and a sleeping laptop is not a hanging worker
        "timeout": 0,
        "graceful_timeout": GRACEFUL_S,
        "keepalive": KEEPALIVE_S,
        "accesslog": None,  # requests are logged by us, without their texts
        "errorlog": "-",
        **({"logger_class": JsonGunicorn} if settings.log_format == "json" else {}),
        "control_socket_disable": True,
        "proc_name": "kokoro-lab",
    }
    _Gunicorn(make_app, options).run()


class _Gunicorn(BaseApplication):  # type: ignore[misc]
    """gunicorn, told by arguments and not by its own command line, environment and files."""

    def __init__(self, make_app: Callable[[], Flask], options: dict[str, Any]) -> None:
        self._make_app, self._options = make_app, options
        super().__init__()

    def load_config(self) -> None:
        for name, value in self._options.items():
            self.cfg.set(name, value)

    def load(self) -> Flask:
        logging.getLogger("gunicorn.error").addFilter(_without_stack)
        try:
            return self._make_app()
        except KokoroLabError as error:
            # Printed as it is, and ends the server; anything else is a bug and shows its traceback
            raise AppImportError(f"Error: {error}") from error


def _without_stack(record: logging.LogRecord) -> bool:
    """A client that stalls is no error of gunicorn's; it would log one with its stack."""
    if record.exc_info and isinstance(record.exc_info[1], TimeoutError):
        record.levelno, record.levelname = logging.INFO, "INFO"
        record.msg, record.args = "A client took or sent nothing for too long; its connection was cut.", ()
        record.exc_info = None
    return True


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Serve speech; the same as `kokoro-lab serve`.")
    parser.add_argument("--host", help="address to listen on")
    parser.add_argument("--port", type=int, help="port to listen on")
    parser.add_argument("--variant", choices=VARIANTS, help="precision of the weights")
    try:
        main(**vars(parser.parse_args()))
    except KokoroLabError as error:
        sys.exit(f"Error: {error}")
