"""`/debug/faults`: shows and changes injected faults; only with the setting `KOKORO_FAULTS`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from flask import Blueprint, Flask, current_app, request
from pydantic import BaseModel, ConfigDict

from kokoro_lab.lab.faults import Injector, Strike, load_scenario, read_scenario
from kokoro_lab.lab.faults.injector import WholeStream
from kokoro_lab.lab.faults.scenario import READY
from kokoro_lab.server.http.guard import require_key
from kokoro_lab.server.openapi.document import documented
from kokoro_lab.server.openapi.schemas import Faults
from kokoro_lab.server.requests.json_body import optional_model
from kokoro_lab.server.state import EXTENSION, ServerState

if TYPE_CHECKING:
    # For type checking alone: gunicorn's master process must not load ONNX Runtime before it forks
    from kokoro_lab.speech.engine import Engine

_INJECTOR = "kokoro_lab.faults"

blueprint = Blueprint("faults", __name__, url_prefix="/debug")
blueprint.before_request(require_key)


class FaultJournal(Faults):
    """The faults that were injected, and the streams that were spoken, since the scenario was set."""

    strikes: list[Strike]
    spoken: list[WholeStream]


class ArmRequest(BaseModel):
    """A scenario as in `fixtures/faults`; null removes the present scenario."""

    model_config = ConfigDict(extra="forbid")

    scenario: dict[str, Any] | None = None


def injected(engine: Engine, setting: str) -> tuple[Engine, Injector | None]:
    """`engine` with the faults that `KOKORO_FAULTS` names, and their injector; `engine` itself if it names
    none.

    Raises
    ------
    ParameterError
        There is no such scenario, or its file is wrong.
    """
    if not setting:
        return engine, None
    from kokoro_lab.lab.faults.engine import FaultyEngine

    injector = Injector(None if setting == READY else load_scenario(setting))
    return FaultyEngine(engine, injector), injector


def hang_into(app: Flask, injector: Injector) -> None:
    """Add the routes to `app`."""
    state: ServerState = app.extensions[EXTENSION]
    state.faults = injector.figures
    app.extensions[_INJECTOR] = injector
    app.register_blueprint(blueprint)


@blueprint.post("/faults")
@documented(body=ArmRequest, optional_body=True, answer=FaultJournal, errors=(401,))
def arm() -> dict[str, Any]:
    """Inject the faults of a scenario instead of the present ones, and begin to count anew."""
    scenario = optional_model(request, ArmRequest).scenario
    _injector().arm(None if scenario is None else read_scenario(json.dumps(scenario), "scenario"))
    return _injector().journal()


@blueprint.get("/faults")
@documented(answer=FaultJournal, errors=(401,))
def journal() -> dict[str, Any]:
    """The faults that were injected, and the streams that were spoken, since the scenario was set."""
    return _injector().journal()


def _injector() -> Injector:
    injector: Injector = current_app.extensions[_INJECTOR]
    return injector
