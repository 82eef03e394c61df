"""The real server on the humming engine, for a process of its own. Settings come by environment."""

from __future__ import annotations

import sys
from pathlib import Path

from flask import Flask

from kokoro_lab.config import settings
from kokoro_lab.serve import create_app, serve
from kokoro_lab.server.health.background import Stages
from kokoro_lab.server.http import worker

STALL_S = 1.0
BODY_S = 2.0
HEAD_S = 2.0
MOST_HELD_BYTES = 2_000_000


def make_app(begins: Stages) -> Flask:
    begins("imports")
    from tests.server import scripted  # loads ONNX Runtime, which must not happen before the fork

    begins("graphs")
    engine = scripted.engine(Path(sys.argv[1]))
    begins.end()
    app = create_app(engine, settings(), loaded_s=begins.finished_s)
    if "patient" not in sys.argv:
        app.config["STALL_S"] = STALL_S
        worker.BODY_S = BODY_S
        worker.HEAD_S = HEAD_S
    return app


if __name__ == "__main__":
    worker.MOST_HELD_BYTES = MOST_HELD_BYTES  # before the fork
    serve(make_app, settings().model_copy(update={"verbose_logs": True}), wyoming="wyoming" in sys.argv)
