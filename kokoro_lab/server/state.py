"""The state that the blueprints of one application share: engine, settings, slots, syntheses, figures."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flask import Flask, current_app

from kokoro_lab.config import Settings
from kokoro_lab.server.health.background import WarmUp
from kokoro_lab.server.health.degrade import Degrader
from kokoro_lab.server.health.figures import ServerFigures
from kokoro_lab.server.health.watchdog import Watchdog
from kokoro_lab.server.requests.slots import Admission, Slots
from kokoro_lab.server.requests.syntheses import Syntheses

if TYPE_CHECKING:
    # For type checking alone: gunicorn's master process must not load ONNX Runtime before it forks
    from kokoro_lab.speech.engine import Engine

EXTENSION = "kokoro_lab"
SOCKETS = 16
"""WebSockets that may be open at a time; each takes a thread of the server."""
SENDERS = 4
"""How many computed files may be sent at a time, besides the slots; each takes a thread, too."""


@dataclass(slots=True, eq=False)
class ServerState:
    """One engine being served. `worker` counts the processes that this server has had."""

    engine: Engine
    settings: Settings
    slots: Slots
    degrader: Degrader
    admission: Admission
    syntheses: Syntheses
    watchdog: Watchdog
    figures: ServerFigures = field(default_factory=ServerFigures)
    warm_up: WarmUp = field(default_factory=WarmUp)
    sockets: Slots = field(default_factory=lambda: Slots(SOCKETS))
    senders: Slots = field(default_factory=lambda: Slots(SENDERS))
    faults: Callable[[], dict[str, Any]] | None = None
    """Returns the figures of injected faults; None if no faults can be injected."""
    started_s: float = field(default_factory=time.monotonic)
    worker: int = 1
    connections: Callable[[], dict[str, Any]] | None = None
    """Returns the figures of open connections; None under another WSGI server than ours."""


def state_of(app: Flask) -> ServerState:
    """The state of an application that `create_app` has made."""
    state: ServerState = app.extensions[EXTENSION]
    return state


def server_state() -> ServerState:
    """The state of the application that is handling the current request."""
    return state_of(current_app)
