"""`/benchmarks`: lists the benchmarks of this machine, and begins one of the engine that is being served."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from flask import Blueprint, Flask, abort, current_app, request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from werkzeug.exceptions import NotFound

from kokoro_lab.containers.plain_json import damaged, read_object
from kokoro_lab.errors import ParameterError, ResultError
from kokoro_lab.lab.routes.running import (
    BenchmarkRequest,
    Benchmarks,
    BenchmarkSchedule,
    BenchmarkState,
    Schedule,
)
from kokoro_lab.server.http.guard import require_key
from kokoro_lab.server.openapi.document import Parameter, documented, operation_id
from kokoro_lab.server.requests.json_body import optional_model
from kokoro_lab.server.state import EXTENSION, ServerState, server_state

log = logging.getLogger(__name__)

blueprint = Blueprint("benchmarks", __name__)

_BENCHMARKS = "kokoro_lab.benchmarks"
MOST_LISTED = 50
MOST_NAMED = 3
RUN_ID = r"^[0-9]{8}T[0-9]{6}Z-[0-9a-f]{4}$"


def _run_link(run_id: str) -> dict[str, Any]:
    return {
        "operationId": operation_id("get", "benchmarks.run"),
        "parameters": {"run_id": run_id},
        "description": "Once it is finished",
    }


class BenchmarkRun(BaseModel):
    """A benchmark on disk."""

    run_id: str
    conditions: str
    asked: dict[str, Any]
    summary: dict[str, Any]


class SkippedRun(BaseModel):
    """A benchmark on disk that cannot be read, and why."""

    run_id: str
    reason: str


class BenchmarkRuns(BaseModel):
    """Benchmarks on disk, the latest first, and the one that this server began last."""

    runs: list[BenchmarkRun]
    skipped: list[SkippedRun] = Field(description="Benchmarks on disk that cannot be read")
    current: BenchmarkState | None
    schedule: BenchmarkSchedule | None = Field(description="Null if none is begun at intervals")


class BenchmarkResult(BenchmarkRun):
    """`result.json` of a benchmark."""

    model_config = ConfigDict(extra="allow")  # as `Answer`: a field that is not promised may come besides

    systems: dict[str, Any]
    trials: list[dict[str, Any]]
    skipped: list[SkippedRun] = Field([], description="Newer benchmarks that cannot be read")


def hang_into(app: Flask) -> None:
    """Add the routes to `app`, and begin benchmarks at intervals if `benchmark_interval_s` is set."""
    state: ServerState = app.extensions[EXTENSION]
    settings = state.settings
    app.extensions[_BENCHMARKS] = benchmarks = Benchmarks(state.engine, state.slots)
    app.register_blueprint(blueprint)
    if settings.benchmark_interval_s and not settings.skip_benchmarking:
        benchmarks.schedule = Schedule(
            benchmarks,
            settings.voice,
            settings.benchmark_interval_s,
            ready=lambda: state.warm_up.state == "ok",
        )
        benchmarks.schedule.start()


def benchmarks_of(app: Flask) -> Benchmarks:
    """The benchmarks of an application to which `hang_into` added the routes."""
    benchmarks: Benchmarks = app.extensions[_BENCHMARKS]
    return benchmarks


@blueprint.get("/benchmarks")
@documented(answer=BenchmarkRuns, links={"latest": _run_link("$response.body#/runs/0/run_id")})
def runs() -> dict[str, Any]:
    """Benchmarks on this machine, the latest first, and when the server begins the next by itself."""
    found, skipped = _readable(_folders()[:MOST_LISTED])
    benchmarks = benchmarks_of(current_app)
    schedule = None if benchmarks.schedule is None else benchmarks.schedule.state
    answer = {"runs": found, "skipped": skipped, "current": benchmarks.current, "schedule": schedule}
    return BenchmarkRuns.model_validate(answer).model_dump()


@blueprint.get("/benchmarks/latest")
@documented(answer=BenchmarkResult, errors=(404,))
def latest() -> dict[str, Any]:
    """The last benchmark, with its trials."""
    skipped: list[dict[str, str]] = []
    for folder in _folders():
        found, unread = _readable([folder])
        if found:
            return {**found[0], "skipped": skipped} if skipped else found[0]
        skipped += unread
    none = "There is no benchmark yet: run `kokoro-lab bench`, or POST to /benchmarks."
    raise NotFound(" ".join((none, *(one["reason"] for one in skipped[:MOST_NAMED]))))


@blueprint.get("/benchmarks/<run_id>")
@documented(
    answer=BenchmarkResult,
    errors=(404, 410),
    parameters=(Parameter("run_id", {"type": "string", "pattern": RUN_ID}),),
)
def run(run_id: str) -> dict[str, Any]:
    """One benchmark, with its trials."""
    # Compared with the folders that are there, so that no path can be asked for
    found = [folder for folder in _folders() if folder.name == run_id]
    if not found:
        abort(404, "There is no benchmark of that name; GET /benchmarks lists them.")
    readable, skipped = _readable(found)
    if not readable:
        abort(410, skipped[0]["reason"])
    return readable[0]


@blueprint.post("/benchmarks")
@documented(
    body=BenchmarkRequest,
    optional_body=True,
    answer=BenchmarkState,
    status=202,
    errors=(401, 403, 409, 500),
    links={"run": _run_link("$response.body#/run_id")},
)
def begin() -> tuple[dict[str, Any], int]:
    """Begin a benchmark; refused while a request is live or another one is under way."""
    require_key()
    state = server_state()
    asked = optional_model(request, BenchmarkRequest)
    if state.settings.skip_benchmarking:
        abort(403, "KOKORO_SKIP_BENCHMARKING is set: this server begins no benchmarks.")
    if not state.slots.idle():
        abort(409, "A request is being answered, and a benchmark would disturb it. Begin it later.")
    voice = asked.voice or state.settings.voice
    state.engine.voice(voice)  # refuses a wrong voice now, rather than in the background
    begun = benchmarks_of(current_app).begin(asked, voice)
    if begun is None:
        abort(409, "A benchmark is under way; GET /benchmarks shows how far it is.")
    return begun.model_dump(), 202


def _folders() -> list[Path]:
    """Folders of finished benchmarks, the latest first; empty if there is no repository."""
    try:
        from kokoro_lab.lab.results import results_folder

        found = (results_folder() / "bench").glob("*/result.json")
    except ParameterError:
        return []
    return sorted((path.parent for path in found), key=lambda folder: folder.name, reverse=True)


def _readable(folders: Iterable[Path]) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """The results that can be read, and for each of the others its `run_id` and the reason, which is also
    logged."""
    found: list[dict[str, Any]] = []
    skipped: list[dict[str, str]] = []
    for folder in folders:
        path = folder / "result.json"
        try:
            result = {**read_object(path), "run_id": folder.name}
            try:
                BenchmarkResult.model_validate(result)
            except ValidationError as error:
                first = error.errors(include_url=False, include_input=False)[0]
                where = ".".join(str(part) for part in first["loc"])
                raise damaged(path, f"{where}: {first['msg'].lower()}") from None
        except ResultError as error:
            log.warning("A benchmark is skipped: %s", error)
            skipped.append({"run_id": folder.name, "reason": str(error)})
        else:
            found.append(result)
    return found, skipped
