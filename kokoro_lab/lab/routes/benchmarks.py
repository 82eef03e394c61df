"""`/benchmarks`: what was measured on this machine, and a benchmark of the engine that is being served."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flask import Blueprint, Flask, abort, current_app, request
from pydantic import ValidationError
from werkzeug.exceptions import NotFound

from kokoro_lab.containers.plain_json import damaged, read_object
from kokoro_lab.errors import KokoroLabError, ParameterError, ResultError
from kokoro_lab.lab.routes.benchmark_schemas import (
    RUN_ID,
    BenchmarkRequest,
    BenchmarkResult,
    BenchmarkRuns,
    BenchmarkState,
)
from kokoro_lab.lab.routes.schedule import Schedule
from kokoro_lab.server.health.background import wait_until_idle
from kokoro_lab.server.http.guard import require_key
from kokoro_lab.server.openapi.document import Parameter, documented, operation_id
from kokoro_lab.server.requests.json_body import optional_model
from kokoro_lab.server.requests.slots import Slots
from kokoro_lab.server.state import EXTENSION, ServerState, server_state

if TYPE_CHECKING:
    from kokoro_lab.speech.engine import Engine

log = logging.getLogger(__name__)

blueprint = Blueprint("benchmarks", __name__)

_BENCHMARKS = "kokoro_lab.benchmarks"
MOST_LISTED = 50
MOST_NAMED = 3


def _run_link(run_id: str) -> dict[str, Any]:
    return {
        "operationId": operation_id("get", "benchmarks.run"),
        "parameters": {"run_id": run_id},
        "description": "Once it is finished",
    }


class Benchmarks:
    """At most one benchmark at a time, in the background, spoken only while nobody is being served.

    Parameters
    ----------
    engine : Engine
    slots : Slots
        Where live requests are seen.

    Attributes
    ----------
    schedule : Schedule or None
        What begins them at intervals; None where nothing does.
    """

    def __init__(self, engine: Engine, slots: Slots) -> None:
        self.schedule: Schedule | None = None
        self._engine = engine
        self._slots = slots
        self._lock = threading.Lock()
        self._current: BenchmarkState | None = None

    @property
    def current(self) -> BenchmarkState | None:
        """The one under way, or the last one of this server."""
        return self._current

    def begin(self, asked: BenchmarkRequest, voice: str, *, scheduled: bool = False) -> BenchmarkState | None:
        """Begin one; None if one is under way."""
        with self._lock:
            if self._current is not None and self._current.state in ("waiting", "running"):
                return None
            from kokoro_lab.lab.results import new_run_folder  # loads ONNX Runtime: not before the fork

            folder = new_run_folder("bench")
            self._current = state = BenchmarkState(
                run_id=folder.name,
                state="waiting",
                preset=asked.preset,
                trials=asked.trials,
                finished_trials=0,
                disturbed=0,
                scheduled=scheduled,
            )
        arguments = (folder, state, voice)
        threading.Thread(target=self._run, args=arguments, name="benchmark", daemon=True).start()
        return state

    def _run(self, folder: Path, state: BenchmarkState, voice: str) -> None:
        try:
            self._measure(folder, state, voice)
        except Exception as error:
            known = isinstance(error, KokoroLabError)
            state.reason = str(error) if known else f"{type(error).__name__}; the log says more."
            state.state = "failed"
            log.error("The benchmark %s failed: %s", state.run_id, state.reason, exc_info=not known)
        else:
            state.state = "finished"

    def _measure(self, folder: Path, state: BenchmarkState, voice: str) -> None:
        # Here, and not above: these load pandas and the engine, which no request needs
        from kokoro_lab.lab.bench import report
        from kokoro_lab.lab.bench.considerate import measure_considerately
        from kokoro_lab.lab.bench.texts import PRESETS, sentences_of, texts_of
        from kokoro_lab.lab.bench.timing import InProcess
        from kokoro_lab.lab.fixtures import load_texts

        def wait() -> None:
            state.state = "waiting"
            wait_until_idle(self._slots)
            state.state = "running"

        def done(count: int) -> None:
            state.finished_trials = count

        corpus = sentences_of([t.text for t in load_texts() if t.kind in ("prose", "short", "long")])
        texts = list(texts_of(corpus, PRESETS[state.preset], state.trials))
        speaker = InProcess(self._engine, voice, cached=False)
        trials, state.disturbed = measure_considerately(
            speaker, texts, wait=wait, wanted=lambda: not self._slots.idle(), done=done
        )
        report.keep(
            folder,
            trials,
            asked={
                "preset": state.preset,
                "trials": state.trials,
                "voice": voice,
                "streamed": True,
                "scheduled": state.scheduled,
            },
            conditions="warm, uncached, one at a time, in the server's process while nobody was served; "
            f"{state.disturbed} trials were given up for live requests and begun again",
            systems={speaker.name: speaker.facts()},
        )


def hang_into(app: Flask) -> None:
    """Let clients of `app` see benchmarks and begin them, and begin them at intervals where that is set."""
    state: ServerState = app.extensions[EXTENSION]
    settings = state.settings
    app.extensions[_BENCHMARKS] = benchmarks = Benchmarks(state.engine, state.slots)
    app.register_blueprint(blueprint)
    if settings.benchmark_interval_s and not settings.skip_benchmarking:
        benchmarks.schedule = Schedule(
            benchmarks,
            state.slots,
            settings.voice,
            settings.benchmark_interval_s,
            ready=lambda: state.warm_up.state == "ok",
        )
        benchmarks.schedule.start()


def benchmarks_of(app: Flask) -> Benchmarks:
    """Those of an application that `hang_into` was called with."""
    benchmarks: Benchmarks = app.extensions[_BENCHMARKS]
    return benchmarks


@blueprint.get("/benchmarks")
@documented(answer=BenchmarkRuns, links={"latest": _run_link("$response.body#/runs/0/run_id")})
def runs() -> dict[str, Any]:
    """Benchmarks on this machine, the latest first, and when the server begins the next by itself."""
    found, skipped = _readable(_folders()[:MOST_LISTED])
    benchmarks = benchmarks_of(current_app)
    schedule = None if benchmarks.schedule is None else benchmarks.schedule.figures()
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
    # Compared with what is there, so that no path can be asked for
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
    state.engine.voice(voice)  # refuses a wrong one now, rather than in the background
    begun = benchmarks_of(current_app).begin(asked, voice)
    if begun is None:
        abort(409, "A benchmark is under way; GET /benchmarks shows how far it is.")
    return begun.model_dump(), 202


def _folders() -> list[Path]:
    """Of finished benchmarks, the latest first. None where there is no repository to keep them in."""
    try:
        from kokoro_lab.lab.results import results_folder

        found = (results_folder() / "bench").glob("*/result.json")
    except ParameterError:
        return []
    return sorted((path.parent for path in found), key=lambda folder: folder.name, reverse=True)


def _readable(folders: Iterable[Path]) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """The results of those that can be read; and of the others, `run_id` and the reason, which is logged."""
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
