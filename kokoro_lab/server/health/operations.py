"""Routes for operators: sessions, caches, Prometheus figures, the API's description, debugging."""

from __future__ import annotations

import gc
import sys
import threading
import traceback
from types import FrameType
from typing import Any

import psutil
from flask import Blueprint, Flask, Response, current_app, request

from kokoro_lab.errors import Interrupted
from kokoro_lab.server.health.figures import PROMETHEUS_TYPE, percentiles
from kokoro_lab.server.http.guard import require_key
from kokoro_lab.server.openapi.document import document, documented
from kokoro_lab.server.openapi.schemas import (
    Cleared,
    Description,
    MemoryDetails,
    Reset,
    ResetRequest,
    SessionStatus,
)
from kokoro_lab.server.requests.json_body import optional_model
from kokoro_lab.server.state import ServerState, server_state

blueprint = Blueprint("operations", __name__)
debugging = Blueprint("debugging", __name__, url_prefix="/debug")
debugging.before_request(require_key)

MOST_TYPES = 25


@blueprint.get("/openapi.json")
@documented(answer=Description)
def openapi() -> dict[str, Any]:
    """The description of the server's API as an OpenAPI document."""
    app: Flask = current_app
    return document(app)


@blueprint.get("/metrics")
@documented(media=("text/plain",))
def metrics() -> Response:
    """The figures of `/status` in Prometheus' text format."""
    return Response(server_state().figures.for_prometheus(), content_type=PROMETHEUS_TYPE)


@blueprint.get("/session-status")
@documented(answer=SessionStatus)
def session_status() -> dict[str, Any]:
    """The loaded model, and the requests that are being served."""
    state = server_state()
    engine = state.engine
    return SessionStatus.model_validate(
        {
            "variant": engine.config.variant,
            "requested_provider": engine.config.provider,
            "active_provider": engine.active_provider,
            "details": dict(engine.decoder.details),
            "active": state.slots.active,
            "waiting": state.slots.waiting,
            "concurrency": state.slots.count,
            "running": [one.figures() for one in state.syntheses.under_way()],
        }
    ).model_dump()


@blueprint.post("/session-reset")
@documented(body=ResetRequest, optional_body=True, answer=Reset, errors=(401,))
def session_reset() -> dict[str, Any]:
    """Stop one request by its id, or every request. If every request is stopped, also clear the server's
    figures and reset the degrade mode (see `health.degrade`)."""
    require_key()
    state = server_state()
    asked = optional_model(request, ResetRequest)
    reason = Interrupted("The request was stopped by /session-reset.")
    stopped = state.syntheses.interrupt(reason, asked.request_id)
    if asked.request_id is None:
        state.figures.forget()
        state.degrader.reset()
    return {"stopped": stopped, "figures_reset": asked.request_id is None}


@blueprint.post("/performance/clear_cache")
@documented(answer=Cleared, errors=(401,))
def clear_cache() -> dict[str, Any]:
    """Empty the caches of first audio, phonemes and loaded voices."""
    require_key()
    return {"cleared": server_state().engine.clear_caches()}


@debugging.get("/stacks")
@documented(media=("text/plain",), errors=(401,))
def stacks() -> Response:
    """The stack of every thread. It has lines of code and no values of variables, so no text of a client."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = [
        f"{names.get(ident, ident)}\n{''.join(traceback.format_stack(frame))}"
        for ident, frame in _frames().items()
    ]
    return Response("\n".join(parts), mimetype="text/plain")


def _frames() -> dict[int, FrameType]:
    """The frame of each thread. Garbage collection is off meanwhile: CPython 3.11 holds a lock of the
    interpreter while it collects the frames. If a finaliser let other threads run then, all of them would be
    blocked for ever."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames()
    finally:
        if collects:
            gc.enable()


@debugging.get("/memory")
@documented(answer=MemoryDetails, errors=(401,))
def memory() -> dict[str, Any]:
    """The process's memory, and the Python types with most objects."""
    counts: dict[str, int] = {}
    for thing in gc.get_objects():
        counts[type(thing).__name__] = counts.get(type(thing).__name__, 0) + 1
    most = sorted(counts.items(), key=lambda item: -item[1])[:MOST_TYPES]
    return {"process": psutil.Process().memory_full_info()._asdict(), "objects": dict(most)}


def computing(state: ServerState) -> dict[str, Any]:
    """The units that compute, the units that wait, and the measured cost of speech."""
    figures, syntheses = state.engine.parts.cores.figures(), state.syntheses
    return {
        **figures,
        "wait_s": percentiles(figures.pop("waits_s")),
        "load": round(syntheses.load, 4),
        "capacity": syntheses.capacity,
        "costs": syntheses.costs.figures(),
    }


def gauges(state: ServerState) -> dict[str, float]:
    """The gauges of `/metrics`, read at each request."""
    cache = state.engine.first_audio.figures()
    phonemes = state.engine.front_end.cache.figures()
    memory = state.watchdog.figures()
    cores = computing(state)
    return {
        "kokoro_active": state.slots.active,
        "kokoro_waiting": state.slots.waiting,
        "kokoro_admitted": state.slots.limit,
        "kokoro_windows_waiting": cores["waiting"],
        "kokoro_window_wait_p95_seconds": cores["wait_s"]["p95"] or 0.0,
        "kokoro_utilisation": cores["utilisation"],
        "kokoro_load": cores["load"],
        "kokoro_capacity": cores["capacity"],
        "kokoro_cost": state.syntheses.costs.of(""),
        "kokoro_ready": state.warm_up.state == "ok",
        "kokoro_degraded": state.degrader.mode.name != "normal",
        "kokoro_provider_fallbacks": len(state.engine.placement.fallbacks),
        "kokoro_slo_warnings": len(state.degrader.objectives.warnings()),
        "kokoro_resident_memory_bytes": psutil.Process().memory_info().rss,
        "kokoro_memory_limit_bytes": memory["limit_mb"] * 2**20,
        "kokoro_memory_cleanups": memory["cleanups"],
        "kokoro_refusing": bool(state.admission.reasons),
        "kokoro_worker_number": state.worker,
        "kokoro_warm_up_seconds": state.warm_up.seconds or 0.0,
        "kokoro_open_websockets": state.sockets.active,
        "kokoro_phoneme_cache_entries": phonemes["entries"],
        "kokoro_phoneme_cache_hits": phonemes["hits"],
        "kokoro_first_audio_cache_entries": cache["entries"],
        "kokoro_first_audio_cache_hits": cache["hits"],
    }
