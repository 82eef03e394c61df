"""`/benchmarks` without the extra `lab`: answers with the command that installs it."""

from __future__ import annotations

import logging
from typing import NoReturn

from flask import Blueprint, Flask

from kokoro_lab.errors import MissingExtra, install
from kokoro_lab.server.openapi.document import documented
from kokoro_lab.server.state import state_of

log = logging.getLogger(__name__)

blueprint = Blueprint("without_lab", __name__)


def hang_into(app: Flask) -> None:
    """Add the routes to `app`. If the settings ask for benchmarks at intervals, log that the lab is
    missing."""
    settings = state_of(app).settings
    app.register_blueprint(blueprint)
    if settings.benchmark_interval_s and not settings.skip_benchmarking:
        log.warning("No benchmark is begun at intervals, since the lab is not installed. %s", install("lab"))


@blueprint.get("/benchmarks")
@blueprint.post("/benchmarks")
@documented(errors=(404,))
def benchmarks() -> NoReturn:
    """Refused with 404: benchmarks need the extra `lab`, which is not installed."""
    raise MissingExtra("lab", "What benchmarks this engine")


@blueprint.get("/benchmarks/<run_id>")
@documented(errors=(404,))
def run(run_id: str) -> NoReturn:
    """Refused with 404: benchmarks need the extra `lab`, which is not installed."""
    benchmarks()
