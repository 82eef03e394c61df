"""Health, status, and the lists of voices and models.

These routes need no API key, since clients ask here before they send a text to be spoken.
"""

from __future__ import annotations

import os
import time
from typing import Any

import psutil
from flask import Blueprint, abort

from kokoro_lab._version import __version__
from kokoro_lab.native.toolchain import toolchain
from kokoro_lab.provenance import versions
from kokoro_lab.server.health import operations
from kokoro_lab.server.openapi.document import documented
from kokoro_lab.server.openapi.schemas import Health, Model, ModelNames, Models, Status, VoiceNames, Voices
from kokoro_lab.server.requests.speech_request import GENERAL_MODELS
from kokoro_lab.server.state import server_state
from kokoro_lab.speech.chunker import PRIMER_S
from kokoro_lab.speech.first_audio import PRIMED_S
from kokoro_lab.weights.store import voice_names
from kokoro_lab.weights.voices import GENDERS, LANGUAGE_OF_PREFIX, reading_voices, unread_voices

blueprint = Blueprint("status", __name__)

RELEASED_S = 1_737_936_000
"""27 January 2025, when Kokoro v1.0 came out: OpenAI's shape of a model wants a date."""


@blueprint.get("/health")
@documented(answer=Health, also=(503,))
def health() -> tuple[dict[str, Any], int]:
    """200 once the engine has spoken its first word; 503 before, or if it could not."""
    state = server_state()
    warm_up = state.warm_up
    answer = Health(
        status=warm_up.state,
        stage=warm_up.stages.current,
        stages_s=warm_up.stages.finished_s,
        version=__version__,
        variant=state.engine.config.variant,
        active_provider=state.engine.active_provider,
        reason=warm_up.reason,
    )
    return answer.model_dump(exclude_none=True), 200 if warm_up.state == "ok" else 503


@blueprint.get("/status")
@documented(answer=Status)
def status() -> dict[str, Any]:
    """What runs, and how the last requests went."""
    state = server_state()
    engine, warm_up, settings = state.engine, state.warm_up, state.settings
    record = engine.session_record
    cache = engine.first_audio.figures()
    rss_mb = round(psutil.Process().memory_info().rss / 2**20, 1)
    answer = {
        "status": warm_up.state,
        "uptime_s": round(time.monotonic() - state.started_s, 3),
        "worker": {"pid": os.getpid(), "number": state.worker},
        "refuses": state.admission.reasons,
        "warm_up_s": warm_up.seconds,
        "warm_up": {
            "state": warm_up.state,
            "stage": warm_up.stages.current,
            "stages_s": warm_up.stages.finished_s,
            "languages": dict(warm_up.languages),
            "reason": warm_up.reason,
        },
        "variant": engine.config.variant,
        "model_sha256": engine.model_sha256,
        "requested_provider": engine.config.provider,
        "active_provider": engine.active_provider,
        "placement": engine.placement.figures(),
        "threads": engine.config.thread_count,
        "math": {
            name: record[name] for name in ("math_mode", "denormals", "native_operators", "native_build")
        },
        "voices": len(voice_names()),
        "connections": None if state.connections is None else state.connections(),
        "voices_not_offered": unread_voices(),
        "active": state.slots.active,
        "waiting": state.slots.waiting,
        "concurrency": state.slots.count,
        "queue": state.slots.queue,
        "computing": operations.computing(state),
        "buffer_profile": settings.buffer_profile,
        "ephemeral": settings.ephemeral,
        "sessions": [one.figures() for one in state.syntheses.under_way()],
        **state.figures.summary(),
        "degrade": state.degrader.figures(),
        "slo": state.degrader.objectives.figures(),
        "faults": None if state.faults is None else state.faults(),
        "lexicon": engine.front_end.lexicons.figures(),
        "first_audio_cache": cache,
        "phoneme_cache": engine.front_end.cache.figures(),
        "languages_loaded": list(engine.front_end.speakers.loaded()),
        "primer": {"silence_s": PRIMER_S, "cached_s": PRIMED_S, "hits": cache["hits"]},
        "memory_rss_mb": rss_mb,
        "memory": {
            "rss_mb": rss_mb,
            "arena_limit_mb": engine.config.memory_arena_size_mb,
            "available_mb": round(psutil.virtual_memory().available / 2**20, 1),
            "watchdog": state.watchdog.figures(),
        },
        "versions": versions(),
        "toolchain": toolchain(),
        "conversion": dict(engine.conversion),
    }
    return Status.model_validate(answer).model_dump()


@blueprint.get("/v1/audio/voices")
@documented(answer=Voices)
def voices() -> dict[str, Any]:
    """The voices as OpenWebUI wants them, and also the `language` and `gender` of each.

    A voice whose own language cannot be read here is left out: a client that names no `language` would only
    get errors. `/status` lists these voices, with the reason.
    """
    return {"voices": [described_voice(name) for name in reading_voices()]}


@blueprint.get("/voices")
@documented(answer=VoiceNames)
def plain_voices() -> dict[str, Any]:
    """The names of the voices, in the form that the Raycast client expects."""
    return {"voices": list(reading_voices())}


@blueprint.get("/v1/models")
@documented(answer=Models)
def models() -> dict[str, Any]:
    """The names that `model` may have, as OpenAI lists them."""
    return {"object": "list", "data": [_model(name) for name in _models()]}


@blueprint.get("/v1/models/<name>")
@documented(answer=Model, errors=(404,))
def model(name: str) -> dict[str, Any]:
    """One of the names that `model` may have, in OpenAI's shape."""
    if name not in _models():
        abort(404, f"There is no model of that name here; GET /v1/models lists them: {', '.join(_models())}.")
    return _model(name)


@blueprint.get("/v1/audio/models")
@documented(answer=ModelNames)
def audio_models() -> dict[str, Any]:
    """The names that `model` may have, as OpenWebUI wants them."""
    return {"models": [{"id": name} for name in _models()]}


def _models() -> tuple[str, ...]:
    return (server_state().engine.config.variant, *GENERAL_MODELS)


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": RELEASED_S, "owned_by": "hexgrad"}


def described_voice(name: str) -> dict[str, str]:
    """A voice as clients see it."""
    language, gender = LANGUAGE_OF_PREFIX[name[0]], GENDERS[name[1]]
    called = name.partition("_")[2].capitalize()
    # With its language, since three voices are called Santa
    return {"id": name, "name": f"{called} ({language}, {gender})", "language": language, "gender": gender}
