"""The server: `create_app(engine)` for a notebook, a test or any WSGI server, and `main` for people."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from flask import Flask
from gunicorn.app.base import BaseApplication

from kokoro_lab.config import VARIANTS, Settings, misspelt
from kokoro_lab.config import settings as environment
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import KokoroLabError, MissingExtra, SettingsError, VoiceError
from kokoro_lab.server.health import operations, status
from kokoro_lab.server.health.background import Stages, WarmUp
from kokoro_lab.server.health.degrade import Degrader
from kokoro_lab.server.health.lifecycle import Doorstep, MakeApp, end_with, replace_this_worker
from kokoro_lab.server.health.logs import OurGunicorn, configure
from kokoro_lab.server.health.objectives import ObjectiveWatch, remedies
from kokoro_lab.server.health.watchdog import Watchdog, give_large_blocks_back, given_back, limit_of, settle
from kokoro_lab.server.http import errors, front_page, guard, speech, websocket, without_lab
from kokoro_lab.server.http.listening import listener, room_for, url_of
from kokoro_lab.server.http.worker import PatientWorker
from kokoro_lab.server.requests.slots import Admission, Slots
from kokoro_lab.server.requests.syntheses import Syntheses
from kokoro_lab.server.state import EXTENSION, SOCKETS, ServerState
from kokoro_lab.server.wyoming.worker import WyomingWorker

if TYPE_CHECKING:
    from kokoro_lab.speech.engine import Engine

log = logging.getLogger(__name__)

SPARE_THREADS = 8
"""Threads besides one for each synthesis, each waiting request and each WebSocket, so that `/health` and a
refusal (429) are answered while all of those are busy."""


def create_app(
    engine: Engine,
    settings: Settings | None = None,
    *,
    loaded_s: Mapping[str, float] | None = None,
    own_process: bool = False,
) -> Flask:
    """A WSGI application that speaks with `engine`, which it warms up in the background.

    Parameters
    ----------
    engine : Engine
        Any engine; several applications may share one.
    settings : Settings, optional
        Default: what the environment says.
    loaded_s : mapping, optional
        Seconds that each stage of making `engine` took, for `/health` and `/status` to show.
    own_process : bool
        Whether the process serves only this application. Then the garbage collector no longer looks at what
        the warm-up has loaded (each look would delay every listener), and resident memory has a limit.

    Returns
    -------
    flask.Flask
    """
    settings = settings or environment()
    hang_benchmarks_into, injector = without_lab.hang_into, None
    try:
        from kokoro_lab.lab.routes import benchmarks, faults  # these need the extra `lab`
    except MissingExtra:
        if settings.faults:
            raise  # faults that are set and cannot strike would mislead
    else:
        hang_benchmarks_into = benchmarks.hang_into
        engine, injector = faults.injected(engine, settings.faults)
    app = Flask("kokoro_lab", static_folder=None)
    slots = Slots(settings.concurrency, settings.queue)
    admission = Admission()
    warm_up = WarmUp(loaded_s)
    watched = own_process and not settings.disable_memory_mgmt
    watchdog = Watchdog(
        limit_of(settings.memory_limit_mb) if watched else 0.0,
        slots,
        admission,
        given_back(engine),
        settle=partial(settle, engine, settings.voice),
        replace=replace_this_worker,
        complete=lambda: warm_up.complete,
        unfit=end_with,
    )
    if watched:
        engine.front_end.speakers.room = watchdog.make_room
    objectives = ObjectiveWatch(settings.slo_ttfa_s, settings.slo_rtf, remedies(engine, settings))
    state = ServerState(
        engine,
        settings,
        slots,
        Degrader(settings, slots, objectives, chunk_s=engine.config.chunk_ms / 1000),
        admission,
        Syntheses(slots, admission, settings, engine.parts.cores.at_a_time),
        watchdog,
        warm_up=warm_up,
    )
    state.figures.add_gauges(lambda: operations.gauges(state))
    app.extensions[EXTENSION] = state
    errors.register(app)
    guard.register(app, settings)
    app.register_blueprint(speech.blueprint)
    app.register_blueprint(status.blueprint)
    app.register_blueprint(operations.blueprint)
    hang_benchmarks_into(app)
    app.register_blueprint(front_page.blueprint)
    app.register_blueprint(websocket.blueprint)
    app.config["SOCK_SERVER_OPTIONS"] = websocket.options(settings)
    if injector is not None:
        faults.hang_into(app, injector)
    if settings.development_mode:
        app.register_blueprint(operations.debugging)
    costs = state.syntheses.costs
    warm_up.measured = lambda report: costs.note(report.voice, report.compute_s, report.audio_s)
    if settings.degrade == "auto":
        warm_up.rehearsed = state.degrader.rehearsed
    warm_up.start(
        engine,
        settings.voice,
        slots,
        every_language=settings.aggressive_warming,
        defer=settings.defer_background_init,
        own_process=own_process,
        spoken=state.syntheses.anyone_hears,
    )
    watchdog.start(lambda: warm_up.state != "warming")
    return app


def main(
    host: str | None = None, port: int | None = None, variant: str | None = None, *, wyoming: bool = False
) -> None:
    """Serve until a signal ends the process.

    Parameters
    ----------
    host, port, variant : optional
        Override what the environment says.
    wyoming : bool
        Whether to serve Wyoming instead of HTTP.

    Raises
    ------
    SettingsError
        No variant has this name, or no voice the name that `KOKORO_VOICE` sets.
    """
    chosen = {"host": host, "port": port, "variant": variant}
    settings = environment().model_copy(update={k: v for k, v in chosen.items() if v is not None})
    # A wrong configuration is refused here, rather than in the worker
    replace(EngineConfig.from_settings(), variant=settings.variant)
    require_default_voice(settings.voice)

    def make_app(begins: Stages) -> Flask:
        begins("imports")
        from kokoro_lab.speech.engine import load_engine

        give_large_blocks_back()
        engine = load_engine(settings.variant, begins=begins)
        begins.end()
        return create_app(engine, settings, loaded_s=begins.finished_s, own_process=True)

    serve(make_app, settings, wyoming=wyoming)


def require_default_voice(spec: str) -> None:
    """Refuse a voice of the settings that is none: the warm-up would fail, and the server never be ready.

    Raises
    ------
    SettingsError
        `parts_of` cannot read the voice.
    """
    from kokoro_lab.weights.voices import parts_of

    try:
        list(parts_of(spec))
    except VoiceError as error:
        raise SettingsError.of_variable("KOKORO_VOICE", error) from error


def serve(make_app: MakeApp, settings: Settings, *, wyoming: bool = False) -> None:
    """Run gunicorn on `settings.host` and `settings.port`, and log as `settings` has it.

    Parameters
    ----------
    make_app : callable
        Returns the WSGI application. Called in the worker process, with a function that it calls before each
        step of loading; `/health` shows the step. ONNX Runtime must not be
        loaded before this call: loaded before the fork, it makes the worker abort when it exits, and on macOS
        its frameworks may not survive the fork at all.
    settings : Settings
    wyoming : bool
        Whether to serve Wyoming instead of HTTP.

    Raises
    ------
    SettingsError
        The address cannot be listened on.
    """
    configure(settings.log_format, verbose=settings.verbose_logs)
    for sentence in misspelt():
        log.warning("%s", sentence)
    # We bind the address: gunicorn would try five times, and then say that it cannot connect
    port_setting = "WYOMING_PORT" if wyoming else "PORT"
    bound = listener(settings.host, settings.port, settings.connections, port_setting)
    address = bound.getsockname()[:2]
    options = {
        "bind": f"fd://{bound.detach()}",
        "worker_connections": room_for(settings.connections) + 1,
        "workers": 1,  # one model in memory; a second server is for a second machine
        "worker_class": WyomingWorker if wyoming else PatientWorker,
        "threads": settings.concurrency + settings.queue + SOCKETS + SPARE_THREADS,
        # Loading may have to fetch 300 MB first, and a sleeping laptop is not a hanging worker
        "timeout": 0,
        "graceful_timeout": settings.shutdown_s,
        "accesslog": None,  # requests are logged by us, without their texts
        "logger_class": OurGunicorn,
        "forwarder_headers": "",  # KOKORO_ROOT_PATH names the mount point; no client may
        "control_socket_disable": True,
        "proc_name": "kokoro-lab",
    }
    if wyoming:
        log.info("Home Assistant finds a service of Wyoming on %s, port %d.", *address)
        if settings.api_key:
            log.warning("Wyoming has no keys: anyone who reaches it may speak. KOKORO_API_KEY is ignored.")
    else:
        url = url_of(*address)
        log.info("Open %s in a browser, or give %sv1 to a client of OpenAI's.", url, url)
    _Gunicorn(lambda: Doorstep(make_app, settings), options).run()


class _Gunicorn(BaseApplication):  # type: ignore[misc]
    """gunicorn, configured by arguments instead of its own command line, environment and files."""

    def __init__(self, make_doorstep: Callable[[], Doorstep], options: dict[str, Any]) -> None:
        self._make_doorstep, self._options = make_doorstep, options
        super().__init__()

    def load_config(self) -> None:
        for name, value in self._options.items():
            self.cfg.set(name, value)

    def load(self) -> Doorstep:
        logging.getLogger("gunicorn.error").addFilter(_without_stack)
        return self._make_doorstep()


def _without_stack(record: logging.LogRecord) -> bool:
    """Let gunicorn log a stalled client without a stack: it is no error of the server."""
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
